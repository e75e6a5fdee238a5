"""From a configuration to a discovery: what `nfd.scan` and the commands share."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from nfd import registry as registry_module
from nfd.config.decode import join
from nfd.config.selection import select, words
from nfd.config.worker import CUSTOM, WorkerConfig, decode_tree
from nfd.discovery import DEFAULT_TIMEOUT, Discovery, Plan, Runner, discover
from nfd.errors import ConfigError
from nfd.hostroot import HostRoot
from nfd.registry import PluginError, Registry


def scan(
    root: str | os.PathLike[str] | HostRoot = "/",
    sources: str | Iterable[str] | None = None,
    config: WorkerConfig | Mapping[str, Any] | None = None,
    *,
    registry: Registry | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Discovery:
    """Discover the features of a host and the labels they make.

    Args:
        root: The host: `/`, a mounted root, a prefix ending in `-`, a capture, or an
            open HostRoot.
        sources: Selection words as in `core.featureSources`, a list or comma text.
        config: The worker's configuration, decoded or as the data of its file.
        registry: The sources to choose from; those installed by default.
        timeout: Seconds that each source may take.

    Raises:
        ConfigError: The configuration is wrong.
        HostError: The root cannot be used.
        PluginError: No sources are installed.

    """
    if registry is None:
        registry = registry_module.installed()
    if config is None:
        config = WorkerConfig()
    elif not isinstance(config, WorkerConfig):
        config = decode_tree(config, registry)
    config = choose(config, sources, None)
    if isinstance(root, HostRoot):
        return discover(root, make_plan(registry, config)[0], Runner(timeout))
    with HostRoot.open(os.fspath(root)) as host:
        return discover(host, make_plan(registry, config)[0], Runner(timeout))


def choose(
    config: WorkerConfig,
    sources: str | Iterable[str] | None,
    label_sources: str | Iterable[str] | None,
) -> WorkerConfig:
    """Replace the selections of a configuration by those that are not None."""
    changes: dict[str, Any] = {}
    for field, chosen in (
        ("feature_sources", sources),
        ("label_sources", label_sources),
    ):
        if chosen is not None:
            changes[field] = words(chosen) if isinstance(chosen, str) else tuple(chosen)
    return attrs.evolve(config, core=attrs.evolve(config.core, **changes))


def make_plan(registry: Registry, config: WorkerConfig) -> tuple[Plan, tuple[str, ...]]:
    """Select and load sources; returns the plan and warnings about unknown names."""
    core = config.core
    chosen = select(
        core.feature_sources,
        registry.names,
        off=registry.off_by_default,
        where=join("core", "featureSources"),
    )
    labels = select(
        core.label_sources,
        (*registry.names, CUSTOM),
        off=lambda name: name != CUSTOM and registry.off_by_default(name),
        where=join("core", "labelSources"),
    )
    loaded = []
    broken = {}
    for name in chosen.names:
        try:
            loaded.append(registry.load(name))
        except PluginError as error:
            broken[name] = str(error)
    plan = Plan(
        tuple(loaded),
        frozenset(labels.names),
        config.sources,
        core.label_whitelist,
        broken=broken,
    )
    return plan, (*registry.problems.values(), *chosen.warnings, *labels.warnings)


def read_config(path: str, *, required: bool = True) -> str | None:
    """Read a configuration file; None when it is missing and not required.

    Raises:
        ConfigError: It cannot be read.

    """
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        if not required:
            return None
        msg = f"{path}: there is no such configuration file"
        raise ConfigError(msg) from None
    except (OSError, UnicodeError) as error:
        msg = f"{path}: {getattr(error, 'strerror', None) or error}"
        raise ConfigError(msg) from None
