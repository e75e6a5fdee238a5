"""JSON patches (RFC 6902) that change exactly the keys they name, behind guards."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

Operation: TypeAlias = dict[str, Any]
_VERSION, _UID = ("metadata", "resourceVersion"), ("metadata", "uid")


def pointer(*parts: str) -> str:
    """Return the JSON pointer of a path; `/` and `~` in its parts are escaped."""
    return "".join(map(_step, parts))


@lru_cache(8192)
def _step(part: str) -> str:
    return "/" + part.replace("~", "~0").replace("/", "~1")


def parts(pointer: str) -> list[str]:
    """Take a JSON pointer apart: what `pointer` was given."""
    return [p.replace("~1", "/").replace("~0", "~") for p in pointer.split("/")[1:]]


def expect(path: Sequence[str], value: Any) -> Operation:
    """The patch as a whole fails (422) unless `path` holds `value`."""
    return {"op": "test", "path": pointer(*path), "value": value}


def add(path: Sequence[str], value: Any) -> Operation:
    """Set `path`, whether it is there or not; its parent must be there."""
    return {"op": "add", "path": pointer(*path), "value": value}


def replace(path: Sequence[str], value: Any) -> Operation:
    """Set `path`; the API server does so even where it is not there."""
    return {"op": "replace", "path": pointer(*path), "value": value}


def remove(path: Sequence[str]) -> Operation:
    """Take `path` away, which must be there."""
    return {"op": "remove", "path": pointer(*path)}


def same_object(uid: str) -> Operation:
    """The guard against an object that was deleted and made again meanwhile."""
    return expect(_UID, uid)


def same_version(resource_version: str) -> Operation:
    """The guard against any write of the object since it was read.

    A removal needs it: carried out late, after its answer was lost and the key came
    back, it would pass a test of the old value.
    """
    return expect(_VERSION, resource_version)


def as_merge(operations: Sequence[Operation]) -> dict[str, Any] | None:
    """Return the merge patch of the same effect, None where there is none.

    There is one where nothing is removed and the version of the object is tested,
    which vouches for every other test. Lists are left to JSON patches.
    """
    version, uid = pointer(*_VERSION), pointer(*_UID)
    merged: dict[str, Any] = {}
    versioned = False
    for operation in operations:
        path, value = operation["path"], operation.get("value")
        if operation["op"] == "test":
            if path not in (version, uid):
                continue
            versioned = versioned or path == version
        elif operation["op"] == "remove" or isinstance(value, list):
            return None
        *parents, last = parts(path)
        place = merged
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = dict(value) if isinstance(value, dict) else value
    return merged if versioned else None


def change_map(
    path: Sequence[str],
    current: Mapping[str, str] | None,
    changes: Mapping[str, str | None],
) -> list[Operation]:
    """Return the operations that change keys of a map of text (DESIGN section 6).

    `current` is the map as last read (None where the object has none), `changes`
    maps keys to the new value, None to remove. Each change comes after a `test` of
    what was there (null: nothing), so that it never overwrites what someone wrote
    meanwhile. A key that is right already, or gone, costs nothing. The order is that
    of the keys.
    """
    have = current or {}
    operations: list[Operation] = []
    for key in sorted(changes):
        new, at = changes[key], (*path, key)
        if key not in have:
            if new is not None:
                operations += [expect(at, None), add(at, new)]
        elif new is None:
            operations += [expect(at, have[key]), remove(at)]
        elif new != have[key]:
            operations += [expect(at, have[key]), replace(at, new)]
    if operations and current is None:
        operations[:0] = [expect(path, None), add(path, {})]
    return operations
