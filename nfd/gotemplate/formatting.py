"""Go's `fmt` over the values of templates: one value by one verb, and `Sprint`.

The verbs, flags and complaints (`%!d(string=a)`) are those of Go's package; `%p` is
refused, since an address differs on every run.
"""

from typing import Any

from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.quoting import format_float, is_escaped_byte, quote
from nfd.gotemplate.values import (
    Uint8,
    Uint64,
    charge_text,
    charge_walk,
    go_kind,
    go_type,
    is_interface_element,
    is_nil,
    to_bytes,
)

_INTEGER_VERBS = frozenset("vdboOxXcqU")
_FLOAT_VERBS = frozenset("vbgGxXfFeE")
_STRING_VERBS = frozenset("vsxXq")


def print_value(value: Any) -> str:
    """Format what an action prints: a value, or `<no value>` for nil."""
    return "<no value>" if value is None else format_value(value)


def format_value(value: Any) -> str:
    """Format as `%v` and `fmt.Sprint` of one value."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]  # kind says so
    if kind is int:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "<nil>"
    charge_walk(value)
    text = Printer().value(value, "v")
    charge_text(len(text))
    return text


def sprint(*arguments: Any) -> str:
    """Format side by side, with a space between two that are no strings."""
    pieces: list[str] = []
    after_string = True
    for argument in arguments:
        is_string = type(argument) is str
        if not is_string and not after_string:
            pieces.append(" ")
        pieces.append(format_value(argument))
        after_string = is_string
    return join_text(pieces)


def sprintln(*arguments: Any) -> str:
    """Format with a space between all and a newline at the end."""
    return join_text([" ".join(map(format_value, arguments)), "\n"])


def join_text(pieces: list[str]) -> str:
    """Join pieces within the budget."""
    charge_text(sum(map(len, pieces)))
    return "".join(pieces)


class Printer:
    """One verb's flags, width and precision, applied to a value and its elements."""

    __slots__ = ("minus", "plus", "plus_v", "precision", "sharp", "sharp_v", "space", "width", "zero")  # fmt: skip

    def __init__(self) -> None:
        self.minus = self.plus = self.sharp = self.space = self.zero = False
        self.plus_v = self.sharp_v = False
        self.width: int | None = None
        self.precision: int | None = None

    def top(self, value: Any, verb: str) -> str:
        """Format an argument of `Sprintf`."""
        if verb == "v":
            self.sharp_v, self.sharp = self.sharp, False
            self.plus_v, self.plus = self.plus, False
        if value is None:
            return self._pad("<nil>") if verb in "Tv" else f"%!{verb}(<nil>)"
        if verb == "T":
            return self._pad(self._cut(go_type(value)))
        if verb == "p":
            if go_kind(value) in ("map", "slice", "ptr"):
                raise EvaluationError("%p prints an address, which is never the same")
            return self._bad_verb(value, verb)
        charge_walk(value)
        return self.value(value, verb)

    def value(self, value: Any, verb: str) -> str:
        """Format a value of any type."""
        if isinstance(value, str):
            return self._string(value, verb)
        if isinstance(value, bool):
            if verb not in "vt":
                return self._bad_verb(value, verb)
            return self._pad("true" if value else "false")
        if isinstance(value, int):
            return self._integer(value, verb)
        if isinstance(value, float):
            return self._float(value, verb)
        if isinstance(value, dict):
            return self._map(value, verb)
        if isinstance(value, list):
            return self._list(value, verb)
        if isinstance(value, complex):
            return self._complex(value, verb)
        if verb in _STRING_VERBS and not self.sharp_v:
            return self._string(str(value), verb)
        raise EvaluationError(f"%{verb} cannot print a {go_type(value)}")

    def _element(self, value: Any, verb: str, *, in_interface: bool) -> str:
        if value is not None:
            return self.value(value, verb)
        return "interface {}(nil)" if self.sharp_v and in_interface else "<nil>"

    def _map(self, value: dict[str, Any], verb: str) -> str:
        if self.sharp_v and is_nil(value):
            return f"{go_type(value)}(nil)"
        loose = is_interface_element(value)
        pairs = [
            self.value(key, verb) + ":" + self._element(item, verb, in_interface=loose)
            for key, item in sorted(value.items(), key=lambda pair: pair[0])
        ]
        if self.sharp_v:
            return f"{go_type(value)}{{{', '.join(pairs)}}}"
        return f"map[{' '.join(pairs)}]"

    def _list(self, value: list[Any], verb: str) -> str:
        if self.sharp_v and is_nil(value):
            return f"{go_type(value)}(nil)"
        loose = is_interface_element(value)
        items = [self._element(item, verb, in_interface=loose) for item in value]
        if self.sharp_v:
            return f"{go_type(value)}{{{', '.join(items)}}}"
        return f"[{' '.join(items)}]"

    def _bad_verb(self, value: Any, verb: str) -> str:
        return f"%!{verb}({go_type(value)}={self.value(value, 'v')})"

    # Padding ------------------------------------------------------------------

    def _pad(self, text: str, *, zero: bool | None = None) -> str:
        missing = (self.width or 0) - len(text)
        if missing <= 0:
            return text
        charge_text(missing)
        if self.minus:
            return text + " " * missing
        return ("0" if (self.zero if zero is None else zero) else " ") * missing + text

    def _cut(self, text: str) -> str:
        return text if self.precision is None else text[: self.precision]

    # Strings ------------------------------------------------------------------

    def _string(self, text: str, verb: str) -> str:
        if verb == "s" or (verb == "v" and not self.sharp_v):
            return self._pad(self._cut(text))
        if verb in "xX":
            return self._hex_string(to_bytes(text), verb)
        if verb in "qv":
            text = self._cut(text)
            if self.sharp and _can_backquote(text):
                return self._pad(f"`{text}`")
            return self._pad(quote(text, ascii_only=self.plus))
        return self._bad_verb(text, verb)

    def _hex_string(self, data: bytes, verb: str) -> str:
        data = data if self.precision is None else data[: self.precision]
        prefix = "0x" if self.sharp else ""
        if self.space:
            text = " ".join(f"{prefix}{byte:02x}" for byte in data)
        else:
            text = prefix + data.hex() if data else ""
        return self._pad(text.upper() if verb == "X" else text)

    # Numbers ------------------------------------------------------------------

    def _integer(self, value: int, verb: str) -> str:
        if verb not in _INTEGER_VERBS:
            return self._bad_verb(value, verb)
        value_type = type(value)
        value = int(value)
        if verb in "cqU":
            return self._character(value, verb)
        sharp = self.sharp
        if verb == "v" and self.sharp_v and value_type in (Uint8, Uint64):
            verb, sharp = "x", True
        digits = f"{abs(value):{'d' if verb == 'v' else verb.replace('O', 'o')}}"
        if self.precision is not None:
            if self.precision == 0 and value == 0:
                return self._pad("", zero=False)
            least = self.precision
        elif self.zero and not self.minus and self.width is not None:
            least = self.width - (value < 0 or self.plus or self.space)
        else:
            least = 0
        charge_text(least)
        digits = digits.rjust(least, "0")
        if sharp and verb in "bxX":
            digits = f"0{verb}{digits}"
        elif sharp and verb in "oO" and digits[0] != "0":
            digits = "0" + digits
        if verb == "O":
            digits = "0o" + digits
        sign = "-" if value < 0 else "+" if self.plus else " " if self.space else ""
        return self._pad(sign + digits, zero=False)

    def _character(self, code: int, verb: str) -> str:
        valid = 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
        letter = chr(code) if valid else "\ufffd"
        if verb == "c":
            return self._pad(letter)
        if verb == "q":
            return self._pad(quote(letter, "'", ascii_only=self.plus))
        number = f"{code & 0xFFFFFFFFFFFFFFFF:X}".rjust(
            max(self.precision or 0, 4), "0"
        )
        tail = f" '{letter}'" if self.sharp and valid and letter.isprintable() else ""
        return self._pad(f"U+{number}{tail}", zero=False)

    def _float(self, value: float, verb: str) -> str:
        if verb not in _FLOAT_VERBS:
            return self._bad_verb(value, verb)
        default = 6 if verb in "fFeE" else -1
        precision = default if self.precision is None else self.precision
        charge_text(max(precision, 0))
        text = format_float(value, {"v": "g", "F": "f"}.get(verb, verb), precision)
        sign = text[0] if text[0] in "+-" else "+"
        text = text.lstrip("+-")
        if text in ("Inf", "NaN"):
            return self._not_finite(sign, text)
        if self.sharp and verb != "b":
            text = _with_point(text, verb, precision)
        if sign == "+" and self.space and not self.plus:
            sign = " "
        if not self.plus and sign == "+":
            sign = ""
        if sign and self.zero and not self.minus and self.width:
            return sign + text.rjust(self.width - 1, "0")
        return self._pad(sign + text)

    def _not_finite(self, sign: str, text: str) -> str:
        if sign == "+" and not self.plus:
            sign = " " if self.space else "+" if text == "Inf" else ""
        return self._pad(sign + text, zero=False)

    def _complex(self, value: complex, verb: str) -> str:
        if verb not in _FLOAT_VERBS:
            return self._bad_verb(value, verb)
        plus = self.plus
        real = self._float(value.real, verb)
        self.plus = True
        imaginary = self._float(value.imag, verb)
        self.plus = plus
        return f"({real}{imaginary}i)"


def _with_point(text: str, verb: str, precision: int) -> str:
    """Apply the `#` flag of floats: keep the point and trailing zeros."""
    mark = "pP" if verb in "xX" else "eE"
    cut = next((at for at, letter in enumerate(text) if letter in mark), len(text))
    number, tail = text[:cut], text[cut:]
    digits = 0
    if verb in "vgGx":
        digits = 6 if precision == -1 else precision
    digits -= len(number.replace(".", "").lstrip("0"))
    if "." not in number:
        if number == "0":
            digits -= 1
        number += "."
    return number + "0" * digits + tail


def _can_backquote(text: str) -> bool:
    return not any(
        is_escaped_byte(letter)
        or letter in "`\x7f\ufeff"
        or (letter < " " and letter != "\t")
        for letter in text
    )
