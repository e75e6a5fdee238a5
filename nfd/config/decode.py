"""Decodes plain data into frozen settings classes by the rules of Go's JSON decoder.

Keys of classes are matched without regard to case, keys of maps with it. A layer is
decoded over the one below it: scalars and lists replace, maps merge by key, lists of
maps or classes merge by index, null clears lists and maps and leaves the rest alone.
Source: spec/worker.md sections 2 and 11.1.

The fields of a settings class name their keys by `nfd.source.setting`; a dotted key
is a path. A field's type may be bool, int, float, str, Literal of texts, a tuple or
Mapping of these, another settings class, Any, or a class with a class method
`from_config(value, path)`.
"""

import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import attrs

from nfd.config.nearest import suggest
from nfd.errors import ConfigError

T = TypeVar("T")
_SHOWN = 60  # characters of a value in messages


@attrs.frozen(slots=True)
class Key:
    """One documented configuration key of a settings class."""

    path: str
    type: Any
    default: Any
    help: str


def keys(cls: type[Any]) -> tuple[Key, ...]:
    """List the keys of a settings class in their order, nested ones with paths."""
    listed: list[Key] = []
    for field in _fields(cls):
        path = field.metadata["key"]
        if attrs.has(field.type):
            listed += (
                attrs.evolve(key, path=f"{path}.{key.path}") for key in keys(field.type)
            )
        else:
            text = field.metadata["help"]
            listed.append(Key(path, field.type, field.default, text))
    return tuple(listed)


def decode(
    cls: type[T],
    tree: Any,
    path: str = "",
    *,
    base: T | None = None,
    warnings: list[str] | None = None,
) -> T:
    """Decode `tree` over `base` (the defaults of `cls`); unknown keys become warnings.

    Raises:
        ConfigError: A value is wrong; the text holds its path and what is allowed.

    """
    return _Decoder([] if warnings is None else warnings).settings(
        cls, tree, path, cls() if base is None else base
    )


def merge_trees(base: Any, over: Any) -> Any:
    """Merge undecoded data: maps by key (any case), lists of maps by index."""
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        merged = dict(base)
        for key, value in over.items():
            name = find_key(key, merged) or key
            merged[name] = merge_trees(merged.get(name), value)
        return merged
    if isinstance(base, list | tuple) and isinstance(over, list | tuple):
        return [
            merge_trees(base[i], value)
            if i < len(base) and isinstance(value, Mapping)
            else value
            for i, value in enumerate(over)
        ]
    return over


def find_key(key: str, known: Iterable[str]) -> str | None:
    """Find the known key that `key` means: itself, else one that differs in case."""
    names = list(known)
    if key in names:
        return key
    fold = key.casefold()
    return next((name for name in names if name.casefold() == fold), None)


def join(path: str, key: str) -> str:
    """Append a key to a path."""
    return f"{path}.{key}" if path else key


def show(value: Any) -> str:
    """Write a value as configuration files do, cut to one line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def wrong(path: str, value: Any, allowed: str) -> ConfigError:
    """Make the error of a wrong value."""
    return ConfigError(f"{path}: {show(value)} is not allowed here, expected {allowed}")


def _fields(cls: type[Any]) -> tuple[Any, ...]:
    attrs.resolve_types(cls)
    return tuple(f for f in attrs.fields(cls) if "key" in f.metadata)


class _Decoder:
    def __init__(self, warnings: list[str]) -> None:
        self._warnings = warnings

    def settings(self, cls: type[T], tree: Any, path: str, base: T) -> T:
        """Decode a map into a settings class; null leaves the base as it is."""
        schema: dict[str, Any] = {}
        for field in _fields(cls):
            *parents, last = field.metadata["key"].split(".")
            level = schema
            for parent in parents:
                level = level.setdefault(parent, {})
            level[last] = field
        changes: dict[str, Any] = {}
        self._level(schema, tree, path, base, changes)
        evolved: T = attrs.evolve(base, **changes)  # type: ignore[misc] # attrs class
        return evolved

    def _level(
        self,
        schema: dict[str, Any],
        tree: Any,
        path: str,
        base: Any,
        changes: dict[str, Any],
    ) -> None:
        if tree is None:
            return
        if not isinstance(tree, Mapping):
            raise wrong(path or "the file", tree, "a map")
        for key, value in sorted(tree.items()):
            name = find_key(key, schema)
            here = join(path, key if name is None else name)
            if name is None:
                hint = suggest(key, schema)
                self._warnings.append(f"{here}: unknown key, ignored{hint}")
                continue
            field = schema[name]
            if isinstance(field, dict):
                self._level(field, value, here, base, changes)
                continue
            old = changes.get(field.alias, getattr(base, field.name))
            changes[field.alias] = self.value(field.type, value, here, old)

    def value(self, kind: Any, value: Any, path: str, base: Any) -> Any:
        """Decode one value of the type `kind` over `base`."""
        origin = get_origin(kind)
        if kind is Any:
            return merge_trees(base, value)
        if origin in (Union, types.UnionType):
            (kind,) = (a for a in get_args(kind) if a is not types.NoneType)
            return None if value is None else self.value(kind, value, path, base)
        if hasattr(kind, "from_config"):
            return kind.from_config(value, path)
        if origin is Literal:
            return self._choice(get_args(kind), value, path, base)
        if origin is tuple:
            return self._list(get_args(kind)[0], value, path, base)
        if origin is not None and issubclass(origin, Mapping):
            return self._map(get_args(kind)[1], value, path, base)
        if attrs.has(kind):
            return self.settings(kind, value, path, kind() if base is None else base)
        return self._scalar(kind, value, path, base)

    def _scalar(self, kind: Any, value: Any, path: str, base: Any) -> Any:
        if value is None:
            return kind() if base is None else base
        if kind is str and isinstance(value, str | int | float):
            from nfd.config.goyaml import as_text  # noqa: PLC0415 - loads PyYAML

            return value if isinstance(value, str) else as_text(value)
        if kind is bool and isinstance(value, bool):
            return value
        if not isinstance(value, bool):
            if kind is float and isinstance(value, int | float):
                return float(value)
            if kind is int and (
                isinstance(value, int)
                or (isinstance(value, float) and value.is_integer())
            ):
                return int(value)
        allowed = {str: "text", bool: "true or false", int: "a whole number"}
        raise wrong(path, value, allowed.get(kind, "a number"))

    def _choice(
        self, choices: tuple[str, ...], value: Any, path: str, base: Any
    ) -> Any:
        if value is None:
            return base
        if value not in choices:
            raise wrong(path, value, "one of " + ", ".join(choices))
        return value

    def _list(self, kind: Any, value: Any, path: str, base: Any) -> tuple[Any, ...]:
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            raise wrong(path, value, f"a list of {_describe(kind)}")
        old = base or ()
        return tuple(
            self.value(kind, item, f"{path}[{i}]", old[i] if i < len(old) else None)
            for i, item in enumerate(value)
        )

    def _map(self, kind: Any, value: Any, path: str, base: Any) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise wrong(path, value, f"a map of {_describe(kind)}")
        merged = dict(base or {})
        for key, item in value.items():
            merged[key] = self.value(kind, item, join(path, key), None)
        return merged


def _describe(kind: Any) -> str:
    if kind is str:
        return "texts"
    if get_origin(kind) is Literal:
        return " or ".join(get_args(kind))
    return "maps" if kind not in (int, float, bool) else "numbers"
