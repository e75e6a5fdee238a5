"""Sprig's functions of maps; where Go's order is random, ours is sorted."""

from typing import Any

from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.functions import Function
from nfd.gotemplate.sprig.defaults import empty
from nfd.gotemplate.sprig.strings import to_string
from nfd.gotemplate.values import (
    AnyList,
    AnyMap,
    StringList,
    charge,
    charge_items,
    charge_walk,
    go_type,
)

_NOTHING = AnyMap()


def make(*items: Any) -> AnyMap:
    """Make a map of keys and values in turn; a last key without one gets ""."""
    charge_items(len(items))
    values = (*items[1::2], "")
    return AnyMap(zip(map(to_string, items[::2]), values, strict=False))


def get(mapping: AnyMap | None, key: str) -> Any:
    """Return a value, or "" for a key that is not there."""
    return (mapping or _NOTHING).get(key, "")


def put(mapping: AnyMap | None, key: str, value: Any) -> AnyMap:
    """Set a key of the map itself and return the map."""
    if mapping is None:
        raise EvaluationError("expected a map, found nil")
    charge_items(len(mapping))
    mapping[key] = value
    return mapping


def unset(mapping: AnyMap | None, key: str) -> AnyMap:
    """Remove a key of the map itself and return the map."""
    if mapping is None:
        return AnyMap()
    mapping.pop(key, None)
    return mapping


def has_key(mapping: AnyMap | None, key: str) -> bool:
    """Tell whether a key is there."""
    return key in (mapping or _NOTHING)


def pluck(key: str, *mappings: AnyMap | None) -> AnyList:
    """Return the values that maps have for a key."""
    return AnyList(mapping[key] for mapping in mappings if mapping and key in mapping)


def keys(*mappings: AnyMap | None) -> StringList:
    """Return the keys of all maps."""
    names = StringList(key for mapping in mappings for key in sorted(mapping or ()))
    charge_items(len(names))
    return names


def values(mapping: AnyMap | None) -> AnyList:
    """Return the values of a map in the order of its keys."""
    charge(len(mapping or ()))
    return AnyList(value for _key, value in sorted((mapping or _NOTHING).items()))


def pick(mapping: AnyMap | None, *names: str) -> AnyMap:
    """Return a map with some keys only."""
    source = mapping or _NOTHING
    return AnyMap((name, source[name]) for name in names if name in source)


def omit(mapping: AnyMap | None, *names: str) -> AnyMap:
    """Return a map without some keys."""
    charge(len(mapping or ()))
    return AnyMap(
        item for item in (mapping or _NOTHING).items() if item[0] not in names
    )


def merge(target: AnyMap | None, *sources: AnyMap | None) -> AnyMap:
    """Fill the keys of a map that are missing or empty from others, deeply."""
    return _merge_all(target, sources, overwrites=False)


def merge_overwrite(target: AnyMap | None, *sources: AnyMap | None) -> AnyMap:
    """Set the keys of a map from others, deeply."""
    return _merge_all(target, sources, overwrites=True)


def _merge_all(
    target: AnyMap | None, sources: tuple[AnyMap | None, ...], *, overwrites: bool
) -> AnyMap:
    result = AnyMap() if target is None else target
    for source in sources:
        charge_walk(result)
        charge_walk(source)
        _merge(result, source or _NOTHING, overwrites)
    return result


def _merge(target: AnyMap, source: AnyMap, overwrites: bool) -> None:  # noqa: FBT001 - inner
    for key, value in source.items():
        known = target.get(key)
        if isinstance(known, AnyMap) and isinstance(value, AnyMap):
            if known is not value:
                _merge(known, value, overwrites)
        elif key not in target or overwrites or (empty(known) and value is not None):
            target[key] = value


def dig(*path: Any) -> Any:
    """Walk keys into a map: `dig "a" "b" default map`."""
    if len(path) < 3:
        raise EvaluationError(f"expected at least 3 arguments, found {len(path)}")
    *names, default, current = path
    for name in names:
        if not isinstance(name, str):
            raise EvaluationError(f"expected a string as key, found {go_type(name)}")
    for name in names:
        if not isinstance(current, AnyMap):
            raise EvaluationError(
                f"expected map[string]interface {{}}, found {go_type(current)}"
            )
        if name not in current:
            return default
        current = current[name]
    return current


FUNCTIONS = {
    "dict": Function(make, "any..."),
    "dig": Function(dig, "any..."),
    "get": Function(get, "map", "string"),
    "hasKey": Function(has_key, "map", "string"),
    "keys": Function(keys, "map..."),
    "merge": Function(merge, "map", "map..."),
    "mergeOverwrite": Function(merge_overwrite, "map", "map..."),
    "mustMerge": Function(merge, "map", "map..."),
    "mustMergeOverwrite": Function(merge_overwrite, "map", "map..."),
    "omit": Function(omit, "map", "string..."),
    "pick": Function(pick, "map", "string..."),
    "pluck": Function(pluck, "string", "map..."),
    "set": Function(put, "map", "string", "any"),
    "unset": Function(unset, "map", "string"),
    "values": Function(values, "map"),
}
