"""Taints: the tracking text and the new list of a Node (spec/master.md section 2.8).

Pure.
"""

import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Literal

from nfd.kube import patch
from nfd.kube.patch import Operation
from nfd.master.merging import is_worker_made
from nfd.master.state import NodeState, Part, Tracking, Wanted
from nfd.master.store import StoredFeature
from nfd.publish.ownership import MapPlan, plan_map
from nfd.rules.model import Taint

_TAINT = re.compile(r"(?P<key>[^=:,]+)(?:=(?P<value>[^=:,]*))?:(?P<effect>\w+)")


def parse_taints(text: str | None) -> tuple[Taint, ...]:
    """Read the tracking annotation of taints; unreadable items are left out.

    A duplicate key and effect, which upstream's master writes and then chokes on,
    keeps its first value.
    """
    found: dict[tuple[str, str], Taint] = {}
    for item in (text or "").split(","):
        match = _TAINT.fullmatch(item.strip())
        if match:
            taint = Taint(match["key"], match["effect"], match["value"] or "")
            found.setdefault((taint.key, taint.effect), taint)
    return tuple(found.values())


def plan_taints(
    node: NodeState,
    wanted: Wanted,
    tracking: Tracking,
    foreign: Literal["take", "yield"],
) -> Part:
    """Plan the taint list, which the API replaces as one value.

    The keys of this plan are `key:Effect`. A foreign taint is never ours for having
    the value that we want; only start-up taints are lifted without being ours.
    """
    target = {t.ident: t for t in wanted.taints}
    before = {
        t.ident: t.value
        for t in parse_taints(node.annotations.get(tracking.shared_taints))
        if t.ident in target  # else it may be of another instance
    } | {t.ident: t.value for t in parse_taints(node.annotations.get(tracking.taints))}
    if node.taints is None:
        return Part(MapPlan(owned=frozenset(before)))
    found = {f"{t['key']}:{t['effect']}": t for t in node.taints}
    planned = plan_map(
        {ident: raw.get("value") or "" for ident, raw in found.items()},
        {ident: t.value for ident, t in target.items()},
        frozenset(before),
        managers={i: "another" for i in found if i not in before},
        ours=frozenset(),
        foreign=foreign,
        hold=wanted.hold,
    )
    lifted = tuple(
        ident
        for ident, raw in found.items()
        if raw["key"] in wanted.lift and ident not in planned.owned
    )
    gone = {*planned.remove, *lifted}
    result: list[Mapping[str, Any]] = [
        _raw_taint(target[ident]) if ident in planned.replace else raw
        for ident, raw in found.items()
        if ident not in gone
    ]
    result += [_raw_taint(t) for i, t in target.items() if i in planned.add]
    return Part(planned, _taint_operations(node, result), lifted)


def may_lift(
    node: NodeState,
    startup_taints: Container[str],
    heard: Iterable[StoredFeature],
    about: Callable[[StoredFeature], Mapping[str, Any]],
) -> bool:
    """Tell whether start-up taints may go: a worker has looked at this very Node.

    Its NodeFeature is owned by the Node, or is no older.
    """
    if not any(taint["key"] in startup_taints for taint in node.taints or ()):
        return False
    for stored in heard:
        said = about(stored)
        if not is_worker_made(stored, said):
            continue
        if node.uid in said.get("owners", ()):
            return True
        newest = max(stored.created, stored.published)
        return bool(newest) and newest >= node.created
    return False


def taints_text(idents: frozenset[str], wanted: Wanted, before: Iterable[Taint]) -> str:
    """Write the tracking annotation: wanted ones in rule order, then those kept."""
    listed = {t.ident: t for t in wanted.taints if t.ident in idents}
    for taint in before:
        if taint.ident in idents:
            listed.setdefault(taint.ident, taint)
    return ",".join(str(t) for t in listed.values())


def _raw_taint(taint: Taint) -> dict[str, str]:
    raw = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        raw["value"] = taint.value
    if taint.time_added:
        raw["timeAdded"] = taint.time_added
    return raw


def _taint_operations(
    node: NodeState, result: list[Mapping[str, Any]]
) -> list[Operation]:
    current = list(node.taints or ())
    if current == result:
        return []
    taints = ("spec", "taints")
    test = patch.expect(taints, current or None)
    if not result:
        return [test, patch.remove(taints)]
    return [test, patch.add(taints, result)]
