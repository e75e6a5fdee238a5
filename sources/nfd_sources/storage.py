"""Block devices, from /sys/block.

Kernel: Documentation/ABI/stable/sysfs-block. Specification: worker.md section 1.7.
"""

from collections.abc import Mapping

from nfd.errors import NotPresentError
from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.source import (
    FeatureSpec,
    LabelSpec,
    LabelValue,
    NoSettings,
    Source,
    Watch,
)
from nfd_sources._reading import Gaps, entries, read_folder

DEVICES = "/sys/block"
FEATURE = "storage.block"
QUEUE_FILES = ("dax", "rotational", "nr_zones", "zoned")

# Names, without their number, of block devices that are memory, a file, or a layer
# over other block devices. They report `rotational` without being disks; the disks
# below them speak for themselves.
NO_DISKS = frozenset(
    {"bcache", "dm-", "drbd", "loop", "md", "md_d", "nbd", "ram", "zd", "zram"}
)


class StorageSource(Source[NoSettings]):
    """Finds block devices and tells whether a disk does not rotate."""

    name = "storage"
    needs = ("/sys/class",)
    feature_specs = (
        FeatureSpec(
            FEATURE,
            ("instance",),
            ("name", *QUEUE_FILES),
            "one instance a block device, loop and mapped devices included",
        ),
    )
    label_specs = (
        LabelSpec("nonrotationaldisk", "a disk that does not rotate is there"),
    )

    def discover(self, host: HostRoot, settings: NoSettings) -> Features:
        """Read every block device, in order of name.

        Raises:
            NotPresentError: There is no /sys/block.
            OSError: The list of devices cannot be read.

        """
        del settings
        names = entries(host, DEVICES)
        if names is None:
            raise NotPresentError(f"no {DEVICES}")
        gaps = Gaps()
        devices = []
        for name in names:
            errors: list[OSError] = []
            queue = read_folder(host, f"{DEVICES}/{name}/queue", QUEUE_FILES, errors)
            if errors:
                gaps.unread(FEATURE, name, errors)
            devices.append({"name": name, **queue})
        return Features.of(
            instances={FEATURE: devices}, unknown=gaps.unknown, notes=gaps.notes
        )

    def labels(
        self, features: Features, settings: NoSettings
    ) -> Mapping[str, LabelValue]:
        """Return `nonrotationaldisk` when a disk has `rotational` 0."""
        del settings
        for device in features.instances.get(FEATURE, ()):
            if device.get("rotational") == "0" and is_disk(device["name"]):
                made = LabelValue("true", FEATURE, device["name"], "rotational is 0")
                return {"nonrotationaldisk": made}
        return {}

    def why_not(self, name: str, features: Features, settings: NoSettings) -> str:
        """List what the devices say."""
        del settings
        if name != "nonrotationaldisk":
            return ""
        seen = ", ".join(
            f"{d['name']}={d.get('rotational', 'unknown')}"
            + ("" if is_disk(d["name"]) else " (not a disk)")
            for d in features.instances.get(FEATURE, ())
        )
        return f"no disk has rotational 0: {seen}" if seen else "no block devices"

    def watch(self, settings: NoSettings) -> tuple[Watch, ...]:
        """Look again when a block device comes or goes."""
        del settings
        return (Watch("udev", "block"),)


def is_disk(name: str) -> bool:
    """Tell by its kernel name whether a block device is a disk of its own."""
    return name.rstrip("0123456789") not in NO_DISKS
