"""Which NodeFeatures speak for a node, in which order, and about what.

Pure. Sources: spec/worker.md section 6.7, spec/master.md sections 2.4 and 10,
DESIGN section 5 (several worker-made objects) and issue cases H42 and H66.
"""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import attrs

from nfd.errors import NfdError
from nfd.labels import Provenance, Refusal
from nfd.master.store import StoredFeature
from nfd.publish import nodefeature as nf
from nfd.publish.ownership import NODE_NAME_LABEL, node_name_label
from nfd.source import setting

NOT_SELECTED = "namespace not selected"
ORIGIN = "NodeFeature"  # begins the provenance of what objects publish


@attrs.frozen(slots=True)
class TrustRule:
    """What the NodeFeatures of some namespaces may say; all are shell patterns."""

    namespaces: tuple[str, ...] = setting("namespaces", (), "namespaces, as 'gpu-*'")
    nodes: tuple[str, ...] = setting("nodes", ("*",), "nodes they may speak for")
    labels: tuple[str, ...] = setting("labels", (), "label keys, as 'nvidia.com/*'")
    features: tuple[str, ...] = setting("features", (), "feature sets, as 'vendor.*'")


@attrs.frozen(slots=True)
class Trust:
    """Who may speak for nodes, beside the master's own namespace."""

    enforce: bool = setting(
        "enforce", default=False, help="refuse what no entry of allow grants"
    )
    allow: tuple[TrustRule, ...] = setting(
        "allow", (), "what the NodeFeatures of other namespaces may say"
    )

    def labels(self, namespace: str, node: str, key: str) -> bool:
        """Tell whether a namespace may set this label on this node."""
        return any(_any(key, r.labels) for r in self._rules(namespace, node))

    def features(self, namespace: str, node: str, key: str) -> bool:
        """Tell whether a namespace may add this feature set to this node."""
        return any(_any(key, r.features) for r in self._rules(namespace, node))

    def _rules(self, namespace: str, node: str) -> list[TrustRule]:
        return [
            r
            for r in self.allow
            if _any(namespace, r.namespaces) and _any(node, r.nodes)
        ]


def _any(text: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


@attrs.frozen(slots=True)
class Scope:
    """The policy that decides who is heard."""

    own_namespace: str
    trust: Trust = attrs.field(factory=Trust)
    selected: Callable[[str], bool] | None = None  # nodeFeatureNamespaceSelector
    deny_labels: bool = False  # restrictions.denyNodeFeatureLabels

    def trusts(self, stored: StoredFeature) -> bool:
        """Tell whether an object may say whatever it says."""
        return not self.trust.enforce or stored.key[0] == self.own_namespace

    def trusts_labels(self, stored: StoredFeature, key: str) -> bool:
        """Tell whether an object may set a label."""
        return self.trusts(stored) or self.trust.labels(stored.key[0], stored.node, key)

    def trusts_set(self, stored: StoredFeature, key: str) -> bool:
        """Tell whether an object may add a feature set."""
        return self.trusts(stored) or self.trust.features(
            stored.key[0], stored.node, key
        )


@attrs.frozen(slots=True)
class Heard:
    """The objects that count, in the order of merging, and those that do not."""

    objects: tuple[StoredFeature, ...]
    ignored: tuple[tuple[StoredFeature, str], ...] = ()

    @property
    def passed_over(self) -> tuple[tuple[StoredFeature, str], ...]:
        """Those that somebody may wonder about: not left out on purpose."""
        return tuple(i for i in self.ignored if i[1] != NOT_SELECTED)


def is_worker_made(stored: StoredFeature, about: Mapping[str, Any]) -> bool:
    """Tell whether a worker made the object: named as its node, with a version."""
    return stored.key[1] == stored.node and bool(about.get("worker"))


def hear(
    objects: Sequence[StoredFeature],
    about: Callable[[StoredFeature], Mapping[str, Any]],
    scope: Scope,
) -> Heard:
    """Order the objects of one node: own namespace, then name, then namespace.

    Of several that workers made, the one in the own namespace counts, else the
    newest; an old namespace left behind must not speak for the node.
    """
    ignored: list[tuple[StoredFeature, str]] = []
    workers: list[StoredFeature] = []
    heard: list[StoredFeature] = []
    for stored in objects:
        if scope.selected is not None and not scope.selected(stored.key[0]):
            ignored.append((stored, NOT_SELECTED))
        elif is_worker_made(stored, about(stored)):
            workers.append(stored)
        else:
            heard.append(stored)
    workers.sort(
        key=lambda s: (s.key[0] == scope.own_namespace, s.published, s.created, s.key)
    )
    if workers:
        *older, best = workers
        heard.append(best)
        reason = f"another worker's object counts: {best.key[0]}/{best.key[1]}"
        ignored += [(stored, reason) for stored in older]
    heard.sort(key=lambda s: (s.key[0] != scope.own_namespace, s.key[1], s.key[0]))
    return Heard(tuple(heard), tuple(ignored))


def trusted_part(stored: StoredFeature, scope: Scope) -> StoredFeature:
    """Return the object without the feature sets that it may not add."""
    if scope.trusts(stored):
        return stored
    allowed = tuple(s for s in stored.sets if scope.trusts_set(stored, s[0]))
    if len(allowed) == len(stored.sets):
        return stored
    return attrs.evolve(stored, sets=allowed)


def node_of(metadata: Mapping[str, Any]) -> str:
    """Return the node that an object names, "" where it names none."""
    label = str((metadata.get("labels") or {}).get(NODE_NAME_LABEL) or "")
    whole = str((metadata.get("annotations") or {}).get(nf.NODE_NAME) or "")
    return whole if whole and node_name_label(whole) == label else label


def about_object(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what else of an object makes a difference to its node.

    A worker's version, a trimmed or unknown set, and who owns it; an owner that
    changes is how a Node created anew becomes known to a master that cannot watch
    Nodes (spec/master.md section 2.2).
    """
    notes = metadata.get("annotations") or {}
    about: dict[str, Any] = {
        "worker": nf.WORKER_VERSION in notes,
        "owners": [o.get("uid", "") for o in metadata.get("ownerReferences") or ()],
        "pod": notes.get(nf.POD_UID, ""),
        "trimmed": notes.get(nf.TRIMMED, ""),
        "stale": notes.get(nf.STALE, ""),
        "unknown": sorted(nf.unknown_sets(metadata)),
    }
    return {key: value for key, value in about.items() if value}


def published_labels(labels: Any) -> dict[str, str]:
    """Return `spec.labels` of a NodeFeature.

    Raises:
        NfdError: They are no map of text.

    """
    labels = labels or {}
    if not isinstance(labels, Mapping) or not all(
        isinstance(v, str) for v in labels.values()
    ):
        raise NfdError(f"spec.labels: expected a map of text, got {labels!r:.80}")
    return dict(labels)


def newest_write(metadata: Mapping[str, Any]) -> str:
    """Return the time (RFC 3339) of the newest write that managedFields tell of."""
    entries = metadata.get("managedFields") or ()
    return max((str(e.get("time") or "") for e in entries), default="")


def origin_of(stored: StoredFeature) -> Provenance:
    """Return how provenance names an object."""
    return Provenance(source=f"{ORIGIN} {stored.key[0]}/{stored.key[1]}")


def label_refusal(stored: StoredFeature, key: str, value: str) -> Refusal:
    """Return the refusal of a label that its object may not set."""
    reason = f"namespace {stored.key[0]!r} may not set this label (trust.allow)"
    return Refusal("label", key, value, reason, origin_of(stored))


def set_refusals(stored: StoredFeature, trusted: StoredFeature) -> list[Refusal]:
    """Return the refusals of the feature sets that an object may not add."""
    left = {key for key, _ in trusted.sets}
    reason = f"namespace {stored.key[0]!r} may not add this feature (trust.allow)"
    return [
        Refusal("feature", key, "", reason, origin_of(stored))
        for key, _ in stored.sets
        if key not in left
    ]
