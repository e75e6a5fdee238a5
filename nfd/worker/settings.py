"""What a worker is told: options, configuration, and whether those files changed."""

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import attrs

from nfd._version import __version__
from nfd.config.worker import CoreConfig, WorkerConfig, load
from nfd.errors import ConfigError
from nfd.library import read_config
from nfd.registry import Registry
from nfd.worker.results import FILE, NODE, OBJECT

_JITTER = 0.1  # share of the poll interval


@attrs.frozen(slots=True, kw_only=True)
class Options:
    """What the command line and the environment say."""

    node: str = ""
    namespace: str = ""
    pod_name: str = ""
    pod_uid: str = ""
    config_file: str = ""
    config_text: str = ""  # of `-options`
    overrides: Mapping[str, Any] = attrs.field(factory=dict)  # of `core`
    auto_prefix: bool = True
    version: str = __version__


def load_settings(options: Options, registry: Registry) -> WorkerConfig:
    """Read the configuration that the options name; a missing file is an empty one.

    Raises:
        ConfigError: It is wrong or cannot be read.

    """
    path = options.config_file
    text = read_config(path, required=False) if path else None
    return load(
        registry, file=text, options=options.config_text, overrides=options.overrides
    )


def targets_of(core: CoreConfig) -> tuple[str, ...]:
    """Return where to publish, in the order in which it is done."""
    wanted = () if core.no_publish else core.publish
    return tuple(t for t in (NODE, OBJECT, FILE) if t in wanted)


def poll_interval(core: CoreConfig, node: str) -> float:
    """Return the seconds between two polls, 0 for none; a little off on every node.

    So a fleet that was started together does not stay together.
    """
    digest = hashlib.sha256(node.encode()).digest()
    share = int.from_bytes(digest[:4], "big") / 2**31 - 1
    return max(0.0, core.sleep_interval.seconds * (1 + _JITTER * share))


def check(core: CoreConfig, options: Options) -> None:
    """See that there is what the targets need.

    Raises:
        ConfigError: Something is missing.

    """
    targets = targets_of(core)
    if FILE in targets and not core.publish_file:
        raise ConfigError("core.publishFile: not set, but core.publish names file")
    if not {NODE, OBJECT} & {*targets}:
        return
    if not options.node:
        raise ConfigError(
            "NODE_NAME: not set in the environment; it names the Node to label"
        )
    if OBJECT in targets and not options.namespace:
        raise ConfigError(
            "namespace: unknown; set KUBERNETES_NAMESPACE in the environment"
        )


def stamp(path: str) -> Any:
    """Return what differs once a file, or anything in a folder, has changed."""
    try:
        if os.path.isdir(path):
            with os.scandir(path) as entries:
                inside = sorted(e.path for e in entries)
            return [(path, True), *(stamp(p) for p in inside)]
        found = os.stat(path)
    except OSError as error:
        return error.errno
    return (path, found.st_ino, found.st_mtime_ns, found.st_size)
