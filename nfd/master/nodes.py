"""The Nodes of a fleet as planning needs them, packed.

A labelled Node has some eighty labels; five thousand of them as dicts would take
tens of megabytes, packed they take a few.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import attrs

from nfd.master import packing
from nfd.master.state import NodeState
from nfd.publish.ownership import Managers


class _Parts(NamedTuple):
    """What is packed of a Node, in this order."""

    labels: dict[str, str]
    annotations: dict[str, str]
    writers: dict[str, str]
    noters: dict[str, str]
    taints: tuple[Any, ...] | None
    capacity: dict[str, str] | None
    allocatable: dict[str, str] | None


@attrs.define(slots=True)
class _Held:
    uid: str
    version: str
    created: str
    whole: bool
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
        whole = node.taints is not None
        if before is not None:
            seen = before.version == node.resource_version and node.resource_version
            if seen and (before.whole or not whole):
                return False  # a watch repeats what the answer to a write said
            if before.whole and not whole:
                known = _unpack(before.data)
                whole = True
                node = attrs.evolve(
                    node,
                    taints=known.taints,
                    capacity=known.capacity,
                    allocatable=known.allocatable,
                )
        data = _pack(node)
        self._nodes[node.name] = _Held(
            node.uid, node.resource_version, node.created, whole, data
        )
        return before is None or before.data != data

    def is_partial(self, name: str) -> bool:
        """Tell whether only metadata of a Node was ever seen, not its taints."""
        held = self._nodes.get(name)
        return held is not None and not held.whole

    def version(self, name: str) -> tuple[str, str] | None:
        """Return the uid and resourceVersion of a Node."""
        held = self._nodes.get(name)
        return None if held is None else (held.uid, held.version)

    def get(self, name: str) -> NodeState | None:
        """Return a Node."""
        held = self._nodes.get(name)
        if held is None:
            return None
        parts = _unpack(held.data)
        return NodeState(
            name=name,
            uid=held.uid,
            resource_version=held.version,
            created=held.created,
            labels=parts.labels,
            annotations=parts.annotations,
            managers=Managers(parts.writers, parts.noters),
            taints=parts.taints,
            capacity=parts.capacity,
            allocatable=parts.allocatable,
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


def _pack(node: NodeState) -> bytes:
    """Pack; maps keep their order, which is that of the API server: sorted."""
    parts: tuple[Any, ...] = (
        node.labels,
        node.annotations,
        node.managers.labels,
        node.managers.annotations,
        node.taints,
        node.capacity,
        node.allocatable,
    )
    return packing.pack(packing.dump(parts))


def _unpack(data: bytes) -> _Parts:
    return _Parts(*packing.load(packing.unpack(data)))
