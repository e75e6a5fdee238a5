"""managedFields of Update operations: who last wrote which label, annotation or field.

As tried on API server 1.36: a write takes over the keys whose value it changes and
those it adds; the same value again changes nothing; a removed key belongs to nobody.
"""

from typing import Any

from nfd.kube.resources import JsonObject

Path = tuple[str, ...]

_DEPTH = {"metadata": 3, "spec": 2, "status": 3, "data": 2}
_METADATA = {"labels", "annotations", "ownerReferences", "finalizers"}


def track(
    old: JsonObject | None,
    new: JsonObject,
    *,
    manager: str,
    subresource: str,
    time: str,
) -> list[dict[str, Any]]:
    """The managedFields of `new`, written by `manager` over `old`."""
    before, after = _leaves(old or {}), _leaves(new)
    changed = {p for p, value in after.items() if before.get(p, _MISSING) != value}
    entries: dict[tuple[str, str], set[Path]] = {}
    times: dict[tuple[str, str], str] = {}
    for entry in (old or {}).get("metadata", {}).get("managedFields", []):
        key = (entry["manager"], entry.get("subresource", ""))
        entries[key] = {p for p in _paths(entry["fieldsV1"]) if p in after} - changed
        times[key] = entry["time"]
    if changed:
        writer = (manager, subresource)
        entries[writer] = entries.get(writer, set()) | changed
        times[writer] = time
    return [
        {
            "manager": key[0],
            "operation": "Update",
            "apiVersion": new["apiVersion"],
            "time": times[key],
            "fieldsType": "FieldsV1",
            "fieldsV1": _tree(paths),
            **({"subresource": key[1]} if key[1] else {}),
        }
        for key, paths in sorted(entries.items())
        if paths
    ]


_MISSING = object()


def _leaves(obj: JsonObject) -> dict[Path, Any]:
    found: dict[Path, Any] = {}
    for top, value in obj.items():
        if top in {"apiVersion", "kind"}:
            continue
        if top == "metadata":
            for part in sorted(_METADATA & value.keys()):
                _walk((top, part), value[part], _DEPTH[top], found)
        else:
            _walk((top,), value, _DEPTH.get(top, 1), found)
    return found


def _walk(path: Path, value: Any, depth: int, found: dict[Path, Any]) -> None:
    if isinstance(value, dict) and len(path) < depth:
        found[(*path, ".")] = None
        for key, below in value.items():
            _walk((*path, key), below, depth, found)
    else:
        found[path] = value


def _tree(paths: set[Path]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path in sorted(paths):
        at = tree
        for part in path:
            at = at.setdefault("." if part == "." else f"f:{part}", {})
    return tree


def _paths(tree: dict[str, Any], above: Path = ()) -> set[Path]:
    found: set[Path] = set()
    for key, below in tree.items():
        path = (*above, key.removeprefix("f:"))
        found |= _paths(below, path) if below else {path}
    return found
