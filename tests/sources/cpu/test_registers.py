"""Registers and their text form."""

import pytest

from nfd.errors import NfdError
from nfd_sources.cpu.registers import (
    EBX,
    ECX,
    Registers,
    ascii_text,
    parse,
    to_text,
)


def test_the_text_form_comes_back() -> None:
    """Writing and reading registers gives the same registers."""
    registers = Registers(
        {(0, 0): (0x16, 1, 2, 3), (7, 1): (4, 5, 6, 0xFFFF_FFFF)}, xcr0=0x2E7
    )

    assert registers == parse(to_text(registers))


def test_a_mask_without_ecx_means_no_subleaf() -> None:
    """Where ecx was no input, what it held is not a subleaf."""
    registers = parse("# comment\n\n1 a 0 7 0 => 1 2 3 4\n5 d 0 1 0 => f a08 100 0\n")

    assert dict(registers.leaves) == {
        (0xA, 0): (1, 2, 3, 4),
        (0xD, 1): (0xF, 0xA08, 0x100, 0),
    }
    assert registers.xcr0 is None


@pytest.mark.parametrize(
    "line",
    ["1 0 0 0 0 -> 1 2 3 4", "1 0 0 0 0 => 1 2 3", "xcr0 zz", "1 g 0 0 0 => 1 2 3 4"],
)
def test_bad_lines_are_named(line: str) -> None:
    """A line in none of the forms is an error that shows it."""
    with pytest.raises(NfdError, match=line[:6]):
        parse(line)


def test_leaves_above_the_maximum_read_as_zeros() -> None:
    """What Intel answers above the maximum is the highest leaf, not an answer."""
    registers = Registers(
        {
            (0, 0): (0xB, 0, 0, 0),
            (0xB, 0): (1, 1, 0x100, 0),
            (0x16, 0): (1, 1, 0x100, 0),
            (0x8000_0000, 0): (1, 1, 0x100, 0),  # no extended leaves at all
            (0x8000_0001, 0): (1, 1, 0x100, 0),
            (0x4000_0000, 0): (0, 1, 2, 3),  # old KVM tells no maximum
        }
    )

    assert registers.get(0xB) == (1, 1, 0x100, 0)
    assert registers.get(0x16) == (0, 0, 0, 0)
    assert registers.get(0x8000_0001) == (0, 0, 0, 0)
    assert registers.get(0x4000_0000) == (0, 1, 2, 3)
    assert registers.bit(0xB, 0, EBX, 0)
    assert not registers.bit(0x16, 0, ECX, 8)


@pytest.mark.parametrize(
    ("osxsave", "xcr0", "expected"),
    [(1, 0x7, 0x7), (1, None, 0xE7), (0, 0x7, 0), (1, 0, 0)],
)
def test_vector_states(osxsave: int, xcr0: int | None, expected: int) -> None:
    """XCR0 counts with OSXSAVE only; without it, leaf 0xD says what is usual."""
    leaves = {
        (0, 0): (0xD, 0, 0, 0),
        (1, 0): (0, 0, osxsave << 27, 0),
        (0xD, 0): (0xE7, 0, 0, 0),
    }

    assert expected == Registers(leaves, xcr0).enabled_states


def test_registers_spell_text() -> None:
    """Register words are little-endian characters, NULs at the end dropped."""
    assert ascii_text(0x4B4D_564B, 0x564B_4D56, 0x4D) == "KVMKVMKVM"
