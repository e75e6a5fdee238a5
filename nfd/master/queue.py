"""The queue of nodes to look at: each once, urgent ones first."""

from collections.abc import Collection
from typing import Literal, TypeAlias

Urgency: TypeAlias = Literal[0, 1, 2, 3]
BEGUN: Urgency = 0  # a write is done and the next one, a taint perhaps, may wait
NEW: Urgency = 1
CHANGED: Urgency = 2
RESYNC: Urgency = 3


class Queue:
    """Names of nodes to look at, each once, the urgent ones first."""

    def __init__(self) -> None:
        self._waiting: tuple[dict[str, None], ...] = ({}, {}, {}, {})

    def add(self, node: str, urgency: Urgency) -> None:
        """Add a node, or make it more urgent."""
        for level in range(urgency + 1):
            if node in self._waiting[level]:
                return
        for level in range(urgency + 1, len(self._waiting)):
            self._waiting[level].pop(node, None)
        self._waiting[urgency][node] = None

    def pop(self, busy: Collection[str] = ()) -> str | None:
        """Take the next node that is not in `busy`."""
        for level in self._waiting:
            for node in level:
                if node not in busy:
                    del level[node]
                    return node
        return None

    def discard(self, node: str) -> None:
        """Take a node out."""
        for level in self._waiting:
            level.pop(node, None)

    def __len__(self) -> int:
        return sum(map(len, self._waiting))
