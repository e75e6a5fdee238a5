"""The processor on x86: CPUID, executed or recorded, else /proc/cpuinfo."""

from nfd.errors import NfdError
from nfd.hostroot import HostRoot
from nfd_sources._reading import Gaps
from nfd_sources.cpu import registers, x86
from nfd_sources.cpu.processor import CPUID, MODEL, Processor, read_cpuinfo, warn_once


def identify(host: HostRoot, arch: str, gaps: Gaps) -> Processor:
    """Return all that CPUID tells, else what cpuinfo does."""
    del arch
    dumped = _registers(host, gaps)
    if dumped:
        return from_registers(dumped)
    text = read_cpuinfo(host, CPUID, gaps)
    # Most hosts do without the words of cpuinfo.
    from nfd_sources.cpu.x86_cpuinfo import parse_x86  # noqa: PLC0415 - see above

    told = parse_x86(text or "")
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
        warn_once("cpuid not executable, using cpuinfo", str(error))
        return ""
