"""The processor on arm64: auxv, sysfs, /proc/cpuinfo."""

from collections.abc import Mapping

from nfd.hostroot import HostRoot
from nfd_sources._reading import Gaps
from nfd_sources.cpu.cpuinfo import first_fields
from nfd_sources.cpu.hwcaps import capabilities
from nfd_sources.cpu.processor import MODEL, NO_MODEL, Processor, read_cpuinfo
from nfd_sources.cpu.topology import cpu_folders

IMPLEMENTERS: Mapping[int, str] = {
    0xC0: "Ampere",
    0x41: "ARM",
    0x42: "Broadcom",
    0x43: "Cavium",
    0x44: "DEC",
    0x46: "Fujitsu",
    0x49: "Infineon",
    0x4D: "Motorola",
    0x4E: "NVIDIA",
    0x50: "AMCC",
    0x51: "Qualcomm",
    0x56: "Marvell",
    0x69: "Intel",
}


def identify(host: HostRoot, arch: str, gaps: Gaps) -> Processor:
    """Return flags and model; the model is of the first CPU that shows it."""
    flags = capabilities(host, arch, gaps)
    with gaps.reading(MODEL):
        midr = _sysfs_midr(host, gaps)
        if midr is not None:
            return Processor(flags, midr_model(midr))
        text = read_cpuinfo(host, MODEL, gaps)
        if text is not None:
            midr = arm64_midr(text)
            return Processor(flags, NO_MODEL if midr is None else midr_model(midr))
    return Processor(flags)


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


def midr_model(midr: int) -> dict[str, str]:
    """Return the model that arm64's main ID register tells; pure."""
    return {
        "vendor_id": IMPLEMENTERS.get(midr >> 24 & 0xFF, "VendorUnknown"),
        "family": str(midr >> 16 & 0xFF),
        "id": str(midr & 0xFFFF),
        "hypervisor": "none",
    }


def _sysfs_midr(host: HostRoot, gaps: Gaps) -> int | None:
    """Return the register of the first CPU that shows it (offline ones do not).

    Source: Documentation/arch/arm64/cpu-feature-registers.rst.
    """
    folder, names = cpu_folders(host)
    for name in sorted(names, key=lambda name: int(name[3:])):
        text = host.read_optional(f"{folder}/{name}/regs/identification/midr_el1")
        if text:
            try:
                return int(text, 16)
            except ValueError:
                gaps.refused(MODEL, name, f"midr_el1 is {text!r}")
                return None
    return None
