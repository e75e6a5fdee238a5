"""What a worker writes onto its own Node: labels only, one guarded patch.

Pure. Rules: DESIGN section 6 "Worker and master together" and "Admission".
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from nfd.config.worker import DEFAULT_NAMESPACES
from nfd.kube import patch
from nfd.kube.patch import Operation
from nfd.labels import FEATURE_NS, in_namespaces, split_key
from nfd.publish.ownership import (
    NO_HOLD,
    WORKER_MANAGER,
    Hold,
    KeyConflict,
    managers_of,
    plan_map,
)


@attrs.frozen(slots=True)
class OwnNode:
    """The worker's Node as metadata shows it; `owned` are the keys it wrote last."""

    uid: str
    labels: Mapping[str, str]
    managers: Mapping[str, str]  # label key → manager that wrote it last
    bare: bool = False  # has no map of labels at all
    resource_version: str = ""

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> "OwnNode":
        """Read a Node's `metadata`."""
        return cls(
            metadata["uid"],
            metadata.get("labels") or {},
            managers_of(metadata).labels,
            metadata.get("labels") is None,
            metadata.get("resourceVersion", ""),
        )

    @property
    def owned(self) -> frozenset[str]:
        """The label keys whose last writer was a worker."""
        return frozenset(k for k, m in self.managers.items() if m == WORKER_MANAGER)


@attrs.frozen(slots=True)
class LabelsPlan:
    """One patch of the own Node; no operations when it is as wanted."""

    operations: tuple[Operation, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    yielded: tuple[KeyConflict, ...] = ()  # held by others, left to them
    outside: tuple[str, ...] = ()  # not in the namespaces a worker may write
    held: frozenset[str] = frozenset()


def prefixed(labels: Mapping[str, str]) -> dict[str, str]:
    """Give keys without prefix the default one, as a master does.

    Where both forms of a key are wanted, the one with its prefix wins.
    """
    named = {k: v for k, v in labels.items() if "/" in k}
    for key, value in labels.items():
        if "/" not in key:
            named.setdefault(f"{FEATURE_NS}/{key}", value)
    return named


def plan_labels(
    node: OwnNode,
    wanted: Mapping[str, str],
    *,
    namespaces: Sequence[str] = DEFAULT_NAMESPACES,
    hold: Hold = NO_HOLD,
    removals: bool = True,
) -> LabelsPlan:
    """Plan the labels of the own Node.

    Keys outside `namespaces` are left to the master; those we own there stay. A key
    that somebody else wrote
    last with another value is left and reported, so that two writers never fight.
    With `removals` false only additions and changes are planned: additions are
    written before the NodeFeature, removals after it.
    """

    def writable(key: str) -> bool:
        return in_namespaces(split_key(key)[0], namespaces)

    inside = {k: v for k, v in wanted.items() if writable(k)}
    owned = frozenset(k for k in node.owned if writable(k))
    planned = plan_map(
        node.labels,
        inside,
        owned if removals else frozenset(),
        managers=node.managers,
        ours=frozenset({WORKER_MANAGER}),
        foreign="yield",
        hold=hold,
    )
    operations = planned.operations("metadata", "labels")
    if operations:
        if node.bare:
            at = ("metadata", "labels")
            operations[:0] = [patch.expect(at, None), patch.add(at, {})]
        if planned.remove and node.resource_version:
            operations.insert(0, patch.same_version(node.resource_version))
        operations.insert(0, patch.same_object(node.uid))
    return LabelsPlan(
        tuple(operations),
        tuple(planned.add),
        tuple(planned.replace),
        tuple(planned.remove),
        planned.conflicts,
        tuple(sorted(wanted.keys() - inside.keys())),
        planned.held,
    )
