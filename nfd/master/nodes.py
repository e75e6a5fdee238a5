"""The Nodes of a fleet as planning needs them, packed.

A labelled Node has some eighty labels; five thousand of them as dicts would take
tens of megabytes, as packed JSON they take a few.
"""

import json
import zlib
from collections.abc import Iterator
from typing import Any

import attrs

from nfd.master.state import NodeState
from nfd.publish.ownership import Managers


@attrs.define(slots=True)
class _Held:
    uid: str
    version: str
    created: str
    data: bytes


class NodeStore:
    """Nodes by name, each reduced and packed."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Held] = {}

    def put(self, node: NodeState) -> bool:
        """Store a Node; tell whether anything that planning sees has changed.

        Metadata alone keeps the taints and resources known of the same Node.
        """
        before = self._nodes.get(node.name)
        if before is not None and before.uid != node.uid:
            before = None
        if before is not None and node.taints is None:
            known = json.loads(zlib.decompress(before.data))
            node = attrs.evolve(
                node,
                taints=known["taints"],
                capacity=known["capacity"],
                allocatable=known["allocatable"],
            )
        data = zlib.compress(_text(node), 1)
        self._nodes[node.name] = _Held(
            node.uid, node.resource_version, node.created, data
        )
        return before is None or before.data != data

    def get(self, name: str) -> NodeState | None:
        """Return a Node."""
        held = self._nodes.get(name)
        if held is None:
            return None
        plain = json.loads(zlib.decompress(held.data))
        taints = plain["taints"]
        return NodeState(
            name=name,
            uid=held.uid,
            resource_version=held.version,
            created=held.created,
            labels=plain["labels"],
            annotations=plain["annotations"],
            managers=Managers(plain["writers"], plain["noters"]),
            taints=None if taints is None else tuple(taints),
            capacity=plain["capacity"],
            allocatable=plain["allocatable"],
        )

    def drop(self, name: str) -> bool:
        """Forget a Node; tell whether it was known."""
        return self._nodes.pop(name, None) is not None

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def size(self) -> int:
        """Bytes of packed data held."""
        return sum(len(h.data) for h in self._nodes.values())


def _text(node: NodeState) -> bytes:
    plain: dict[str, Any] = {
        "labels": node.labels,
        "annotations": node.annotations,
        "writers": node.managers.labels,
        "noters": node.managers.annotations,
        "taints": node.taints,
        "capacity": node.capacity,
        "allocatable": node.allocatable,
    }
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()
