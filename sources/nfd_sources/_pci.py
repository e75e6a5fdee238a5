"""The PCI devices of some vendors, read cheaply: for sources of one vendor's cards.

Kernel: Documentation/ABI/testing/sysfs-bus-pci. One file a device is read, and the
rest only of devices of these vendors.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from nfd.hostroot import HostRoot
from nfd_sources._reading import entries, read_folder

DEVICES = "/sys/bus/pci/devices"


class PciFunction(NamedTuple):
    """One PCI function; hex digits are lower-case, without `0x`, "" if unknown."""

    address: str  # as "0000:3b:00.0"
    vendor: str
    class_: str  # class, subclass and programming interface: six digits
    device: str
    driver: str  # name of the bound driver
    more: Mapping[str, str]  # further files, trimmed

    @property
    def path(self) -> str:
        """The folder of its attributes."""
        return f"{DEVICES}/{self.address}"


def functions_of(
    host: HostRoot,
    vendors: Collection[str],
    errors: list[OSError],
    classes: tuple[str, ...] = ("",),
    more: Iterable[str] = (),
) -> list[PciFunction]:
    """List the functions of these vendors and classes in order of address.

    What cannot be read is appended to `errors`: a function whose vendor or class is
    not known is left out, one that lacks another attribute is there without it.

    Args:
        host: The host.
        vendors: Four hex digits each.
        errors: Gets the errors.
        classes: Beginnings of the class.
        more: Further files to read of each function.

    """
    try:
        addresses = entries(host, DEVICES) or []
    except OSError as error:
        errors.append(error)
        return []
    vendor_of = _hex_of(host, addresses, "vendor", errors)
    addresses = [a for a in addresses if vendor_of.get(a) in vendors]
    class_of = _hex_of(host, addresses, "class", errors)
    return [
        _function(host, (address, vendor_of[address], class_of[address]), errors, more)
        for address in addresses
        if address in class_of and class_of[address].startswith(classes)
    ]


def _hex_of(
    host: HostRoot, addresses: list[str], name: str, errors: list[OSError]
) -> dict[str, str]:
    """Read one attribute of many functions at once; address to hex digits."""
    if not addresses:
        return {}
    names = [f"{address}/{name}" for address in addresses]
    values = read_folder(host, DEVICES, names, errors)
    return {
        path.partition("/")[0]: text.removeprefix("0x").lower()
        for path, text in values.items()
    }


def _function(
    host: HostRoot,
    known: tuple[str, str, str],
    errors: list[OSError],
    more: Iterable[str],
) -> PciFunction:
    folder = f"{DEVICES}/{known[0]}"
    values = read_folder(host, folder, ("device", *more), errors)
    driver = None
    try:
        driver = host.link_name(f"{folder}/driver")
    except OSError as error:
        errors.append(error)
    device = values.pop("device", "").removeprefix("0x").lower()
    return PciFunction(*known, device, driver or "", values)
