"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386), as the API server does them."""

import copy
from typing import Any

from tests.fakeapi.refusals import bad_request, patch_failed


def json_patch(document: Any, operations: Any) -> Any:
    """A patched copy; a failed `test` or a missing path refuses the whole."""
    document = copy.deepcopy(document)
    if not isinstance(operations, list):
        raise bad_request(
            "cannot unmarshal object into Go value of type jsonpatch.Patch"
        )
    for operation in operations:
        parts = _parts(operation["path"])
        match operation["op"]:
            case "test":
                # A null matches what is not there, as in the library that it uses.
                if _find(document, parts) != operation.get("value"):
                    raise patch_failed()
            case "add":
                _add(document, parts, copy.deepcopy(operation.get("value")))
            case "replace":
                # What is not there is set all the same, as on the real server.
                _set(document, parts, copy.deepcopy(operation.get("value")))
            case "remove":
                _remove(document, parts)
            case "copy" | "move":
                source = _parts(operation["from"])
                value = copy.deepcopy(_find(document, source))
                if operation["op"] == "move":
                    _remove(document, source)
                _add(document, parts, value)
            case _:
                raise patch_failed()
    return document


def merge_patch(document: Any, patch: Any) -> Any:
    """A patched copy: null removes, objects merge, all else replaces."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _parts(pointer: str) -> list[str]:
    return [p.replace("~1", "/").replace("~0", "~") for p in pointer.split("/")[1:]]


def _find(document: Any, parts: list[str]) -> Any:
    """The value at a path, None where the last part is missing."""
    parent = _parent(document, parts)
    if isinstance(parent, list):
        index = _index(parent, parts[-1])
        return parent[index] if index < len(parent) else None
    return parent.get(parts[-1])


def _parent(document: Any, parts: list[str]) -> Any:
    for part in parts[:-1]:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(document, part)]
        else:
            raise patch_failed()
    if not isinstance(document, dict | list) or not parts:
        raise patch_failed()
    return document


def _index(values: list[Any], part: str) -> int:
    if part == "-":
        return len(values)
    if not part.isdigit() or int(part) > len(values):
        raise patch_failed()
    return int(part)


def _add(document: Any, parts: list[str], value: Any) -> None:
    parent = _parent(document, parts)
    if isinstance(parent, list):
        parent.insert(_index(parent, parts[-1]), value)
    else:
        parent[parts[-1]] = value


def _set(document: Any, parts: list[str], value: Any) -> None:
    parent = _parent(document, parts)
    if isinstance(parent, list):
        _remove(document, parts)
    _add(document, parts, value)


def _remove(document: Any, parts: list[str]) -> None:
    parent = _parent(document, parts)
    try:
        del parent[_index(parent, parts[-1]) if isinstance(parent, list) else parts[-1]]
    except (KeyError, IndexError):
        raise patch_failed() from None
