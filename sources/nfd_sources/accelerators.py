"""Accelerators and NICs of further vendors, from a table that a file can extend.

Specification: spec/gpu.md sections 2.1 (AMD NICs) and 2.4; the manual's page is
docs/sources/accelerators.md.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

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

_MORE = ("subsystem_device",)
_VENDORS = ("1dd8", "1ed2", "1eff", "1e3e")


@attrs.frozen(slots=True, eq=False, repr=False)
class AcceleratorsSettings(Settings):
    """The settings below `sources.accelerators`."""

    rows: tuple[Mapping[str, Any], ...] = setting(
        "rows", (), "rows added to the table: vendor, labels, classes, devices, modules"
    )


class AcceleratorsSource(Source[AcceleratorsSettings]):
    """Finds devices of a table and labels them as their vendors do."""

    name = "accelerators"
    needs = ("/sys/class",)
    settings_class = AcceleratorsSettings
    feature_specs: ClassVar = (
        FeatureSpec(
            "accelerators.device",
            ("instance",),
            ("address", "vendor", "class", "device", "subsystem_device", "driver"),
            "one instance a device of a vendor in the table",
        ),
        FeatureSpec(
            "accelerators.module",
            ("attribute",),
            None,
            "modules of the table that the kernel has, with their versions",
        ),
    )
    label_specs: ClassVar = (
        LabelSpec("feature.node.kubernetes.io/amd-nic", "true: an AMD NIC and ionic"),
        LabelSpec("feature.node.kubernetes.io/amd-vnic", "true: a virtual one"),
        LabelSpec("rebellions.ai/npu.<fact>", "present, count"),
        LabelSpec("rebellions.ai/driver-version.<part>", "full, major, minor, patch"),
        LabelSpec("furiosa.ai/npu.<fact>", "count, family, product"),
        LabelSpec("iluvatar.com/gpu.<fact>", "present, count"),
        LabelSpec("<namespace>/<name>", "any label of a row of the setting"),
    )

    def discover(self, host: HostRoot, settings: AcceleratorsSettings) -> Features:
        """Read the devices of all vendors in the table, and the modules.

        Raises:
            NotPresentError: There is no such device.
            ConfigError: A row of the setting is wrong.

        """
        rows = self._rows(settings) if settings.rows else ()
        vendors = {*_VENDORS, *(row.vendor for row in rows)}
        errors: list[OSError] = []
        functions = functions_of(host, vendors, errors, more=_MORE)
        gaps = Gaps()
        if errors:
            for spec in self.feature_specs:
                gaps.unread(spec.key, "", errors)
        if not functions:
            if not errors:
                raise NotPresentError("no device of the table on the PCI bus")
            return Features(unknown=gaps.unknown, notes=gaps.notes)
        from nfd_sources._pcitable import (  # noqa: PLC0415 - with devices only
            device_of,
            read_modules,
        )

        modules = read_modules(host, self._rows(settings), "accelerators.module", gaps)
        return Features(
            attributes={"accelerators.module": modules},
            instances={"accelerators.device": tuple(device_of(f) for f in functions)},
            unknown=gaps.unknown,
            notes=gaps.notes,
        )

    def labels(
        self, features: Features, settings: AcceleratorsSettings
    ) -> Mapping[str, LabelValue]:
        """Return the labels of the rows that match."""
        if not features.instances.get("accelerators.device"):
            return {}
        from nfd_sources._pcitable import labels_of  # noqa: PLC0415 - with devices only

        return labels_of(self._rows(settings), features, self.name)

    def why_not(
        self, name: str, features: Features, settings: AcceleratorsSettings
    ) -> str:
        """Say which device or module the label needs."""
        from nfd_sources._pcitable import why_not  # noqa: PLC0415 - when asked only

        return why_not(self._rows(settings), name, features, self.name)

    def watch(self, settings: AcceleratorsSettings) -> tuple[Watch, ...]:
        """Look again when a device or a module comes or goes."""
        del settings
        return (Watch("udev", "pci"), Watch("udev", "module"))

    @staticmethod
    def _rows(settings: AcceleratorsSettings) -> Any:
        from nfd_sources._acceleratortable import ROWS  # noqa: PLC0415 - with devices
        from nfd_sources._pcitable import row_of  # noqa: PLC0415 - as above

        return (
            *ROWS,
            *(
                row_of(plain, f"sources.accelerators.rows[{number}]")
                for number, plain in enumerate(settings.rows)
            ),
        )
