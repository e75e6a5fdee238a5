"""Resource director technology: cpu.rdt."""

from collections.abc import Iterable

from nfd.hostroot import HostRoot
from nfd_sources._reading import Gaps

KEY = "cpu.rdt"
_DEFAULT = "/sys/fs/resctrl"


def rdt_attributes(
    host: HostRoot, technologies: Iterable[str], gaps: Gaps
) -> dict[str, str]:
    """Return the technologies as `true`, and the classes of L3 cache allocation.

    Source: Documentation/filesystems/resctrl.rst; spec/worker.md section 1.1.
    """
    found = dict.fromkeys(technologies, "true")
    if "RDTL3CA" in found:
        with gaps.reading(KEY, "RDTL3CA_NUM_CLOSID"):
            closids = host.read_optional(f"{_mount_point(host)}/info/L3/num_closids")
            # One class is the default group, and cannot be had.
            if closids and closids.isascii() and closids.isdigit() and int(closids):
                found["RDTL3CA_NUM_CLOSID"] = str(int(closids) - 1)
    return found


def _mount_point(host: HostRoot) -> str:
    """Return where resctrl is mounted; the usual place if nothing tells."""
    if host.exists(f"{_DEFAULT}/info"):
        return _DEFAULT
    return parse_mount_point(host.read_optional("/proc/self/mountinfo") or "")


def parse_mount_point(mountinfo: str) -> str:
    r"""Return the first resctrl mount point in mountinfo; the usual one without.

    Spaces and the like are written as `\040`. Source: proc(5), mountinfo.
    """
    for line in mountinfo.splitlines():
        mount, _, rest = line.partition(" - ")
        fields = mount.split()
        if rest.split()[:1] == ["resctrl"] and len(fields) > 4:
            return fields[4].encode("latin-1", "replace").decode("unicode_escape")
    return _DEFAULT
