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
        return _scan(root, registry, config, timeout)
    with HostRoot.open(os.fspath(root)) as host:
        return _scan(host, registry, config, timeout)


def _scan(
    host: HostRoot, registry: Registry, config: WorkerConfig, timeout: float
) -> Discovery:
    plan, warnings = make_plan(registry, config, host)
    return attrs.evolve(
        discover(host, plan, Runner(timeout)), warnings=(*config.warnings, *warnings)
    )


def choose(
    config: WorkerConfig,
    sources: str | Iterable[str] | None,
    label_sources: str | Iterable[str] | None,
) -> WorkerConfig:
    """Replace the selections of a configuration by those that are not None.

    Sources chosen by name make labels too, unless the label sources are chosen.
    """
    core = config.core
    if sources is not None:
        core = attrs.evolve(core, feature_sources=_words(sources))
        if core.label_sources == ("all",):
            named = (word for word in core.feature_sources if word[0] != "-")
            core = attrs.evolve(core, label_sources=("all", *named))
    if label_sources is not None:
        core = attrs.evolve(core, label_sources=_words(label_sources))
    return attrs.evolve(config, core=core)


def _words(chosen: str | Iterable[str]) -> tuple[str, ...]:
    return words(chosen if isinstance(chosen, str) else ",".join(chosen))


def make_plan(
    registry: Registry, config: WorkerConfig, host: HostRoot
) -> tuple[Plan, tuple[str, ...]]:
    """Select and load sources and the host's worker rules.

    Returns the plan and warnings: unknown names, plug-ins and rule files left out.

    Raises:
        ConfigError: A rule of `sources.custom` is wrong.

    """
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
        off=lambda name: name in chosen.names and registry.off_by_default(name),
        where=join("core", "labelSources"),
    )
    loaded = []
    broken = {}
    for name in chosen.names:
        try:
            loaded.append(registry.load(name))
        except PluginError as error:
            broken[name] = str(error)
    rules = None
    problems: tuple[str, ...] = ()
    if CUSTOM in labels.names:
        from nfd.custom import load_custom  # noqa: PLC0415 - the rule engine is big

        rules, problems = load_custom(host, config.custom)
    plan = Plan(
        tuple(loaded),
        frozenset(labels.names),
        config.sources,
        core.label_whitelist,
        rules,
        broken,
    )
    warnings = (*registry.problems.values(), *chosen.warnings, *labels.warnings)
    return plan, (*warnings, *problems)


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
