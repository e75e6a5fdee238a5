"""Decoding real processors' registers, against the answers recorded beside them."""

import pytest

from nfd_sources.cpu import x86
from nfd_sources.cpu.live import collect
from nfd_sources.cpu.on_x86 import from_registers
from nfd_sources.cpu.registers import NOTHING, Registers, parse, to_text
from nfd_sources.cpu.x86 import X86Model
from tests.sources.cpu.shared import (
    kernel_words,
    libcpuid_dump,
    members,
    need,
    text_of,
)

HWLOC = "hosts/cpuid-hwloc.tar.xz"
LIBCPUID = "hosts/cpuid-libcpuid.tar.xz"

# libcpuid's words where they are not Linux's.
ALIASES = {"pclmul": "pclmulqdq", "fma3": "fma", "xd": "nx"}
# libcpuid tells "ht" by the bit alone, ours (upstream's rule) by threads of a core.
BY_RULE = {"HTT"}
# libcpuid does not look at these bits for these vendors.
NOT_LOOKED_AT = {
    *(("VIA", "AMD3DNOW"), ("VIA", "NX"), ("VIA", "VMX")),
    *(("VendorUnknown", "NX"), ("VendorUnknown", "VMX")),
}

LIBCPUID_DUMPS = [
    name for name in members(LIBCPUID) if name.endswith(".test") and "/arm/" not in name
]


def answer_words(lines: list[str]) -> set[str]:
    """Return the feature words that libcpuid printed, in Linux's spelling."""
    last = [line for line in lines if line.strip()][-1]
    return {ALIASES.get(word, word) for word in last.split()}


@pytest.fixture(scope="module")
def vocabulary() -> set[str]:
    """Return the CPUID names that libcpuid has words for."""
    need(LIBCPUID)
    words = set()
    for name in LIBCPUID_DUMPS:
        words |= answer_words(libcpuid_dump(text_of(LIBCPUID, name))[1])
    known = kernel_words()
    return {name for word in words for name in known.get(word, ())} - BY_RULE


def test_the_dumps_are_there() -> None:
    """An empty list of dumps would prove nothing."""
    need(LIBCPUID)
    need(HWLOC)

    assert len(LIBCPUID_DUMPS) == 83
    assert len([name for name in members(HWLOC) if name.endswith("/pu0")]) == 7


@pytest.mark.parametrize("name", LIBCPUID_DUMPS)
def test_flags_equal_libcpuids(name: str, vocabulary: set[str]) -> None:
    """Our flags and libcpuid's agree, as far as libcpuid has words for them."""
    registers, answer = libcpuid_dump(text_of(LIBCPUID, name))
    words = answer_words(answer)
    told = {n for word in words for n in kernel_words().get(word, ())}
    flags = x86.decode_flags(registers)
    vendor = x86.decode_model(registers).vendor
    ignored = {flag for of, flag in NOT_LOOKED_AT if of == vendor} | {"FXSROPT"}

    assert (told & vocabulary) - ignored == (flags & vocabulary) - ignored


@pytest.mark.parametrize("name", LIBCPUID_DUMPS)
def test_family_and_model_equal_libcpuids(name: str) -> None:
    """Family and model agree; Zhaoxin's family 7 has no extended model for us."""
    registers, answer = libcpuid_dump(text_of(LIBCPUID, name))
    base_family, *_, family, model = (int(line) for line in _numbers(answer)[:5])
    ours = x86.decode_model(registers)

    assert family == ours.family
    if base_family in {6, 15}:
        assert model == ours.model


def _numbers(answer: list[str]) -> list[str]:
    lines = [line for line in answer if line.strip()]
    first = next(i for i, line in enumerate(lines) if line.strip().isdigit())
    return lines[first:]


MACHINES = {
    "AMD-17h-Zen-2xEpyc-7451": (X86Model("AMD", 23, 1), 3, 2, "", 0),
    "AMD-K10-MagnyCours-2xOpteron-6164HE": (X86Model("AMD", 16, 9), 1, 1, "", 0),
    "Hygon-Dhyana-32cores": (X86Model("Hygon", 24, 0), 3, 1, "", 0),
    "Intel-Haswell-2xXeon-E5-2680v3": (
        *(X86Model("Intel", 6, 63), 3, 2),
        *("RDTMON RDTCMT", 0),
    ),
    "Intel-RaptorLake-Corei7-1370P": (X86Model("Intel", 6, 186), 3, 2, "", 2200),
    "Intel-Skylake-2xXeon6140": (
        *(X86Model("Intel", 6, 85), 4, 2),
        *("RDTMON RDTCMT RDTMBM RDTL3CA RDTMBA", 2300),
    ),
    "Zhaoxin-Shanghai-KaiSheng-ZXC+-FC1081": (
        *(X86Model("VendorUnknown", 6, 25), 2, 1),
        *("", 0),
    ),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_hwloc_machines(machine: str) -> None:
    """Model, level, threads, RDT and frequency are those of the machine's name."""
    need(HWLOC)
    registers = parse(text_of(HWLOC, f"cpuid-hwloc/{machine}/pu0"))
    model, level, threads, rdt, mhz = MACHINES[machine]

    assert model == x86.decode_model(registers)
    assert level == x86.level(x86.decode_flags(registers))
    assert threads == x86.threads_per_core(registers)
    assert rdt.split() == x86.rdt(registers)
    assert mhz == x86.nominal_mhz(registers)


def test_a_hybrid_differs_between_its_cores_only_in_threads() -> None:
    """The flags do not depend on the core that executes, but for hyper-threading."""
    need(HWLOC)
    folder = "cpuid-hwloc/Intel-RaptorLake-Corei7-1370P"
    dumps = [name for name in members(HWLOC) if name.startswith(f"{folder}/pu")]
    flags = {
        x86.decode_flags(parse(text_of(HWLOC, name)))
        - {"HTT", "PMU_FIXEDCOUNTER_TOPDOWN_SLOTS"}
        for name in dumps
    }

    assert len(dumps) == 20
    assert len(flags) == 1


@pytest.mark.parametrize("machine", MACHINES)
def test_the_sweep_asks_for_all_that_the_decoders_look_at(machine: str) -> None:
    """Decoding the sweep's leaves gives the same as decoding the whole dump."""
    need(HWLOC)
    whole = parse(text_of(HWLOC, f"cpuid-hwloc/{machine}/pu0"))
    assert_sweep_suffices(whole)


@pytest.mark.parametrize("name", LIBCPUID_DUMPS)
def test_the_sweep_suffices_for_old_and_new_processors(name: str) -> None:
    """The same, for the processors that libcpuid knows."""
    whole, _ = libcpuid_dump(text_of(LIBCPUID, name))
    assert_sweep_suffices(whole)


def assert_sweep_suffices(whole: Registers) -> None:
    def cpuid(leaf: int, subleaf: int) -> tuple[int, int, int, int]:
        return whole.leaves.get((leaf, subleaf), NOTHING)

    swept = collect(cpuid, lambda: whole.enabled_states)

    assert len(swept.leaves) <= 30
    assert from_registers(whole) == from_registers(swept)
    assert from_registers(swept) == from_registers(parse(to_text(swept)))
