"""Memory encryption and enclaves: cpu.security."""

from nfd.hostroot import HostRoot
from nfd_sources._reading import Gaps

KEY = "cpu.security"

_AMD = (  # name, parameter of kvm_amd, name of the count, resource in misc.capacity
    ("sev", "sev", "sev.asids", "sev"),
    ("sev.es", "sev_es", "sev.encrypted_state_ids", "sev_es"),
    ("sev.snp", "sev_snp", None, None),
)
_CAPACITIES = ("/sys/fs/cgroup/misc.capacity", "/sys/fs/cgroup/misc/misc.capacity")


def is_yes(text: str | None) -> bool:
    """Tell whether a parameter file says yes: `Y`, `y` or `1` first."""
    return text is not None and text[:1] in {"Y", "y", "1"}


def parse_capacity(text: str) -> dict[str, int]:
    """Read misc.capacity: `<resource> <count>` lines; no number, no entry.

    Source: Documentation/admin-guide/cgroup-v2.rst, section Misc.
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, count = line.strip().partition(" ")
        count = count.strip()
        if count.isascii() and count.isdigit():
            found.setdefault(name, int(count))
    return found


def x86_security(
    host: HostRoot, flags: frozenset[str], epc_bytes: int, gaps: Gaps
) -> dict[str, str]:
    """Return SGX, TDX and SEV attributes; what is off is absent, never "false".

    Source: spec/worker.md section 1.1.
    """
    found = {}
    if "SGX" in flags and epc_bytes:
        found["sgx.enabled"] = "true"
        found["sgx.epc"] = str(epc_bytes)
    if "TDX_GUEST" in flags:
        found["tdx.protected"] = "true"
    counts: dict[str, str | None] = {}  # attribute -> resource
    with gaps.reading(KEY, "tdx.enabled"):
        if is_yes(host.read_optional("/sys/module/kvm_intel/parameters/tdx")):
            found["tdx.enabled"] = "true"
            counts["tdx.total_keys"] = "tdx"
    for name, parameter, count, resource in _AMD:
        with gaps.reading(KEY, f"{name}.enabled"):
            path = f"/sys/module/kvm_amd/parameters/{parameter}"
            if is_yes(host.read_optional(path)):
                found[f"{name}.enabled"] = "true"
                if count:
                    counts[count] = resource
    if counts:
        with gaps.reading(KEY, ", ".join(counts)):
            capacity = _capacity(host)
            for name, resource in counts.items():
                if resource in capacity:
                    found[name] = str(capacity[resource])
    return found


def s390x_security(host: HostRoot, gaps: Gaps) -> dict[str, str]:
    """Return `se.enabled` on a host for secure-execution guests."""
    with gaps.reading(KEY, "se.enabled"):
        if is_yes(host.read_optional("/sys/firmware/uv/prot_virt_host")):
            return {"se.enabled": "true"}
    return {}


def _capacity(host: HostRoot) -> dict[str, int]:
    for path in _CAPACITIES:
        text = host.read_optional(path)
        if text is not None:
            return parse_capacity(text)
    return {}
