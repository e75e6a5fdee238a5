"""The removal guard: proof, breaker, hold, confirmation."""

import pytest

from nfd.master.guard import EDIT, LOST, EditGuard, GuardLimits, LossGuard

LIMITS = GuardLimits()


def everything(_node: str) -> bool:
    return True


def guard(count: int, *, watched: bool = True) -> LossGuard:
    made = LossGuard(LIMITS)
    for i in range(count):
        made.lost(("nfd", f"n{i}"), f"n{i}", 0.0, watched=watched)
    return made


def test_watched_deletion_takes_effect_after_the_grace() -> None:
    """The grace gives a mass deletion time to show itself."""
    one = guard(1)

    assert one.due(1.9, 100, everything) == []
    assert one.due(2.0, 100, everything) == [("nfd", "n0")]
    assert one.pending() == {}


def test_absence_needs_two_lists_a_minute_apart() -> None:
    """One list may be wrong (H38 c: 200 with no items, once)."""
    one = guard(1, watched=False)
    one.listed([], 0.0)

    assert one.unproven
    assert one.due(100.0, 100, everything) == []
    one.listed([], 59.0)
    assert one.due(100.0, 100, everything) == []
    one.listed([], 60.0)
    assert one.due(100.0, 100, everything) == [("nfd", "n0")]


def test_listed_again_is_not_lost() -> None:
    """The second list shows it: nothing ever happened."""
    one = guard(1, watched=False)
    one.listed([], 0.0)

    assert one.listed([("nfd", "n0")], 60.0) == [("nfd", "n0")]
    assert one.pending() == {}


@pytest.mark.parametrize(
    ("fleet", "lost", "effective"),
    [(600, 60, 60), (600, 61, 0), (3, 2, 2), (3, 3, 0), (1, 1, 1)],
)
def test_breaker(fleet: int, lost: int, effective: int) -> None:
    """More than max(2 nodes, 10 %) are held."""
    some = guard(lost)

    assert len(some.due(10.0, fleet, everything)) == effective
    assert (some.held(10.0, fleet) is not None) == (effective == 0)


def test_slow_mass_deletion_trips_too() -> None:
    """Losses that took effect in the last minutes count with the new ones."""
    slow = LossGuard(LIMITS)
    gone = 0
    for i in range(100):
        slow.lost(("nfd", f"n{i}"), f"n{i}", 5.0 * i, watched=True)
        gone += len(slow.due(5.0 * i + 4, 100, everything))

    assert gone == 10
    held = slow.held(500.0, 100)
    assert held is not None
    assert held.cause == LOST
    assert len(held.nodes) == 90


def test_held_until_confirmed() -> None:
    """An operator's word lets exactly those go that were lost then."""
    many = guard(50)
    assert many.due(10.0, 100, everything) == []

    assert many.confirm(10.0) == 50
    many.lost(("nfd", "late"), "late", 11.0, watched=True)

    assert len(many.due(11.0, 100, everything)) == 50
    assert many.pending() == {("nfd", "late"): "late"}
    assert many.due(20.0, 100, everything) == [("nfd", "late")]


def test_held_until_they_come_back() -> None:
    """Restored objects end the hold without any removal."""
    many = guard(50)
    assert many.held(10.0, 100)

    for i in range(50):
        assert many.returned(("nfd", f"n{i}"))

    assert many.held(10.0, 100) is None
    assert many.due(10.0, 100, everything) == []


def test_losses_of_deleted_nodes_never_count() -> None:
    """Scaling a cluster down deletes Nodes and, with them, their NodeFeatures."""
    many = guard(50)

    assert len(many.due(0.0, 100, lambda _: False)) == 50


def test_small_edit_goes_on_when_counted() -> None:
    """Ten nodes or a tenth of the fleet may lose keys at once."""
    edit = EditGuard(LIMITS)
    edit.edited(0.0)
    for i in range(10):
        edit.would_lose(f"n{i}", ["a"])

    assert edit.holding
    assert edit.counted(0.1, 20)
    assert not edit.holding


def test_large_edit_is_held_for_a_minute() -> None:
    """Time to undo a mistake; what is held is told."""
    edit = EditGuard(LIMITS)
    edit.edited(0.0)
    for i in range(11):
        edit.would_lose(f"n{i}", ["a", "b"])

    assert not edit.counted(1.0, 20)
    held = edit.held()
    assert held is not None
    assert (held.cause, held.until) == (EDIT, 61.0)
    assert "22 keys from 11 nodes" in held.reason
    assert edit.due(60.9) == ()
    assert len(edit.due(61.0)) == 11
    assert not edit.holding


def test_undone_edit_removes_nothing() -> None:
    """The second edit brings the keys back before the hold is over."""
    edit = EditGuard(LIMITS)
    edit.edited(0.0)
    for i in range(11):
        edit.would_lose(f"n{i}", ["a"])
    edit.counted(1.0, 20)
    edit.edited(30.0)
    for i in range(11):
        edit.would_lose(f"n{i}", [])

    assert edit.counted(31.0, 20)
    assert edit.due(100.0) == ()
    assert edit.confirm() == ()
