"""Hardware capabilities of arm64, arm, s390x and ppc64le: the auxiliary vector.

Bits and names: spec/worker.md section 1.1; the kernel's asm/hwcap.h (arm, arm64),
asm/elf.h (s390x) and asm/cputable.h (powerpc).
"""

from collections.abc import Mapping
from typing import NamedTuple

from nfd.errors import NfdError
from nfd.hostroot import HostRoot
from nfd_sources._reading import Gaps
from nfd_sources.cpu.cpuinfo import feature_words
from nfd_sources.cpu.processor import (
    CPUID,
    MODEL,
    NO_MODEL,
    Processor,
    read_cpuinfo,
    warn_once,
)

# fmt: off
_ARM64 = (
    "FP", "ASIMD", "EVTSTRM", "AES", "PMULL", "SHA1", "SHA2", "CRC32", "ATOMICS",
    "FPHP", "ASIMDHP", "CPUID", "ASIMDRDM", "JSCVT", "FCMA", "LRCPC", "DCPOP",
    "SHA3", "SM3", "SM4", "ASIMDDP", "SHA512", "SVE", "ASIMDFHM", "DIT", "USCAT",
    "ILRCPC", "FLAGM", "SSBS", "SB", "PACA", "PACG",
)
_ARM64_2 = (
    "DCPODP", "SVE2", "SVEAES", "SVEPMULL", "SVEBITPERM", "SVESHA3", "SVESM4",
    "FLAGM2", "FRINT", "SVEI8MM", "SVEF32MM", "SVEF64MM", "SVEBF16", "I8MM", "BF16",
    "DGH", "RNG", "BTI", "MTE", "ECV", "AFP", "RPRES", "MTE3", "SME", "SMEI16I64",
    "SMEF64F64", "SMEI8I32", "SMEF16F32", "SMEB16F32", "SMEF32F32", "SMEFA64",
    "WFXT", "EBF16", "SVEEBF16",
)
_ARM = (
    "SWP", "HALF", "THUMB", "26BIT", "FASTMUL", "FPA", "VFP", "EDSP", "JAVA",
    "IWMMXT", "CRUNCH", "THUMBEE", "NEON", "VFPv3", "VFPv3D16", "TLS", "VFPv4",
    "IDIVA", "IDIVT", "VFPD32", "LPAE", "EVTSTRM",
)
_ARM_2 = (
    "AES", "PMULL", "SHA1", "SHA2", "CRC32",
)
_S390X = (
    "ESAN3", "ZARCH", "STFLE", "MSA", "LDISP", "EIMM", "DFP", "EDAT", "ETF3EH",
    "HIGHGPRS", "TE", "VX", "VXD", "VXE", "GS", "VXE2", "VXP", "SORT", "DFLT",
    "VXP2", "NNPA", "PCIMIO", "SIE",
)
_PPC = {
    31: "PPC32", 30: "PPC64", 29: "PPC601", 28: "ALTIVEC", 27: "FPU", 26: "MMU",
    25: "4xxMAC", 24: "UCACHE", 23: "SPE", 22: "EFPFLOAT", 21: "EFPDOUBLE", 20: "NOTB",
    19: "POWER4", 18: "POWER5", 17: "POWER5+", 16: "CELLBE", 15: "BOOKE", 14: "SMT",
    13: "IC_SNOOP", 12: "ARCH_2_05", 11: "PA6T", 10: "DFP", 9: "POWER6X",
    8: "ARCH_2_06", 7: "VSX", 6: "ARCHPMU", 1: "TRUE_LE", 0: "PPCLE",
}
_PPC_2 = {
    31: "ARCH_2_07", 30: "HTM", 29: "DSCR", 28: "EBB", 27: "ISEL", 26: "TAR",
    25: "VCRYPTO", 24: "HTM-NOSC", 23: "ARCH_3_00", 22: "IEEE128", 21: "DARN",
    20: "SCV", 19: "HTM-NO-SUSPEND", 18: "ARCH_3_1", 17: "MMA",
}
# fmt: on

# Architecture -> (bits of AT_HWCAP, bits of AT_HWCAP2) -> name.
HWCAPS: Mapping[str, tuple[Mapping[int, str], Mapping[int, str]]] = {
    "arm64": (dict(enumerate(_ARM64)), dict(enumerate(_ARM64_2))),
    "arm": (dict(enumerate(_ARM)), dict(enumerate(_ARM_2))),
    "s390x": (dict(enumerate(_S390X)), {}),
    "ppc64le": (_PPC, _PPC_2),
    "ppc64": (_PPC, _PPC_2),
}

# cpuinfo's words are the names in lower case, but for this one.
_WORDS = {"fastmult": "FASTMUL"}


class Auxv(NamedTuple):
    """The two capability words that the kernel hands to every program."""

    hwcap: int = 0
    hwcap2: int = 0

    def to_text(self) -> str:
        """Write the text form: `hwcap <hex>` and `hwcap2 <hex>`."""
        return f"hwcap {self.hwcap:x}\nhwcap2 {self.hwcap2:x}\n"


def parse_auxv(text: str) -> Auxv:
    """Read the text form.

    Raises:
        NfdError: A line is in neither form; the text names it.

    """
    values = {"hwcap": 0, "hwcap2": 0}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        try:
            if name not in values:
                raise ValueError  # noqa: TRY301 - one handler for all bad lines
            values[name] = int(value, 16)
        except ValueError:
            raise NfdError(f"auxv dump: unexpected line {line[:80]!r}") from None
    return Auxv(**values)


def names_of(arch: str, auxv: Auxv) -> frozenset[str]:
    """Return the names of the bits that are set."""
    tables = HWCAPS.get(arch, ({}, {}))
    return frozenset(
        name
        for table, word in zip(tables, (auxv.hwcap, auxv.hwcap2), strict=True)
        for bit, name in table.items()
        if word >> bit & 1
    )


def names_of_words(arch: str, words: frozenset[str]) -> frozenset[str]:
    """Return the names of cpuinfo's feature words; words without name are dropped."""
    known = {
        name.lower(): name
        for table in HWCAPS.get(arch, ({}, {}))
        for name in table.values()
    }
    found = (known.get(_WORDS.get(word, word).lower()) for word in words)
    return frozenset(name for name in found if name)


def capabilities(host: HostRoot, arch: str, gaps: Gaps) -> frozenset[str] | None:
    """Return the names of auxv's bits, else of cpuinfo's words, None without both."""
    recorded = None
    with gaps.reading(CPUID):
        recorded = host.fact("auxv", _auxv_text)
    if recorded:
        try:
            return names_of(arch, parse_auxv(recorded))
        except NfdError as error:
            gaps.refused(CPUID, "auxv", str(error))
    if CPUID in gaps.unknown or arch.startswith("ppc"):  # whose cpuinfo has no words
        return None
    text = read_cpuinfo(host, CPUID, gaps)
    if text is None:
        return None
    return names_of_words(arch, feature_words(text, "Features", "features"))


def identify(host: HostRoot, arch: str, gaps: Gaps) -> Processor:
    """Return what auxv and cpuinfo tell on arm, ppc64 and ppc64le."""
    flags = capabilities(host, arch, gaps)
    told = False
    with gaps.reading(MODEL):
        told = host.live or host.exists("/proc/cpuinfo")
    return Processor(flags, NO_MODEL if told else None)


def _auxv_text() -> str:
    try:
        from nfd_sources.cpu import live  # noqa: PLC0415 - ctypes costs 1.5 ms

        return Auxv(*live.capability_words()).to_text()
    except (ImportError, OSError, AttributeError) as error:
        warn_once("auxv not readable, using cpuinfo", str(error))
        return ""
