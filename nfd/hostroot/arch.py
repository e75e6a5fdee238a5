"""The architecture of a captured host, from what its files say; pure but for reads."""

import re
from typing import Protocol


class Readable(Protocol):
    """What this module needs of a host root."""

    def read_optional(self, path: str) -> str | None:
        """Read and trim a file, None when it is not there."""
        ...

    def listdir(self, path: str) -> list[str]:
        """List a folder."""
        ...

    def exists(self, path: str) -> bool:
        """Tell whether a path leads to something."""
        ...


# The first pattern that /proc/cpuinfo holds decides. Each names a line that only this
# architecture's kernel prints (arch/*/kernel: cpuinfo, setup or processor).
_CPUINFO = (
    (r"vendor_id\s*: IBM/S390", "s390x"),
    (r"isa\s*: rv32", "riscv32"),
    (r"isa\s*: rv64", "riscv64"),
    (r"(system type\s*: generic-loongson|ISA\s*: loongarch)", "loongarch64"),
    (r"CPU architecture\s*: (8|AArch64)", "aarch64"),
    (r"CPU architecture\s*: [4-7]", "armv7l"),
    (r"(vendor_id|cpu family|fpu_exception|cpuid level)\s*:", "x86_64"),
)
# What only one architecture's kernel makes: folder, beginning of an entry's name.
_HINTS = (
    ("/sys/devices/system/cpu", "microcode", "x86_64"),
    ("/sys/devices/system/cpu", "intel_pstate", "x86_64"),
    ("/sys/devices/system/cpu", "dscr_default", "ppc64le"),
    ("/sys/devices", "ibm,opal", "ppc64le"),
    ("/sys/devices", "vio", "ppc64le"),
    ("/sys/devices", "css0", "s390x"),
)
# The words for each in kernel releases and in the names of compilers.
_WORDS = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "ppc64le": "ppc64le",
    "ppc64el": "ppc64le",
    "s390x": "s390x",
    "riscv64": "riscv64",
    "loongarch64": "loongarch64",
}
_X86_BRIDGES = frozenset({"0x8086", "0x1022"})  # Intel and AMD make no others


def of_cpuinfo(text: str) -> str:
    """Derive the machine word of uname from /proc/cpuinfo; "" when it does not tell."""
    for pattern, arch in _CPUINFO:
        if re.search(rf"^{pattern}", text, re.MULTILINE):
            return arch
    if re.search(r"^cpu\s*: (POWER|PPC|altivec)", text, re.MULTILINE):
        # Both byte orders print this; every POWER8 and later that Linux runs on as a
        # Kubernetes node is little-endian, nothing before it is.
        old = re.search(r"^cpu\s*: (POWER[1-7]\b|PPC970)", text, re.MULTILINE)
        return "ppc64" if old else "ppc64le"
    return ""


def of_capture(host: Readable) -> str:
    """Tell the architecture of a capture: recorded, else derived, else ""."""
    recorded = host.read_optional("/.nfd/uname")
    if recorded:
        return recorded.split()[-1]
    arch = of_cpuinfo(host.read_optional("/proc/cpuinfo") or "")
    if arch:
        return arch
    modalias = host.read_optional("/sys/devices/system/cpu/modalias") or ""
    if modalias.startswith(("cpu:type:x86", "x86cpu:")):
        return "x86_64"
    for folder, start, arch in _HINTS:
        if any(name.startswith(start) for name in _entries(host, folder)):
            return arch
    bridge = "/sys/devices/pci0000:00/0000:00:00.0/vendor"
    if host.read_optional(bridge) in _X86_BRIDGES:
        return "x86_64"
    texts = [
        host.read_optional("/proc/sys/kernel/osrelease") or "",
        host.read_optional("/proc/version") or "",
        *_entries(host, "/lib/modules"),
    ]
    words = re.findall(r"[a-z0-9_]+", " ".join(texts))
    return next((_WORDS[word] for word in words if word in _WORDS), "")


def _entries(host: Readable, folder: str) -> list[str]:
    return host.listdir(folder) if host.exists(folder) else []
