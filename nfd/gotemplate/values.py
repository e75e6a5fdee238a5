"""Go's types for template values, as Python types, and what Go says about them.

The data of a template is typed `map[string]map[string][]map[string]string` upstream
(spec: worker, section 6.5), and functions see those types: `get` refuses an element,
`index` gives "" for a key that an element lacks. So each Python type stands for
exactly one Go type: a plain `dict` is a `map[string]string`, a plain `list` is a
`[]map[string]string`, `str` is `string`, `int` is `int`; the others are here.
"""

import threading
from collections.abc import Iterable
from typing import Any

from nfd.gotemplate.errors import BudgetError

MAX_STEPS = 500_000  # work of one rendering: nodes run, elements walked, text made
MAX_TEXT = 1 << 20  # characters of one string and of the whole output
MAX_ITEMS = 65_536  # elements of one list
MAX_VALUE_DEPTH = 100  # lists and maps inside each other
_TEXT_PER_STEP = 64  # characters made at the price of one step

INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1


class Int64(int):
    """`int64`, what sprig's arithmetic returns."""

    __slots__ = ()


class Uint64(int):
    """`uint64`, the numbers of a semantic version."""

    __slots__ = ()


class Uint8(int):
    """`uint8`, an element of a string."""

    __slots__ = ()


class DomainMap(dict[str, "FeatureMap"]):
    """`map[string]map[string][]map[string]string`, the root of the data."""

    __slots__ = ()


class FeatureMap(dict[str, list[dict[str, str]]]):
    """`map[string][]map[string]string`, the features of one domain."""

    __slots__ = ()


class AnyMap(dict[str, Any]):
    """`map[string]interface {}`, what `dict` makes."""

    __slots__ = ()


class AnyList(list[Any]):
    """`[]interface {}`, what `list` makes."""

    __slots__ = ()


class StringList(list[str]):
    """`[]string`."""

    __slots__ = ()


class IntList(list[int]):
    """`[]int`."""

    __slots__ = ()


class ListOfLists(list[AnyList]):
    """`[][]interface {}`."""

    __slots__ = ()


class NilElements(list[dict[str, str]]):
    """A nil `[]map[string]string`: what `index` gives for an unknown feature."""

    __slots__ = ()


class NilFeatureMap(FeatureMap):
    """A nil `map[string][]map[string]string`."""

    __slots__ = ()


class NilAnyList(AnyList):
    """A nil `[]interface {}`, such as the rest of an empty list."""

    __slots__ = ()


class NilStringList(StringList):
    """A nil `[]string`."""

    __slots__ = ()


GO_TYPES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Int64: "int64",
    Uint64: "uint64",
    Uint8: "uint8",
    float: "float64",
    complex: "complex128",
    str: "string",
    dict: "map[string]string",
    list: "[]map[string]string",
    DomainMap: "map[string]map[string][]map[string]string",
    FeatureMap: "map[string][]map[string]string",
    AnyMap: "map[string]interface {}",
    AnyList: "[]interface {}",
    StringList: "[]string",
    IntList: "[]int",
    ListOfLists: "[][]interface {}",
    NilElements: "[]map[string]string",
    NilFeatureMap: "map[string][]map[string]string",
    NilAnyList: "[]interface {}",
    NilStringList: "[]string",
}
_NIL = (NilElements, NilFeatureMap, NilAnyList, NilStringList)


# Times and versions are structs with methods: their classes have GO_TYPE, GO_KIND and
# METHODS (name to Function, whose first argument is the value).


def go_type(value: Any) -> str:
    """Name the Go type of a value, as `%T` does."""
    if value is None:
        return "<nil>"
    name = GO_TYPES.get(type(value))
    return name if name is not None else str(value.GO_TYPE)


def go_kind(value: Any) -> str:
    """Name the kind of a value, as sprig's `kindOf` does."""
    if value is None:
        return "invalid"
    if isinstance(value, dict):
        return "map"
    if isinstance(value, list):
        return "slice"
    name = GO_TYPES.get(type(value))
    return name if name is not None else str(value.GO_KIND)


def is_nil(value: object) -> bool:
    """Tell whether a value is nil, typed or not."""
    return value is None or isinstance(value, _NIL)


def is_interface_element(container: object) -> bool:
    """Tell whether the elements are typed `interface {}`, so that nil is one."""
    return isinstance(container, AnyMap | AnyList)


# Strings ----------------------------------------------------------------------


def to_bytes(text: str) -> bytes:
    """Encode a string; bytes that are no UTF-8 travel as lone surrogates."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def from_bytes(data: bytes) -> str:
    """Undo `to_bytes`."""
    return data.decode("utf-8", "surrogateescape")


def byte_length(text: str) -> int:
    """Count the bytes of a string, which is what Go's `len` does."""
    if text.isascii():
        return len(text)
    charge_text(len(text))
    return len(to_bytes(text))


def byte_slice(text: str, start: int | None, end: int | None) -> str:
    """Cut a string at byte positions."""
    if text.isascii():
        return text[start:end]
    return from_bytes(to_bytes(text)[start:end])


# Budget -----------------------------------------------------------------------


class Meter:
    """What one rendering has spent; `MAX_STEPS` is the end."""

    __slots__ = ("depth", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self.depth = 0


class _Current(threading.local):
    meter: Meter = Meter()


CURRENT = _Current()


def charge(steps: int) -> None:
    """Spend steps of the rendering that runs in this thread."""
    meter = CURRENT.meter
    meter.steps += steps
    if meter.steps > MAX_STEPS:
        raise BudgetError(f"the template needs more than {MAX_STEPS} steps")


def charge_text(length: int) -> None:
    """Spend the steps of making a text, and refuse an over-long one."""
    if length > MAX_TEXT:
        raise BudgetError(f"a text grows longer than {MAX_TEXT} characters")
    charge(length // _TEXT_PER_STEP)


def charge_items(count: int) -> None:
    """Spend the steps of making a list, and refuse an over-long one."""
    if count > MAX_ITEMS:
        raise BudgetError(f"a list grows longer than {MAX_ITEMS} elements")
    charge(count)


def charge_walk(value: object) -> None:
    """Spend one step for each element inside a value, before something walks it.

    Bounds shared and cyclic values too: those unfold to more than the budget.
    """
    if not isinstance(value, dict | list):
        return
    charge(1 + len(value))
    pending: list[tuple[Iterable[Any], int]] = [(_elements(value), 1)]
    while pending:
        elements, depth = pending.pop()
        if depth > MAX_VALUE_DEPTH:
            raise BudgetError(f"a value is nested deeper than {MAX_VALUE_DEPTH}")
        for element in elements:
            if isinstance(element, dict | list):
                charge(1 + len(element))
                pending.append((_elements(element), depth + 1))


def _elements(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    if type(value) is dict:
        return ()
    return value.values() if isinstance(value, dict) else value


# Equality ---------------------------------------------------------------------


def deep_equal(left: object, right: object) -> bool:
    """Compare as `reflect.DeepEqual`: same type and same content."""
    charge_walk(left)
    charge_walk(right)
    return _deep_equal(left, right)


def _deep_equal(left: object, right: object) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and type(left) is not dict:
        assert isinstance(right, dict)
        return left.keys() == right.keys() and all(
            _deep_equal(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list):
        assert isinstance(right, list)
        return len(left) == len(right) and all(
            _deep_equal(one, other) for one, other in zip(left, right, strict=True)
        )
    return left == right
