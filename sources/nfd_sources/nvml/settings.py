"""The settings below `sources.nvml`, and the sharing part of a device plugin's file.

Specification: spec/gpu.md sections 1.3 and 1.5.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import attrs

from nfd.errors import ConfigError
from nfd.source import Settings, setting

VENDOR_PREFIX = "nvidia.com/"
_KINDS: tuple[Literal["mps", "timeSlicing"], ...] = ("mps", "timeSlicing")


class Sharing(NamedTuple):
    """How GPUs are shared: replicas by resource (without prefix), and the way."""

    strategy: Literal["none", "time-slicing", "mps"] = "none"
    renamed: bool = False
    replicas: Mapping[str, int] = MappingProxyType({})
    warnings: tuple[str, ...] = ()

    @classmethod
    def from_config(cls, value: Any, path: str) -> "Sharing":
        """Read the part `sharing` of a device plugin's configuration.

        A part `mps` counts alone, whatever else is there.

        Raises:
            ConfigError: The value has not the shape of such a part.

        """
        if value is None or isinstance(value, Sharing):
            return value or cls()
        parts = _map(value, path)
        for kind in _KINDS:
            if parts.get(kind) is not None:
                return cls._of(kind, _map(parts[kind], f"{path}.{kind}"), path)
        return cls()

    @classmethod
    def _of(
        cls, kind: Literal["mps", "timeSlicing"], part: Mapping[str, Any], path: str
    ) -> "Sharing":
        replicas: dict[str, int] = {}
        warnings: list[str] = []
        for number, item in enumerate(part.get("resources") or ()):
            where = f"{path}.{kind}.resources[{number}]"
            entry = _map(item, where)
            name = str(entry.get("name", "")).removeprefix(VENDOR_PREFIX)
            count = entry.get("replicas")
            if not name:
                raise ConfigError(f"{where}.name: a resource name is needed")
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ConfigError(
                    f"{where}.replicas: {count!r} is not allowed here, "
                    "expected a whole number from 1"
                )
            warnings += (
                f"{where}.{key}: ignored, labels do not depend on it"
                for key in ("rename", "devices")
                if entry.get(key) not in (None, "all")
            )
            replicas[name] = count
        shared = any(count > 1 for count in replicas.values())
        strategy: Literal["none", "time-slicing", "mps"] = "none"
        if shared:
            strategy = "mps" if kind == "mps" else "time-slicing"
        renamed = bool(part.get("renameByDefault"))
        return cls(strategy, renamed, replicas, tuple(warnings))

    def of(self, resource: str) -> tuple[int, str]:
        """Return replicas and strategy of a resource: (1, "none") if not shared."""
        count = self.replicas.get(resource, 1)
        return (count, self.strategy) if count > 1 else (1, "none")


def _map(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{path}: {value!r} is not allowed here, expected a map")
    return value


@attrs.frozen(slots=True, eq=False, repr=False)
class NvmlSettings(Settings):
    """The settings below `sources.nvml`."""

    mig_strategy: Literal["none", "single", "mixed"] = setting(
        "migStrategy", "none", "how MIG devices are labelled: none, single, mixed"
    )
    mixed_models: Literal["primary", "omit"] = setting(
        "mixedModels",
        "primary",
        "what labels for one model say on a node with several: those of the primary "
        "model, or nothing",
    )
    sharing: Sharing = setting(
        "sharing", Sharing(), "the part `sharing` of the device plugin's configuration"
    )
    driver_root: str = setting(
        "driverRoot", "", "folder of the host that holds the driver's user space"
    )
    machine_type_file: str = setting(
        "machineTypeFile",
        "/sys/class/dmi/id/product_name",
        "file of the label gpu.machine; empty: unknown",
    )
    always: bool = setting(
        "always", default=False, help="ask NVML without an NVIDIA GPU on the PCI bus"
    )
    timestamp: bool = setting(
        "timestamp", default=False, help="add the label gfd.timestamp"
    )
