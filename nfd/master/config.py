"""The master's configuration: `nfd-master.conf`, `-options` and flags in layers.

Keys, defaults and precedence: spec/master.md sections 2.11, 2.13 and 10; keys of
ours (`startupTaints`, `removalGuard`, `trust`): DESIGN section 6.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from nfd.config.decode import decode, find_key, wrong
from nfd.config.duration import Duration
from nfd.config.worker import Regexp
from nfd.errors import ConfigError
from nfd.master.controller import ControllerConfig
from nfd.master.fleet import STARTUP_TAINTS, FleetConfig
from nfd.master.guard import GuardLimits
from nfd.master.merging import Scope, Trust
from nfd.master.state import Tracking
from nfd.rules.policy import Policy
from nfd.source import setting

DEFAULT_PATH = "/etc/kubernetes/node-feature-discovery/nfd-master.conf"
_INSTANCE = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_UNITED = ("denyLabelNs", "extraLabelNs")  # lists that layers add to


@attrs.frozen(slots=True)
class Selector:
    """A Kubernetes label selector: all of its requirements must hold."""

    match_labels: Mapping[str, str] = attrs.field(factory=dict)
    expressions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    @classmethod
    def from_config(cls, value: Any, path: str) -> "Selector | None":
        """Read `matchLabels` and `matchExpressions`; null is no selector.

        Raises:
            ConfigError: A part has the wrong shape or operator.

        """
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise wrong(path, value, "a label selector")
        labels: Mapping[str, str] = {}
        expressions = []
        for key, part in value.items():
            name = find_key(key, ("matchLabels", "matchExpressions"))
            if name == "matchLabels" and isinstance(part or {}, Mapping):
                labels = {str(k): str(v) for k, v in (part or {}).items()}
            elif name == "matchExpressions" and isinstance(part or [], list):
                expressions = [
                    _requirement(e, f"{path}.matchExpressions[{i}]")
                    for i, e in enumerate(part or [])
                ]
            else:
                raise wrong(f"{path}.{key}", part, "matchLabels or matchExpressions")
        return cls(labels, tuple(expressions))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether an object with these labels is selected."""
        if any(labels.get(k) != v for k, v in self.match_labels.items()):
            return False
        return all(_holds(labels, *e) for e in self.expressions)


def _requirement(value: Any, path: str) -> tuple[str, str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise wrong(path, value, "a map with key, operator and values")
    op = value.get("operator")
    listed = value.get("values") or []
    if op not in ("In", "NotIn", "Exists", "DoesNotExist"):
        allowed = "In, NotIn, Exists or DoesNotExist"
        raise wrong(f"{path}.operator", op, allowed)
    if (op in ("In", "NotIn")) != bool(listed) or not isinstance(listed, list):
        raise wrong(f"{path}.values", listed, "values with In and NotIn only")
    return str(value.get("key", "")), op, tuple(map(str, listed))


def _holds(
    labels: Mapping[str, str], key: str, op: str, values: tuple[str, ...]
) -> bool:
    if op == "In":
        return labels.get(key) in values
    if op == "NotIn":
        return labels.get(key) not in values
    return (key in labels) == (op == "Exists")


@attrs.frozen(slots=True)
class LeaderElection:
    """The part `leaderElection`."""

    lease_duration: Duration = setting(
        "leaseDuration", Duration.of_seconds(15), "after which another may lead"
    )
    renew_deadline: Duration = setting(
        "renewDeadline", Duration.of_seconds(10), "after which a leader stops"
    )
    retry_period: Duration = setting(
        "retryPeriod", Duration.of_seconds(2), "between two tries"
    )


@attrs.frozen(slots=True)
class Restrictions:
    """The part `restrictions`: what NodeFeatures and rules may not do."""

    selector: Selector | None = setting(
        "nodeFeatureNamespaceSelector", None, "namespaces whose NodeFeatures count"
    )
    deny_node_feature_labels: bool = setting(
        "denyNodeFeatureLabels", default=False, help="drop labels of third parties"
    )
    disable_labels: bool = setting(
        "disableLabels", default=False, help="write no labels"
    )
    disable_extended_resources: bool = setting(
        "disableExtendedResources", default=False, help="write no extended resources"
    )
    disable_annotations: bool = setting(
        "disableAnnotations", default=False, help="write no annotations"
    )
    allow_overwrite: bool = setting(
        "allowOverwrite",
        default=True,
        help="take over keys that somebody else holds; false leaves them",
    )


@attrs.frozen(slots=True)
class RemovalGuard:
    """The part `removalGuard`: when a removal needs more proof."""

    lost_nodes: int = setting(
        "lostNodes", 2, "nodes that may lose keys through lost NodeFeatures at once"
    )
    lost_share: float = setting("lostShare", 0.10, "the same as a share of the fleet")
    edit_nodes: int = setting(
        "editNodes", 10, "nodes that may lose keys through an edit at once"
    )
    edit_share: float = setting("editShare", 0.10, "the same as a share of the fleet")
    edit_hold: Duration = setting(
        "editHold", Duration.of_seconds(60), "how long a larger edit is held"
    )
    list_interval: Duration = setting(
        "listInterval",
        Duration.of_seconds(60),
        "between two complete lists that together prove an absence",
    )

    def limits(self) -> GuardLimits:
        """Return them in the guard's form."""
        return GuardLimits(
            lost_nodes=self.lost_nodes,
            lost_share=self.lost_share,
            edit_nodes=self.edit_nodes,
            edit_share=self.edit_share,
            edit_hold=self.edit_hold.seconds,
            list_interval=self.list_interval.seconds,
        )


@attrs.frozen(slots=True)
class GarbageCollection:
    """The part `garbageCollection`: NodeFeatures of nodes that are gone."""

    enable: bool = setting("enable", default=True, help="delete them")
    grace: Duration = setting(
        "grace", Duration.of_seconds(300), "how long the node must have been missing"
    )


@attrs.frozen(slots=True)
class MasterConfig:
    """The whole configuration of a master."""

    no_publish: bool = setting("noPublish", default=False, help="write nothing")
    extra_label_ns: tuple[str, ...] = setting(
        "extraLabelNs", (), "namespaces allowed beyond the rules"
    )
    deny_label_ns: tuple[str, ...] = setting(
        "denyLabelNs", (), "namespaces denied; a leading * matches the end"
    )
    label_whitelist: Regexp = setting(
        "labelWhiteList", Regexp(), "pattern (RE2) for the name part of labels"
    )
    enable_taints: bool = setting("enableTaints", default=False, help="write taints")
    resync_period: Duration = setting(
        "resyncPeriod",
        Duration.of_seconds(3600),
        "between two looks at every node; 0 or less: never",
    )
    parallelism: int = setting("nfdApiParallelism", 10, "writers at once")
    page_size: int = setting("informerPageSize", 200, "objects in a page; 0: no pages")
    leader_election: LeaderElection = setting(
        "leaderElection", LeaderElection(), "times of the leader election"
    )
    klog: Mapping[str, str] = setting("klog", {}, "logging flags of klog, camelCase")
    restrictions: Restrictions = setting(
        "restrictions", Restrictions(), "what is forbidden"
    )
    startup_taints: tuple[str, ...] = setting(
        "startupTaints", STARTUP_TAINTS, "taints lifted once a new node is labelled"
    )
    removal_guard: RemovalGuard = setting(
        "removalGuard", RemovalGuard(), "when a removal needs more proof"
    )
    garbage_collection: GarbageCollection = setting(
        "garbageCollection", GarbageCollection(), "NodeFeatures of nodes that are gone"
    )
    trust: Trust = setting("trust", Trust(), "who may speak for which nodes and keys")


@attrs.frozen(slots=True)
class Loaded:
    """A configuration and what was odd in it."""

    config: MasterConfig
    warnings: tuple[str, ...] = ()


def load(
    *,
    file: str | None = None,
    options: str = "",
    overrides: Mapping[str, Any] | None = None,
) -> Loaded:
    """Decode the text of the file, then of `-options`, then the flags.

    The lists of namespaces of file and `-options` are united; flags replace.

    Raises:
        ConfigError: A value is wrong; the text says in which layer, key and why.

    """
    warnings: list[str] = []
    config = MasterConfig()
    for text, what in ((file, "the configuration file"), (options, "-options")):
        if not text:
            continue
        before = config
        try:
            config = _layer(config, _parse(text), warnings)
        except ConfigError as error:
            raise ConfigError(f"{what}: {error}") from None
        if what == "-options":
            config = attrs.evolve(
                config,
                deny_label_ns=_united(before.deny_label_ns, config.deny_label_ns),
                extra_label_ns=_united(before.extra_label_ns, config.extra_label_ns),
            )
    if overrides:
        config = _layer(config, dict(overrides), warnings)
    if config.parallelism <= 0:
        raise wrong("nfdApiParallelism", config.parallelism, "a number above 0")
    if config.page_size < 0:
        raise wrong("informerPageSize", config.page_size, "0 or more")
    return Loaded(config, tuple(warnings))


def _parse(text: str) -> Any:
    from nfd.config import goyaml  # noqa: PLC0415 - PyYAML only when there is a text

    return goyaml.load(text)


def _layer(config: MasterConfig, tree: Any, warnings: list[str]) -> MasterConfig:
    if tree is None:
        return config
    if not isinstance(tree, Mapping):
        raise wrong("the configuration", tree, "a map")
    return decode(MasterConfig, tree, base=config, warnings=warnings)


def _united(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*before, *after)))


def check_instance(instance: str) -> None:
    """Check the name of a master instance.

    Raises:
        ConfigError: The name cannot be part of an annotation's prefix.

    """
    if instance and not _INSTANCE.fullmatch(instance):
        raise wrong("-instance", instance, "letters, digits, '-', '_' and '.'")
    if instance != instance.lower() or "_" in instance:
        raise wrong("-instance", instance, "a part of a DNS name: lower case, no '_'")


def fleet_config(
    config: MasterConfig,
    *,
    namespace: str,
    instance: str = "",
    auto_prefix: bool = True,
    selected: Callable[[str], bool] | None = None,
) -> FleetConfig:
    """Turn a configuration into what governs planning."""
    limits = config.restrictions
    return FleetConfig(
        policy=Policy(
            deny_label_ns=config.deny_label_ns,
            extra_label_ns=config.extra_label_ns,
            label_whitelist=config.label_whitelist,
            disable_auto_prefix=not auto_prefix,
            enable_taints=config.enable_taints,
            disable_labels=limits.disable_labels,
            disable_annotations=limits.disable_annotations,
            disable_extended_resources=limits.disable_extended_resources,
        ),
        scope=Scope(
            namespace,
            trust=config.trust,
            selected=selected,
            deny_labels=limits.deny_node_feature_labels,
        ),
        tracking=Tracking.of(instance),
        allow_overwrite=limits.allow_overwrite,
        startup_taints=frozenset(config.startup_taints),
        limits=config.removal_guard.limits(),
    )


def controller_config(
    config: MasterConfig, *, dry_run: bool = False
) -> ControllerConfig:
    """Turn a configuration into how the controller works."""
    return ControllerConfig(
        writers=config.parallelism,
        resync_period=max(0.0, config.resync_period.seconds),
        page_size=config.page_size,
        publish=not (config.no_publish or dry_run),
    )
