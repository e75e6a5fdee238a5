"""Threads, sockets and core types: cpu.topology and cpu.hybrid."""

from nfd.hostroot import HostRoot
from nfd_sources._reading import Gaps, entries

BUS = "/sys/bus/cpu/devices"
SYSTEM = "/sys/devices/system/cpu"
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
    packages = set()
    alone: list[bool] = []
    incomplete = set()
    key = "cpu.topology"
    with gaps.reading(key):
        folder, names = cpu_folders(host)
        if not names:
            return {}
        with host.dir(folder) as cpus:
            for name in names:
                try:
                    # One CPU with siblings answers the question for all.
                    if all(alone) and (
                        siblings := cpus.read_optional(
                            f"{name}/topology/thread_siblings_list"
                        )
                    ):
                        alone.append("," not in siblings and "-" not in siblings)
                except OSError as error:
                    incomplete.add("hardware_multithreading")
                    gaps.unread(key, name, (error,))
                try:
                    if package := cpus.read_optional(
                        f"{name}/topology/physical_package_id"
                    ):
                        packages.add(package)
                except OSError as error:
                    incomplete.add("socket_count")
                    gaps.unread(key, name, (error,))
    found = {}
    if not all(alone) or (alone and "hardware_multithreading" not in incomplete):
        found["hardware_multithreading"] = "false" if all(alone) else "true"
    if packages and "socket_count" not in incomplete:
        found["socket_count"] = str(len(packages))
    return found


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
