"""The settings of `gpu-feature-discovery`: command line, environment, file.

The command line beats the environment, which beats the file. Names, defaults and the
form of the file: spec/gpu.md section 1.5.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from nfd.config.duration import Duration
from nfd.errors import ConfigError

DEFAULT_OUTPUT = "/etc/kubernetes/node-feature-discovery/features.d/gfd"
INFINITE = "infinite"
STRATEGIES = ("none", "single", "mixed")
DISCOVERY = ("auto", "nvml", "tegra")  # which one it is, the source finds out
_UNSERVED = ("vfio",)
_VERSION = "v1"


@attrs.frozen(slots=True, kw_only=True)
class GfdSettings:
    """What one run of the agent goes by; `sleep_interval` None: never again."""

    mig_strategy: str = "none"
    fail_on_init_error: bool = True
    oneshot: bool = False
    no_timestamp: bool = False
    sleep_interval: float | None = 60.0  # seconds
    output_file: str = DEFAULT_OUTPUT  # "": standard output
    machine_type_file: str = "/sys/class/dmi/id/product_name"
    use_node_feature_api: bool = True
    driver_root: str = ""
    namespace: str = "default"
    node_name: str = ""
    pod_name: str = ""
    remove_on_exit: bool = False
    sharing: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def source_config(self) -> dict[str, Any]:
        """Return the configuration of the source `nvml`."""
        return {
            "migStrategy": self.mig_strategy,
            "sharing": self.sharing,
            "driverRoot": self.driver_root,
            "machineTypeFile": self.machine_type_file,
            "always": True,
        }


def parse_interval(text: str) -> float | None:
    """Read a duration or `infinite`.

    Raises:
        ValueError: It is neither.

    """
    if text == INFINITE:
        return None
    try:
        return Duration.parse(text).seconds
    except ValueError:
        raise ValueError("expected a duration as 60s, or infinite") from None


def of_file(text: str) -> dict[str, Any]:
    """Read a configuration file into fields of GfdSettings.

    Raises:
        ConfigError: It is no such file, or a value is wrong.

    """
    from nfd.config import goyaml  # noqa: PLC0415 - only when there is a file

    plain = goyaml.load(text)
    if not isinstance(plain, Mapping):
        raise ConfigError("the configuration file is no map")
    if plain.get("version") != _VERSION:
        found = plain.get("version")
        raise ConfigError(f"version: {found!r} is not known, expected {_VERSION}")
    flags = _map(plain.get("flags"), "flags")
    gfd = _map(flags.get("gfd"), "flags.gfd")
    found = {}
    for tree, path, names in (
        (
            flags,
            "flags",
            {
                "migStrategy": "mig_strategy",
                "failOnInitError": "fail_on_init_error",
                "useNodeFeatureAPI": "use_node_feature_api",
                "deviceDiscoveryStrategy": "device_discovery_strategy",
            },
        ),
        (
            gfd,
            "flags.gfd",
            {
                "oneshot": "oneshot",
                "noTimestamp": "no_timestamp",
                "sleepInterval": "sleep_interval",
                "outputFile": "output_file",
                "machineTypeFile": "machine_type_file",
            },
        ),
    ):
        for key, name in names.items():
            if tree.get(key) is not None:
                found[name] = _value(name, tree[key], f"{path}.{key}")
    sharing = _map(plain.get("sharing"), "sharing")
    return found | ({"sharing": sharing} if sharing else {})


def _map(value: Any, path: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{path}: {value!r} is not allowed here, expected a map")
    return value


_BOOLEANS = ("fail_on_init_error", "use_node_feature_api", "oneshot", "no_timestamp")


def _value(name: str, value: Any, path: str) -> Any:
    is_boolean = name in _BOOLEANS
    if not isinstance(value, bool if is_boolean else str):
        kind = "true or false" if is_boolean else "text"
        raise ConfigError(f"{path}: {value!r} is not allowed here, expected {kind}")
    if name == "sleep_interval":
        try:
            return parse_interval(str(value))
        except ValueError as error:
            raise ConfigError(f"{path}: {value!r}: {error}") from None
    return value


def make(layers: list[Mapping[str, Any]]) -> GfdSettings:
    """Make the settings of layers, of which later ones win.

    Raises:
        ConfigError: A choice is none that there is.

    """
    values: dict[str, Any] = {}
    for layer in layers:
        values |= layer
    strategy = values.pop("device_discovery_strategy", "auto")
    if strategy in _UNSERVED:
        raise ConfigError(
            f"device discovery strategy {strategy!r} is not served here, use "
            f"{', '.join(DISCOVERY)}"
        )
    if strategy not in DISCOVERY:
        raise ConfigError(f"unknown device discovery strategy {strategy!r}")
    settings = GfdSettings(**values)
    if settings.mig_strategy not in STRATEGIES:
        raise ConfigError(
            f"unknown MIG strategy {settings.mig_strategy!r}, expected one of "
            f"{', '.join(STRATEGIES)}"
        )
    return settings
