"""Finding out which processor a host has, on every architecture.

Source: spec/worker.md section 1.1, cpu.cpuid and cpu.model.
"""

import logging
from collections.abc import Callable, Mapping

import attrs

from nfd.errors import NfdError
from nfd.hostroot import NOT_THERE, HostRoot
from nfd_sources._reading import Gaps
from nfd_sources.cpu import cpuinfo, hwcaps, registers, x86
from nfd_sources.cpu.topology import cpu_folders

log = logging.getLogger(__name__)

CPUID = "cpu.cpuid"
MODEL = "cpu.model"

_CPUINFO_LIMIT = 64 << 20  # bytes; a thousand processors take two million
_NO_MODEL = {
    "vendor_id": "VendorUnknown",
    "family": "0",
    "id": "0",
    "hypervisor": "none",
}


@attrs.frozen(slots=True)
class Processor:
    """The facts about a processor; None means that nothing on this host tells."""

    flags: frozenset[str] | None = None
    model: Mapping[str, str] | None = None
    attributes: Mapping[str, str] | None = None  # of cpu.cpuid; x86 only
    rdt: tuple[str, ...] = ()
    nominal_mhz: int = 0
    epc_bytes: int = 0


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
        OSError: There are facts of a dump, but they cannot be read.

    """
    return _ARCHITECTURES.get(arch, _other)(host, arch, gaps)


def _x86(host: HostRoot, arch: str, gaps: Gaps) -> Processor:
    del arch
    dumped = _registers(host, gaps)
    if dumped:
        return from_registers(dumped)
    text = _cpuinfo(host, gaps)
    told = cpuinfo.parse_x86(text or "")
    if not told:
        return Processor()
    hypervisor = "none"
    if "HYPERVISOR" in told.flags:
        with gaps.reading(MODEL, "hypervisor"):
            is_xen = host.read_optional("/sys/hypervisor/type") == "xen"
            hypervisor = "xenhvm" if is_xen else "unknown"
    return Processor(
        told.flags,
        _x86_model(told.model) | {"hypervisor": hypervisor},
        {},
        told.rdt,
    )


def from_registers(dumped: registers.Registers) -> Processor:
    """Return all that CPUID registers tell; pure."""
    avx10 = x86.avx10_version(dumped)
    model = _x86_model(x86.decode_model(dumped))
    return Processor(
        x86.decode_flags(dumped),
        model | {"hypervisor": x86.hypervisor(dumped)},
        {"AVX10_VERSION": str(avx10)} if avx10 else {},
        tuple(x86.rdt(dumped)),
        x86.nominal_mhz(dumped),
        x86.epc_bytes(dumped),
    )


def _x86_model(model: x86.X86Model) -> dict[str, str]:
    return {
        "vendor_id": model.vendor,
        "family": str(model.family),
        "id": str(model.model),
    }


def _registers(host: HostRoot, gaps: Gaps) -> registers.Registers | None:
    """Return CPUID's answers, live or recorded; None where neither is to be had."""
    text = host.fact("cpuid", _sweep)
    if text is None:
        # hwloc-gather-cpuid keeps a file for each logical CPU here.
        text = host.read_optional("/cpuid/pu0")
    try:
        return registers.parse(text) if text else None
    except NfdError as error:
        gaps.refused(CPUID, "dump", str(error))
        return None


def _sweep() -> str:
    # Only here: ctypes costs 1.5 ms, and captures need none of it.
    try:
        from nfd_sources.cpu import live  # noqa: PLC0415 - see above

        return registers.to_text(live.sweep())
    except (ImportError, OSError) as error:
        log.warning("cpuid not executable, using cpuinfo error=%s", error)
        return ""


def _auxv_text() -> str:
    try:
        from nfd_sources.cpu import live  # noqa: PLC0415 - as in _sweep

        return hwcaps.Auxv(*live.capability_words()).to_text()
    except (ImportError, OSError, AttributeError) as error:
        log.warning("auxv not readable, using cpuinfo error=%s", error)
        return ""


def _cpuinfo(host: HostRoot, gaps: Gaps) -> str | None:
    try:
        return host.read("/proc/cpuinfo", _CPUINFO_LIMIT)
    except OSError as error:
        if error.errno not in NOT_THERE:
            gaps.unread(CPUID, "", (error,))
        return None


def _capabilities(
    host: HostRoot, arch: str, text: str | None, gaps: Gaps
) -> frozenset[str] | None:
    """Return the names of auxv's bits, else of cpuinfo's words."""
    recorded = host.fact("auxv", _auxv_text)
    if recorded:
        try:
            return hwcaps.names_of(arch, hwcaps.parse_auxv(recorded))
        except NfdError as error:
            gaps.refused(CPUID, "auxv", str(error))
    if text is None or arch.startswith("ppc"):  # whose cpuinfo has no such words
        return None
    return hwcaps.names_of_words(
        arch, cpuinfo.feature_words(text, "Features", "features")
    )


def _arm64(host: HostRoot, arch: str, gaps: Gaps) -> Processor:
    text = _cpuinfo(host, gaps)
    flags = _capabilities(host, arch, text, gaps)
    midr = None
    with gaps.reading(MODEL):
        midr = _sysfs_midr(host)
    if midr is None:
        midr = cpuinfo.arm64_midr(text or "")
    if midr is None:
        return Processor(flags, None if text is None else _NO_MODEL)
    return Processor(flags, midr_model(midr))


def midr_model(midr: int) -> dict[str, str]:
    """Return the model that arm64's main ID register tells; pure."""
    return {
        "vendor_id": hwcaps.IMPLEMENTERS.get(midr >> 24 & 0xFF, "VendorUnknown"),
        "family": str(midr >> 16 & 0xFF),
        "id": str(midr & 0xFFFF),
        "hypervisor": "none",
    }


def _sysfs_midr(host: HostRoot) -> int | None:
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
                return None
    return None


def _s390x(host: HostRoot, arch: str, gaps: Gaps) -> Processor:
    text = _cpuinfo(host, gaps)
    flags = _capabilities(host, arch, text, gaps)
    if text is None:
        return Processor(flags)
    told = cpuinfo.s390x_model(text)
    if "vendor_id" in told:
        told["vendor_id"] = x86.label_text(told["vendor_id"])
    model = _NO_MODEL | told
    del model["hypervisor"]
    with gaps.reading(MODEL, "hypervisor"):
        sysinfo = host.read_optional("/proc/sysinfo")
        if sysinfo is not None:
            model["hypervisor"] = control_program(sysinfo)
    return Processor(flags, model)


def control_program(sysinfo: str) -> str:
    """Return the hypervisor that s390x's /proc/sysinfo names, or "none"; pure."""
    for line in sysinfo.splitlines():
        if "Control Program:" in line:
            return x86.label_text(line.partition(":")[2].strip()) or "none"
    return "none"


def _riscv(host: HostRoot, arch: str, gaps: Gaps) -> Processor:
    del arch
    text = _cpuinfo(host, gaps)
    if text is None:
        return Processor()
    return Processor(cpuinfo.riscv_flags(text), cpuinfo.riscv_model(text))


def _loongarch(host: HostRoot, arch: str, gaps: Gaps) -> Processor:
    del arch
    text = _cpuinfo(host, gaps)
    if text is None:
        return Processor()
    words = cpuinfo.feature_words(text, "Features")
    flags = frozenset(word.upper() for word in words)
    return Processor(flags, cpuinfo.loongarch_model(text))


def _other(host: HostRoot, arch: str, gaps: Gaps) -> Processor:
    """Return what arm, ppc64 and ppc64le tell; other architectures have no flags."""
    if arch not in hwcaps.HWCAPS:
        return Processor(frozenset(), _NO_MODEL) if host.live else Processor()
    text = _cpuinfo(host, gaps)
    flags = _capabilities(host, arch, text, gaps)
    return Processor(flags, None if text is None else _NO_MODEL)


_ARCHITECTURES: Mapping[str, Callable[[HostRoot, str, Gaps], Processor]] = {
    "x86": _x86,
    "arm64": _arm64,
    "s390x": _s390x,
    "riscv32": _riscv,
    "riscv64": _riscv,
    "loongarch64": _loongarch,
}
