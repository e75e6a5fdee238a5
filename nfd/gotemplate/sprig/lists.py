"""Sprig's functions of lists; `first (list)` is nil, not an error."""

from typing import Any

from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.functions import Function
from nfd.gotemplate.sprig.numbers import to_int
from nfd.gotemplate.values import (
    AnyList,
    ListOfLists,
    NilAnyList,
    charge,
    charge_items,
    deep_equal,
    go_kind,
)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise EvaluationError(f"expected a list, found {go_kind(value)}")
    charge(len(value))
    return value


def _any_list(items: Any) -> AnyList:
    result = AnyList(items)
    charge_items(len(result))
    return result


def push(items: Any, item: Any) -> AnyList:
    """Return the list with one more element at the end."""
    return _any_list((*_list(items), item))


def prepend(items: Any, item: Any) -> AnyList:
    """Return the list with one more element in front."""
    return _any_list((item, *_list(items)))


def first(items: Any) -> Any:
    """Return the first element, nil of an empty list."""
    return next(iter(_list(items)), None)


def last(items: Any) -> Any:
    """Return the last element, nil of an empty list."""
    return next(reversed(_list(items)), None)


def rest(items: Any) -> AnyList:
    """Return all but the first element."""
    return AnyList(_list(items)[1:]) if _list(items) else NilAnyList()


def initial(items: Any) -> AnyList:
    """Return all but the last element."""
    return AnyList(_list(items)[:-1]) if _list(items) else NilAnyList()


def backwards(items: Any) -> AnyList:
    """Return the elements in reverse order."""
    return AnyList(reversed(_list(items)))


def uniq(items: Any) -> AnyList:
    """Return each different element once, in order."""
    kept = AnyList()
    for item in _list(items):
        if not _contains(kept, item):
            kept.append(item)
    return kept


def without(items: Any, *omitted: Any) -> AnyList:
    """Return the elements that equal none of the others."""
    return AnyList(item for item in _list(items) if not _contains(omitted, item))


def has(needle: Any, items: Any) -> bool:
    """Tell whether an element equals the first argument; false for nil."""
    return items is not None and _contains(_list(items), needle)


def _contains(items: Any, needle: Any) -> bool:
    charge(len(items))
    return any(deep_equal(needle, item) for item in items)


def cut(items: Any, *bounds: Any) -> Any:
    """Return elements from the first position to before the second; keeps the type."""
    elements = _list(items)
    if not elements:
        return None
    start = to_int(bounds[0]) if bounds else 0
    end = to_int(bounds[1]) if len(bounds) > 1 else len(elements)
    if not 0 <= start <= end <= len(elements):
        raise EvaluationError(
            f"positions {start} and {end} are outside of 0 to {len(elements)}"
        )
    return type(elements)(elements[start:end])


def concat(*lists: Any) -> AnyList:
    """Return the elements of all lists in one."""
    return _any_list(item for items in lists for item in _list(items)) or NilAnyList()


def chunk(size: int, items: Any) -> ListOfLists:
    """Cut a list into lists of a size."""
    elements = _list(items)
    if size <= 0:
        raise EvaluationError(f"expected a size above 0, found {size}")
    return ListOfLists(
        AnyList(elements[start : start + size])
        for start in range(0, len(elements), size)
    )


_ONE_LIST = {
    "first": first,
    "initial": initial,
    "last": last,
    "rest": rest,
    "reverse": backwards,
    "uniq": uniq,
}

FUNCTIONS = {
    "concat": Function(concat, "any..."),
    "list": Function(lambda *items: AnyList(items), "any..."),
    "tuple": Function(lambda *items: AnyList(items), "any..."),
    "append": Function(push, "any", "any"),
    "push": Function(push, "any", "any"),
    "prepend": Function(prepend, "any", "any"),
    "has": Function(has, "any", "any"),
    "chunk": Function(chunk, "int", "any"),
    "slice": Function(cut, "any", "any..."),
    "without": Function(without, "any", "any..."),
    **{name: Function(call, "any") for name, call in _ONE_LIST.items()},
}
_MUST = (
    "append chunk first has initial last prepend push rest reverse slice uniq without"
)
FUNCTIONS |= {
    f"must{name[0].upper()}{name[1:]}": FUNCTIONS[name] for name in _MUST.split()
}
