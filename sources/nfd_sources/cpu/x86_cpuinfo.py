"""The features of x86 that /proc/cpuinfo has words for; pure.

For captures without a CPUID dump, and hosts that forbid executable pages.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nfd_sources.cpu.cpuinfo import first_fields, number
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


class X86Cpuinfo(NamedTuple):
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
        vendor, number(fields.get("cpu family")), number(fields.get("model"))
    )
    flags = {name for word in words for name in X86_WORDS.get(word, ())}
    # On Intel the kernel makes up "ibrs" from another bit.
    if "ibrs" in words and vendor in {"AMD", "Hygon"}:
        flags.add("IBRS")
    cores = number(fields.get("cpu cores"))
    if "ht" in words and vendor in {"AMD", "Intel"}:
        several = cores > 0 and number(fields.get("siblings")) > cores
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
