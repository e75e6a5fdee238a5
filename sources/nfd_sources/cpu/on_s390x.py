"""The processor on s390x: auxv, /proc/cpuinfo, /proc/sysinfo."""

import re

from nfd.hostroot import HostRoot
from nfd_sources._reading import Gaps
from nfd_sources._sanitize import label_text
from nfd_sources.cpu.hwcaps import capabilities
from nfd_sources.cpu.processor import MODEL, NO_MODEL, Processor, read_cpuinfo

_OLD_S390_CPU = re.compile(
    r"^processor \d+: version = \w+,\s*identification = (\w+),\s*machine = (\w+)",
    re.MULTILINE,
)


def identify(host: HostRoot, arch: str, gaps: Gaps) -> Processor:
    """Return flags, model and hypervisor."""
    flags = capabilities(host, arch, gaps)
    text = read_cpuinfo(host, MODEL, gaps)
    if text is None:
        return Processor(flags)
    told = s390x_model(text)
    if "vendor_id" in told:
        told["vendor_id"] = label_text(told["vendor_id"])
    model = {**NO_MODEL, **told}
    del model["hypervisor"]
    with gaps.reading(MODEL, "hypervisor"):
        sysinfo = host.read_optional("/proc/sysinfo")
        if sysinfo is not None:
            model["hypervisor"] = control_program(sysinfo)
    return Processor(flags, model)


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


def control_program(sysinfo: str) -> str:
    """Return the hypervisor that s390x's /proc/sysinfo names, or "none"; pure."""
    for line in sysinfo.splitlines():
        if "Control Program:" in line:
            return label_text(line.partition(":")[2].strip()) or "none"
    return "none"
