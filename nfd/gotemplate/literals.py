"""Reads Go's literals: numbers, quoted texts and characters (Go spec, "Literals")."""

import re
from typing import NamedTuple

from nfd.gotemplate.values import INT_MAX, INT_MIN, from_bytes, to_bytes

_UINT_MAX = (1 << 64) - 1
_ESCAPE = re.compile(
    r"\\(?:(?P<simple>[abfnrtv\\'\"])|x(?P<hex>[0-9a-fA-F]{2})|(?P<octal>[0-7]{3})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<bad>))",
    re.DOTALL,
)
_SIMPLE = dict(zip("abfnrtv\\'\"", "\a\b\f\n\r\t\v\\'\"", strict=True))
_UNDERSCORES = re.compile(
    r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])*(?:\.(?:[0-9a-fA-F]_?)*)?(?:[pP][+-]?[0-9]+)?"
    r"|0[bBoO](?:_?[0-9])+|[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?)?"
    r"(?:[eE][+-]?[0-9](?:_?[0-9])*)?)"
)
_DECIMAL_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEX_FLOAT = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
)
_BASES = (
    (re.compile(r"[+-]?0[xX][0-9a-fA-F]+"), 16),
    (re.compile(r"[+-]?0[bB][01]+"), 2),
    (re.compile(r"[+-]?0[oO][0-7]+"), 8),
    (re.compile(r"[+-]?0[0-7]+"), 8),
    (re.compile(r"[+-]?(?:0|[1-9][0-9]*)"), 10),
)


_MANY_DIGITS = 100  # more than any type holds; Python refuses to read thousands


def read_digits(digits: str) -> int:
    """Read decimal digits; very many of them give a number too large for any type."""
    significant = digits.lstrip("0")
    return (
        int(significant or 0) if len(significant) < _MANY_DIGITS else 10**_MANY_DIGITS
    )


class ParsedNumber(NamedTuple):
    """A number and the types it can take: `whole` an int, `real` a float64."""

    value: int | float | complex
    whole: int | None
    real: float | None


def parse_int(text: str) -> int | None:
    """Read an integer with an optional base prefix, as `strconv.ParseInt(s, 0, 64)`.

    Returns None for anything else; the range is not checked.
    """
    if "_" in text:
        if not _UNDERSCORES.fullmatch(text):
            return None
        text = text.replace("_", "")
    for pattern, base in _BASES:
        if pattern.fullmatch(text):
            return _based(text, base)
    return None


def _based(text: str, base: int) -> int:
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-")
    if base == 10:
        return sign * read_digits(digits)
    return sign * int(digits[2:] if digits[1:2].isalpha() else digits, base)


def parse_float(text: str) -> float | None:
    """Read a float as `strconv.ParseFloat(s, 64)`; None if malformed or too large."""
    if "_" in text:
        if not _UNDERSCORES.fullmatch(text):
            return None
        text = text.replace("_", "")
    if _DECIMAL_FLOAT.fullmatch(text):
        value = float(text)
    elif _HEX_FLOAT.fullmatch(text):
        try:
            value = float.fromhex(text)
        except OverflowError:
            return None
    elif re.fullmatch(r"(?i)[+-]?inf(?:inity)?|nan", text):
        return float(text)
    else:
        return None
    return None if value in (float("inf"), float("-inf")) else value


def parse_number(text: str) -> ParsedNumber | str:
    """Read a number of a template, or say what is wrong with it."""
    if text.endswith("i"):
        return _imaginary(text)
    whole = parse_int(text)
    if whole is not None and INT_MIN <= whole <= INT_MAX:
        if any(mark in text for mark in ".eEpP") and not text.lower().lstrip(
            "+-"
        ).startswith("0x"):
            return ParsedNumber(float(whole), whole, float(whole))
        return ParsedNumber(whole, whole, float(whole))
    if whole is not None and 0 <= whole <= _UINT_MAX:
        return f"the number {text} overflows int"
    real = parse_float(text)
    if real is None:
        return f"bad number {text!r}"
    if not any(mark in text for mark in ".eEpP"):
        return f"the number {text} overflows int"
    whole = int(real) if real.is_integer() and INT_MIN <= real <= INT_MAX else None
    return ParsedNumber(real, whole, real)


def _imaginary(text: str) -> ParsedNumber | str:
    split = max(text.rfind("+", 1), text.rfind("-", 1))
    if split > 0 and text[split - 1] in "eEpP":
        split = -1
    real = parse_float(text[:split]) if split > 0 else 0.0
    imaginary = parse_float(text[max(split, 0) : -1])
    if real is None or imaginary is None:
        return f"bad number {text!r}"
    if imaginary:
        return ParsedNumber(complex(real, imaginary), None, None)
    whole = int(real) if real.is_integer() and INT_MIN <= real <= INT_MAX else None
    return ParsedNumber(complex(real, 0), whole, real)


def unquote(text: str) -> str | None:
    """Read a quoted or raw text with its quotes; None if an escape is wrong."""
    quote, body = text[0], text[1:-1]
    if quote == "`":
        return body.replace("\r", "")
    if "\\" not in body:
        return body
    pieces: list[bytes] = []
    last = 0
    for found in _ESCAPE.finditer(body):
        piece = _escape(found, quote)
        if piece is None:
            return None
        pieces.append(to_bytes(body[last : found.start()]))
        pieces.append(piece if isinstance(piece, bytes) else to_bytes(piece))
        last = found.end()
    pieces.append(to_bytes(body[last:]))
    return from_bytes(b"".join(pieces))


def unquote_character(text: str) -> int | None:
    """Read a character with its quotes: its code point; None if it is not one."""
    body = text[1:-1]
    if len(body) == 1 and body != "\\":
        return ord(body)
    found = _ESCAPE.fullmatch(body)
    piece = _escape(found, "'") if found else None
    if piece is None:
        return None
    return piece[0] if isinstance(piece, bytes) else ord(piece)


def _escape(found: re.Match[str], quote: str) -> str | bytes | None:
    r"""Return text, or the byte that `\x` and octal escapes mean."""
    simple = found["simple"]
    if simple is not None:
        misplaced = simple in "'\"" and simple != quote
        return None if misplaced else _SIMPLE[simple]
    if found["hex"] is not None:
        return bytes((int(found["hex"], 16),))
    if found["octal"] is not None:
        code = int(found["octal"], 8)
        return bytes((code,)) if code <= 0xFF else None
    digits = found["short"] or found["long"]
    if digits is None:
        return None
    code = int(digits, 16)
    return None if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else chr(code)
