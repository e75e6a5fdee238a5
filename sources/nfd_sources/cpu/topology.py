"""Threads, sockets and core types: cpu.topology and cpu.hybrid."""

from nfd.hostroot import HostDir, HostRoot
from nfd_sources._reading import Gaps, entries

BUS = "/sys/bus/cpu/devices"
SYSTEM = "/sys/devices/system/cpu"
TOPOLOGY = "cpu.topology"
MULTITHREADING = "hardware_multithreading"
SOCKETS = "socket_count"
CORE_TYPES = ("cpu_atom", "cpu_core")


def cpu_folders(host: HostRoot) -> tuple[str, list[str]]:
    """Return a folder and the names in it that are logical CPUs, offline ones too.

    That is the cpu bus; captures often lack it and have the devices alone.

    Raises:
        OSError: The folder is there, but cannot be listed.

    """
    for folder in (BUS, SYSTEM):
        listed = entries(host, folder)
        if listed is not None:
            return folder, [
                name for name in listed if name.startswith("cpu") and name[3:].isdigit()
            ]
    return SYSTEM, []


def threads_and_sockets(host: HostRoot, gaps: Gaps) -> dict[str, str]:
    """Return `hardware_multithreading` and `socket_count`, where they can be told.

    An offline CPU has no `topology` folder, and does not count. Source:
    Documentation/admin-guide/cputopology.rst; spec/worker.md section 1.1.
    """
    found: dict[str, str] = {}
    with gaps.reading(TOPOLOGY):
        folder, names = cpu_folders(host)
        if names:
            with host.dir(folder) as cpus:
                found |= _multithreading(cpus, names, gaps)
                found |= _sockets(cpus, names, gaps)
    return found


def _multithreading(cpus: HostDir, names: list[str], gaps: Gaps) -> dict[str, str]:
    alone = False
    errors: list[OSError] = []
    for name in names:
        files = cpus.read_many((f"{name}/topology/thread_siblings_list",), errors)
        for siblings in files.values():
            # One CPU with siblings answers the question for all.
            if "," in siblings or "-" in siblings:
                return {MULTITHREADING: "true"}
            alone |= siblings != ""
    if errors:
        gaps.unread(TOPOLOGY, MULTITHREADING, errors[:1])
        return {}
    return {MULTITHREADING: "false"} if alone else {}


def _sockets(cpus: HostDir, names: list[str], gaps: Gaps) -> dict[str, str]:
    errors: list[OSError] = []
    paths = (f"{name}/topology/physical_package_id" for name in names)
    packages = set(cpus.read_many(paths, errors).values()) - {""}
    if errors:
        gaps.unread(TOPOLOGY, SOCKETS, errors[:1])
        return {}
    return {SOCKETS: str(len(packages))} if packages else {}


def core_types(host: HostRoot, gaps: Gaps) -> frozenset[str]:
    """Return which of `cpu_atom` and `cpu_core` a hybrid processor has.

    The kernel makes a performance-monitoring device for each core type on hybrids
    only. Source: Documentation/ABI/testing/sysfs-bus-event_source-devices.
    """
    found = set()
    for name in CORE_TYPES:
        with gaps.reading("cpu.hybrid", name):
            if host.read_optional(f"/sys/devices/{name}/cpus") is not None:
                found.add(name)
    return frozenset(found)
