"""The PCI devices of some vendors, read cheaply: for sources of one vendor's cards.

Kernel: Documentation/ABI/testing/sysfs-bus-pci. One file a device is read, and the
rest only of devices of these vendors.
"""

from collections.abc import Collection, Iterable, Mapping

import attrs

from nfd.hostroot import HostRoot
from nfd_sources._reading import entries, read_folder

DEVICES = "/sys/bus/pci/devices"


@attrs.frozen(slots=True)
class PciFunction:
    """One PCI function; hex digits are lower-case, without `0x`, "" if unknown."""

    address: str  # as "0000:3b:00.0"
    vendor: str
    class_: str  # class, subclass and programming interface: six digits
    device: str
    driver: str  # name of the bound driver
    more: Mapping[str, str] = attrs.field(factory=dict)  # further files, trimmed

    @property
    def path(self) -> str:
        """The folder of its attributes."""
        return f"{DEVICES}/{self.address}"


def functions_of(
    host: HostRoot,
    vendors: Collection[str],
    errors: list[OSError],
    more: Iterable[str] = (),
) -> list[PciFunction]:
    """List the functions of these vendors in order of address.

    What cannot be read is appended to `errors`: a function whose vendor is not known
    is left out, one that lacks another attribute is there without it.
    """
    try:
        addresses = entries(host, DEVICES) or []
    except OSError as error:
        errors.append(error)
        return []
    vendor_of = _vendors(host, addresses, errors)
    found = []
    for address in addresses:
        vendor = vendor_of.get(f"{address}/vendor", "").removeprefix("0x").lower()
        if vendor in vendors:
            found.append(_function(host, address, vendor, errors, more))
    return found


def _vendors(
    host: HostRoot, addresses: list[str], errors: list[OSError]
) -> dict[str, str]:
    names = [f"{address}/vendor" for address in addresses]
    return read_folder(host, DEVICES, names, errors) if names else {}


def _function(
    host: HostRoot,
    address: str,
    vendor: str,
    errors: list[OSError],
    more: Iterable[str],
) -> PciFunction:
    folder = f"{DEVICES}/{address}"
    values = read_folder(host, folder, ("class", "device", *more), errors)
    driver = None
    try:
        driver = host.link_name(f"{folder}/driver")
    except OSError as error:
        errors.append(error)
    return PciFunction(
        address,
        vendor,
        values.pop("class", "").removeprefix("0x").lower(),
        values.pop("device", "").removeprefix("0x").lower(),
        driver or "",
        values,
    )
