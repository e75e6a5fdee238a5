"""The functions of Go's text/template itself; `slice` is sprig's.

`and` and `or` stop early, so the compiler has them; the entries here only name them.
"""

import urllib.parse
from typing import Any, NoReturn

from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.formatting import (
    format_value,
    print_value,
    sprint,
    sprintln,
)
from nfd.gotemplate.functions import Function
from nfd.gotemplate.printf import sprintf
from nfd.gotemplate.values import (
    DomainMap,
    FeatureMap,
    NilElements,
    NilFeatureMap,
    Uint8,
    byte_length,
    charge_text,
    go_type,
    is_nil,
    to_bytes,
)

_HTML = str.maketrans(
    {"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
)
_JAVASCRIPT = str.maketrans(
    {
        "\\": "\\\\",
        "'": "\\'",
        '"': '\\"',
        "<": "\\u003C",
        ">": "\\u003E",
        "&": "\\u0026",
        "=": "\\u003D",
    }
)


def length(value: Any) -> int:
    """Count the bytes of a string or the elements of a list or map."""
    if isinstance(value, str):
        return byte_length(value)
    if isinstance(value, list | dict):
        return len(value)
    raise EvaluationError(f"expected a string, a list or a map, found {go_type(value)}")


def index(value: Any, *keys: Any) -> Any:
    """Look up keys or positions one in another.

    A key that a map lacks gives the zero value: "" for an element's attribute.
    """
    if value is None:
        raise EvaluationError("nil has no elements")
    for key in keys:
        if isinstance(value, dict):
            value = _element(value, key)
        elif isinstance(value, str):
            charge_text(len(value))
            data = to_bytes(value)
            value = Uint8(data[_position(key, len(data))])
        elif isinstance(value, list):
            value = value[_position(key, len(value))]
        else:
            raise EvaluationError(f"expected a list or a map, found {go_type(value)}")
    return value


def _element(value: dict[str, Any], key: Any) -> Any:
    if not isinstance(key, str):
        raise EvaluationError(f"expected a string as key, found {go_type(key)}")
    if key in value:
        return value[key]
    if type(value) is dict:
        return ""
    if isinstance(value, DomainMap):
        return NilFeatureMap()
    return NilElements() if isinstance(value, FeatureMap) else None


def _position(key: Any, count: int) -> int:
    if not isinstance(key, int) or isinstance(key, bool):
        raise EvaluationError(f"expected a number as position, found {go_type(key)}")
    if not 0 <= key < count:
        raise EvaluationError(f"position {key} is outside of 0 to {count - 1}")
    return key


def _basic_kind(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "number"
    return type(value).__name__ if isinstance(value, float | complex) else ""


def equal(left: Any, *others: Any) -> bool:
    """Tell whether the first argument equals any other one."""
    if not others:
        raise EvaluationError("expected something to compare with")
    return any(_equal(left, other) for other in others)


def _equal(left: Any, right: Any) -> bool:
    kind, other = _basic_kind(left), _basic_kind(right)
    if kind != other and left is not None and right is not None:
        raise _incompatible(left, right)
    if kind == other and kind:
        return bool(left == right)
    if is_nil(left) or is_nil(right):
        return is_nil(left) and is_nil(right)
    if type(left) is not type(right) and not (
        isinstance(left, dict | list) and isinstance(right, type(left))
    ):
        raise _incompatible(left, right)
    if isinstance(left, dict | list):
        raise EvaluationError(f"{go_type(right)} cannot be compared")
    return bool(left == right)


def _incompatible(left: Any, right: Any) -> EvaluationError:
    return EvaluationError(
        f"cannot compare {go_type(left)} and {go_type(right)}; expected one type"
    )


def not_equal(left: Any, right: Any) -> bool:
    """Tell whether two values differ."""
    return not equal(left, right)


def less(left: Any, right: Any) -> bool:
    """Tell whether a number or string is less than another of its kind."""
    kind, other = _basic_kind(left), _basic_kind(right)
    for value, its_kind in ((left, kind), (right, other)):
        if not its_kind:
            raise EvaluationError(
                f"expected a number or a string, found {go_type(value)}"
            )
    if kind != other:
        raise _incompatible(left, right)
    if kind in ("bool", "complex"):
        raise EvaluationError(f"{kind} values have no order")
    return bool(left < right)


def less_equal(left: Any, right: Any) -> bool:
    """Tell whether a value is less than another or equal."""
    return less(left, right) or equal(left, right)


def greater(left: Any, right: Any) -> bool:
    """Tell whether a value is neither less than another nor equal."""
    return not less_equal(left, right)


def greater_equal(left: Any, right: Any) -> bool:
    """Tell whether a value is not less than another."""
    return not less(left, right)


def escape_html(*arguments: Any) -> str:
    """Escape as `template.HTMLEscaper`."""
    return _sized(_joined(arguments).translate(_HTML))


def escape_javascript(*arguments: Any) -> str:
    """Escape as `template.JSEscaper`."""
    text = _joined(arguments).translate(_JAVASCRIPT)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else f"\\u{ord(c):04X}" for c in text)
    return _sized(text)


def escape_query(*arguments: Any) -> str:
    """Escape as `template.URLQueryEscaper`."""
    return _sized(urllib.parse.quote_plus(to_bytes(_joined(arguments)), safe="~"))


def _joined(arguments: tuple[Any, ...]) -> str:
    if len(arguments) == 1:
        return print_value(arguments[0])
    return sprint(*("<no value>" if item is None else item for item in arguments))


def _sized(text: str) -> str:
    charge_text(len(text))
    return text


def _call(value: Any, *_arguments: Any) -> NoReturn:
    raise EvaluationError(
        "expected a function, found "
        + ("nil" if value is None else f"{format_value(value)} ({go_type(value)})")
    )


def _short_circuit(*_arguments: Any) -> NoReturn:
    raise AssertionError("the compiler does and and or")


FUNCTIONS = {
    "and": Function(_short_circuit, "any", "any..."),
    "call": Function(_call, "any", "any..."),
    "eq": Function(equal, "any", "any..."),
    "ge": Function(greater_equal, "any", "any"),
    "gt": Function(greater, "any", "any"),
    "html": Function(escape_html, "any..."),
    "index": Function(index, "any", "any..."),
    "js": Function(escape_javascript, "any..."),
    "le": Function(less_equal, "any", "any"),
    "len": Function(length, "any"),
    "lt": Function(less, "any", "any"),
    "ne": Function(not_equal, "any", "any"),
    "not": Function(lambda value: not value, "any"),
    "or": Function(_short_circuit, "any", "any..."),
    "print": Function(sprint, "any..."),
    "printf": Function(sprintf, "string", "any..."),
    "println": Function(sprintln, "any..."),
    "urlquery": Function(escape_query, "any..."),
}
