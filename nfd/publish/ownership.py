"""Which keys of a Node are ours, and the JSON patch operations that respect it.

Pure functions of decoded API objects. Sources: DESIGN section 6, spec/master.md
sections 1.5 and 2.8, the Kubernetes page "Server-Side Apply" (FieldsV1) and RFC 6902.
"""

import hashlib
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

import attrs

from nfd.kube import patch
from nfd.kube.patch import Operation
from nfd.labels import ANNOTATION_NS, FEATURE_NS, MAX_NAME

WORKER_MANAGER = "nfd-worker"
MASTER_MANAGER = "nfd-master"
NODE_NAME_LABEL = f"{ANNOTATION_NS}/node-name"
_KEPT = 64  # sets of keys: the nodes of a fleet have few different ones


def master_manager(instance: str = "") -> str:
    """Return the field manager of a master: `[<instance>.]nfd-master`."""
    return f"{instance}.{MASTER_MANAGER}" if instance else MASTER_MANAGER


def node_name_label(node: str) -> str:
    """Return the value of the node-name label, which 63 characters bound.

    Longer names keep their first 46 characters and gain `-` and the first 16 hex
    digits of their SHA-256 (DESIGN section 5).
    """
    if len(node) <= MAX_NAME:
        return node
    return f"{node[:46]}-{hashlib.sha256(node.encode()).hexdigest()[:16]}"


@attrs.frozen(slots=True)
class Managers:
    """Who wrote each key last: label key → manager, annotation key → manager."""

    labels: Mapping[str, str] = attrs.field(factory=dict)
    annotations: Mapping[str, str] = attrs.field(factory=dict)


NO_MANAGERS = Managers()


def managers_of(metadata: Mapping[str, Any]) -> Managers:
    """Read `metadata.managedFields`; of several writers of a key the newest counts.

    Entries without a readable `fieldsV1` say nothing about any key.
    """
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    entries = metadata.get("managedFields") or ()
    for entry in sorted(entries, key=lambda e: str(e.get("time") or "")):
        fields = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
        manager = str(entry.get("manager") or "")
        for part, found in (("f:labels", labels), ("f:annotations", annotations)):
            for field in fields.get(part) or {}:
                if field.startswith("f:"):
                    found[field[2:]] = manager
    return Managers(labels, annotations)


def short_key(key: str) -> str:
    """Return the form of a key in the tracking annotations.

    The default namespace is dropped. A key without any prefix (gate
    DisableAutoPrefix) gains a leading slash; upstream writes it bare, reads it back
    as one of the default namespace and so never removes it.
    """
    return key.removeprefix(FEATURE_NS + "/") if "/" in key else "/" + key


def long_key(text: str) -> str:
    """Undo `short_key`."""
    return text.removeprefix("/") if "/" in text else f"{FEATURE_NS}/{text}"


@lru_cache(_KEPT)
def tracked_keys(annotation: str | None) -> frozenset[str]:
    """Read a tracking annotation: comma-joined keys in their short form."""
    return frozenset(
        long_key(k.strip()) for k in (annotation or "").split(",") if k.strip()
    )


@lru_cache(_KEPT)
def tracking_text(keys: frozenset[str]) -> str:
    """Write a tracking annotation; "" stands for no annotation."""
    return ",".join(sorted(short_key(k) for k in keys))


@attrs.frozen(slots=True)
class KeyConflict:
    """A key that somebody else holds with another value."""

    key: str
    wanted: str
    found: str
    manager: str  # "" where the object does not tell
    taken: bool  # True when policy lets us take it over


@attrs.frozen(slots=True)
class MapPlan:
    """What to do with one map of the object (labels or annotations)."""

    add: Mapping[str, str] = attrs.field(factory=dict)
    replace: Mapping[str, tuple[str, str]] = attrs.field(factory=dict)  # old, new
    remove: Mapping[str, str] = attrs.field(factory=dict)  # key → old value
    owned: frozenset[str] = frozenset()  # ours once this is written
    conflicts: tuple[KeyConflict, ...] = ()
    held: frozenset[str] = frozenset()  # unwanted, ours, and kept for want of proof

    def __bool__(self) -> bool:
        return bool(self.add or self.replace or self.remove)

    def operations(self, *path: str, absence: bool = True) -> list[Operation]:
        """Return guarded operations: each tests what was there, or that nothing was.

        Without `absence` additions are not tested: for a patch that tests the version
        of the whole object.
        """
        ops: list[Operation] = []
        for key, value in sorted(self.add.items()):
            at = (*path, key)
            if absence:
                ops.append(patch.expect(at, None))
            ops.append(patch.add(at, value))
        for key, (old, new) in sorted(self.replace.items()):
            at = (*path, key)
            ops += [patch.expect(at, old), patch.replace(at, new)]
        for key, old in sorted(self.remove.items()):
            at = (*path, key)
            ops += [patch.expect(at, old), patch.remove(at)]
        return ops


@attrs.frozen(slots=True)
class Hold:
    """Keys that must not be removed now, for want of proof.

    `keys` are outputs that are unknown now: they keep their value, too. `everything`
    holds the removal of all others but those in `proven`.
    """

    everything: bool = False
    keys: frozenset[str] = frozenset()
    proven: frozenset[str] = frozenset()

    def __contains__(self, key: str) -> bool:
        return key in self.keys or (self.everything and key not in self.proven)


NO_HOLD = Hold()


def plan_map(  # noqa: PLR0913 - the columns of one decision table
    current: Mapping[str, str],
    wanted: Mapping[str, str],
    owned: frozenset[str],
    *,
    managers: Mapping[str, str],
    ours: frozenset[str],
    foreign: Literal["take", "yield"],
    hold: Hold = NO_HOLD,
    equal: Callable[[str, str], bool] = operator.eq,
) -> MapPlan:
    """Plan the smallest change from `current` to `wanted` (spec/master.md 2.8).

    Only keys in `owned` are removed, and none that `hold` holds; a key in `hold.keys`
    keeps its value as well. A key with another value that is not owned is somebody
    else's: taken over or left, as `foreign` says, and reported either way. A key that already has the wanted value costs
    nothing; it becomes ours unless `managers` names a writer outside `ours`. `equal`
    compares values where one has several spellings.
    """
    add: dict[str, str] = {}
    replace: dict[str, tuple[str, str]] = {}
    held = {k for k in hold.keys & wanted.keys() & owned if k in current}
    conflicts: list[KeyConflict] = []
    becomes = wanted.keys() - held
    becomes -= {
        k
        for k in becomes - owned
        if k in current and managers.get(k, "") not in ("", *ours)
    }
    differing = [
        (key, found, value)
        for key, value in wanted.items()
        if (found := current.get(key)) != value
        and key not in held
        and (found is None or not equal(found, value))
    ]
    for key, found, value in sorted(differing):
        writer = managers.get(key, "")
        if found is None:
            add[key] = value
        elif key in owned or writer in ours:
            replace[key] = (found, value)
        else:
            taken = foreign == "take"
            conflicts.append(KeyConflict(key, value, found, writer, taken))
            if taken:
                replace[key] = (found, value)
                becomes.add(key)
            else:
                becomes.discard(key)
    unwanted = sorted(k for k in owned - wanted.keys() if k in current)
    remove = {k: current[k] for k in unwanted if k not in hold}
    held.update(k for k in unwanted if k in hold)
    return MapPlan(
        add,
        replace,
        remove,
        frozenset(becomes | held),
        tuple(conflicts),
        frozenset(held),
    )
