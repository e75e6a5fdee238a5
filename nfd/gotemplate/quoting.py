"""Writes texts and floats as Go does (packages `strconv` and `html/template`'s kin)."""

import math
import re
from typing import Final

_PLAIN: Final = re.compile(r"[ !#-\[\]-~]*")
_NAMED = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
}


def is_escaped_byte(letter: str) -> bool:
    """Tell whether a character stands for a byte that is no UTF-8."""
    return "\udc80" <= letter <= "\udcff"


def quote(text: str, mark: str = '"', *, ascii_only: bool = False) -> str:
    r"""Quote as `strconv.Quote`: Go escapes, `\x80` for bytes that are no UTF-8."""
    if mark == '"' and _PLAIN.fullmatch(text):
        return f'"{text}"'
    return mark + "".join(_escape(c, mark, ascii_only) for c in text) + mark


def _escape(letter: str, mark: str, ascii_only: bool) -> str:  # noqa: FBT001 - inner
    if letter == mark:
        return "\\" + mark
    if letter in _NAMED:
        return _NAMED[letter]
    if is_escaped_byte(letter):
        return f"\\x{ord(letter) - 0xDC00:02x}"
    if letter.isprintable() and (letter.isascii() or not ascii_only):
        return letter
    code = ord(letter)
    if code < ord(" ") or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def shortest_digits(value: float) -> tuple[str, int]:
    """Split a positive finite float into its shortest digits and decimal point."""
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    return (digits, point) if digits else ("0", 1)


def format_float(value: float, verb: str = "g", precision: int = -1) -> str:
    """Format as `strconv.FormatFloat(value, verb, precision, 64)`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign = "-" if math.copysign(1, value) < 0 else ""
    size = abs(value)
    if verb == "b":
        fraction, exponent = math.frexp(size)
        return f"{sign}{int(fraction * (1 << 53))}p{exponent - 53:+d}"
    if verb in "xX":
        return sign + _hexadecimal(size, verb, precision)
    if precision >= 0:
        return f"{sign}{size:.{precision}{verb}}"
    digits, point = shortest_digits(size)
    if verb in "gG":
        scientific = not -4 < point <= 6
        letter = "e" if verb == "g" else "E"
    else:
        scientific, letter = verb in "eE", verb
    if scientific:
        exponent = point - 1 if size else 0
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}{letter}{exponent:+03d}"
    return sign + plain_decimal(digits, point)


def plain_decimal(digits: str, point: int) -> str:
    """Write digits without an exponent."""
    if point <= 0:
        return "0." + "0" * -point + digits
    if len(digits) <= point:
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"


def _hexadecimal(size: float, verb: str, precision: int) -> str:
    fraction, exponent = math.frexp(size)
    mantissa = int(fraction * (1 << 53))  # 1 bit before the point, 52 behind it
    exponent = exponent - 1 if size else 0
    if 0 <= precision < 13:
        unit = 1 << (52 - 4 * precision)
        mantissa, rest = divmod(mantissa, unit)
        if rest * 2 > unit or (rest * 2 == unit and mantissa & 1):
            mantissa += 1
        mantissa *= unit
        if mantissa >> 53:
            mantissa >>= 1
            exponent += 1
    tail = f"{mantissa & ((1 << 52) - 1):013x}"
    tail = tail.rstrip("0") if precision < 0 else tail.ljust(precision, "0")[:precision]
    text = f"0x{mantissa >> 52}{'.' if tail else ''}{tail}p{exponent:+03d}"
    return text.upper() if verb == "X" else text
