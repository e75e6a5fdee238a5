"""Intel GPUs and accelerators, and Gaudi cards, from sysfs.

Specification: spec/gpu.md sections 2.2 and 2.3; the manual's page is
docs/sources/intel.md.
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
from nfd_sources._pci import PciFunction, functions_of
from nfd_sources._reading import Gaps

_VENDORS = ("1da3", "8086")
_CLASSES = ("0300", "0380", "0880", "0b40", "12")
_NS = "intel.feature.node.kubernetes.io"


@attrs.frozen(slots=True, eq=False, repr=False)
class IntelSettings(Settings):
    """The settings below `sources.intel`."""

    legacy_labels: bool = setting(
        "legacyLabels",
        default=False,
        help="add gpu-numbers, numa-gpu-map, tiles, millicores, memory.max",
    )


class IntelSource(Source[IntelSettings]):
    """Finds Intel GPUs, NPUs, QAT, DSA, IAA, DLB, FPGAs, and Gaudi cards."""

    name = "intel"
    needs = ("/sys/class",)
    settings_class = IntelSettings
    feature_specs: ClassVar = (
        FeatureSpec(
            "intel.device",
            ("instance",),
            (
                *("address", "vendor", "class", "device", "subsystem_device"),
                *("driver", "card", "tiles", "tile_memory", "numa_node", "vfs"),
            ),
            "one instance a device that may be an accelerator",
        ),
        FeatureSpec(
            "intel.module",
            ("attribute",),
            None,
            "modules of these devices that the kernel has, with their versions",
        ),
        FeatureSpec(
            "intel.habana",
            ("attribute",),
            (
                *("driver", "revision", "type", "fw.os", "fw.version"),
                *("sys_vendor", "product_name"),
            ),
            "what is told of Gaudi cards",
        ),
    )
    label_specs: ClassVar = (
        *(
            LabelSpec(f"{_NS}/{name}", text)
            for name, text in (
                ("gpu", "true: a GPU and the driver i915 or xe"),
                ("npu", "true: an NPU and intel_vpu"),
                ("qat", "true: QuickAssist, intel_qat and vfio_pci"),
                ("dsa", "true: a data streaming accelerator and idxd"),
                ("iaa", "true: an in-memory analytics accelerator and idxd"),
                ("dlb", "true: a dynamic load balancer and dlb2"),
                ("fpga-arria10", "true: an Arria 10 FPGA and its driver"),
                ("gaudi", "true: a Gaudi 2 or 3 card"),
            )
        ),
        LabelSpec("gpu.intel.com/device-id.<class>-<device>.present", "true"),
        LabelSpec("gpu.intel.com/device-id.<class>-<device>.count", "how many"),
        LabelSpec("gpu.intel.com/product", "Max_1100, Max_1550, Flex_170, Flex_140"),
        LabelSpec("gpu.intel.com/family", "Max_Series, Flex_Series, A_Series"),
        LabelSpec("gpu.intel.com/device.count", "GPUs of that product"),
        LabelSpec("gpu.intel.com/<number>", "legacy, by option"),
        LabelSpec("habana.ai/<fact>", "as the Gaudi labeller says it"),
    )

    def discover(self, host: HostRoot, settings: IntelSettings) -> Features:
        """Read the devices, and which of their modules the kernel has.

        Raises:
            NotPresentError: There is no such device.

        """
        del settings
        errors: list[OSError] = []
        functions = functions_of(host, _VENDORS, errors, _CLASSES)
        if functions:  # of many of these classes no row is about
            functions = _of_the_table(functions)
        gaps = Gaps()
        if errors:
            for spec in self.feature_specs:
                gaps.unread(spec.key, "", errors)
        if not functions:
            if not errors:
                raise NotPresentError("no Intel GPU or accelerator on the PCI bus")
            return Features(unknown=gaps.unknown, notes=gaps.notes)
        from nfd_sources._pcitable import read_modules  # noqa: PLC0415 - with devices
        from nfd_sources.intel import reading  # noqa: PLC0415 - as above
        from nfd_sources.intel.table import ROWS  # noqa: PLC0415 - as above

        habana = reading.read_habana(host, functions, gaps)
        return Features(
            attributes={
                "intel.module": read_modules(host, ROWS, "intel.module", gaps),
                **({"intel.habana": habana} if habana else {}),
            },
            instances={
                "intel.device": tuple(reading.read_devices(host, functions, gaps))
            },
            unknown=gaps.unknown,
            notes=gaps.notes,
        )

    def labels(
        self, features: Features, settings: IntelSettings
    ) -> Mapping[str, LabelValue]:
        """Return presence, counts and numbers."""
        if not features.instances:
            return {}
        from nfd_sources.intel import labels  # noqa: PLC0415 - with devices only

        return labels.labels(features, legacy=settings.legacy_labels)

    def why_not(self, name: str, features: Features, settings: IntelSettings) -> str:
        """Say which device or module the label needs."""
        from nfd_sources._pcitable import why_not  # noqa: PLC0415 - when asked only
        from nfd_sources.intel.table import NS, ROWS  # noqa: PLC0415 - as above

        if name.startswith("gpu.intel.com/"):
            reason = why_not(ROWS, f"{NS}/gpu", features, self.name)
            if not reason.startswith("not known"):
                return reason
            if not settings.legacy_labels:
                return "no such GPU, or a number that needs legacyLabels"
        if name.startswith("habana.ai/"):
            return "no Gaudi card, or it does not tell"
        return why_not(ROWS, name, features, self.name)

    def watch(self, settings: IntelSettings) -> tuple[Watch, ...]:
        """Look again when a device or a module comes or goes."""
        del settings
        return (Watch("udev", "pci"), Watch("udev", "module"), Watch("udev", "drm"))


def _of_the_table(functions: list[PciFunction]) -> list[PciFunction]:
    from nfd_sources._pcitable import device_of, matches  # noqa: PLC0415 - as above
    from nfd_sources.intel.table import GAUDI, ROWS  # noqa: PLC0415 - as above

    return [
        function
        for function in functions
        if function.vendor == GAUDI
        or any(matches(row, device_of(function)) for row in ROWS)
    ]
