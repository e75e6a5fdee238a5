"""Sprig's defaults, and its questions about types."""

from typing import Any

from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.functions import Function
from nfd.gotemplate.values import (
    AnyList,
    AnyMap,
    charge,
    charge_walk,
    deep_equal,
    go_kind,
    go_type,
)


def empty(value: Any) -> bool:
    """Tell whether a value is the zero of its type, an empty list or map, or nil."""
    return not value


def default(fallback: Any, *given: Any) -> Any:
    """Return the first given value, or the fallback if that is empty."""
    return fallback if not given or empty(given[0]) else given[0]


def coalesce(*values: Any) -> Any:
    """Return the first value that is not empty, or nil."""
    return next((value for value in values if not empty(value)), None)


def compact(items: Any) -> AnyList:
    """Return the elements of a list that are not empty."""
    if not isinstance(items, list):
        raise EvaluationError(f"expected a list, found {go_kind(items)}")
    charge(len(items))
    return AnyList(item for item in items if not empty(item))


def ternary(if_true: Any, if_false: Any, condition: bool) -> Any:  # noqa: FBT001 - sprig's order
    """Choose between two values."""
    return if_true if condition else if_false


def fail(message: str) -> str:
    """Fail with a message."""
    raise EvaluationError(message)


def deep_copy(value: Any) -> Any:
    """Copy a value with everything inside."""
    if value is None:
        raise EvaluationError("nil cannot be copied")
    charge_walk(value)
    return _copy(value)


def _copy(value: Any) -> Any:
    if isinstance(value, AnyMap):
        return AnyMap((key, _copy(item)) for key, item in value.items())
    if isinstance(value, AnyList):
        return AnyList(map(_copy, value))
    return type(value)(value) if isinstance(value, dict | list) else value


def type_is_like(wanted: str, value: Any) -> bool:
    """Tell whether a value or what it points to has a type."""
    return go_type(value) in (wanted, "*" + wanted)


FUNCTIONS = {
    "all": Function(lambda *values: all(values), "any..."),
    "any": Function(lambda *values: any(values), "any..."),
    "coalesce": Function(coalesce, "any..."),
    "compact": Function(compact, "any"),
    "deepCopy": Function(deep_copy, "any"),
    "deepEqual": Function(deep_equal, "any", "any"),
    "default": Function(default, "any", "any..."),
    "empty": Function(empty, "any"),
    "fail": Function(fail, "string"),
    "kindIs": Function(lambda wanted, value: wanted == go_kind(value), "string", "any"),
    "kindOf": Function(go_kind, "any"),
    "mustCompact": Function(compact, "any"),
    "mustDeepCopy": Function(deep_copy, "any"),
    "ternary": Function(ternary, "any", "any", "bool"),
    "typeIs": Function(lambda wanted, value: wanted == go_type(value), "string", "any"),
    "typeIsLike": Function(type_is_like, "string", "any"),
    "typeOf": Function(go_type, "any"),
}
