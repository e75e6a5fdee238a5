"""PCI devices, from /sys/bus/pci/devices.

Kernel: Documentation/ABI/testing/sysfs-bus-pci. Specification: worker.md section 1.5.
"""

from collections.abc import Iterator, Mapping

import attrs

from nfd.errors import NotPresentError
from nfd.features import Features
from nfd.hostroot import NOT_THERE, HostRoot
from nfd.source import (
    FeatureSpec,
    LabelSpec,
    LabelValue,
    Settings,
    Source,
    Watch,
    setting,
)
from nfd_sources._devicelabels import (
    chosen_fields,
    class_prefixes,
    joined,
    matching_prefix,
)
from nfd_sources._reading import Gaps, entries, is_positive

DEVICES = "/sys/bus/pci/devices"
FEATURE = "pci.device"

REQUIRED = ("class", "vendor", "device")
OPTIONAL = (
    "subsystem_vendor",
    "subsystem_device",
    "sriov_totalvfs",
    "iommu_group/type",
    "iommu/intel-iommu/version",
    "numa_node",
)
FILES = (*REQUIRED, *OPTIONAL)
LABEL_FIELDS = (*REQUIRED, "subsystem_vendor", "subsystem_device")
FALLBACK_FIELDS = ("class", "vendor")
CLASS_DIGITS = 4  # class and subclass; the programming interface is cut off


@attrs.frozen(slots=True, eq=False, repr=False)
class PciSettings(Settings):
    """The settings below `sources.pci`."""

    device_class_whitelist: tuple[str, ...] = setting(
        "deviceClassWhitelist",
        ("02", "03", "0880", "0b40", "12"),
        "beginnings of the device classes that get labels",
    )
    device_label_fields: tuple[str, ...] | None = setting(
        "deviceLabelFields",
        None,
        "the one format of label names; when set, deviceLabelFormats does not count",
    )
    device_label_formats: tuple[str, ...] = setting(
        "deviceLabelFormats",
        ("class,vendor", "vendor"),
        "formats of label names, each a list of fields with commas between",
    )


class PciSource(Source[PciSettings]):
    """Finds PCI devices and labels those of chosen classes."""

    name = "pci"
    needs = ("/sys/class",)
    settings_class = PciSettings
    feature_specs = (
        FeatureSpec(
            FEATURE,
            ("instance",),
            ("address", *FILES, "driver"),
            "one instance a device, in order of address",
        ),
    )
    label_specs = (
        LabelSpec("<device>.present", "a device of a white-listed class is there"),
        LabelSpec("<device>.sriov.capable", "... and it can have virtual functions"),
    )

    def discover(self, host: HostRoot, settings: PciSettings) -> Features:
        """Read every device; one that lacks class, vendor or device is left out.

        Raises:
            NotPresentError: There is no PCI bus.
            OSError: The list of devices cannot be read.

        """
        del settings
        addresses = entries(host, DEVICES)
        if addresses is None:
            raise NotPresentError(f"no {DEVICES}")
        gaps = Gaps()
        devices = []
        for address in addresses:
            errors: list[OSError] = []
            device = _read(host, address, errors)
            missing = [name for name in REQUIRED if name not in device]
            if errors:
                gaps.unread(FEATURE, address, errors)
            elif missing:
                gaps.refused(FEATURE, address, f"without {', '.join(missing)}")
            if not missing:
                devices.append(device)
        return Features(
            instances={FEATURE: tuple(devices)}, unknown=gaps.unknown, notes=gaps.notes
        )

    def labels(
        self, features: Features, settings: PciSettings
    ) -> Mapping[str, LabelValue]:
        """Return `<fields>.present` and `.sriov.capable` of white-listed devices."""
        prefixes = class_prefixes(settings.device_class_whitelist)
        formats = _formats(settings)
        labels: dict[str, LabelValue] = {}
        for number, device in enumerate(features.instances.get(FEATURE, ())):
            prefix = matching_prefix(device.get("class", ""), prefixes)
            if prefix is None:
                continue
            for fields in formats:
                stem = joined(device, fields)
                if stem is None:
                    continue
                names = [f"{stem}.present"]
                if is_positive(device.get("sriov_totalvfs")):
                    names.append(f"{stem}.sriov.capable")
                for name in names:
                    if name not in labels:  # the first such device is named
                        labels[name] = LabelValue(
                            "true",
                            FEATURE,
                            device.get("address", str(number)),
                            f"class {device['class']} is on deviceClassWhitelist "
                            f"({prefix})",
                        )
        return labels

    def why_not(self, name: str, features: Features, settings: PciSettings) -> str:
        """Say which device comes near, and what it or the settings lack."""
        stem, _, kind = name.partition(".")
        if kind not in ("present", "sriov.capable"):
            return "names of this source end in .present or .sriov.capable"
        prefixes = class_prefixes(settings.device_class_whitelist)
        formats = _formats(settings)
        reason = ""
        for device in features.instances.get(FEATURE, ()):
            matching = [f for f in _field_sets() if joined(device, f) == stem]
            if not matching:
                continue
            address = device.get("address", "a device")
            if matching_prefix(device.get("class", ""), prefixes) is None:
                reason = (
                    f"{address} has class {device.get('class')}, "
                    "which is not on deviceClassWhitelist "
                    f"({', '.join(settings.device_class_whitelist)})"
                )
            elif not any(fields in formats for fields in matching):
                shown = "; ".join(",".join(fields) for fields in formats)
                return (
                    f"{address} would match, but the format "
                    f"{','.join(matching[0])} is not configured ({shown})"
                )
            else:
                return f"{address} has no sriov_totalvfs above 0"
        if reason:
            return reason
        left_out = [
            f"{key.removeprefix(FEATURE + '/')} ({note})"
            for key, note in sorted(features.notes.items())
        ]
        return f"no PCI device matches {stem}" + (
            f"; not, or not completely, known: {', '.join(left_out)}"
            if left_out
            else ""
        )

    def watch(self, settings: PciSettings) -> tuple[Watch, ...]:
        """Look again when a device comes, goes, or gets another driver."""
        del settings
        return (Watch("udev", "pci"),)


def _read(host: HostRoot, address: str, errors: list[OSError]) -> dict[str, str]:
    device = {"address": address}
    values: dict[str, str] = {}
    driver = None
    try:
        with host.dir(f"{DEVICES}/{address}") as folder:
            values = folder.read_many(FILES, errors)
            driver = folder.link_name("driver")
    except OSError as error:
        if error.errno not in NOT_THERE:
            errors.append(error)
    for name, text in values.items():
        value = text.removeprefix("0x").strip()
        if value:
            device[name] = value
    if "class" in device:
        device["class"] = device["class"][:CLASS_DIGITS]
    if device.get("numa_node", "").startswith("-"):
        del device["numa_node"]  # the kernel's -1: no node is near
    if driver:
        device["driver"] = driver
    return device


def _formats(settings: PciSettings) -> tuple[tuple[str, ...], ...]:
    if settings.device_label_fields is not None:
        return (
            chosen_fields(
                settings.device_label_fields,
                LABEL_FIELDS,
                FALLBACK_FIELDS,
                "sources.pci.deviceLabelFields",
            ),
        )
    return tuple(
        chosen_fields(
            text.split(","),
            LABEL_FIELDS,
            FALLBACK_FIELDS,
            "sources.pci.deviceLabelFormats",
        )
        for text in settings.device_label_formats
    )


def _field_sets() -> Iterator[tuple[str, ...]]:
    """Yield every choice of label fields, in their fixed order."""
    for bits in range(1, 1 << len(LABEL_FIELDS)):
        yield tuple(f for i, f in enumerate(LABEL_FIELDS) if bits >> i & 1)
