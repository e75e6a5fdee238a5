"""Sprig's string functions. Positions and lengths count bytes, as in Go."""

from typing import Any

from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.formatting import format_value
from nfd.gotemplate.functions import Function
from nfd.gotemplate.quoting import quote
from nfd.gotemplate.sprig.casing import (
    camelcase,
    delimited,
    initials,
    is_space,
    lower,
    nospace,
    swapcase,
    title,
    untitle,
    upper,
)
from nfd.gotemplate.values import (
    StringList,
    byte_length,
    byte_slice,
    charge_items,
    charge_text,
    charge_walk,
    from_bytes,
    to_bytes,
)

SPACE = "".join(filter(is_space, map(chr, range(0x3001))))


def to_string(value: Any) -> str:
    """Return a string as it is, anything else as `%v` prints it."""
    return format_value(value)


def to_strings(value: Any) -> StringList:
    """Turn a list into strings, leaving nil out; anything else is one string."""
    if isinstance(value, list):
        return StringList(to_string(item) for item in value if item is not None)
    return StringList() if value is None else StringList((to_string(value),))


def trunc(count: int, text: str) -> str:
    """Keep the first bytes, or the last ones if the count is negative."""
    size = byte_length(text)
    if count < 0:
        return byte_slice(text, size + count, None) if size + count > 0 else text
    return byte_slice(text, 0, count) if size > count else text


def substr(start: int, end: int, text: str) -> str:
    """Cut bytes `start` to `end`; a negative or too large end is the end."""
    size = byte_length(text)
    if start < 0:
        return byte_slice(text, 0, _inside(end, 0, size))
    if end < 0 or end > size:
        return byte_slice(text, _inside(start, 0, size), None)
    return byte_slice(text, _inside(start, 0, end), end)


def _inside(position: int, low: int, high: int) -> int:
    if not low <= position <= high:
        raise EvaluationError(f"position {position} is outside of {low} to {high}")
    return position


def repeat(count: int, text: str) -> str:
    """Repeat a text."""
    if count < 0:
        raise EvaluationError(f"cannot repeat {count} times")
    charge_text(count * len(text))
    return text * count


def replace(old: str, new: str, text: str) -> str:
    """Replace every occurrence of `old`."""
    charge_text(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def indent(spaces: int, text: str) -> str:
    """Put spaces before every line."""
    if spaces < 0:
        raise EvaluationError(f"cannot indent by {spaces} spaces")
    charge_text(len(text) + spaces * (text.count("\n") + 1))
    pad = " " * spaces
    return pad + text.replace("\n", "\n" + pad)


def nindent(spaces: int, text: str) -> str:
    """Indent after a newline."""
    return "\n" + indent(spaces, text)


def quote_all(*values: Any) -> str:
    """Quote each value but nil, with a space between."""
    text = " ".join(quote(to_string(value)) for value in values if value is not None)
    charge_text(len(text))
    return text


def squote_all(*values: Any) -> str:
    """Put each value but nil in single quotes, with a space between."""
    text = " ".join(f"'{to_string(value)}'" for value in values if value is not None)
    charge_text(len(text))
    return text


def cat(*values: Any) -> str:
    """Join all values but nil with spaces."""
    text = " ".join(to_string(value) for value in values if value is not None)
    charge_text(len(text))
    return text


def abbreviate(width: int, text: str) -> str:
    """Cut to a width and end in an ellipsis; widths below 4 do nothing."""
    return text if width < 4 else abbreviate_full(text, 0, width)


def abbreviate_both(left: int, right: int, text: str) -> str:
    """Cut both sides with an ellipsis: `left` is an offset, `right` the width."""
    if right < 4 or (left > 0 and right < 7):
        return text
    return abbreviate_full(text, left, right)


def abbreviate_full(text: str, offset: int, width: int) -> str:
    """Cut a text to a width from about an offset on, with ellipses."""
    size = byte_length(text)
    if size <= width:
        return text
    offset = min(offset, size)
    if size - offset < width - 3:
        offset = size - (width - 3)
    if offset <= 4:
        return byte_slice(text, 0, width - 3) + "..."
    if width < 7:
        return ""
    if offset + width - 3 < size:
        tail = byte_slice(text, offset, None)
        return "..." + abbreviate_full(tail, 0, width - 3)
    return "..." + byte_slice(text, size - (width - 3), None)


def wrap(width: int, text: str) -> str:
    """Break a text into lines at spaces; long words stay whole."""
    return _wrap(text, width, "\n", cuts_words=False)


def wrap_with(width: int, separator: str, text: str) -> str:
    """Break a text with a separator at spaces; long words are cut."""
    return _wrap(text, width, separator or "\n", cuts_words=True)


def _wrap(text: str, width: int, separator: str, *, cuts_words: bool) -> str:
    data, between = to_bytes(text), to_bytes(separator)
    width = max(width, 1)
    pieces: list[bytes] = []
    offset = 0
    while len(data) - offset > width:
        if data[offset] == ord(" "):
            offset += 1
            continue
        space = data.rfind(b" ", offset, offset + width + 1)
        if space < 0 and cuts_words:
            pieces.append(data[offset : offset + width])
            offset += width
            continue
        if space < 0:
            space = data.find(b" ", offset + width)
        if space < 0:
            break
        pieces.append(data[offset:space])
        offset = space + 1
    pieces.append(data[offset:])
    charge_text(len(data) + len(pieces) * len(between))
    return from_bytes(between.join(pieces))


def split_list(separator: str, text: str) -> StringList:
    """Split a text into a list; an empty separator splits characters."""
    return StringList(_split(text, separator, -1))


def split(separator: str, text: str) -> dict[str, str]:
    """Split a text into a map with the keys _0, _1, ..."""
    return {f"_{at}": part for at, part in enumerate(_split(text, separator, -1))}


def splitn(separator: str, count: int, text: str) -> dict[str, str]:
    """Split a text into a map of at most `count` parts."""
    parts = _split(text, separator, count)
    return {f"_{at}": part for at, part in enumerate(parts)}


def _split(text: str, separator: str, count: int) -> list[str]:
    if count == 0:
        return []
    if separator:
        charge_items(text.count(separator) + 1)
        return text.split(separator, count - 1 if count > 0 else -1)
    charge_items(len(text))
    if count < 0 or count >= len(text):
        return list(text)
    return [*text[: count - 1], text[count - 1 :]]


def join(separator: str, value: Any) -> str:
    """Join the elements of a list, or return one value as a string."""
    charge_walk(value)
    parts = to_strings(value)
    charge_text(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def sort_alpha(value: Any) -> StringList:
    """Sort a list as strings, by their bytes."""
    if not isinstance(value, list):
        return StringList([to_string(value)])
    charge_walk(value)
    return StringList(sorted(to_strings(value), key=to_bytes))


FUNCTIONS = {
    "abbrev": Function(abbreviate, "int", "string"),
    "abbrevboth": Function(abbreviate_both, "int", "int", "string"),
    "camelcase": Function(camelcase, "string"),
    "cat": Function(cat, "any..."),
    "contains": Function(lambda part, text: part in text, "string", "string"),
    "hasPrefix": Function(lambda part, text: text.startswith(part), "string", "string"),
    "hasSuffix": Function(lambda part, text: text.endswith(part), "string", "string"),
    "hello": Function(lambda: "Hello!"),
    "indent": Function(indent, "int", "string"),
    "initials": Function(initials, "string"),
    "join": Function(join, "string", "any"),
    "kebabcase": Function(lambda text: delimited(text, "-"), "string"),
    "lower": Function(lower, "string"),
    "nindent": Function(nindent, "int", "string"),
    "nospace": Function(nospace, "string"),
    "plural": Function(
        lambda one, many, count: one if count == 1 else many, "string", "string", "int"
    ),
    "quote": Function(quote_all, "any..."),
    "repeat": Function(repeat, "int", "string"),
    "replace": Function(replace, "string", "string", "string"),
    "snakecase": Function(lambda text: delimited(text, "_"), "string"),
    "sortAlpha": Function(sort_alpha, "any"),
    "split": Function(split, "string", "string"),
    "splitList": Function(split_list, "string", "string"),
    "splitn": Function(splitn, "string", "int", "string"),
    "squote": Function(squote_all, "any..."),
    "substr": Function(substr, "int", "int", "string"),
    "swapcase": Function(swapcase, "string"),
    "title": Function(title, "string"),
    "toString": Function(to_string, "any"),
    "toStrings": Function(to_strings, "any"),
    "trim": Function(lambda text: text.strip(SPACE), "string"),
    "trimAll": Function(
        lambda cut, text: text.strip(cut) if cut else text, "string", "string"
    ),
    "trimPrefix": Function(
        lambda part, text: text.removeprefix(part), "string", "string"
    ),
    "trimSuffix": Function(
        lambda part, text: text.removesuffix(part), "string", "string"
    ),
    "trimall": Function(
        lambda cut, text: text.strip(cut) if cut else text, "string", "string"
    ),
    "trunc": Function(trunc, "int", "string"),
    "untitle": Function(untitle, "string"),
    "upper": Function(upper, "string"),
    "wrap": Function(wrap, "int", "string"),
    "wrapWith": Function(wrap_with, "int", "string", "string"),
}
