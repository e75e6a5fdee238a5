"""Idle and frequency control: cpu.cstate, cpu.pstate and cpu.sst."""

from nfd.hostroot import HostRoot
from nfd_sources._reading import Gaps, entries
from nfd_sources.cpu.topology import SYSTEM, cpu_folders


def cstate(host: HostRoot, gaps: Gaps) -> dict[str, str] | None:
    """Return `enabled` of intel_idle, {} under another driver, None if not told.

    Source: Documentation/admin-guide/pm/intel_idle.rst; spec/worker.md section 1.1.
    """
    with gaps.reading("cpu.cstate"):
        if not host.exists(SYSTEM):
            return None
        if not host.exists(f"{SYSTEM}/cpuidle"):
            return {}
        driver = host.read_optional(f"{SYSTEM}/cpuidle/current_driver")
        if driver is None:
            return None
        if driver != "intel_idle":
            return {}
        limit = host.read_optional("/sys/module/intel_idle/parameters/max_cstate")
        try:
            deepest = int(limit or "")
        except ValueError:
            if limit is not None:
                gaps.refused("cpu.cstate", "enabled", f"max_cstate is {limit!r}")
            return None
        return {"enabled": "true" if deepest > 0 else "false"}
    return None


def pstate(host: HostRoot, gaps: Gaps) -> dict[str, str] | None:
    """Return `status`, `turbo` and `scaling_governor` of intel_pstate, {} without it.

    The governor is told in active mode only, when it is one for all policies.
    Source: Documentation/admin-guide/pm/intel_pstate.rst; spec/worker.md
    section 1.1.
    """
    key = "cpu.pstate"
    folder = f"{SYSTEM}/intel_pstate"
    with gaps.reading(key):
        status = host.read_optional(f"{folder}/status")
        if not status or status == "off":
            return {}
        found = {"status": status}
        with gaps.reading(key, "turbo"):
            # An empty file says nothing.
            if no_turbo := host.read_optional(f"{folder}/no_turbo"):
                found["turbo"] = "true" if no_turbo.startswith("0") else "false"
        if status == "active":
            with gaps.reading(key, "scaling_governor"):
                if governor := _common_governor(host):
                    found["scaling_governor"] = governor
        return found
    return None


def _common_governor(host: HostRoot) -> str:
    """Return the governor that all policies with CPUs share, or ""."""
    listed = entries(host, f"{SYSTEM}/cpufreq")
    if listed is None:
        return ""
    common = ""
    with host.dir(f"{SYSTEM}/cpufreq") as policies:
        for policy in listed:
            if not policies.read_optional(f"{policy}/affected_cpus"):
                continue
            governor = policies.read_optional(f"{policy}/scaling_governor")
            if governor is None:
                continue
            if common and governor != common:
                return ""
            common = governor
    return common


def sst(host: HostRoot, nominal_mhz: int, gaps: Gaps) -> dict[str, str]:
    """Return `bf.enabled` when a CPU's base frequency is above the nominal one.

    That is speed select, base frequency (SST-BF). `nominal_mhz` is CPUID leaf 0x16,
    0 where it is not told.
    """
    if not nominal_mhz:
        return {}
    with gaps.reading("cpu.sst"):
        folder, names = cpu_folders(host)
        if not names:
            return {}
        with host.dir(folder) as cpus:
            for name in names:
                text = cpus.read_optional(f"{name}/cpufreq/base_frequency")
                if text is None:
                    continue
                try:
                    frequency = int(text)  # kHz
                except ValueError:
                    gaps.refused("cpu.sst", name, f"base_frequency is {text!r}")
                    continue
                if frequency // 1000 > nominal_mhz:
                    return {"bf.enabled": "true"}
    return {}
