"""What planning knows of a Node, what it wants of it, and the names in between.

Pure. Sources: spec/master.md sections 1.5 and 2.8, DESIGN section 6.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from nfd.kube.patch import Operation
from nfd.labels import ANNOTATION_NS
from nfd.publish.ownership import (
    NO_HOLD,
    NO_MANAGERS,
    Hold,
    Managers,
    MapPlan,
    managers_of,
    master_manager,
)
from nfd.rules.model import Taint


@attrs.frozen(slots=True)
class Tracking:
    """The names of the tracking annotations of one master instance."""

    labels: str
    annotations: str
    resources: str
    taints: str
    shared_taints: str  # where upstream's masters of all instances list theirs, or ""
    retired: tuple[str, ...]  # removed where seen, never written
    manager: str

    @classmethod
    def of(cls, instance: str = "") -> "Tracking":
        """Name them.

        Upstream's masters of all instances share one annotation for taints, and so take
        each other's away; ours have one each.
        """
        prefix = f"{instance}.{ANNOTATION_NS}" if instance else ANNOTATION_NS
        return cls(
            labels=f"{prefix}/feature-labels",
            annotations=f"{prefix}/feature-annotations",
            resources=f"{prefix}/extended-resources",
            taints=f"{prefix}/taints",
            shared_taints=f"{ANNOTATION_NS}/taints" if instance else "",
            retired=(f"{prefix}/master.version", f"{prefix}/worker.version"),
            manager=master_manager(instance),
        )


@attrs.frozen(slots=True)
class NodeState:
    """What planning needs of a Node.

    `taints`, `capacity` and `allocatable` are None where only metadata was read;
    then neither taints nor resources are planned.
    """

    name: str
    uid: str
    resource_version: str = ""
    created: str = ""  # RFC 3339
    labels: Mapping[str, str] = attrs.field(factory=dict)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    managers: Managers = NO_MANAGERS
    taints: tuple[Mapping[str, Any], ...] | None = None
    capacity: Mapping[str, str] | None = None
    allocatable: Mapping[str, str] | None = None

    @classmethod
    def from_object(cls, node: Mapping[str, Any]) -> "NodeState":
        """Reduce a Node, or the PartialObjectMetadata of one."""
        meta = node["metadata"]
        whole = node.get("kind") != "PartialObjectMetadata" and "spec" in node
        spec = node.get("spec") or {}
        status = node.get("status") or {}
        return cls(
            name=meta["name"],
            uid=meta["uid"],
            resource_version=meta.get("resourceVersion", ""),
            created=meta.get("creationTimestamp") or "",
            labels=meta.get("labels") or {},
            annotations=meta.get("annotations") or {},
            managers=managers_of(meta),
            taints=tuple(spec.get("taints") or ()) if whole else None,
            capacity=(status.get("capacity") or {}) if whole else None,
            allocatable=(status.get("allocatable") or {}) if whole else None,
        )


@attrs.frozen(slots=True)
class Wanted:
    """What rules, NodeFeatures and policy want of a Node.

    `hold` names keys of any kind whose removal lacks proof: outputs of rules that
    are unknown on this node, or of objects whose loss is not proven. A taint is held
    by `key:Effect`.
    """

    labels: Mapping[str, str] = attrs.field(factory=dict)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    resources: Mapping[str, str] = attrs.field(factory=dict)
    taints: tuple[Taint, ...] = ()
    hold: Hold = NO_HOLD
    lift: frozenset[str] = frozenset()  # keys of start-up taints to remove


@attrs.frozen(slots=True)
class Part:
    """The plan of one kind and the operations that carry it out."""

    plan: MapPlan
    operations: list[Operation] = attrs.field(factory=list)
    lifted: tuple[str, ...] = ()
