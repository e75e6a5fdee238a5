"""From a Node as it is and what is wanted of it to the patches that close the gap.

Pure. Order of writes, ownership and guards: DESIGN section 6; tracking annotations
and decision tables: spec/master.md section 2.8.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from nfd.kube import patch
from nfd.kube.patch import Operation
from nfd.master.resources import plan_resources
from nfd.master.state import NodeState, Tracking, Wanted
from nfd.master.taints import parse_taints, plan_taints, taints_text
from nfd.publish.ownership import (
    WORKER_MANAGER,
    KeyConflict,
    MapPlan,
    plan_map,
    tracked_keys,
    tracking_text,
)

_MANY = 8  # tests for absence that one test of the version replaces
Kind: TypeAlias = Literal["label", "annotation", "extendedResource", "taint"]


@attrs.frozen(slots=True)
class Step:
    """One PATCH: the Node itself or its status subresource."""

    target: Literal["node", "status"]
    operations: tuple[Operation, ...]


@attrs.frozen(slots=True)
class Removal:
    """One thing that a plan takes away, for the guard to count."""

    kind: Kind
    key: str


@attrs.frozen(slots=True)
class NodePlan:
    """The steps for one Node, in the order in which they must be written.

    A writer sends the first step only, reads the Node from the answer and plans
    again, until nothing is left: later steps rest on the outcome of earlier ones.
    """

    node: str
    uid: str = ""
    steps: tuple[Step, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removals: tuple[Removal, ...] = ()
    lifted: tuple[str, ...] = ()  # start-up taints, `key:Effect`
    conflicts: tuple[KeyConflict, ...] = ()
    held: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.steps)


def plan(
    node: NodeState,
    wanted: Wanted,
    tracking: Tracking,
    *,
    allow_overwrite: bool = True,
) -> NodePlan:
    """Plan all writes for one Node; an empty plan when it is as wanted."""
    foreign: Literal["take", "yield"] = "take" if allow_overwrite else "yield"
    ours = frozenset({tracking.manager, WORKER_MANAGER})
    notes = node.annotations
    labels = plan_map(
        node.labels,
        wanted.labels,
        tracked_keys(notes.get(tracking.labels))
        | _written_by(node.managers.labels, tracking.manager),
        managers=node.managers.labels,
        ours=ours,
        foreign=foreign,
        hold=wanted.hold,
    )
    feature_notes = plan_map(
        node.annotations,
        wanted.annotations,
        tracked_keys(notes.get(tracking.annotations)),
        managers=node.managers.annotations,
        ours=ours,
        foreign=foreign,
        hold=wanted.hold,
    )
    resources = plan_resources(node, wanted, tracking, foreign)
    taints = plan_taints(node, wanted, tracking, foreign)
    listed = parse_taints(notes.get(tracking.taints))
    final = {
        tracking.labels: tracking_text(labels.owned),
        tracking.annotations: tracking_text(feature_notes.owned),
        tracking.resources: tracking_text(resources.plan.owned),
        tracking.taints: taints_text(taints.plan.owned, wanted, listed),
        **dict.fromkeys(tracking.retired, ""),
    }
    # A crash between two writes must leave every key that is ours listed: lists of
    # resources and taints are widened first and narrowed last.
    wide = dict(final)
    if resources.operations or taints.operations:
        before = tracked_keys(notes.get(tracking.resources))
        wide[tracking.resources] = tracking_text(resources.plan.owned | before)
        both = taints.plan.owned | {t.ident for t in listed}
        wide[tracking.taints] = taints_text(both, wanted, listed)
    # A new Node gets some eighty labels, and each test for absence costs the API server
    # about ten microseconds, which one test of the version spares.
    many = len(labels.add) + len(feature_notes.add) > _MANY
    absence = not (many and node.resource_version)
    first = [
        *labels.operations("metadata", "labels", absence=absence),
        *feature_notes.operations("metadata", "annotations", absence=absence),
        *_note_operations(notes, wide, absence=absence),
    ]
    written = {k: v for k, v in {**notes, **wide}.items() if v or k not in wide}
    last = _note_operations(written, final)
    ordered: list[tuple[Literal["node", "status"], list[Operation]]] = [
        ("node", _with_parents(node, first)),
        ("status", resources.operations),
        ("node", taints.operations),
        ("node", last),
    ]
    guard = patch.same_object(node.uid)
    parts: list[tuple[Kind, MapPlan]] = [
        ("label", labels),
        ("annotation", feature_notes),
        ("extendedResource", resources.plan),
        ("taint", taints.plan),
    ]
    return NodePlan(
        node=node.name,
        uid=node.uid,
        steps=tuple(
            Step(target, (guard, *_versioned(node, ops, always=not absence)))
            for target, ops in ordered
            if ops
        ),
        added=tuple(k for _, p in parts for k in p.add),
        changed=tuple(k for _, p in parts for k in p.replace),
        removals=tuple(Removal(kind, k) for kind, p in parts for k in p.remove),
        lifted=taints.lifted,
        conflicts=tuple(c for _, p in parts for c in p.conflicts),
        held=frozenset(k for _, p in parts for k in p.held),
    )


def owns_anything(node: NodeState, tracking: Tracking) -> bool:
    """Tell whether a Node carries anything that this master put there."""
    listed = (
        tracking.labels,
        tracking.annotations,
        tracking.resources,
        tracking.taints,
    )
    return any(name in node.annotations for name in listed) or bool(
        _written_by(node.managers.labels, tracking.manager)
    )


def _written_by(managers: Mapping[str, str], manager: str) -> frozenset[str]:
    return frozenset(k for k, writer in managers.items() if writer == manager)


def _note_operations(
    current: Mapping[str, str], wanted: Mapping[str, str], *, absence: bool = True
) -> list[Operation]:
    """Set or drop our own annotations; nobody else may write these."""
    return MapPlan(
        add={k: v for k, v in wanted.items() if v and k not in current},
        replace={
            k: (current[k], v)
            for k, v in wanted.items()
            if v and k in current and current[k] != v
        },
        remove={k: current[k] for k, v in wanted.items() if not v and k in current},
    ).operations("metadata", "annotations", absence=absence)


def _versioned(
    node: NodeState, ops: list[Operation], *, always: bool
) -> list[Operation]:
    """Test the Node's version where something goes, or `always`.

    A Node that changed meanwhile refuses the patch; it is then read and planned again.
    """
    goes = any(op["op"] == "remove" or op["path"] == "/spec/taints" for op in ops)
    if not node.resource_version or not (goes or always):
        return ops
    return [patch.same_version(node.resource_version), *ops]


def _with_parents(node: NodeState, ops: list[Operation]) -> list[Operation]:
    """Create the maps that a hand-made Node may lack."""
    made: list[Operation] = []
    for part, there in (("labels", node.labels), ("annotations", node.annotations)):
        below = f"/metadata/{part}/"
        if not there and any(op["path"].startswith(below) for op in ops):
            at = ("metadata", part)
            made += [patch.expect(at, None), patch.add(at, {})]
    return made + ops
