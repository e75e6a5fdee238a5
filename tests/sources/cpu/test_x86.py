"""Decoding of x86 registers, on made-up registers."""

import csv

import pytest

from nfd_sources.cpu import x86
from nfd_sources.cpu.registers import ECX, EDX, Registers, Words
from nfd_sources.cpu.x86_bits import BANKS, VENDORS, Bank
from tests.sources.cpu.shared import need

OSXSAVE = 0b11 << 26  # XSAVE and OSXSAVE
AVX = OSXSAVE | 1 << 28
HYPERVISOR = 1 << 31
HT = 1 << 28


def text_words(text: str) -> tuple[int, int, int]:
    """Return the words that spell a text of 12 characters."""
    raw = text.encode().ljust(12, b"\0")
    one, two, three = (int.from_bytes(raw[i : i + 4], "little") for i in (0, 4, 8))
    return one, two, three


def registers(
    leaves: dict[int | tuple[int, int], tuple[int, ...]],
    *,
    vendor: str = "GenuineIntel",
    family: int = 6,
    model: int = 0x55,
    xcr0: int | None = None,
) -> Registers:
    """Build registers with every maximum high enough."""
    ebx, edx, ecx = text_words(vendor)
    base = min(family, 0xF)
    signature = (family - base) << 20 | base << 8 | model >> 4 << 16 | model % 16 << 4
    full: dict[tuple[int, int], Words] = {
        (0, 0): (0x24, ebx, ecx, edx),
        (0x8000_0000, 0): (0x8000_0021, 0, 0, 0),
        (0x4000_0000, 0): (0x4000_000C, 0, 0, 0),
    }
    for key, words in leaves.items():
        eax, ebx, ecx, edx = (*words, 0, 0, 0, 0)[:4]
        full[key if isinstance(key, tuple) else (key, 0)] = eax, ebx, ecx, edx
    one = full.get((1, 0), (0, 0, 0, 0))
    full[1, 0] = signature, *one[1:]
    return Registers(full, xcr0)


def table_bits() -> set[tuple[str, int, int, int, int]]:
    rows = set()
    with need("spec/cpuid_bits.tsv").open(encoding="utf-8") as table:
        for row in csv.reader(table, delimiter="\t"):
            if row and not row[0].startswith("#") and row[1] != "-":
                register = ["eax", "ebx", "ecx", "edx"].index(row[3])
                rows.add((row[0], int(row[1], 16), int(row[2]), register, int(row[4])))
    return rows


def test_the_banks_hold_every_bit_of_the_specification() -> None:
    """Our table and the specification's name the same bits."""
    ours = {
        (name, bank.leaf, bank.subleaf, bank.register, bit)
        for bank in BANKS
        for bit, name in bank.names.items()
    }
    # A rule in code, and one bit of two names that the table has once.
    by_rule = {("HTT", 1, 0, EDX, 28)}
    only_ours = {("POPCNT", 0x8000_0001, 0, ECX, 5)}

    assert table_bits() - by_rule == ours - only_ours


@pytest.mark.parametrize("bank", BANKS, ids=lambda bank: "-".join(bank.names.values()))
def test_every_bit_gives_its_name(bank: Bank) -> None:
    """Each named bit alone, its needs met, gives its name."""
    needs: dict[int | tuple[int, int], list[int]] = {
        (1, 0): [0, 0, AVX, 0],
        (7, 0): [0, 1 << 2 | 1 << 3, 0, 0],  # SGX, BMI1
        (7, 1): [0, 0, 0, 1 << 19],  # AVX10
        (0x8000_0001, 0): [0, 0, 1 << 2 | 1 << 10, 0],  # SVM, IBS
    }
    vendor = "AuthenticAMD" if bank.leaf > 0x8000_0000 else "GenuineIntel"
    for bit, name in bank.names.items():
        leaves = {key: list(words) for key, words in needs.items()}
        words = leaves.setdefault((bank.leaf, bank.subleaf), [0, 0, 0, 0])
        words[bank.register] |= 1 << bit

        with_bit = x86.decode_flags(
            registers(
                {key: tuple(value) for key, value in leaves.items()},
                vendor=vendor,
                family=0x19,
                xcr0=0xE7,
            )
        )

        assert name in with_bit


@pytest.mark.parametrize(
    ("xcr0", "there"),
    [
        (0x1, set()),
        (0x3, set()),
        (0x7, {"AVX", "AVX2", "XOP"}),
        (0xE6, {"AVX", "AVX2", "AVX512F", "AMXTILE", "XOP"}),
        (0xE0, set()),
        (0x67, {"AVX", "AVX2", "XOP"}),
    ],
)
def test_vectors_need_their_state(xcr0: int, there: set[str]) -> None:
    """A vector extension that the system keeps off is not there."""
    flags = x86.decode_flags(
        registers(
            {
                1: (0, 0, AVX, 0),
                7: (0, 1 << 5 | 1 << 16, 0, 1 << 24),
                0x8000_0001: (0, 0, 1 << 11, 0),
            },
            xcr0=xcr0,
        )
    )

    assert there == flags & {"AVX", "AVX2", "AVX512F", "AMXTILE", "XOP"}


def test_no_leaf_no_flags() -> None:
    """A processor without leaf 1 has no flags and the level 0."""
    assert frozenset() == x86.decode_flags(Registers({(0, 0): (0, 0, 0, 0)}))
    assert frozenset() == x86.decode_flags(Registers({}))


@pytest.mark.parametrize(
    ("vendor", "family", "model", "slow", "immune"),
    [
        ("GenuineIntel", 6, 58, True, False),
        ("GenuineIntel", 6, 60, False, False),
        ("AuthenticAMD", 22, 0, True, True),
        ("AuthenticAMD", 23, 48, True, True),
        ("AuthenticAMD", 23, 49, False, True),
        ("AuthenticAMD", 0x19, 0x44, False, False),
        ("AuthenticAMD", 0x1A, 0x4F, False, True),
        ("AuthenticAMD", 0x1A, 0x50, False, False),
        ("AuthenticAMD", 0x1A, 0x60, False, True),
        ("AuthenticAMD", 0x1A, 0x80, False, False),
        ("HygonGenuine", 0x18, 0, False, False),
    ],
)
def test_flags_that_follow_from_the_model(
    vendor: str, family: int, model: int, *, slow: bool, immune: bool
) -> None:
    """AVXSLOW and the TSA immunity go by vendor, family and model."""
    flags = x86.decode_flags(
        registers(
            {1: (0, 0, AVX, 0)}, vendor=vendor, family=family, model=model, xcr0=7
        )
    )

    assert slow == ("AVXSLOW" in flags)
    assert immune == ("TSA_L1_NO" in flags) == ("TSA_SQ_NO" in flags)


@pytest.mark.parametrize(
    ("vendor", "family", "leaves", "threads"),
    [
        ("GenuineIntel", 6, {0xB: (1, 2)}, 2),
        ("GenuineIntel", 6, {0xB: (0, 0), 1: (0, 0, 0, HT)}, 1),
        ("AuthenticAMD", 0x19, {0xB: (1, 2)}, 2),
        ("AuthenticAMD", 0x17, {1: (0, 0, 0, HT), 0x8000_001E: (0, 0x0100)}, 2),
        ("AuthenticAMD", 0x17, {1: (0, 0, 0, HT), 0x8000_001E: (0, 0)}, 1),
        ("AuthenticAMD", 0x17, {0x8000_001E: (0, 0x0100)}, 1),
        ("AuthenticAMD", 0x15, {1: (0, 0, 0, HT), 0x8000_001E: (0, 0x0100)}, 1),
        (
            "AuthenticAMD",
            0x17,
            {1: (0, 0, 0, HT), 0x8000_0000: (0x8000_0008,)},
            2,
        ),
        ("HygonGenuine", 0x18, {0xB: (1, 2)}, 1),
        ("GenuineIntel", 6, {0: (0xA,), 1: (0, 8 << 16, 0, HT), 4: (3 << 26,)}, 2),
        ("GenuineIntel", 6, {0: (0xA,), 1: (0, 8 << 16, 0, 0), 4: (3 << 26,)}, 1),
        ("GenuineIntel", 6, {0: (0x3,), 0xB: (1, 2)}, 1),
    ],
)
def test_threads_per_core(
    vendor: str,
    family: int,
    leaves: dict[int | tuple[int, int], tuple[int, ...]],
    threads: int,
) -> None:
    """Threads come from leaf 0xB, else from what the vendor offers before it."""
    built = registers(leaves, vendor=vendor, family=family)
    if 0 in leaves:  # keep the vendor's text beside the other maximum
        ebx, edx, ecx = text_words(vendor)
        built = Registers({**built.leaves, (0, 0): (leaves[0][0], ebx, ecx, edx)})

    assert threads == x86.threads_per_core(built)
    has_bit = built.bit(1, 0, EDX, 28)
    assert (threads > 1 and has_bit) == ("HTT" in x86.decode_flags(built))


@pytest.mark.parametrize(
    ("ebx", "written"), [(0b101, True), (0b001, False), (0b100, False)]
)
def test_wide_key_locker(ebx: int, *, written: bool) -> None:
    """KEYLOCKERW needs both bits of leaf 0x19."""
    flags = x86.decode_flags(registers({7: (0, 0, 1 << 23), 0x19: (0, ebx)}))

    assert written == ("KEYLOCKERW" in flags)
    assert "KEYLOCKER" in flags


def test_tdx_guests() -> None:
    """A TDX guest shows itself in leaf 0x21, or under Hyper-V in 0x4000000C."""
    ebx, edx, ecx = text_words("IntelTDX    ")

    assert "TDX_GUEST" in x86.decode_flags(registers({0x21: (0, ebx, ecx, edx)}))
    assert "TDX_GUEST" in x86.decode_flags(registers({0x4000_000C: (0, 0xBE3)}))
    assert "TDX_GUEST" not in x86.decode_flags(registers({0x4000_000C: (0, 0xBE2)}))


@pytest.mark.parametrize(
    ("eax", "ebx", "edx", "names"),
    [
        (0, 0, 3, ""),
        (1, 0, 3, ""),
        (2, 0, 2, ""),
        (2, 0, 3, "INSTRUCTIONS CYCLES REFCYCLES"),
        (5, 0, 4, "INSTRUCTIONS CYCLES REFCYCLES TOPDOWN_SLOTS"),
        (5, 0b0101, 4, "CYCLES TOPDOWN_SLOTS"),
    ],
)
def test_fixed_counters(eax: int, ebx: int, edx: int, names: str) -> None:
    """The fixed counters follow from leaf 0xA, whose version must not be zero."""
    flags = x86.decode_flags(registers({0xA: (eax, ebx, 0, edx)}))
    beginning = "PMU_FIXEDCOUNTER_"

    assert set(names.split()) == {
        flag.removeprefix(beginning) for flag in flags if flag.startswith(beginning)
    }


V1 = ["CMOV", "CMPXCHG8", "X87", "FXSR", "MMX", "SSE", "SSE2", "SYSEE"]
V2 = [*V1, *["CX16", "LAHF", "POPCNT", "SSE3", "SSE4", "SSE42", "SSSE3"]]
V3 = [
    *V2,
    *["AVX", "AVX2", "BMI1", "BMI2", "F16C", "FMA3", "LZCNT", "MOVBE", "OSXSAVE"],
]
V4 = [*V3, *["AVX512F", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512VL"]]


@pytest.mark.parametrize(("level", "flags"), [(1, V1), (2, V2), (3, V3), (4, V4)])
def test_levels(level: int, flags: list[str]) -> None:
    """A level needs all its flags and those of the levels below."""
    assert level == x86.level(flags)
    below = {1: V1, 2: V2, 3: V3, 4: V4}.get(level - 1, [])
    for flag in set(flags) - set(below) - {"SYSEE"}:
        assert level - 1 == x86.level(set(flags) - {flag})


def test_no_level_without_system_calls() -> None:
    """SYSENTER or SYSCALL is the door to every level."""
    assert x86.level(set(V4) - {"SYSEE"}) == 0
    assert x86.level(set(V4) - {"SYSEE"} | {"SYSCALL"}) == 4


@pytest.mark.parametrize(("text", "vendor"), VENDORS.items())
def test_vendors(text: str, vendor: str) -> None:
    """Every vendor text of the specification has its name."""
    assert vendor == x86.decode_model(registers({}, vendor=text)).vendor


@pytest.mark.parametrize(
    ("family", "model"), [(6, 0xCF), (0xF, 0x41), (0x1A, 0x44), (0x19, 0x61)]
)
def test_family_and_model(family: int, model: int) -> None:
    """The extended parts count for families 6 and 15 and above."""
    decoded = x86.decode_model(registers({}, family=family, model=model))

    assert (family, model) == (decoded.family, decoded.model)


def test_the_extended_model_does_not_count_in_other_families() -> None:
    """Family 7 keeps the four bits of its model."""
    decoded = x86.decode_model(registers({}, family=7, model=0x3B, vendor="nobody"))

    assert x86.X86Model("VendorUnknown", 7, 0xB) == decoded


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("KVMKVMKVM", "kvm"),
        ("Microsoft Hv", "msvm"),
        ("VMwareVMware", "vmware"),
        ("XenVMMXenVMM", "xenhvm"),
        ("bhyve bhyve ", "bhyve"),
        ("GenuineIntel", "intel"),
        ("My (new) VMM", "My_new_VMM"),
        ("", "unknown"),
    ],
)
def test_hypervisors(text: str, name: str) -> None:
    """The hypervisor's text has a name; unknown texts are made fit for labels."""
    leaves: dict[int | tuple[int, int], tuple[int, ...]] = {
        1: (0, 0, HYPERVISOR),
        0x4000_0000: (0x4000_0001, *text_words(text)),
    }

    assert name == x86.hypervisor(registers(leaves))
    assert x86.hypervisor(registers({**leaves, 1: (0, 0, 0)})) == "none"


def test_enclave_page_cache() -> None:
    """Sections of type 1 add up until one of type 0 ends the list."""
    section = (0x7000_0001, 0x1, 0x0300_0001, 0x2)
    other = (0x2, 0, 0x1000, 0)
    leaves: dict[int | tuple[int, int], tuple[int, ...]] = {
        (0x12, 2): section,
        (0x12, 3): other,
        (0x12, 4): section,
        (0x12, 6): section,
    }

    assert x86.epc_bytes(registers(leaves)) == 2 * (0x0300_0000 + (2 << 32))


@pytest.mark.parametrize(
    ("leaves", "names"),
    [
        ({7: (0, 1 << 12), 0xF: (0, 0, 0, 2)}, "RDTMON"),
        ({7: (0, 1 << 12), (0xF, 1): (0, 0, 0, 7)}, ""),
        (
            {7: (0, 1 << 12), 0xF: (0, 0, 0, 2), (0xF, 1): (0, 0, 0, 0b011)},
            "RDTMON RDTCMT",
        ),
        (
            {7: (0, 1 << 12), 0xF: (0, 0, 0, 2), (0xF, 1): (0, 0, 0, 0b110)},
            "RDTMON RDTMBM",
        ),
        ({7: (0, 1 << 15), 0x10: (0, 0b1110)}, "RDTL3CA RDTL2CA RDTMBA"),
        ({7: (0, 0), 0x10: (0, 0b1110)}, ""),
    ],
)
def test_resource_director_technology(
    leaves: dict[int | tuple[int, int], tuple[int, ...]], names: str
) -> None:
    """RDT goes by leaves 0xF and 0x10, and only where leaf 7 announces them."""
    assert names.split() == x86.rdt(registers(leaves))


def test_single_numbers() -> None:
    """The AVX10 version and the nominal frequency are read as they stand."""
    built = registers({0x24: (0, 0x0007_0002), 0x16: (2300, 3700, 100)})

    assert x86.avx10_version(built) == 2
    assert x86.nominal_mhz(built) == 2300
    assert x86.nominal_mhz(Registers({(0, 0): (0x15, 0, 0, 0)})) == 0
