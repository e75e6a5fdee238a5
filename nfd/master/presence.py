"""Which NodeFeatures are there, for which nodes nobody speaks, and what proves it.

A node is *silent* when it carries things of ours while no NodeFeature speaks for it:
without proof that its last one is gone, a list may just not have shown it, and nothing
of the node may go. Pure; proof and breaker are those of `LossGuard` (DESIGN section 6).
"""

from collections.abc import Callable, Iterable, Mapping

from nfd.master.guard import GuardLimits, LossGuard, ObjectKey

_AWAY = ""  # namespace of the stand-in for the unknown objects of a silent node


class Presence:
    """What lists and watches told of NodeFeatures, apart from their content.

    `first_list` and `last_list` are the times of complete lists; `empty` tells that
    the last one showed nothing.
    """

    def __init__(self, limits: GuardLimits) -> None:
        self.losses = LossGuard(limits)
        self.first_list: float | None = None
        self.last_list = 0.0
        self.empty = False
        self._listing: set[ObjectKey] | None = None
        self._unread: dict[ObjectKey, str] = {}  # object that cannot be read → node
        self._proven: set[str] = set()  # nodes whose silence is proven

    # --- objects --------------------------------------------------------------

    def list_begin(self) -> None:
        """A list starts."""
        self._listing = set()

    def shown(self, key: ObjectKey) -> bool:
        """Note that an object is there; tell whether it had been lost."""
        if self._listing is not None:
            self._listing.add(key)
        return self.losses.returned(key)

    def read(self, key: ObjectKey, node: str) -> bool:
        """Note that the content of an object counts; tell if its node was silent."""
        self._unread.pop(key, None)
        self._proven.discard(node)
        return self.losses.returned((_AWAY, node))

    def unreadable(self, key: ObjectKey, node: str) -> None:
        """Note that an object speaks for a node, but nobody knows what it says."""
        self._unread[key] = node

    def deleted(self, key: ObjectKey, node: str | None, now: float) -> None:
        """Note a deletion that a watch delivered; `node`: if the object was known."""
        self._unread.pop(key, None)
        if self._listing is not None:
            self._listing.discard(key)
        if node is not None:
            self.losses.lost(key, node, now, watched=True)

    def list_end(
        self, known: Mapping[ObjectKey, str], silent: Iterable[str], now: float
    ) -> set[str]:
        """Take in a complete list: what it lacks is missing.

        Args:
            known: The objects whose content counts, with their nodes.
            silent: The nodes that are silent now and were not noted yet.
            now: Seconds.

        Returns:
            The nodes of objects that were lost and are there again.

        """
        present = self._listing if self._listing is not None else set()
        self._listing = None
        if self.first_list is None:
            self.first_list = now
        self.last_list = now
        self.empty = not present
        for key, node in (self._unread | dict(known)).items():
            if key not in present:
                self.losses.lost(key, node, now, watched=False)
        self.silences(silent, now)
        heard = {(_AWAY, known[key]) for key in present & known.keys()}
        pending = self.losses.pending()
        return {pending[key] for key in self.losses.listed(present | heard, now)}

    # --- nodes ----------------------------------------------------------------

    def silences(self, nodes: Iterable[str], now: float) -> None:
        """Note silent nodes; those stay out whose silence is proven."""
        for name in nodes:
            if name not in self._proven:
                self.losses.lost((_AWAY, name), name, now, watched=False)

    def first_list_counts(self, known: Iterable[ObjectKey], now: float) -> None:
        """Count the first list for silent nodes that became known after it."""
        self.losses.listed(set(known) - self.losses.pending().keys(), now)

    def proven(self, node: str) -> None:
        """Note that nobody speaks for a node any more, and that this is proven."""
        self._proven.add(node)

    def forget(self, node: str) -> None:
        """A Node is gone: if it comes back, its silence wants new proof."""
        self._proven.discard(node)

    def silent(self) -> set[str]:
        """Return the silent nodes that lack proof."""
        return {n for (namespace, n) in self.losses.pending() if namespace == _AWAY}

    def uncertain(self, node: str) -> bool:
        """Tell whether nobody knows what is said about a node."""
        return (_AWAY, node) in self.losses or node in self._unread.values()

    def due(
        self, now: float, fleet: int, exists: Callable[[str], bool]
    ) -> list[tuple[ObjectKey, str]]:
        """Return the losses that take effect now, with their nodes."""
        pending = self.losses.pending()
        due = [(key, pending[key]) for key in self.losses.due(now, fleet, exists)]
        for key, _ in due:
            self._unread.pop(key, None)
        return due
