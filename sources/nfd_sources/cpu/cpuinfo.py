"""Parsing /proc/cpuinfo, and the names of its feature words; pure.

This is the way for captures without a CPUID or auxv dump, for hosts that forbid
executable pages, and for architectures whose facts lie nowhere else.
"""

import re
from collections.abc import Iterable, Mapping

import attrs

from nfd_sources.cpu.x86 import X86Model, with_derived
from nfd_sources.cpu.x86_bits import VENDORS

# Linux's words for x86 features (arch/x86/include/asm/cpufeatures.h) -> CPUID names.
# A word that the kernel shows is usable: it hides AVX, AMX and the like without the
# state in XCR0. "xsave" implies OSXSAVE, and "sse" is FXSROPT for upstream.
# fmt: off
X86_WORDS: Mapping[str, tuple[str, ...]] = {
    "sse": ("SSE", "FXSROPT"),
    "xsave": ("XSAVE", "OSXSAVE"),
    **{word: (name,) for word, name in (
        ("3dnow", "AMD3DNOW"), ("3dnowext", "AMD3DNOWEXT"), ("abm", "LZCNT"),
        ("adx", "ADX"), ("aes", "AESNI"), ("amd_ppin", "PPIN"),
        ("amx_bf16", "AMXBF16"), ("amx_int8", "AMXINT8"), ("amx_tile", "AMXTILE"),
        ("arch_capabilities", "IA32_ARCH_CAP"), ("avx", "AVX"), ("avx2", "AVX2"),
        ("avx512_bf16", "AVX512BF16"), ("avx512_bitalg", "AVX512BITALG"),
        ("avx512_fp16", "AVX512FP16"), ("avx512_vbmi2", "AVX512VBMI2"),
        ("avx512_vnni", "AVX512VNNI"), ("avx512_vp2intersect", "AVX512VP2INTERSECT"),
        ("avx512_vpopcntdq", "AVX512VPOPCNTDQ"), ("avx512bw", "AVX512BW"),
        ("avx512cd", "AVX512CD"), ("avx512dq", "AVX512DQ"), ("avx512er", "AVX512ER"),
        ("avx512f", "AVX512F"), ("avx512ifma", "AVX512IFMA"),
        ("avx512pf", "AVX512PF"), ("avx512vbmi", "AVX512VBMI"),
        ("avx512vl", "AVX512VL"), ("avx_ifma", "AVXIFMA"),
        ("avx_ne_convert", "AVXNECONVERT"), ("avx_vnni", "AVXVNNI"),
        ("avx_vnni_int16", "AVXVNNIINT16"), ("avx_vnni_int8", "AVXVNNIINT8"),
        ("bmi1", "BMI1"), ("bmi2", "BMI2"), ("cldemote", "CLDEMOTE"),
        ("clzero", "CLZERO"), ("cmov", "CMOV"), ("cmpccxadd", "CMPCCXADD"),
        ("cpb", "CPBOOST"), ("cppc", "CPPC"), ("cx16", "CX16"), ("cx8", "CMPXCHG8"),
        ("debug_swap", "SEV_DEBUGSWAP"), ("decodeassists", "SVMDA"),
        ("enqcmd", "ENQCMD"), ("erms", "ERMS"), ("f16c", "F16C"),
        ("flush_l1d", "FLUSH_L1D"), ("flushbyasid", "SVMFBASID"), ("fma", "FMA3"),
        ("fma4", "FMA4"), ("fpu", "X87"), ("fsrm", "FSRM"), ("fxsr", "FXSR"),
        ("fxsr_opt", "FXSROPT"), ("gfni", "GFNI"), ("hle", "HLE"),
        ("hypervisor", "HYPERVISOR"), ("ibpb", "IBPB"), ("ibs", "IBS"),
        ("ibt", "CETIBT"),
        ("invlpgb", "INVLPGB"), ("irperf", "MSRIRC"), ("lahf_lm", "LAHF"),
        ("lam", "LAM"), ("lbrv", "LBRVIRT"), ("md_clear", "MD_CLEAR"),
        ("mmx", "MMX"), ("mmxext", "MMXEXT"), ("movbe", "MOVBE"),
        ("movdir64b", "MOVDIR64B"), ("movdiri", "MOVDIRI"), ("mpx", "MPX"),
        ("npt", "SVMNP"), ("nrip_save", "NRIPS"), ("nx", "NX"),
        ("overflow_recov", "MCAOVERFLOW"), ("pausefilter", "SVMPF"),
        ("pclmulqdq", "CLMUL"), ("pconfig", "PCONFIG"), ("pfthreshold", "SVMPFT"),
        ("pni", "SSE3"), ("popcnt", "POPCNT"), ("rdpru", "RDPRU"),
        ("rdrand", "RDRAND"), ("rdseed", "RDSEED"), ("rdtscp", "RDTSCP"),
        ("rtm", "RTM"), ("sep", "SYSEE"), ("serialize", "SERIALIZE"), ("sev", "SEV"),
        ("sev_es", "SEV_ES"), ("sev_snp", "SEV_SNP"), ("sgx", "SGX"),
        ("sgx_lc", "SGXLC"), ("sha_ni", "SHA"), ("sm3", "SM3_X86"),
        ("sm4", "SM4_X86"), ("sme", "SME"), ("ssbd", "SPEC_CTRL_SSBD"),
        ("sse2", "SSE2"), ("sse4_1", "SSE4"), ("sse4_2", "SSE42"), ("sse4a", "SSE4A"),
        ("ssse3", "SSSE3"), ("stibp", "STIBP"), ("succor", "SUCCOR"), ("svm", "SVM"),
        ("svm_lock", "SVML"), ("syscall", "SYSCALL"), ("tdx_guest", "TDX_GUEST"),
        ("tme", "TME"), ("topoext", "TOPEXT"), ("tsc_scale", "TSCRATEMSR"),
        ("tsxldtrk", "TSXLDTRK"), ("vaes", "VAES"), ("vmcb_clean", "VMCBCLEAN"),
        ("vmx", "VMX"), ("vpclmulqdq", "VPCLMULQDQ"), ("waitpkg", "WAITPKG"),
        ("wbnoinvd", "WBNOINVD"), ("xgetbv1", "XGETBV1"), ("xop", "XOP"),
        ("xsavec", "XSAVEC"), ("xsaveopt", "XSAVEOPT"), ("xsaves", "XSAVES"),
    )},
}
# fmt: on

# Linux's words for resource director technology -> names of cpu.rdt.
_RDT_MONITORING = "cqm_llc"
_RDT_WORDS = {
    "cqm_occup_llc": "RDTCMT",
    "cat_l3": "RDTL3CA",
    "cat_l2": "RDTL2CA",
    "mba": "RDTMBA",
}

_OLD_S390_CPU = re.compile(
    r"^processor \d+: version = \w+,\s*identification = (\w+),\s*machine = (\w+)",
    re.MULTILINE,
)


def first_fields(text: str) -> dict[str, str]:
    """Return the fields of the first processor, and those that stand once for all.

    Lines are `name : value`, both sides trimmed; the first of several lines with
    one name counts.
    """
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            name = name.strip()
            if name == "processor" and name in fields:
                break
            fields.setdefault(name, value.strip())
    return fields


@attrs.frozen(slots=True)
class X86Cpuinfo:
    """What the x86 cpuinfo of one processor tells."""

    model: X86Model
    flags: frozenset[str]
    rdt: tuple[str, ...]


def parse_x86(text: str) -> X86Cpuinfo | None:
    """Read vendor, family, model and flags; None when there are no flags.

    Source: Documentation/arch/x86/cpuinfo.rst.
    """
    fields = first_fields(text)
    words = frozenset(fields.get("flags", "").split())
    if not words:
        return None
    vendor = VENDORS.get(fields.get("vendor_id", ""), "VendorUnknown")
    model = X86Model(
        vendor, _number(fields.get("cpu family")), _number(fields.get("model"))
    )
    flags = {name for word in words for name in X86_WORDS.get(word, ())}
    # On Intel the kernel makes up "ibrs" from another bit.
    if "ibrs" in words and vendor in {"AMD", "Hygon"}:
        flags.add("IBRS")
    cores = _number(fields.get("cpu cores"))
    if "ht" in words and vendor in {"AMD", "Intel"}:
        several = cores > 0 and _number(fields.get("siblings")) > cores
        flags.update(("HTT",) if several else ())
    return X86Cpuinfo(model, with_derived(flags, model), tuple(_x86_rdt(words)))


def _x86_rdt(words: frozenset[str]) -> Iterable[str]:
    if _RDT_MONITORING in words:
        yield "RDTMON"
        if {"cqm_mbm_total", "cqm_mbm_local"} <= words:
            yield "RDTMBM"
    for word, name in _RDT_WORDS.items():
        if word in words:
            yield name


def feature_words(text: str, *names: str) -> frozenset[str]:
    """Return the words of the first of the named lines that is there."""
    fields = first_fields(text)
    return frozenset(next((fields[n] for n in names if n in fields), "").split())


def arm64_midr(text: str) -> int | None:
    """Put the main ID register together from the `CPU ...` lines, or None.

    Source: Documentation/arch/arm64/cpu-feature-registers.rst.
    """
    fields = first_fields(text)
    try:
        implementer, variant, part, revision = (
            int(fields[f"CPU {name}"], 0)
            for name in ("implementer", "variant", "part", "revision")
        )
    except (KeyError, ValueError):
        return None
    return implementer << 24 | variant << 20 | 0xF << 16 | part << 4 | revision


def s390x_model(text: str) -> dict[str, str]:
    """Return `vendor_id`, `family` (identification) and `id` (machine), if told.

    A value of "" or "0" says nothing. Older kernels hold all on one line a
    processor. Source: arch/s390/kernel/processor.c.
    """
    last: dict[str, str] = {}
    first: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = (part.strip() for part in line.partition(":"))
        if colon and value not in {"", "0"}:
            last[name] = value
            first.setdefault(name, value)
    if old := _OLD_S390_CPU.search(text):
        first.setdefault("identification", old[1])
        last.setdefault("machine", old[2])
    wanted = {
        "vendor_id": last.get("vendor_id"),
        "family": first.get("identification"),
        "id": last.get("machine"),
    }
    return {name: value for name, value in wanted.items() if value}


def riscv_flags(text: str) -> frozenset[str]:
    """Return the ISA extensions in capitals: `rv64imac_zba` gives I M A C ZBA.

    Source: Documentation/arch/riscv/uabi.rst.
    """
    isa = first_fields(text).get("isa", "").lower()
    single, *long = isa.split("_")
    match = re.fullmatch(r"rv\d+([a-z]*)", single)
    if not match:
        return frozenset()
    return frozenset(name.upper() for name in (*match[1], *long) if name)


def riscv_model(text: str) -> dict[str, str]:
    """Return the machine's id registers: mvendorid, marchid, mimpid, if not zero."""
    fields = first_fields(text)
    registers = {"vendor_id": "mvendorid", "family": "marchid", "id": "mimpid"}
    values = {name: fields.get(field, "") for name, field in registers.items()}
    return {name: value for name, value in values.items() if value.strip("0x")}


def loongarch_model(text: str) -> dict[str, str]:
    """Return family and model name; the vendor is the first word of the family."""
    fields = first_fields(text)
    values = {"family": fields.get("CPU Family"), "id": fields.get("Model Name")}
    model = {name: value for name, value in values.items() if value}
    if "family" in model:
        model["vendor_id"] = model["family"].partition("-")[0]
    return model


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0
