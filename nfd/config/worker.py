"""The worker's configuration: `nfd-worker.conf`, `-options` and flags in layers.

Keys, defaults and precedence: spec/worker.md sections 2 and 3.1; keys of ours:
DESIGN section 6. `nfd scan` reads the same file.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import attrs

from nfd.config.decode import decode, find_key, join, merge_trees, wrong
from nfd.config.duration import Duration
from nfd.config.nearest import suggest
from nfd.errors import ConfigError, UsageError
from nfd.source import setting

OWNERS = ("node", "pod", "ds")  # the order in which they are normalised
CUSTOM = "custom"  # configured among the sources, and no feature source
PUBLISHERS = ("nodefeature", "node", "file", "none")
_LEGACY = frozenset({"local.hooksenabled"})  # upstream accepts and ignores it
_SECOND = Duration.of_seconds(1)


class Regexp(str):
    """A pattern in RE2 syntax, checked."""

    __slots__ = ()

    @classmethod
    def from_config(cls, value: Any, path: str) -> "Regexp":
        """Check a pattern; null is the empty one.

        Raises:
            ConfigError: The value is no text or no valid pattern.

        """
        if value is None:
            return cls()
        if not isinstance(value, str):
            raise wrong(path, value, "a regular expression as text")
        if value:
            from nfd import regex  # noqa: PLC0415 - RE2 is loaded only for a pattern

            try:
                regex.compile(value)
            except regex.PatternError as error:
                msg = f"{path}: {error} (allowed: RE2 syntax)"
                raise ConfigError(msg) from None
        return cls(value)


class Owners(tuple[str, ...]):
    """Kinds of owner references, in the order node, pod, ds."""

    __slots__ = ()

    @classmethod
    def from_config(cls, value: Any, path: str) -> "Owners":
        """Check and order a list; null is the default.

        Raises:
            ConfigError: An entry is unknown or comes twice.

        """
        if value is None:
            return DEFAULT_OWNERS
        return cls(_choices(value, path, OWNERS))


class Publish(tuple[str, ...]):
    """Publish modes, a list or comma text in a file."""

    __slots__ = ()

    @classmethod
    def from_config(cls, value: Any, path: str) -> "Publish":
        """Check a list of modes; null is the default.

        Raises:
            ConfigError: A mode is unknown or comes twice, or none stands with others.

        """
        if value is None:
            return DEFAULT_PUBLISH
        modes = cls(_choices(value, path, PUBLISHERS))
        if "none" in modes and len(modes) > 1:
            raise wrong(path, value, "'none' alone")
        return modes


DEFAULT_NAMESPACES = (  # as the chart's `labelNamespaces`
    "feature.node.kubernetes.io",
    "profile.node.kubernetes.io",
    "nvidia.com",
    "amd.com",
    "beta.amd.com",
    "habana.ai",
    "gpu.intel.com",
)
DEFAULT_OWNERS = Owners(("node",))
DEFAULT_PUBLISH = Publish(("nodefeature",))


def _choices(value: Any, path: str, known: tuple[str, ...]) -> list[str]:
    if isinstance(value, str):
        value = [word for part in value.split(",") if (word := part.strip())]
    allowed = "a list of " + ", ".join(known) + ", each at most once"
    if not isinstance(value, list | tuple):
        raise wrong(path, value, allowed)
    for i, item in enumerate(value):
        if item not in known or item in value[:i]:
            raise wrong(f"{path}[{i}]", item, allowed)
    return [name for name in known if name in value]


@attrs.frozen(slots=True)
class CoreConfig:
    """The part `core` of the worker's configuration."""

    sleep_interval: Duration = setting(
        "sleepInterval",
        Duration.of_seconds(60),
        "pause between two discoveries; 0 or less: only events cause one",
    )
    feature_sources: tuple[str, ...] = setting(
        "featureSources", ("all",), "sources that look at the host"
    )
    label_sources: tuple[str, ...] = setting(
        "labelSources", ("all",), "sources whose labels are published"
    )
    sources: tuple[str, ...] | None = setting(
        "sources", None, "deprecated name of labelSources; in the file it wins"
    )
    label_whitelist: Regexp = setting(
        "labelWhiteList",
        Regexp(),
        "pattern (RE2) that the name part of every label must match",
    )
    no_publish: bool = setting("noPublish", default=False, help="publish nothing")
    no_owner_refs: bool = setting(
        "noOwnerRefs", default=False, help="deprecated: as an empty ownerRefs"
    )
    owner_refs: Owners = setting(
        "ownerRefs", DEFAULT_OWNERS, "owners of the NodeFeature: node, pod, ds"
    )
    no_publish_features: tuple[str, ...] = setting(
        "noPublishFeatures",
        (),
        "features left out of the NodeFeature, as 'pci.device' or 'kernel.*'",
    )
    klog: Mapping[str, str] = setting("klog", {}, "logging flags of klog, camelCase")
    profiles: tuple[str, ...] = setting(
        "profiles",
        (),
        "programs whose needs are added to the sources' settings, see `nfd check`",
    )
    publish: Publish = setting(
        "publish", DEFAULT_PUBLISH, "where to publish: nodefeature, node, file, none"
    )
    publish_all_features: bool = setting(
        "publishAllFeatures",
        default=False,
        help="publish bulky feature sets whole, whatever the master asks for",
    )
    publish_features: tuple[str, ...] = setting(
        "publishFeatures",
        (),
        "only these features go into the NodeFeature, as 'pci.device' or 'kernel.*'; "
        "bulky ones named in full go whole; empty: all",
    )
    publish_file: str = setting(
        "publishFile", "", "file that the mode `file` writes, one key=value a line"
    )
    label_namespaces: tuple[str, ...] = setting(
        "labelNamespaces",
        DEFAULT_NAMESPACES,
        "namespaces, sub-domains included, of the labels written onto the own Node",
    )
    trust_unfenced: bool = setting(
        "trustUnfenced",
        default=False,
        help="write the own Node although no admission policy fences the worker",
    )
    node_refresh: Duration = setting(
        "nodeRefreshInterval",
        Duration.of_seconds(300),
        "how often the own Node is read again where only the Node is written; 0: never",
    )
    stale_limit: Duration = setting(
        "staleLimit",
        Duration(0),
        "time after which the last good features of a failing source go; 0: never",
    )


@attrs.frozen(slots=True)
class WorkerConfig:
    """The whole configuration; `sources` holds settings of those named in it."""

    core: CoreConfig = CoreConfig()
    sources: Mapping[str, Any] = attrs.field(factory=dict)
    custom: tuple[Any, ...] = ()  # rules of `sources.custom`, undecoded
    warnings: tuple[str, ...] = ()


class SettingsClasses(Protocol):
    """Knows the settings class of each source: `nfd.registry.Registry`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all registered sources."""
        ...

    def settings_class(self, name: str) -> type[Any] | None:
        """Return the settings class of a source; None when the source is broken."""
        ...


def load(
    classes: SettingsClasses,
    *,
    file: str | None = None,
    options: str = "",
    overrides: Mapping[str, Any] | None = None,
) -> WorkerConfig:
    """Decode the text of the file, then of `-options`, then the flags.

    Args:
        classes: The registered sources.
        file: Text of the configuration file; None when there is none.
        options: Text given by `-options`.
        overrides: Values of `core` keys that flags set, as `{"noPublish": True}`.

    Raises:
        ConfigError: A value is wrong; the text says in which layer, key and why.

    """
    config = WorkerConfig()
    if file is not None:
        config = _layer(config, _parse(file, "the configuration file"), classes)
        if config.core.sources is not None:
            core = attrs.evolve(config.core, label_sources=config.core.sources)
            config = attrs.evolve(config, core=core)
    if options:
        config = _layer(config, _parse(options, "-options"), classes)
    if overrides:
        config = _layer(config, {"core": dict(overrides)}, classes)
    return _finish(config, classes)


def decode_tree(tree: Mapping[str, Any], classes: SettingsClasses) -> WorkerConfig:
    """Decode a configuration given as data, in the shape of its file.

    Raises:
        ConfigError: A value is wrong.

    """
    return _finish(_layer(WorkerConfig(), tree, classes), classes)


def with_profiles(
    config: WorkerConfig | None, names: Iterable[str], classes: SettingsClasses
) -> WorkerConfig:
    """Return a configuration that has what profiles need, and all that it had.

    Raises:
        UsageError: There is no profile of a name.
        ConfigError: A profile does not fit the settings of a source.

    """
    from nfd import profile  # noqa: PLC0415 - PyYAML only when there is a file

    config = config or WorkerConfig()
    sources, custom = profile.add_profiles(
        config.sources,
        config.custom,
        profile.load_profiles(names),
        classes.settings_class,
    )
    return attrs.evolve(config, sources=sources, custom=custom)


def _parse(text: str, what: str) -> Any:
    from nfd.config import goyaml  # noqa: PLC0415 - PyYAML only when there is a file

    try:
        return goyaml.load(text)
    except ConfigError as error:
        raise ConfigError(f"{what}: {error}") from None


def _layer(config: WorkerConfig, tree: Any, classes: SettingsClasses) -> WorkerConfig:
    if tree is None:
        return config
    if not isinstance(tree, Mapping):
        raise wrong("the configuration", tree, "a map with 'core' and 'sources'")
    core = config.core
    sources = dict(config.sources)
    custom: Any = config.custom
    warnings = list(config.warnings)
    for key, value in sorted(tree.items()):
        name = find_key(key, ("core", "sources"))
        if name == "core":
            core = decode(CoreConfig, value, "core", base=core, warnings=warnings)
        elif name == "sources":
            custom = _sources(value, sources, custom, classes, warnings)
        else:
            hint = suggest(key, ("core", "sources"))
            warnings.append(f"{key}: unknown key, ignored{hint}")
    return WorkerConfig(core, sources, tuple(custom), tuple(warnings))


def _sources(
    tree: Any,
    sources: dict[str, Any],
    custom: Any,
    classes: SettingsClasses,
    warnings: list[str],
) -> Any:
    """Decode the part `sources` into `sources`; return the rules of `custom`."""
    if tree is None:
        return custom
    if not isinstance(tree, Mapping):
        raise wrong("sources", tree, "a map of source names")
    for name, value in sorted(tree.items()):
        path = join("sources", name)
        if name == CUSTOM:
            if value is not None and not isinstance(value, list):
                raise wrong(path, value, "a list of rules")
            custom = merge_trees(list(custom), value or [])
        elif name not in classes.names:
            hint = suggest(name, (*classes.names, CUSTOM))
            warnings.append(f"{path}: unknown source, ignored{hint}")
        else:
            cls = classes.settings_class(name)
            if cls is None:
                continue  # broken: its own message comes when it is to run
            notes: list[str] = []
            base = sources.get(name)
            sources[name] = decode(cls, value, path, base=base, warnings=notes)
            warnings += (n for n in notes if not _legacy(n))
    return custom


def _legacy(warning: str) -> bool:
    key = warning.partition(":")[0].removeprefix("sources.").lower()
    return key in _LEGACY


def _finish(config: WorkerConfig, classes: SettingsClasses) -> WorkerConfig:
    """Bring values into their ranges, add profiles, warn about deprecated keys."""
    core = config.core
    if core.profiles:
        try:
            config = with_profiles(config, core.profiles, classes)
        except UsageError as error:
            raise ConfigError(f"core.profiles: {error}") from None
    warnings = list(config.warnings)
    if core.sources is not None:
        warnings.append("core.sources: deprecated, use core.labelSources")
    changes: dict[str, Any] = {
        "no_publish_features": tuple(
            text for entry in core.no_publish_features if (text := entry.strip())
        )
    }
    if 0 < core.sleep_interval < _SECOND:
        changes["sleep_interval"] = _SECOND
    if core.no_owner_refs:
        warnings.append("core.noOwnerRefs: deprecated, use core.ownerRefs: []")
        changes["owner_refs"] = Owners()
    return attrs.evolve(
        config, core=attrs.evolve(core, **changes), warnings=tuple(warnings)
    )
