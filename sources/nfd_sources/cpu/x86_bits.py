"""The CPUID bits that have a name, as data.

Names and conditions are those of spec/worker.md section 1.1 and spec/cpuid_bits.tsv;
the bits are those of the Intel SDM (volume 2, CPUID) and AMD's APM (volume 3).
"""

from collections.abc import Mapping
from typing import NamedTuple

from nfd_sources.cpu.registers import EAX, EBX, ECX, EDX

# Conditions that are no flags: the vector states switched on in XCR0, the vendor.
YMM_STATE = "ymm state"  # bits 1, 2
ZMM_STATE = "zmm state"  # bits 1, 2, 5, 6, 7
AMD = "vendor AMD"


class Bank(NamedTuple):
    """Named bits of one register; they count only when all of `needs` hold.

    `needs` are flags of earlier banks or the conditions above.
    """

    leaf: int
    subleaf: int
    register: int
    names: Mapping[int, str]  # bit -> name
    needs: tuple[str, ...] = ()


_XSAVE_ON = ("XSAVE", "OSXSAVE")
_ZMM = (*_XSAVE_ON, ZMM_STATE)

# fmt: off
BANKS: tuple[Bank, ...] = (
    Bank(0x1, 0, EDX, {
        0: "X87", 8: "CMPXCHG8", 11: "SYSEE", 15: "CMOV", 23: "MMX", 24: "FXSR",
        25: "SSE", 26: "SSE2",
    }),
    # Upstream reads the SSE bit as FXSROPT, too; labels on real clusters rely on it.
    Bank(0x1, 0, EDX, {25: "FXSROPT"}),
    Bank(0x1, 0, ECX, {
        0: "SSE3", 1: "CLMUL", 5: "VMX", 9: "SSSE3", 13: "CX16", 19: "SSE4",
        20: "SSE42", 22: "MOVBE", 23: "POPCNT", 25: "AESNI", 26: "XSAVE",
        27: "OSXSAVE", 29: "F16C", 30: "RDRAND", 31: "HYPERVISOR",
    }),
    Bank(0x1, 0, ECX, {12: "FMA3"}, ("OSXSAVE",)),
    Bank(0x1, 0, ECX, {28: "AVX"}, (*_XSAVE_ON, YMM_STATE)),
    Bank(0x7, 0, EBX, {
        2: "SGX", 3: "BMI1", 4: "HLE", 9: "ERMS", 11: "RTM", 14: "MPX", 18: "RDSEED",
        19: "ADX", 29: "SHA",
    }),
    Bank(0x7, 0, EBX, {8: "BMI2"}, ("BMI1",)),
    Bank(0x7, 0, EBX, {5: "AVX2"}, ("AVX",)),
    Bank(0x7, 0, ECX, {
        5: "WAITPKG", 7: "CETSS", 8: "GFNI", 9: "VAES", 10: "VPCLMULQDQ", 13: "TME",
        23: "KEYLOCKER", 25: "CLDEMOTE", 27: "MOVDIRI", 28: "MOVDIR64B", 29: "ENQCMD",
        30: "SGXLC",
    }),
    Bank(0x7, 0, EDX, {
        4: "FSRM", 9: "SRBDS_CTRL", 10: "MD_CLEAR", 11: "RTM_ALWAYS_ABORT",
        14: "SERIALIZE", 15: "HYBRID_CPU", 16: "TSXLDTRK", 18: "PCONFIG", 20: "CETIBT",
        26: "IBPB", 27: "STIBP", 28: "FLUSH_L1D", 29: "IA32_ARCH_CAP",
        30: "IA32_CORE_CAP", 31: "SPEC_CTRL_SSBD",
    }),
    Bank(0x7, 1, EAX, {
        1: "SM3_X86", 2: "SM4_X86", 7: "CMPCCXADD", 10: "MOVSB_ZL", 11: "STOSB_SHORT",
        12: "CMPSB_SCADBS_SHORT", 22: "HRESET", 23: "AVXIFMA", 26: "LAM",
    }),
    Bank(0x7, 1, EAX, {4: "AVXVNNI"}, ("AVX",)),
    Bank(0x7, 1, EDX, {
        4: "AVXVNNIINT8", 5: "AVXNECONVERT", 6: "AMXTRANSPOSE", 7: "AMXTF32",
        8: "AMXCOMPLEX", 10: "AVXVNNIINT16", 14: "PREFETCHI", 19: "AVX10", 21: "APX_F",
    }),
    Bank(0x7, 2, EDX, {
        0: "PSFD", 1: "IDPRED_CTRL", 2: "RRSBA_CTRL", 4: "BHI_CTRL", 5: "MCDT_NO",
    }),
    Bank(0x7, 0, EBX, {
        16: "AVX512F", 17: "AVX512DQ", 21: "AVX512IFMA", 26: "AVX512PF", 27: "AVX512ER",
        28: "AVX512CD", 30: "AVX512BW", 31: "AVX512VL",
    }, _ZMM),
    # Bit 3 is PKU in truth; upstream publishes it under this name.
    Bank(0x7, 0, ECX, {
        1: "AVX512VBMI", 3: "AMXFP8", 6: "AVX512VBMI2", 11: "AVX512VNNI",
        12: "AVX512BITALG", 14: "AVX512VPOPCNTDQ",
    }, _ZMM),
    Bank(0x7, 0, EDX, {
        8: "AVX512VP2INTERSECT", 22: "AMXBF16", 23: "AVX512FP16", 24: "AMXTILE",
        25: "AMXINT8",
    }, _ZMM),
    Bank(0x7, 1, EAX, {
        5: "AVX512BF16", 19: "WRMSRNS", 21: "AMXFP16", 27: "MSRLIST",
    }, _ZMM),
    Bank(0x12, 0, EAX, {12: "SGXPQC"}, ("SGX",)),
    Bank(0x24, 0, EBX, {
        16: "AVX10_128", 17: "AVX10_256", 18: "AVX10_512",
    }, ("AVX10",)),
    Bank(0xD, 1, EAX, {
        0: "XSAVEOPT", 1: "XSAVEC", 2: "XGETBV1", 3: "XSAVES",
    }, ("XSAVE",)),
    Bank(0x8000_0001, 0, ECX, {
        0: "LAHF", 2: "SVM", 5: "LZCNT", 6: "SSE4A", 10: "IBS", 22: "TOPEXT",
    }),
    # Advanced bit manipulation (ABM) means both instructions.
    Bank(0x8000_0001, 0, ECX, {5: "POPCNT"}),
    Bank(0x8000_0001, 0, ECX, {11: "XOP", 16: "FMA4"}, ("AVX",)),
    Bank(0x8000_0001, 0, EDX, {
        11: "SYSCALL", 20: "NX", 22: "MMXEXT", 23: "MMX", 24: "FXSR", 25: "FXSROPT",
        27: "RDTSCP", 30: "AMD3DNOWEXT", 31: "AMD3DNOW",
    }),
    Bank(0x8000_0007, 0, EBX, {0: "MCAOVERFLOW", 1: "SUCCOR", 2: "HWA"}),
    Bank(0x8000_0007, 0, EDX, {9: "CPBOOST"}),
    Bank(0x8000_0008, 0, EBX, {
        0: "CLZERO", 1: "MSRIRC", 3: "INVLPGB", 4: "RDPRU", 8: "MCOMMIT", 9: "WBNOINVD",
        12: "IBPB", 13: "INT_WBINVD", 14: "IBRS", 15: "STIBP", 17: "STIBP_ALWAYSON",
        18: "IBRS_PREFERRED", 19: "IBRS_PROVIDES_SMP", 20: "EFER_LMSLE_UNS",
        21: "TLB_FLUSH_NESTED", 23: "PPIN", 24: "SPEC_CTRL_SSBD", 27: "CPPC",
        28: "PSFD",
    }),
    Bank(0x8000_000A, 0, EDX, {
        0: "SVMNP", 1: "LBRVIRT", 2: "SVML", 3: "NRIPS", 4: "TSCRATEMSR",
        5: "VMCBCLEAN", 6: "SVMFBASID", 7: "SVMDA", 10: "SVMPF", 12: "SVMPFT",
    }, ("SVM",)),
    Bank(0x8000_001A, 0, EAX, {0: "FP128", 1: "MOVU", 2: "FP256"}),
    Bank(0x8000_001B, 0, EAX, {
        0: "IBSFFV", 1: "IBSFETCHSAM", 2: "IBSOPSAM", 3: "IBSRDWROPCNT", 4: "IBSOPCNT",
        5: "IBSBRNTRGT", 6: "IBSOPCNTEXT", 7: "IBSRIPINVALIDCHK", 8: "IBS_OPFUSE",
        9: "IBS_FETCH_CTLX", 10: "IBS_OPDATA4", 11: "IBS_ZEN4",
    }, ("IBS",)),
    Bank(0x8000_001F, 0, EAX, {
        0: "SME", 1: "SEV", 2: "MSR_PAGEFLUSH", 3: "SEV_ES", 4: "SEV_SNP", 5: "VMPL",
        10: "SME_COHERENT", 11: "SEV_64BIT", 12: "SEV_RESTRICTED",
        13: "SEV_ALTERNATIVE", 14: "SEV_DEBUGSWAP", 15: "IBS_PREVENTHOST", 16: "VTE",
        24: "VMSA_REGPROT",
    }, (AMD,)),
    Bank(0x8000_0021, 0, EAX, {
        5: "TSA_VERW_CLEAR", 23: "AVX512BMM", 27: "SBPB", 28: "IBPB_BRTYPE",
        29: "SRSO_NO", 30: "SRSO_USER_KERNEL_NO", 31: "SRSO_MSR_FIX",
    }, (AMD,)),
    Bank(0x8000_0021, 0, ECX, {1: "TSA_L1_NO", 2: "TSA_SQ_NO"}, (AMD,)),
)
# fmt: on

# The micro-architecture levels of the x86-64 psABI: what each adds to the one below.
LEVELS: tuple[frozenset[str], ...] = (
    frozenset({"CMOV", "CMPXCHG8", "X87", "FXSR", "MMX", "SSE", "SSE2"}),
    frozenset({"CX16", "LAHF", "POPCNT", "SSE3", "SSE4", "SSE42", "SSSE3"}),
    frozenset(
        ["AVX", "AVX2", "BMI1", "BMI2", "F16C", "FMA3", "LZCNT", "MOVBE", "OSXSAVE"]
    ),
    frozenset({"AVX512F", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512VL"}),
)

# What the fixed performance counters count (leaf 0xA).
FIXED_COUNTERS = ("INSTRUCTIONS", "CYCLES", "REFCYCLES", "TOPDOWN_SLOTS")

VENDORS: Mapping[str, str] = {
    "GenuineIntel": "Intel",
    "AuthenticAMD": "AMD",
    "AMDisbetter!": "AMD",
    "CentaurHauls": "VIA",
    "VIA VIA VIA ": "VIA",
    "TransmetaCPU": "Transmeta",
    "GenuineTMx86": "Transmeta",
    "Geode by NSC": "NSC",
    "HygonGenuine": "Hygon",
    "Vortex86 SoC": "SiS",
    "SiS SiS SiS ": "SiS",
    "RiseRiseRise": "SiS",
    "Genuine  RDC": "RDC",
}

HYPERVISORS: Mapping[str, str] = {
    "KVMKVMKVM": "kvm",
    "Linux KVM Hv": "kvm",
    "TCGTCGTCGTCG": "qemu",
    "Microsoft Hv": "msvm",
    "VMwareVMware": "vmware",
    "XenVMMXenVMM": "xenhvm",
    "bhyve bhyve ": "bhyve",
    "QNXQVMBSQG": "qnx",
    "ACRNACRNACRN": "acrn",
    "SRESRESRESRE": "sre",
    "Apple VZ": "apple",
    **{text: name.lower() for text, name in VENDORS.items()},
}
