"""What proves a removal until a second list has confirmed the first one.

After a start nobody knows what was lost while this process was away, so nothing that
is on a Node goes, but for keys that this process itself saw become unwanted: an object
changed under its eyes, or a rule. Source: DESIGN section 6.
"""

from nfd.master.evaluate import Evaluator

_OLDER = 4  # rule sets from before edits that are remembered


class Settling:
    """The keys that were seen to go, by node; `done` once nothing needs that proof."""

    def __init__(self) -> None:
        self.done = False
        self._gone: dict[str, set[str]] = {}
        self._older: list[Evaluator] = []

    def end(self) -> None:
        """The second list is in: what is not wanted now was not lost on the way."""
        self.done = True
        self._gone.clear()
        self._older.clear()

    def edited(self, before: Evaluator) -> None:
        """Rules or policy changed; `before` evaluates the old ones."""
        if not self.done:
            self._older = [*self._older[1 - _OLDER :], before]

    def wanted(self, evaluator: Evaluator, node: str) -> set[str]:
        """Return the keys that a node gets, to be compared after a change of it."""
        return set() if self.done else evaluator.node(node).output.keys

    def changed(self, evaluator: Evaluator, node: str, before: set[str]) -> None:
        """What was `wanted` before a change and is not now has been seen to go."""
        if before:
            gone = before - evaluator.node(node).output.keys
            self._gone.setdefault(node, set()).update(gone)

    def proven(self, evaluator: Evaluator, node: str) -> frozenset[str]:
        """Return the keys of a node that may go."""
        proven = set(self._gone.get(node, ()))
        for older in self._older:
            proven |= older.node(node).output.keys - evaluator.node(node).output.keys
        return frozenset(proven)

    def forget(self, node: str) -> None:
        """The Node is gone, and with it whatever it carried."""
        self._gone.pop(node, None)
