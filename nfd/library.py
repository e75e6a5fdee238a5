"""From a configuration to a discovery: what `nfd.scan` and the commands share."""

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from nfd import registry as registry_module
from nfd.config.selection import as_words, select
from nfd.custom import CustomSource, load_custom
from nfd.discovery import (
    DEFAULT_TIMEOUT,
    Discovery,
    Plan,
    Runner,
    discover,
)
from nfd.errors import ConfigError
from nfd.hostroot import HostRoot
from nfd.registry import PluginError, Registry

if TYPE_CHECKING:
    from nfd.config.worker import WorkerConfig

CUSTOM = CustomSource.name
ALL: tuple[str, ...] = ("all",)  # the default selection


def scan(
    root: str | os.PathLike[str] | HostRoot = "/",
    sources: str | Iterable[str] | None = None,
    config: "WorkerConfig | Mapping[str, Any] | None" = None,
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
    if isinstance(config, Mapping):
        from nfd.config.worker import decode_tree  # noqa: PLC0415 - not always needed

        config = decode_tree(config, registry)
    with contextlib.ExitStack() as stack:
        host = (
            root
            if isinstance(root, HostRoot)
            else stack.enter_context(HostRoot.open(os.fspath(root)))
        )
        plan, warnings = make_plan(registry, host, config, sources=sources)
        found = discover(host, plan, Runner(timeout))
    return attrs.evolve(found, warnings=warnings)


def make_plan(  # noqa: PLR0913 - one keyword for each option of the commands
    registry: Registry,
    host: HostRoot,
    config: "WorkerConfig | None" = None,
    *,
    sources: str | Iterable[str] | None = None,
    label_sources: str | Iterable[str] | None = None,
    before: Plan | None = None,
) -> tuple[Plan, tuple[str, ...]]:
    """Select and load sources and the host's worker rules.

    Args:
        registry: The sources to choose from.
        host: Where custom.d lies.
        config: The configuration; the defaults without one.
        sources: Selection that replaces `core.featureSources`. Sources that it names
            make labels too, unless the label sources are chosen.
        label_sources: Selection that replaces `core.labelSources`.
        before: The plan that this one replaces; rule files that became bad keep
            the rules that they gave it.

    Returns:
        The plan, and warnings about unknown names and keys, plug-ins and rule files.

    Raises:
        ConfigError: A rule of `sources.custom` is wrong.

    """
    wanted, wanted_labels = ALL, ALL
    if config is not None:
        wanted = config.core.feature_sources
        wanted_labels = config.core.label_sources
    if sources is not None:
        wanted = as_words(sources)
        if wanted_labels == ALL:
            wanted_labels = (*ALL, *(word for word in wanted if word[0] != "-"))
    if label_sources is not None:
        wanted_labels = as_words(label_sources)
    names, odd = select(
        wanted,
        registry.names,
        off=registry.off_by_default,
        where="core.featureSources",
    )
    label_names, odd_labels = select(
        wanted_labels,
        (*registry.names, CUSTOM),
        off=lambda name: name in names and registry.off_by_default(name),
        where="core.labelSources",
    )
    loaded = []
    broken = {}
    for name in names:
        try:
            loaded.append(registry.load(name))
        except PluginError as error:
            broken[name] = str(error)
    rules: CustomSource | None = None
    problems: tuple[str, ...] = ()
    if CUSTOM in label_names:
        kept = None if before is None else before.rules
        rules, problems = load_custom(
            host,
            () if config is None else config.custom,
            kept if isinstance(kept, CustomSource) else None,
        )
    plan = Plan(
        tuple(loaded),
        frozenset(label_names),
        {} if config is None else config.sources,
        "" if config is None else config.core.label_whitelist,
        rules,
        broken,
    )
    warnings = () if config is None else config.warnings
    return plan, (
        *warnings,
        *registry.problems.values(),
        *odd,
        *odd_labels,
        *problems,
    )


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
