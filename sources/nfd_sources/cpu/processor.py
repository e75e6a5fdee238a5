"""Finding out which processor a host has, on every architecture.

Source: spec/worker.md section 1.1, cpu.cpuid and cpu.model.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from nfd.hostroot import NOT_THERE, HostRoot
from nfd_sources._reading import WARNING, Gaps, report

CPUID = "cpu.cpuid"
MODEL = "cpu.model"

NO_MODEL: Mapping[str, str] = {
    "vendor_id": "VendorUnknown",
    "family": "0",
    "id": "0",
    "hypervisor": "none",
}
_CPUINFO_LIMIT = 64 << 20  # bytes; a thousand processors take two million

# Only the module of the host's architecture is loaded.
_MODULES = {
    "x86": "on_x86",
    "arm64": "on_arm64",
    "s390x": "on_s390x",
    "riscv32": "on_riscv",
    "riscv64": "on_riscv",
    "loongarch64": "on_loongarch",
    "arm": "hwcaps",
    "ppc64": "hwcaps",
    "ppc64le": "hwcaps",
}


class Processor(NamedTuple):
    """The facts about a processor; None means that nothing on this host tells."""

    flags: frozenset[str] | None = None
    model: Mapping[str, str] | None = None
    attributes: Mapping[str, str] | None = None  # of cpu.cpuid; x86 only
    rdt: tuple[str, ...] = ()
    nominal_mhz: int = 0
    epc_bytes: int = 0


class _Architecture(Protocol):
    def identify(self, host: HostRoot, arch: str, gaps: Gaps) -> Processor:
        """Return the facts about the processor."""
        ...


def architecture(machine: str) -> str:
    """Return one word for each family of uname's machine words."""
    if machine in {"x86_64", "amd64", "i386", "i486", "i586", "i686"}:
        return "x86"
    if machine == "aarch64":
        return "arm64"
    return "arm" if machine.startswith("armv") else machine


def identify(host: HostRoot, arch: str, gaps: Gaps) -> Processor:
    """Return the facts about the processor of an architecture.

    Raises:
        OSError: There is a CPUID dump, but it cannot be read.

    """
    name = _MODULES.get(arch)
    if name is None:  # an architecture of which we know no flags
        return Processor(frozenset(), NO_MODEL) if host.live else Processor()
    module = cast("_Architecture", import_module(f"nfd_sources.cpu.{name}"))
    return module.identify(host, arch, gaps)


def read_cpuinfo(host: HostRoot, key: str, gaps: Gaps) -> str | None:
    """Return the text of /proc/cpuinfo, None when there is none.

    An error makes the set `key` unknown.
    """
    try:
        return host.read("/proc/cpuinfo", _CPUINFO_LIMIT)
    except OSError as error:
        if error.errno not in NOT_THERE:
            gaps.unread(key, "", (error,))
        return None


@cache
def warn_once(event: str, error: str) -> None:
    """Log what will be so at every discovery of this process."""
    report(WARNING, "%s error=%s", event, error)
