"""Parsing /proc/cpuinfo of every architecture."""

import pytest

from nfd_sources.cpu import (
    cpuinfo,
    hwcaps,
    on_arm64,
    on_loongarch,
    on_riscv,
    on_s390x,
    x86_cpuinfo,
)
from nfd_sources.cpu.x86 import X86Model
from tests.sources.cpu.shared import kernel_words, need, text_of

ARCHSPEC = "hosts/cpuinfo-archspec.tar.xz"

X86 = """\
processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 97
siblings\t: 12
cpu cores\t: 6
flags\t\t: fpu cx8 cmov mmx fxsr sse sse2 ht syscall ibrs pku madeup

processor\t: 1
vendor_id\t: GenuineIntel
flags\t\t: avx
"""


def test_x86() -> None:
    """Flags and model come from the first processor; unknown words are dropped."""
    told = x86_cpuinfo.parse_x86(X86)

    assert told is not None
    assert X86Model("AMD", 25, 97) == told.model
    flags = "X87 CMPXCHG8 CMOV MMX FXSR FXSROPT SSE SSE2 HTT SYSCALL IBRS X86_64_V1"
    assert set(flags.split()) == told.flags


def test_x86_without_flags_tells_nothing() -> None:
    """A cpuinfo of another architecture is none of x86."""
    assert x86_cpuinfo.parse_x86("") is None
    assert x86_cpuinfo.parse_x86("processor : 0\nFeatures : fp\n") is None


@pytest.mark.parametrize(
    ("old", "new", "flag", "there"),
    [
        ("12", "6", "HTT", False),
        ("cpu cores\t: 6\n", "", "HTT", False),
        ("AuthenticAMD", "HygonGenuine", "HTT", False),
        ("AuthenticAMD", "GenuineIntel", "IBRS", False),
        ("AuthenticAMD", "HygonGenuine", "IBRS", True),
        ("pku", "xsave avx", "OSXSAVE", True),
        ("97", "x", "X87", True),
    ],
)
def test_x86_words_with_conditions(
    old: str, new: str, flag: str, *, there: bool
) -> None:
    """Some words mean a flag only on some processors."""
    told = x86_cpuinfo.parse_x86(X86.replace(old, new, 1))

    assert told is not None
    assert there == (flag in told.flags)


def test_the_words_are_those_of_the_specification() -> None:
    """Our map holds the specification's words, and only a few newer ones beside."""
    ours = {word: set(names) for word, names in x86_cpuinfo.X86_WORDS.items()}
    newer = {
        *("sm3", "sm4", "avx_ifma", "avx_ne_convert", "avx_vnni_int8"),
        *("avx_vnni_int16", "cmpccxadd", "invlpgb"),
    }
    by_rule = {"ht", "ibrs"}

    assert set(kernel_words()) - by_rule == set(ours) - newer
    for word, names in kernel_words().items():
        if word not in by_rule:
            assert names <= ours[word]


@pytest.mark.parametrize(
    ("words", "rdt"),
    [
        ("fpu cqm", ()),
        ("cqm_llc cqm_occup_llc", ("RDTMON", "RDTCMT")),
        ("cqm_llc cqm_mbm_total", ("RDTMON",)),
        ("cqm_llc cqm_mbm_total cqm_mbm_local", ("RDTMON", "RDTMBM")),
        ("rdt_a cat_l3 cat_l2 mba", ("RDTL3CA", "RDTL2CA", "RDTMBA")),
    ],
)
def test_rdt_words(words: str, rdt: tuple[str, ...]) -> None:
    """The kernel's words tell resource director technology, too."""
    told = x86_cpuinfo.parse_x86(f"flags : {words}\n")

    assert told is not None
    assert rdt == told.rdt


LEVELS = {
    "linux-centos7-cascadelake": 4,
    "linux-rhel6-piledriver": 2,
    "linux-rhel7-haswell": 3,
    "linux-rhel7-skylake_avx512": 4,
    "linux-rhel7-zen": 3,
    "linux-rocky8.5-zen4": 4,
    "linux-scientific7-k10": 1,
    "linux-scientificfermi6-bulldozer": 2,
    "linux-ubuntu18.04-broadwell": 3,
    "linux-ubuntu24.04-alderlake": 3,
    "linux-ubuntu26.04-arrowlake_s": 3,
}


@pytest.mark.parametrize(("name", "level"), LEVELS.items())
def test_levels_of_real_processors(name: str, level: int) -> None:
    """The level that cpuinfo's flags reach is the micro-architecture's."""
    need(ARCHSPEC)
    told = x86_cpuinfo.parse_x86(text_of(ARCHSPEC, f"cpuinfo-archspec/{name}"))

    assert told is not None
    assert {f"X86_64_V{n}" for n in range(1, level + 1)} == {
        flag for flag in told.flags if flag.startswith("X86_64_V")
    }


ARM64 = {
    "linux-amazon-neoverse_n1": ("ARM", "63", "53441", "LRCPC", "SVE"),
    "linux-asahi-m1": ("VendorUnknown", "31", "545", "FRINT", "BF16"),
    "linux-centos7-thunderx2": ("Cavium", "31", "2801", "ATOMICS", "SVE"),
    "linux-rhel9-neoverse_v2": ("ARM", "15", "54512", "SVEBF16", "SME"),
    "linux-ubuntu22.04-ampere1": ("Ampere", "15", "44081", "RNG", "SVE"),
    "linux-ubuntu22.04-neoverse_n2": ("ARM", "15", "54416", "SVE2", "SME"),
}


@pytest.mark.parametrize("name", ARM64)
def test_arm64(name: str) -> None:
    """Model and flags of real arm64 processors."""
    need(ARCHSPEC)
    text = text_of(ARCHSPEC, f"cpuinfo-archspec/{name}")
    vendor, family, number, there, missing = ARM64[name]
    midr = on_arm64.arm64_midr(text)
    flags = hwcaps.names_of_words("arm64", cpuinfo.feature_words(text, "Features"))

    assert midr is not None
    assert {
        "vendor_id": vendor,
        "family": family,
        "id": number,
        "hypervisor": "none",
    } == on_arm64.midr_model(midr)
    assert there in flags
    assert missing not in flags


@pytest.mark.parametrize("text", ["", "CPU implementer : 0x41\n", "CPU part : x\n"])
def test_no_midr(text: str) -> None:
    """A register is put together from all four lines or not at all."""
    assert on_arm64.arm64_midr(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            (
                "vendor_id : IBM/S390\nmachine : 3931\nmachine : 3932\n"
                "identification : 0A12\nidentification : 0A13\n"
            ),
            {"vendor_id": "IBM/S390", "family": "0A12", "id": "3932"},
        ),
        (
            "processor 0: version = 00,  identification = 001234,  machine = 2964\n",
            {"family": "001234", "id": "2964"},
        ),
        ("machine : 0\nidentification :\n", {}),
    ],
)
def test_s390x(text: str, expected: dict[str, str]) -> None:
    """The last machine and the first identification count; "0" tells nothing."""
    assert expected == on_s390x.s390x_model(text)


@pytest.mark.parametrize(
    ("sysinfo", "expected"),
    [
        ("", "none"),
        ("VM00 Control Program: z/VM    7.2.0\n", "z_VM_7.2.0"),
        ("VM00 Control Program: \nVM01 Control Program: KVM/Linux\n", "none"),
        ("Manufacturer: IBM\nVM00 Control Program: KVM/Linux\n", "KVM_Linux"),
    ],
)
def test_control_programs(sysinfo: str, expected: str) -> None:
    """The first control program in sysinfo is the hypervisor."""
    assert expected == on_s390x.control_program(sysinfo)


@pytest.mark.parametrize(
    ("isa", "flags"),
    [
        ("rv64imafdc", "A C D F I M"),
        ("rv64imac_zicsr_zba", "A C I M ZBA ZICSR"),
        ("rv32i", "I"),
        ("", ""),
        ("nonsense", ""),
    ],
)
def test_riscv_flags(isa: str, flags: str) -> None:
    """Single letters and long names are extensions of their own."""
    assert flags.split() == sorted(on_riscv.riscv_flags(f"isa\t: {isa}\n"))


def test_riscv_model() -> None:
    """Id registers that are zero or missing tell nothing."""
    text = "mvendorid\t: 0x489\nmarchid\t: 0x0\n"

    assert on_riscv.riscv_model(text) == {"vendor_id": "0x489"}


def test_loongarch_model() -> None:
    """Family and model name stand in cpuinfo; the vendor is in the family."""
    text = "CPU Family : Loongson-64bit\nModel Name : Loongson-3A5000-HV\n"

    assert on_loongarch.loongarch_model(text) == {
        "vendor_id": "Loongson",
        "family": "Loongson-64bit",
        "id": "Loongson-3A5000-HV",
    }
    assert on_loongarch.loongarch_model("") == {}
