"""Which chip this is, where it has a GPU that is no PCI device."""

from nfd.hostroot import HostRoot

_RELEASE, _FAMILY = "/etc/nv_tegra_release", "/sys/devices/soc0/family"


def is_tegra(host: HostRoot) -> bool:
    """Tell whether the chip is a Tegra (spec/gpu.md section 1.4)."""
    if host.exists(_RELEASE):
        return True
    return (host.read_optional(_FAMILY) or "").lower().startswith("tegra")
