"""Sprig's regular expressions, over the RE2 seam."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nfd import regex
from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.functions import Function
from nfd.gotemplate.values import (
    NilStringList,
    StringList,
    charge,
    charge_items,
    charge_text,
)

_REFERENCE = re.compile(r"\$(?:\{([0-9A-Za-z_]+)\}|([0-9A-Za-z_]+)|(\$))")
_GROUP = re.compile("0|[1-9][0-9]{0,5}")
_TEXT_PER_STEP = 1024  # characters
_META = re.compile(r"[\\.+*?()|\[\]{}^$]")


def _compile(pattern: str) -> regex.Pattern:
    try:
        return regex.compile(pattern)
    except regex.PatternError as error:
        raise EvaluationError(str(error)) from error


def _clean(text: str) -> str:
    charge_text(len(text))
    return text if text.isascii() else regex.replace_surrogates(text)


def _matches(pattern: str, text: str, limit: int = -1) -> Iterator[Any]:
    """Yield matches, each at a price, since RE2 is handed the whole text for each."""
    for found in _compile(pattern).matches(text, limit):
        charge(1 + len(text) // _TEXT_PER_STEP)
        yield found


def match(pattern: str, text: str) -> bool:
    """Tell whether a pattern matches; a bad pattern never does."""
    try:
        return must_match(pattern, text)
    except EvaluationError:
        # Sprig's regexMatch is false for a bad pattern; mustRegexMatch tells.
        return False


def must_match(pattern: str, text: str) -> bool:
    """Tell whether a pattern matches anywhere in the text."""
    return _compile(pattern).search(_clean(text))


def find(pattern: str, text: str) -> str:
    """Return the first match, or ""."""
    found = next(_matches(pattern, _clean(text), 1), None)
    return "" if found is None else str(found.group())


def find_all(pattern: str, text: str, limit: int) -> StringList:
    """Return all matches; a limit below 0 is none."""
    found = StringList(
        match.group() for match in _matches(pattern, _clean(text), limit)
    )
    charge_items(len(found))
    return found or NilStringList()


def replace_all(pattern: str, text: str, replacement: str) -> str:
    """Replace all matches; `${1}` and `$name` in the replacement are groups."""
    return _replace(pattern, text, lambda match: _expand(replacement, match))


def replace_all_literal(pattern: str, text: str, replacement: str) -> str:
    """Replace all matches by a text as it is."""
    return _replace(pattern, text, lambda _match: replacement)


def _replace(pattern: str, text: str, make: Callable[[Any], str]) -> str:
    text = _clean(text)
    pieces: list[str] = []
    last = size = 0
    for found in _matches(pattern, text):
        pieces += (text[last : found.start()], make(found))
        last = found.end()
        size += len(pieces[-1])
        charge_text(len(pieces[-1]))
    pieces.append(text[last:])
    charge_text(size + len(text))
    return "".join(pieces)


def _expand(replacement: str, found: Any) -> str:
    names: Mapping[str, int] = found.re.groupindex

    def group(reference: re.Match[str]) -> str:
        if reference[3]:
            return "$"
        name = reference[1] or reference[2]
        number = int(name) if _GROUP.fullmatch(name) else names.get(name)
        if number is None or number > found.re.groups:
            return ""
        return found.group(number) or ""

    return _REFERENCE.sub(group, replacement)


def split(pattern: str, text: str, limit: int) -> StringList:
    """Split at all matches into at most `limit` parts; below 0 is no limit."""
    if limit == 0:
        return NilStringList()
    parts = StringList()
    text = _clean(text)
    _compile(pattern)
    if pattern and not text:
        return StringList([""])
    start = end = 0
    for found in _matches(pattern, text, limit):
        if 0 < limit == len(parts) + 1:
            break
        end = found.start()
        if found.end() != 0:
            parts.append(text[start:end])
        start = found.end()
    if end != len(text):
        parts.append(text[start:])
    charge_items(len(parts))
    return parts


def quote_meta(text: str) -> str:
    """Escape the letters that mean something in patterns."""
    return _META.sub(r"\\\g<0>", text)


FUNCTIONS = {
    "mustRegexFind": Function(find, "string", "string"),
    "mustRegexFindAll": Function(find_all, "string", "string", "int"),
    "mustRegexMatch": Function(must_match, "string", "string"),
    "mustRegexReplaceAll": Function(replace_all, "string", "string", "string"),
    "mustRegexReplaceAllLiteral": Function(
        replace_all_literal, "string", "string", "string"
    ),
    "mustRegexSplit": Function(split, "string", "string", "int"),
    "regexFind": Function(find, "string", "string"),
    "regexFindAll": Function(find_all, "string", "string", "int"),
    "regexMatch": Function(match, "string", "string"),
    "regexQuoteMeta": Function(quote_meta, "string"),
    "regexReplaceAll": Function(replace_all, "string", "string", "string"),
    "regexReplaceAllLiteral": Function(
        replace_all_literal, "string", "string", "string"
    ),
    "regexSplit": Function(split, "string", "string", "int"),
}
