"""What a master would write, before it writes anything: grouped by key.

Pure. The removal guard is left out: it delays removals and decides none.
"""

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import attrs

from nfd.kube import patch
from nfd.labels import ANNOTATION_NS
from nfd.master.fleet import Fleet
from nfd.master.plan import NodePlan, plan

Action: TypeAlias = Literal["remove", "change", "add"]
_ORDER: tuple[Action, ...] = ("remove", "change", "add")


@attrs.frozen(slots=True)
class Change:
    """One key and what would happen to it on some nodes."""

    action: Action
    kind: str
    key: str
    value: str | None  # where it is the same on all of them
    nodes: tuple[str, ...]

    def to_plain(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**attrs.asdict(self), "nodes": list(self.nodes)}


@attrs.frozen(slots=True)
class Preview:
    """All changes, removals first."""

    nodes: int
    touched: int
    changes: tuple[Change, ...]
    held: tuple[tuple[str, tuple[str, ...]], ...] = ()  # key → nodes; unknown rules

    @property
    def removes(self) -> bool:
        """Whether anything would be taken from a node."""
        return any(change.action == "remove" for change in self.changes)

    def to_plain(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "nodes": self.nodes,
            "touched": self.touched,
            "changes": [change.to_plain() for change in self.changes],
            "held": [{"key": key, "nodes": list(nodes)} for key, nodes in self.held],
        }

    def text(self, names: int = 5) -> str:
        """Write it for people; `names` nodes are named of each group."""
        lines = []
        for action in _ORDER:
            group = [c for c in self.changes if c.action == action]
            if group:
                lines.append(f"{action}:")
            for change in group:
                value = "" if change.value is None else f"={change.value}"
                where = _nodes(change.nodes, names)
                lines.append(f"  {change.kind} {change.key}{value}  on {where}")
        if self.held:
            lines.append("kept, for their rules read what is unknown on the node:")
            lines += [f"  {key}  on {_nodes(n, names)}" for key, n in self.held]
        as_they_are = self.nodes - self.touched
        lines.append(
            f"{self.touched} of {self.nodes} nodes would be written, "
            f"{as_they_are} are as wanted"
        )
        return "".join(f"{line}\n" for line in lines)


def _nodes(nodes: tuple[str, ...], names: int) -> str:
    shown = ", ".join(nodes[:names])
    more = f" and {len(nodes) - names} more" if len(nodes) > names else ""
    word = "node" if len(nodes) == 1 else "nodes"
    return f"{len(nodes)} {word}: {shown}{more}"


def preview(fleet: Fleet) -> Preview:
    """Plan every node of a fleet and group what would be written."""
    config = fleet.config
    groups: dict[tuple[Action, str, str], dict[str, str]] = {}
    held: dict[str, list[str]] = {}
    touched = 0
    for name in sorted(fleet.nodes):
        node = fleet.nodes.get(name)
        if node is None:
            continue
        wanted = fleet.evaluate(name).wanted()
        planned = plan(
            node, wanted, config.tracking, allow_overwrite=config.allow_overwrite
        )
        touched += bool(planned)
        for action, kind, key, value in _changes(planned):
            groups.setdefault((action, kind, key), {})[name] = value
        for key in planned.held:
            held.setdefault(key, []).append(name)
    changes = [
        Change(action, kind, key, _same(found), tuple(found))
        for (action, kind, key), found in groups.items()
    ]
    changes.sort(key=lambda c: (_ORDER.index(c.action), c.kind, c.key))
    return Preview(
        len(fleet.nodes),
        touched,
        tuple(changes),
        tuple((key, tuple(nodes)) for key, nodes in sorted(held.items())),
    )


def _same(values: dict[str, str]) -> str | None:
    found = set(values.values())
    return found.pop() if len(found) == 1 else None


def _changes(planned: NodePlan) -> Iterator[tuple[Action, str, str, str]]:
    """Yield action, kind, key and value of everything that a plan writes."""
    before: dict[str, str] = {}
    for step in planned.steps:
        for op in step.operations:
            path = op["path"]
            if op["op"] == "test":
                before[path] = str(op.get("value"))
                continue
            kind, key = _kind_and_key(path)
            if not kind:
                continue
            if op["op"] == "remove":
                yield "remove", kind, key, before.get(path, "")
            else:
                action: Action = "add" if op["op"] == "add" else "change"
                yield action, kind, key, str(op["value"])
    yield from _taint_changes(planned)


def _taint_changes(planned: NodePlan) -> Iterator[tuple[Action, str, str, str]]:
    """Taints are written as one list, so that the plan names them beside it."""
    removed = [r.key for r in planned.removals if r.kind == "taint"]
    named: tuple[tuple[Action, list[str]], ...] = (
        ("remove", removed),
        ("add", [k for k in planned.added if _is_taint(k)]),
        ("change", [k for k in planned.changed if _is_taint(k)]),
    )
    for action, keys in named:
        for key in keys:
            yield action, "taint", key, ""


def _is_taint(key: str) -> bool:
    return key.endswith((":NoSchedule", ":PreferNoSchedule", ":NoExecute"))


def _kind_and_key(path: str) -> tuple[str, str]:
    for prefix, kind in (
        ("/metadata/labels/", "label"),
        ("/metadata/annotations/", "annotation"),
        ("/status/capacity/", "extendedResource"),
    ):
        if path.startswith(prefix):
            key = patch.parts(path)[-1]
            namespace = key.partition("/")[0]
            if kind == "annotation" and namespace.endswith(ANNOTATION_NS):
                return "", ""
            return kind, key
    return "", ""
