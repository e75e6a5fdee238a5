"""Capability words of the auxiliary vector."""

import pytest

from nfd.errors import NfdError
from nfd_sources.cpu.hwcaps import (
    HWCAPS,
    Auxv,
    names_of,
    names_of_words,
    parse_auxv,
)


@pytest.mark.parametrize(
    ("arch", "word", "bit", "name"),
    [
        ("arm64", 0, 0, "FP"),
        ("arm64", 0, 11, "CPUID"),
        ("arm64", 0, 22, "SVE"),
        ("arm64", 0, 31, "PACG"),
        ("arm64", 1, 0, "DCPODP"),
        ("arm64", 1, 18, "MTE"),
        ("arm64", 1, 33, "SVEEBF16"),
        ("arm", 0, 13, "VFPv3"),
        ("arm", 0, 21, "EVTSTRM"),
        ("arm", 1, 4, "CRC32"),
        ("s390x", 0, 0, "ESAN3"),
        ("s390x", 0, 22, "SIE"),
        ("ppc64le", 0, 31, "PPC32"),
        ("ppc64le", 0, 17, "POWER5+"),
        ("ppc64le", 0, 0, "PPCLE"),
        ("ppc64le", 1, 24, "HTM-NOSC"),
        ("ppc64le", 1, 17, "MMA"),
    ],
)
def test_bits(arch: str, word: int, bit: int, name: str) -> None:
    """Ends and landmarks of each table, so that no row can be off by one."""
    auxv = Auxv(*((1 << bit, 0) if word == 0 else (0, 1 << bit)))

    assert {name} == names_of(arch, auxv)


@pytest.mark.parametrize(
    ("arch", "first", "second"),
    [
        ("arm64", 32, 34),
        ("arm", 22, 5),
        ("s390x", 23, 0),
        ("ppc64le", 28, 15),
        ("ppc64", 28, 15),
    ],
)
def test_bits_without_name_are_ignored(arch: str, first: int, second: int) -> None:
    """Only the bits of the specification have names, whatever else is set."""
    everything = Auxv((1 << 64) - 1, (1 << 64) - 1)

    assert (first, second) == tuple(len(table) for table in HWCAPS[arch])
    assert len({n for table in HWCAPS[arch] for n in table.values()}) == len(
        names_of(arch, everything)
    )
    assert frozenset() == names_of("riscv64", everything)


def test_cpuinfo_words() -> None:
    """The words of cpuinfo are the names in lower case, but for one."""
    words = frozenset(["swp", "fastmult", "vfpv3d16", "neon", "madeup"])

    assert {"SWP", "FASTMUL", "VFPv3D16", "NEON"} == names_of_words("arm", words)
    assert frozenset() == names_of_words("mips", words)


def test_the_text_form_comes_back() -> None:
    """Writing and reading the words gives the same words."""
    auxv = Auxv(0xFFFF_FFFF, 1 << 33)

    assert auxv == parse_auxv(auxv.to_text())


@pytest.mark.parametrize("text", ["hwcap", "hwcap zz", "hwcap3 1", "\n"])
def test_bad_text_is_named(text: str) -> None:
    """A line in neither form is an error."""
    with pytest.raises(NfdError, match="auxv dump"):
        parse_auxv(text)
