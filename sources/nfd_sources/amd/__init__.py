"""AMD GPUs, from sysfs and KFD, with the labels of AMD's node labeller.

Specification: spec/gpu.md section 2.1; the manual's page is docs/sources/amd.md.
"""

from collections.abc import Mapping
from typing import ClassVar

import attrs

from nfd.errors import NotPresentError
from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.source import (
    FeatureSpec,
    LabelSpec,
    LabelValue,
    Settings,
    Source,
    Watch,
    setting,
)
from nfd_sources._pci import functions_of
from nfd_sources._reading import Gaps

_VENDOR = ("1002",)
_CLASSES = ("03", "1200")
_DEFAULT = (
    *("family", "device-id", "product-name", "driver-version", "driver-src-version"),
    *("vram", "simd-count", "cu-count", "compute-memory-partition"),
    *("compute-partitioning-supported", "memory-partitioning-supported"),
)


@attrs.frozen(slots=True, eq=False, repr=False)
class AmdSettings(Settings):
    """The settings below `sources.amd`."""

    labels: tuple[str, ...] = setting(
        "labels", _DEFAULT, "which labels amd.com/gpu.* are made"
    )
    legacy_labels: bool = setting(
        "legacyLabels", default=False, help="add the labels beta.amd.com/gpu.*"
    )


class AmdSource(Source[AmdSettings]):
    """Finds AMD GPUs and their partitions."""

    name = "amd"
    needs = ("/sys/class",)
    settings_class = AmdSettings
    feature_specs: ClassVar = (
        FeatureSpec(
            "amd.device",
            ("instance",),
            (
                *("address", "kind", "function", "class", "device", "driver"),
                *("product_name", "family", "vram", "simd_count", "cu_count"),
                *("compute_partition", "memory_partition"),
                *("compute_partitions", "memory_partitions", "parent", "render"),
            ),
            "one instance a GPU, and one a partition beside the first of its GPU",
        ),
        FeatureSpec(
            "amd.firmware",
            ("instance",),
            ("address", "name", "version"),
            "one instance a firmware of a GPU",
        ),
        FeatureSpec(
            "amd.driver",
            ("attribute",),
            ("version", "srcversion"),
            "the module amdgpu; empty where it does not tell",
        ),
    )
    label_specs: ClassVar = (
        LabelSpec("gpu", "true: a GPU is on the PCI bus"),
        LabelSpec("vgpu", "true: a virtual function of one is"),
        LabelSpec("gpu-mi210", "true: an MI210 is"),
        LabelSpec("gpu-mi300x", "true: an MI300X is"),
        *(
            LabelSpec(f"amd.com/gpu.{name}", "as AMD's node labeller says it")
            for name in _DEFAULT
        ),
        LabelSpec(
            "amd.com/gpu.<name>.<value>", "GPUs of each value, where they differ"
        ),
        LabelSpec("beta.amd.com/gpu.<name>", "legacy, by option"),
        LabelSpec("beta.amd.com/gpu.<name>.<value>", "legacy, by option"),
    )

    def discover(self, host: HostRoot, settings: AmdSettings) -> Features:
        """Read the GPUs on the PCI bus, and what the driver amdgpu says of its own.

        Raises:
            NotPresentError: There is no AMD GPU on the PCI bus.

        """
        del settings
        errors: list[OSError] = []
        functions = functions_of(host, _VENDOR, errors, _CLASSES)
        gaps = Gaps()
        if errors:
            gaps.unread("amd.device", "", errors)
        if not functions:
            if not errors:
                raise NotPresentError("no AMD GPU on the PCI bus")
            gaps.unread("amd.firmware", "", errors)
            gaps.unread("amd.driver", "", errors)
            return Features(unknown=gaps.unknown, notes=gaps.notes)
        from nfd_sources.amd import reading  # noqa: PLC0415 - with GPUs only

        devices, firmware = reading.read_devices(host, functions, gaps)
        driver = reading.read_driver(host, gaps)
        return Features(
            attributes={} if driver is None else {"amd.driver": driver},
            instances={
                "amd.device": tuple(devices),
                "amd.firmware": tuple(firmware),
            },
            unknown=gaps.unknown,
            notes=gaps.notes,
        )

    def labels(
        self, features: Features, settings: AmdSettings
    ) -> Mapping[str, LabelValue]:
        """Return presence by function and model, and the chosen amd.com/gpu.*."""
        if not features.instances:
            return {}
        from nfd_sources.amd import labels  # noqa: PLC0415 - with GPUs only

        return labels.labels(features, settings.labels, legacy=settings.legacy_labels)

    def why_not(self, name: str, features: Features, settings: AmdSettings) -> str:
        """Say what the label needs."""
        from nfd_sources.amd import labels  # noqa: PLC0415 - when asked only

        return labels.why_not(
            name, features, settings.labels, legacy=settings.legacy_labels
        )

    def watch(self, settings: AmdSettings) -> tuple[Watch, ...]:
        """Look again when a GPU comes or goes, or is partitioned anew."""
        del settings
        return (Watch("udev", "pci"), Watch("udev", "drm"))
