"""Decoding CPUID registers into flags, model and attributes; pure.

Rules: spec/worker.md section 1.1.
"""

from collections.abc import Iterable
from typing import NamedTuple

from nfd_sources._sanitize import label_text
from nfd_sources.cpu.registers import EAX, EBX, ECX, EDX, Registers, ascii_text
from nfd_sources.cpu.x86_bits import (
    AMD,
    BANKS,
    FIXED_COUNTERS,
    HYPERVISORS,
    LEVELS,
    VENDORS,
    YMM_STATE,
    ZMM_STATE,
)

_YMM = 0b110
_ZMM = 0b1110_0110
_TDX_ON_HYPERV = 0xBE3
_TDX_GUEST = "IntelTDX    "


class X86Model(NamedTuple):
    """Who made the processor and which it is, as CPUID or cpuinfo tell."""

    vendor: str  # name of `VENDORS`, or "VendorUnknown"
    family: int
    model: int


def decode_model(registers: Registers) -> X86Model:
    """Return vendor, family and model (leaves 0 and 1)."""
    _, ebx, ecx, edx = registers.get(0)
    vendor = VENDORS.get(ascii_text(ebx, edx, ecx), "VendorUnknown")
    signature = registers.get(1)[EAX]
    family = base = signature >> 8 & 0xF
    model = signature >> 4 & 0xF
    if base == 0xF:
        family += signature >> 20 & 0xFF
    if base in {0x6, 0xF}:
        model += signature >> 12 & 0xF0
    return X86Model(vendor, family, model)


def decode_flags(registers: Registers) -> frozenset[str]:
    """Return the names of all features, `X86_64_V1` to `X86_64_V<level>` included."""
    if not registers.has(1):
        return frozenset()
    model = decode_model(registers)
    held: set[str] = set()
    states = registers.enabled_states
    conditions = {
        *([YMM_STATE] if states & _YMM == _YMM else ()),
        *([ZMM_STATE] if states & _ZMM == _ZMM else ()),
        *([AMD] if model.vendor == "AMD" else ()),
    }
    for bank in BANKS:
        value = registers.get(bank.leaf, bank.subleaf)[bank.register]
        if value and all(need in held or need in conditions for need in bank.needs):
            held.update(name for bit, name in bank.names.items() if value >> bit & 1)
    if registers.bit(1, 0, EDX, 28) and threads_per_core(registers) > 1:
        held.add("HTT")
    if "KEYLOCKER" in held and registers.get(0x19)[EBX] & 0b101 == 0b101:
        held.add("KEYLOCKERW")
    if _is_tdx_guest(registers):
        held.add("TDX_GUEST")
    held.update(_fixed_counters(registers))
    return with_derived(held, model)


def with_derived(flags: Iterable[str], model: X86Model) -> frozenset[str]:
    """Add what follows from flags and model: AVXSLOW, TSA immunity, the level."""
    held = set(flags)
    vendor, family, number = model.vendor, model.family, model.model
    if "AVX" in held and (
        (vendor == "Intel" and family == 6 and number < 60)
        or (vendor == "AMD" and (family < 23 or (family == 23 and number < 49)))
    ):
        held.add("AVXSLOW")
    if vendor == "AMD" and (
        family < 0x19 or (family == 0x1A and (number <= 0x4F or 0x60 <= number <= 0x7F))
    ):
        held.update(("TSA_L1_NO", "TSA_SQ_NO"))
    held.update(f"X86_64_V{n}" for n in range(1, level(held) + 1))
    return frozenset(held)


def level(flags: Iterable[str]) -> int:
    """Return the x86-64 micro-architecture level that the flags reach, 0 to 4."""
    held = frozenset(flags)
    if held.isdisjoint({"SYSEE", "SYSCALL"}):
        return 0
    reached = 0
    for wanted in LEVELS:
        if not wanted <= held:
            break
        reached += 1
    return reached


def threads_per_core(registers: Registers) -> int:
    """Return the number of threads that a core has; 1 where nothing tells."""
    model = decode_model(registers)
    if model.vendor not in {"Intel", "AMD"} or not registers.has(4):
        return 1
    intel = model.vendor == "Intel"
    several = registers.bit(1, 0, EDX, 28)
    if not registers.has(0xB):
        threads = registers.get(1)[EBX] >> 16 & 0xFF
        cores = (registers.get(4)[EAX] >> 26) + 1
        return threads // cores if intel and several and threads > 1 else 1
    if threads := registers.get(0xB)[EBX] & 0xFFFF:
        return threads
    if intel or model.family < 23 or not several:
        return 1
    if registers.has(0x8000_001E):
        return (registers.get(0x8000_001E)[EBX] >> 8 & 0xFF) + 1
    return 2


def _is_tdx_guest(registers: Registers) -> bool:
    if registers.has(0x20) and registers.get(0x4000_000C)[EBX] == _TDX_ON_HYPERV:
        return True
    _, ebx, ecx, edx = registers.get(0x21)
    return ascii_text(ebx, edx, ecx) == _TDX_GUEST


def _fixed_counters(registers: Registers) -> list[str]:
    eax, missing, _, edx = registers.get(0xA)
    version = eax & 0xFF
    if not version:
        return []
    count = edx & 0x1F if version > 1 else 0
    if missing:
        there = [n for bit, n in enumerate(FIXED_COUNTERS) if not missing >> bit & 1]
    else:
        there = list(FIXED_COUNTERS[:count]) if count in {3, 4} else []
    return [f"PMU_FIXEDCOUNTER_{name}" for name in there]


def avx10_version(registers: Registers) -> int:
    """Return the version of AVX10, 0 without."""
    return registers.get(0x24)[EBX] & 0xFF


def hypervisor(registers: Registers) -> str:
    """Return the hypervisor's name, "none" on bare metal, "unknown" for a nameless."""
    if not registers.bit(1, 0, ECX, 31):
        return "none"
    _, ebx, ecx, edx = registers.get(0x4000_0000)
    text = ascii_text(ebx, ecx, edx)
    return HYPERVISORS.get(text) or label_text(text) or "unknown"


def nominal_mhz(registers: Registers) -> int:
    """Return the base frequency in MHz that leaf 0x16 tells, 0 where it does not."""
    return registers.get(0x16)[EAX]


def epc_bytes(registers: Registers) -> int:
    """Return the summed size of the SGX enclave page cache sections (leaf 0x12)."""
    total = 0
    for subleaf in range(2, 10):
        eax, _, ecx, edx = registers.get(0x12, subleaf)
        if eax & 0xF == 0:
            break
        if eax & 0xF == 1:
            total += (ecx & 0xFFFF_F000) + ((edx & 0xF_FFFF) << 32)
    return total


def rdt(registers: Registers) -> list[str]:
    """Return the names of the resource director technologies (leaves 0xF, 0x10)."""
    found = []
    if registers.bit(7, 0, EBX, 12) and registers.bit(0xF, 0, EDX, 1):
        found.append("RDTMON")
        if registers.bit(0xF, 1, EDX, 0):
            found.append("RDTCMT")
        if registers.bit(0xF, 1, EDX, 1) and registers.bit(0xF, 1, EDX, 2):
            found.append("RDTMBM")
    if registers.bit(7, 0, EBX, 15):
        resources = {1: "RDTL3CA", 2: "RDTL2CA", 3: "RDTMBA"}
        found += [n for bit, n in resources.items() if registers.bit(0x10, 0, EBX, bit)]
    return found
