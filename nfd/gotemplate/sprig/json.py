"""Sprig's JSON, as Go's `encoding/json` writes and reads it."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.functions import Function
from nfd.gotemplate.quoting import plain_decimal, shortest_digits
from nfd.gotemplate.values import (
    AnyList,
    AnyMap,
    charge_text,
    charge_walk,
    go_type,
    is_nil,
)
from nfd.regex import replace_surrogates

_LINES = str.maketrans({"\u2028": "\\u2028", "\u2029": "\\u2029"})
_SURROGATE = re.compile("[\ud800-\udfff]")
_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def encode(value: Any, *, escapes_html: bool = True, indent: str = "") -> str:
    """Write JSON with sorted keys; raises for what JSON cannot hold."""
    charge_walk(value)
    text = "".join(_encode(value, escapes_html, indent, "\n" if indent else ""))
    charge_text(len(text))
    return text


def _encode(
    value: Any,
    escapes_html: bool,  # noqa: FBT001 - inner
    indent: str,
    line: str,
) -> Iterator[str]:
    match value:
        case _ if is_nil(value):
            yield "null"
        case str():
            yield _string(value, escapes_html)
        case bool():
            yield "true" if value else "false"
        case int():
            yield str(int(value))
        case float():
            yield _float(value)
        case dict() | list():
            yield from _encode_elements(value, escapes_html, indent, line)
        case _ if hasattr(value, "json_text"):
            yield _string(value.json_text(), escapes_html)
        case _:
            raise EvaluationError(f"JSON cannot hold a {go_type(value)}")


def _encode_elements(
    value: dict[str, Any] | list[Any],
    escapes_html: bool,  # noqa: FBT001 - inner
    indent: str,
    line: str,
) -> Iterator[str]:
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if not value:
        yield opening + closing
        return
    inner = line + indent
    colon = ": " if indent else ":"
    separator = opening
    for item in sorted(value.items()) if isinstance(value, dict) else value:
        yield separator + inner
        separator = ","
        element = item
        if isinstance(value, dict):
            key, element = item
            yield _string(key, escapes_html) + colon
        yield from _encode(element, escapes_html, indent, inner)
    yield line + closing


def _string(text: str, escapes_html: bool) -> str:  # noqa: FBT001 - inner
    text = json.dumps(text, ensure_ascii=False).translate(_LINES)
    if not text.isascii():
        text = _SURROGATE.sub(r"\\ufffd", text)
    return text.translate(_HTML) if escapes_html else text


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise EvaluationError("JSON cannot hold infinity or not-a-number")
    sign = "-" if math.copysign(1, value) < 0 else ""
    digits, point = shortest_digits(abs(value))
    if value == 0 or -6 < point <= 21:
        return sign + plain_decimal(digits, point)
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def decode(text: str) -> Any:
    """Read JSON; every number is a float64, as in Go's `interface{}`."""
    charge_text(len(text))
    try:
        return json.loads(
            text,
            parse_int=_number,
            parse_float=_number,
            parse_constant=_constant,
            object_pairs_hook=_mapping,
        )
    except (ValueError, RecursionError) as error:
        raise EvaluationError(f"invalid JSON: {error}") from error


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is too large")
    return value


def _constant(text: str) -> NoReturn:
    raise ValueError(f"unexpected {text}")


def _mapping(pairs: list[tuple[str, Any]]) -> AnyMap:
    return AnyMap((key, _typed(value)) for key, value in pairs)


def _typed(value: Any) -> Any:
    # json.loads has no hook for arrays, so they are converted by who holds them.
    if type(value) is list:
        return AnyList(map(_typed, value))
    return replace_surrogates(value) if isinstance(value, str) else value


def _or_nothing(text: str) -> Any:
    try:
        return _typed(decode(text))
    except EvaluationError:
        # Sprig's fromJson gives nil for what it cannot read; mustFromJson tells.
        return None


def _encode_or_empty(value: Any, indent: str = "") -> str:
    try:
        return encode(value, indent=indent)
    except EvaluationError:
        # Sprig's toJson gives "" for what JSON cannot hold; mustToJson tells.
        return ""


FUNCTIONS = {
    "fromJson": Function(_or_nothing, "string"),
    "mustFromJson": Function(lambda text: _typed(decode(text)), "string"),
    "mustToJson": Function(encode, "any"),
    "mustToPrettyJson": Function(lambda value: encode(value, indent="  "), "any"),
    "mustToRawJson": Function(lambda value: encode(value, escapes_html=False), "any"),
    "toJson": Function(_encode_or_empty, "any"),
    "toPrettyJson": Function(lambda value: _encode_or_empty(value, "  "), "any"),
    "toRawJson": Function(lambda value: encode(value, escapes_html=False), "any"),
}
