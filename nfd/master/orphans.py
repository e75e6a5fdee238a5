"""Which objects outlived their nodes, and since when.

Pure. No clocks of other machines are compared: an object counts as orphaned from the
moment in which this process first saw that its node was missing (DESIGN section 6).
"""

from collections.abc import Collection, Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Orphans(Generic[K]):
    """Objects without a node, by the time of first sight."""

    def __init__(self, grace: float) -> None:
        """`grace`: seconds for which an object must have been seen without its node."""
        self.grace = grace
        self._since: dict[K, float] = {}

    def seen(
        self, objects: Mapping[K, str], nodes: Collection[str], now: float
    ) -> list[K]:
        """Take in complete lists (object → node); return what has had its grace.

        A cluster without any Node is not believed: then nothing is orphaned.
        """
        if not nodes:
            self._since.clear()
            return []
        orphans = {key for key, node in objects.items() if node and node not in nodes}
        self._since = {key: self._since.get(key, now) for key in orphans}
        return [k for k, since in self._since.items() if now - since >= self.grace]

    def forget(self, key: K) -> None:
        """Start anew with an object: it is gone, or its node is back."""
        self._since.pop(key, None)

    def __len__(self) -> int:
        return len(self._since)
