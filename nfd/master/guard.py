"""The removal guard: no mass removal by accident (DESIGN section 6).

Pure state machines of values and the time handed in. `LossGuard` watches over
NodeFeatures that are gone, `EditGuard` over what an edit of rules or configuration
would take away.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

import attrs

ObjectKey: TypeAlias = tuple[str, str]  # namespace, name

LOST = "lost-nodefeatures"
EDIT = "edit"


@attrs.frozen(slots=True)
class GuardLimits:
    """When a removal needs more proof; the keys of `removalGuard` in the config.

    A limit of nodes is the larger of a number and a share of the fleet.
    """

    lost_nodes: int = 2
    lost_share: float = 0.10
    edit_nodes: int = 10
    edit_share: float = 0.10
    edit_hold: float = 60.0  # seconds
    list_interval: float = 60.0  # seconds between two lists that prove absence
    grace: float = 2.0  # seconds to wait for more losses before the first removal
    window: float = 600.0  # seconds in which carried-out losses still count

    def lost_limit(self, fleet: int) -> float:
        """Return how many nodes may lose keys through lost NodeFeatures."""
        return max(self.lost_nodes, self.lost_share * fleet)

    def edit_limit(self, fleet: int) -> float:
        """Return how many nodes may lose keys through one edit at once."""
        return max(self.edit_nodes, self.edit_share * fleet)


@attrs.frozen(slots=True)
class HeldCause:
    """Removals that wait, and what ends the wait."""

    cause: str
    nodes: tuple[str, ...]
    since: float
    until: float | None  # None: until the facts come back or somebody confirms
    reason: str


@attrs.define(slots=True)
class _Loss:
    node: str
    since: float
    watched: bool  # a watch delivered the deletion: proof by itself
    absent_from: float | None = None  # time of the first list without it
    proven: bool = False


class LossGuard:
    """Decides when a lost NodeFeature may stop to count.

    Proof that an object is gone is a DELETE received by a watch after the sync, or
    its absence from two completed lists at least `list_interval` apart. Proven
    losses on more nodes than the limit are held until the objects are back or
    `confirm` is called.
    """

    def __init__(self, limits: GuardLimits) -> None:
        self.limits = limits
        self._losses: dict[ObjectKey, _Loss] = {}
        self._released: dict[str, float] = {}  # node → when
        self._confirmed: set[ObjectKey] = set()

    def lost(self, key: ObjectKey, node: str, now: float, *, watched: bool) -> None:
        """Note that an object is gone; `watched`: a watch delivered its deletion."""
        loss = self._losses.get(key)
        if loss is None:
            loss = self._losses[key] = _Loss(node, now, watched)
        loss.watched = loss.watched or watched
        loss.proven = loss.proven or watched

    def returned(self, key: ObjectKey) -> bool:
        """Note that an object is there; tell whether it had been lost."""
        self._confirmed.discard(key)
        return self._losses.pop(key, None) is not None

    def listed(self, present: Collection[ObjectKey], now: float) -> list[ObjectKey]:
        """Take in a completed list; return lost objects that it shows again."""
        back = []
        for key, loss in self._losses.items():
            if key in present:
                back.append(key)
            elif loss.absent_from is None:
                loss.absent_from = now
            elif now - loss.absent_from >= self.limits.list_interval:
                loss.proven = True
        for key in back:
            self.returned(key)
        return back

    @property
    def unproven(self) -> bool:
        """Whether another completed list is wanted."""
        return any(not loss.proven for loss in self._losses.values())

    def __contains__(self, key: ObjectKey) -> bool:
        """Tell whether an object is lost and still counts."""
        return key in self._losses

    def pending(self) -> Mapping[ObjectKey, str]:
        """Return the lost objects that still count, with their nodes."""
        return {key: loss.node for key, loss in self._losses.items()}

    def due(
        self, now: float, fleet: int, exists: Callable[[str], bool]
    ) -> list[ObjectKey]:
        """Return the losses that take effect now, and forget them.

        A proven loss on a node that does not exist takes nothing away: it is never held.
        """
        self._released = {
            n: t for n, t in self._released.items() if now - t < self.limits.window
        }
        out = [k for k, n in self._losses.items() if n.proven and not exists(n.node)]
        ripe = [k for k in self._ripe(now) if exists(self._losses[k].node)]
        nodes = {self._losses[k].node for k in ripe}
        confirmed = [k for k in ripe if k in self._confirmed]
        free = [k for k in ripe if k not in self._confirmed]
        recent = self._released.keys() | nodes
        if len(recent) <= self.limits.lost_limit(fleet):
            confirmed += free
        for key in confirmed:
            if key not in self._confirmed:
                self._released[self._losses[key].node] = now
        out += confirmed
        for key in out:
            self._confirmed.discard(key)
            del self._losses[key]
        return sorted(out)

    def held(self, now: float, fleet: int) -> HeldCause | None:
        """Return what waits for the objects to come back or for a confirmation."""
        ripe = [k for k in self._ripe(now) if k not in self._confirmed]
        nodes = sorted({self._losses[k].node for k in ripe})
        limit = self.limits.lost_limit(fleet)
        if not nodes or len({*nodes, *self._released}) <= limit:
            return None
        since = min(self._losses[k].since for k in ripe)
        reason = (
            f"NodeFeatures of {len(nodes)} nodes are gone, more than {limit:g}; "
            f"their labels stay until they come back or `nfd fleet confirm {LOST}`"
        )
        return HeldCause(LOST, tuple(nodes), since, None, reason)

    def confirm(self, now: float) -> int:
        """Let all losses that are proven now take effect; return how many."""
        ripe = self._ripe(now)
        self._confirmed.update(ripe)
        return len(ripe)

    def _ripe(self, now: float) -> list[ObjectKey]:
        return [
            key
            for key, loss in self._losses.items()
            if loss.proven and now - loss.since >= self.limits.grace
        ]


class EditGuard:
    """Holds the removals of one edit until it is known how many nodes they touch.

    After `edited`, every node that was planned reports here what it would lose
    (`would_lose`). Once all were planned (`counted`), removals go on at once when
    they touch few nodes, else after `edit_hold`, so that a mistake can be undone.
    """

    def __init__(self, limits: GuardLimits) -> None:
        self.limits = limits
        self._since: float | None = None
        self._until: float | None = None
        self._losing: dict[str, int] = {}

    def edited(self, now: float) -> None:
        """Note an edit; a further one while holding restarts the count."""
        self._since = now
        self._until = None
        self._losing.clear()

    @property
    def holding(self) -> bool:
        """Whether removals that follow from the edit must wait."""
        return self._since is not None

    def would_lose(self, node: str, keys: Collection[str]) -> None:
        """Note what planning would take from a node, nothing included."""
        if keys:
            self._losing[node] = len(keys)
        else:
            self._losing.pop(node, None)

    def counted(self, now: float, fleet: int) -> bool:
        """All nodes were planned; tell whether removals may go on at once."""
        if self._since is None:
            return True
        if len(self._losing) <= self.limits.edit_limit(fleet):
            self._end()
            return True
        if self._until is None:
            self._until = now + self.limits.edit_hold
        return False

    def due(self, now: float) -> tuple[str, ...]:
        """Return the nodes whose removals go on now, the hold being over."""
        if self._until is None or now < self._until:
            return ()
        nodes = tuple(sorted(self._losing))
        self._end()
        return nodes

    def confirm(self) -> tuple[str, ...]:
        """End the hold by decree; return the nodes whose removals go on."""
        nodes = tuple(sorted(self._losing))
        self._end()
        return nodes

    def held(self) -> HeldCause | None:
        """Return what is held, once it is counted."""
        if self._since is None or self._until is None:
            return None
        nodes = tuple(sorted(self._losing))
        reason = (
            f"an edit of rules or configuration takes {sum(self._losing.values())} "
            f"keys from {len(nodes)} nodes; held for {self.limits.edit_hold:g} s, or "
            f"until `nfd fleet confirm {EDIT}`"
        )
        return HeldCause(EDIT, nodes, self._since, self._until, reason)

    def _end(self) -> None:
        self._since = self._until = None
        self._losing.clear()


def causes(held: Iterable[HeldCause | None]) -> tuple[HeldCause, ...]:
    """Return those that are held, by cause."""
    return tuple(sorted((h for h in held if h is not None), key=lambda h: h.cause))
