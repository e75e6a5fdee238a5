"""USB devices, from /sys/bus/usb/devices.

Kernel: Documentation/ABI/testing/sysfs-bus-usb. Specification: worker.md section 1.6.
"""

from collections.abc import Mapping

import attrs

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
from nfd_sources._devicelabels import chosen_fields, class_prefixes, matching_prefix
from nfd_sources._reading import Gaps, entries

DEVICES = "/sys/bus/usb/devices"
FEATURE = "usb.device"
FILES = {
    "bDeviceClass": "class",
    "idVendor": "vendor",
    "idProduct": "device",
    "serial": "serial",
}
FIELDS = tuple(FILES.values())
FALLBACK_FIELDS = ("class", "vendor", "device")
CLASS_BY_INTERFACE = "00"  # USB: the class is stated by each interface


@attrs.frozen(slots=True, eq=False, repr=False)
class UsbSettings(Settings):
    """The settings below `sources.usb`."""

    device_class_whitelist: tuple[str, ...] = setting(
        "deviceClassWhitelist",
        ("0e", "ef", "fe", "ff"),
        "beginnings of the device classes that get labels",
    )
    device_label_fields: tuple[str, ...] = setting(
        "deviceLabelFields",
        FALLBACK_FIELDS,
        "fields of label names, of class, vendor, device and serial",
    )


class UsbSource(Source[UsbSettings]):
    """Finds USB devices and labels those of chosen classes."""

    name = "usb"
    needs = ("/sys/class",)
    settings_class = UsbSettings
    feature_specs = (
        FeatureSpec(
            FEATURE,
            ("instance",),
            FIELDS,
            "one instance a device, or one an interface where the class is there",
        ),
    )
    label_specs = (
        LabelSpec("<device>.present", "a device of a white-listed class is there"),
    )

    def discover(self, host: HostRoot, settings: UsbSettings) -> Features:
        """Read every device, in order of name; without USB the set is empty.

        Raises:
            OSError: The list of devices cannot be read.

        """
        del settings
        gaps = Gaps()
        instances: list[dict[str, str]] = []
        for name in entries(host, DEVICES) or ():
            if ":" in name:
                continue  # an interface, read with its device
            errors: list[OSError] = []
            instances += _read_device(host, f"{DEVICES}/{name}", errors)
            if errors:
                gaps.unread(FEATURE, name, errors)
        return Features.of(
            instances={FEATURE: instances}, unknown=gaps.unknown, notes=gaps.notes
        )

    def labels(
        self, features: Features, settings: UsbSettings
    ) -> Mapping[str, LabelValue]:
        """Return `<fields>.present` of white-listed devices."""
        prefixes = class_prefixes(settings.device_class_whitelist)
        fields = _fields(settings)
        labels: dict[str, LabelValue] = {}
        for number, device in enumerate(features.instances.get(FEATURE, ())):
            prefix = matching_prefix(device.get("class", ""), prefixes)
            if prefix is not None:
                because = (
                    f"class {device.get('class')} is on deviceClassWhitelist ({prefix})"
                )
                labels.setdefault(
                    f"{_joined(device, fields)}.present",
                    LabelValue("true", FEATURE, str(number), because),
                )
        return labels

    def why_not(self, name: str, features: Features, settings: UsbSettings) -> str:
        """Say which device comes near, and what it or the settings lack."""
        stem, _, kind = name.rpartition(".")
        fields = _fields(settings)
        if kind != "present":
            return "names of this source end in .present"
        for device in features.instances.get(FEATURE, ()):
            if _joined(device, fields) == stem:
                return (
                    f"class {device.get('class')} is not on deviceClassWhitelist "
                    f"({', '.join(settings.device_class_whitelist)})"
                )
        shown = sorted(
            {_joined(d, fields) for d in features.instances.get(FEATURE, ())}
        )
        return f"no USB device is {stem}; there are: {', '.join(shown) or 'none'}"

    def watch(self, settings: UsbSettings) -> tuple[Watch, ...]:
        """Look again when a device comes or goes."""
        del settings
        return (Watch("udev", "usb"),)


def _read_device(
    host: HostRoot, path: str, errors: list[OSError]
) -> list[dict[str, str]]:
    """Return the device's instances: one, or one an interface of class 00."""
    try:
        with host.dir(path) as folder:
            values = folder.read_many(FILES, errors)
            # With a part unread, a label of the rest would name another device.
            if errors or not values.get("idProduct"):
                return []
            device = {FILES[file]: value for file, value in values.items() if value}
            if device.get("class") != CLASS_BY_INTERFACE:
                return [device]
            interfaces = [
                f"{name}/bInterfaceClass" for name in host.listdir(path) if ":" in name
            ]
            classes = folder.read_many(interfaces, errors)
    except OSError as error:
        if error.errno not in NOT_THERE:
            errors.append(error)
        return []
    return [{**device, "class": value} for value in classes.values() if value]


def _fields(settings: UsbSettings) -> tuple[str, ...]:
    return chosen_fields(
        settings.device_label_fields,
        FIELDS,
        FALLBACK_FIELDS,
        "sources.usb.deviceLabelFields",
    )


def _joined(device: Mapping[str, str], fields: tuple[str, ...]) -> str:
    return "_".join(device.get(field, "") for field in fields)
