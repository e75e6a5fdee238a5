"""`gpu-feature-discovery`: the drop-in for NVIDIA's labeller, with its flags."""

import os
import signal
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nfd._version import __version__
from nfd.cli import goflags
from nfd.cli.goflags import Flag, FlagSet, Parsed
from nfd.errors import ConfigError, NfdError, UsageError
from nfd.gfd.settings import (
    DEFAULT_OUTPUT,
    GfdSettings,
    make,
    of_file,
    parse_interval,
)

PROGRAM = "gpu-feature-discovery"
_CONTAINER_DRIVER_ROOT = "/driver-root"


def _interval(text: str) -> str:
    parse_interval(text)
    return text


FLAGS: tuple[Flag, ...] = (
    goflags.text("mig-strategy", "labels of MIG devices: none, single, mixed", "none"),
    goflags.switch(
        "fail-on-init-error",
        "exit with 1 when NVML cannot be initialised; else labels stay as they are",
        default=True,
    ),
    goflags.switch("oneshot", "label once, then exit"),
    goflags.switch("no-timestamp", "leave the label gfd.timestamp out"),
    Flag(
        "sleep-interval",
        "time between two looks; infinite: look once, then wait",
        "60s",
        _interval,
        "duration",
    ),
    goflags.text(
        "output-file", "file of the labels; empty: standard output", DEFAULT_OUTPUT
    ),
    goflags.text("o", "as -output-file", DEFAULT_OUTPUT),
    goflags.text(
        "machine-type-file",
        "file of the label gpu.machine",
        "/sys/class/dmi/id/product_name",
    ),
    goflags.text("config-file", "configuration file of the device plugin"),
    goflags.switch(
        "use-node-feature-api",
        "publish a NodeFeature; outside a cluster the file is written unless asked",
        default=True,
    ),
    goflags.text("device-discovery-strategy", "auto, nvml or tegra", "auto"),
    goflags.text(
        "driver-root-ctr-path",
        "where the driver's root is mounted, if it is",
        _CONTAINER_DRIVER_ROOT,
    ),
    goflags.text("namespace", "namespace of the NodeFeature", "default"),
    goflags.text("node-name", "name of this node"),
    goflags.text("pod-name", "name of this pod, whose DaemonSet owns the NodeFeature"),
    goflags.text("kubeconfig", "kubeconfig file; empty: the pod's own credentials"),
    goflags.switch("remove-on-exit", "take the labels back when stopped"),
    goflags.switch("version", "print the version, then exit"),
)
# Flag → field of the settings, and environment variables, the first that is set.
_NAMES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "mig-strategy": ("mig_strategy", ("GFD_MIG_STRATEGY", "MIG_STRATEGY")),
    "fail-on-init-error": (
        "fail_on_init_error",
        ("GFD_FAIL_ON_INIT_ERROR", "FAIL_ON_INIT_ERROR"),
    ),
    "oneshot": ("oneshot", ("GFD_ONESHOT",)),
    "no-timestamp": ("no_timestamp", ("GFD_NO_TIMESTAMP",)),
    "sleep-interval": ("sleep_interval", ("GFD_SLEEP_INTERVAL",)),
    "output-file": ("output_file", ("GFD_OUTPUT_FILE",)),
    "o": ("output_file", ()),
    "machine-type-file": ("machine_type_file", ("GFD_MACHINE_TYPE_FILE",)),
    "config-file": ("config_file", ("GFD_CONFIG_FILE", "CONFIG_FILE")),
    "use-node-feature-api": (
        "use_node_feature_api",
        ("GFD_USE_NODE_FEATURE_API", "USE_NODE_FEATURE_API"),
    ),
    "device-discovery-strategy": (
        "device_discovery_strategy",
        ("DEVICE_DISCOVERY_STRATEGY",),
    ),
    "driver-root-ctr-path": ("driver_root", ("DRIVER_ROOT_CTR_PATH",)),
    "namespace": ("namespace", ("NAMESPACE",)),
    "node-name": ("node_name", ("NODE_NAME",)),
    "pod-name": ("pod_name", ("POD_NAME",)),
    "remove-on-exit": ("remove_on_exit", ("GFD_REMOVE_ON_EXIT",)),
}


def load_settings(parsed: Parsed, environ: Mapping[str, str]) -> GfdSettings:
    """Unite defaults, file, environment and command line.

    Raises:
        ConfigError: A value is wrong, or the file cannot be read.
        UsageError: A value of the environment is wrong.

    """
    told = {**_of_environment(environ), **_of_command_line(parsed)}
    path = told.pop("config_file", "")
    layers: list[Mapping[str, Any]] = [of_file(_read(path))] if path else []
    given = {name for layer in (*layers, told) for name in layer}
    if "use_node_feature_api" not in given and "KUBERNETES_SERVICE_HOST" not in environ:
        layers.insert(0, {"use_node_feature_api": False})
    if "driver_root" not in given and os.path.isdir(_CONTAINER_DRIVER_ROOT):
        layers.insert(0, {"driver_root": _CONTAINER_DRIVER_ROOT})
    return make([*layers, told])


def _of_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    flags = {flag.name: flag for flag in FLAGS}
    for name, (field, variables) in _NAMES.items():
        for variable in variables:
            if variable in environ and (environ[variable] or name == "output-file"):
                try:
                    value = flags[name].parse(environ[variable])
                except ValueError as error:
                    raise UsageError(f"{variable}: {error}") from None
                found[field] = _final(name, value)
                break
    return found


def _of_command_line(parsed: Parsed) -> dict[str, Any]:
    return {
        field: _final(name, parsed[name])
        for name, (field, _) in _NAMES.items()
        if name in parsed.given
    }


def _final(name: str, value: Any) -> Any:
    return parse_interval(value) if name == "sleep-interval" else value


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path}: {reason}") from None


def main(
    argv: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ
) -> int:
    """Run the agent; 0 after a stop or a good pass, 1 after an error, 2 wrong use."""
    words = list(sys.argv[1:] if argv is None else argv)
    parsed = FlagSet(PROGRAM, FLAGS).parse_or_exit(words)
    if isinstance(parsed, int):
        return parsed
    if parsed["version"]:
        print(f"{PROGRAM} {__version__}")
        return 0
    from nfd import agentlog  # noqa: PLC0415 - help needs none of it
    from nfd.gfd.agent import Agent  # noqa: PLC0415 - as above
    from nfd.hostroot import HostRoot  # noqa: PLC0415 - as above
    from nfd.kube.clock import Stop  # noqa: PLC0415 - as above
    from nfd.registry import installed  # noqa: PLC0415 - as above

    agentlog.configure(PROGRAM, {})
    stop, reload = Stop(), Stop()
    _handle(lambda number: _signalled(number, stop, reload))
    try:
        with HostRoot.open(environ.get("NFD_HOST_ROOT") or "/") as host:
            agent = Agent(
                lambda: load_settings(parsed, environ),
                lambda settings: _output(settings, parsed["kubeconfig"], stop),
                host,
                installed(),
                agentlog.logger("gfd"),
            )
            return agent.run(stop, reload)
    except NfdError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1


def _output(settings: GfdSettings, kubeconfig: str, stop: Any) -> Any:
    from nfd.gfd.publishing import (  # noqa: PLC0415 - as in main
        FileOutput,
        ObjectOutput,
        StreamOutput,
    )

    if settings.use_node_feature_api:
        from nfd.kube.connect import connect  # noqa: PLC0415 - with this output only

        if not settings.node_name:
            raise ConfigError("a NodeFeature needs -node-name, or NODE_NAME")
        client = connect(PROGRAM, kubeconfig, field_manager=PROGRAM, stop=stop)
        return ObjectOutput(
            client, settings.namespace, settings.node_name, settings.pod_name
        )
    return FileOutput(settings.output_file) if settings.output_file else StreamOutput()


def _signalled(number: int, stop: Any, reload: Any) -> None:
    if number != signal.SIGHUP:
        stop.set()
    reload.set()


def _handle(act: Callable[[int], None]) -> None:
    def handler(number: int, frame: types.FrameType | None) -> None:
        del frame
        act(number)

    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(each, handler)
