"""Go's `fmt.Sprintf`: verbs with flags, width, precision and argument indexes.

A verb that is wrong or has no argument prints a complaint, as in Go: `%!d(MISSING)`.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from nfd.gotemplate.formatting import Printer, format_value, join_text
from nfd.gotemplate.literals import read_digits
from nfd.gotemplate.values import go_type

MAX_WIDTH: Final = 1_000_000  # what Go's package takes for a width or precision

_FLAGS = frozenset("#0+- ")
_NUMBER = re.compile(r"[0-9]+", re.ASCII)


def sprintf(template: str, *arguments: Any) -> str:
    """Format by a text of verbs."""
    return join_text(_Formatter(template, arguments).pieces())


class _Formatter:
    """Walks a format and the arguments that its verbs take."""

    def __init__(self, template: str, arguments: tuple[Any, ...]) -> None:
        self._template = template
        self._arguments = arguments
        self._at = 0
        self._argument = 0
        self._reordered = False
        self._good_index = True
        self._after_index = False

    def pieces(self) -> list[str]:
        template, end = self._template, len(self._template)
        pieces: list[str] = []
        while self._at < end:
            percent = template.find("%", self._at)
            if percent < 0:
                pieces.append(template[self._at :])
                break
            if percent > self._at:
                pieces.append(template[self._at : percent])
            self._at = percent + 1
            pieces.append(self._verb())
        if not self._reordered and self._argument < len(self._arguments):
            extra = ", ".join(
                "<nil>"
                if argument is None
                else f"{go_type(argument)}={format_value(argument)}"
                for argument in self._arguments[self._argument :]
            )
            pieces.append(f"%!(EXTRA {extra})")
        return pieces

    def _verb(self) -> str:
        printer = Printer()
        self._good_index = True
        complaints = self._options(printer)
        if self._at >= len(self._template):
            return complaints + "%!(NOVERB)"
        verb = self._template[self._at]
        self._at += 1
        if verb == "%":
            return complaints + "%"
        if not self._good_index:
            return f"{complaints}%!{verb}(BADINDEX)"
        if self._argument >= len(self._arguments):
            return f"{complaints}%!{verb}(MISSING)"
        argument = self._arguments[self._argument]
        self._argument += 1
        return complaints + printer.top(argument, verb)

    def _options(self, printer: Printer) -> str:
        template, end = self._template, len(self._template)
        self._after_index = False
        while self._at < end and template[self._at] in _FLAGS:
            _SET_FLAG[template[self._at]](printer)
            self._at += 1
        self._index()
        complaints = self._width(printer)
        if self._at + 1 < end and template[self._at] == ".":
            self._at += 1
            if self._after_index:
                self._good_index = False
            self._index()
            complaints += self._precision(printer)
        if not self._after_index:
            self._index()
        return complaints

    def _width(self, printer: Printer) -> str:
        if not self._at_star():
            printer.width = self._count()
            if self._after_index and printer.width is not None:
                self._good_index = False
            return ""
        width = self._star()
        if width is None:
            return "%!(BADWIDTH)"
        if width < 0:
            printer.minus, printer.zero = True, False
        printer.width = abs(width)
        return ""

    def _precision(self, printer: Printer) -> str:
        if not self._at_star():
            printer.precision = self._count() or 0
            return ""
        precision = self._star()
        if precision is None or precision < 0:
            return "%!(BADPREC)"
        printer.precision = precision
        return ""

    def _at_star(self) -> bool:
        return self._template.startswith("*", self._at)

    def _count(self) -> int | None:
        found = _NUMBER.match(self._template, self._at)
        if found is None:
            return None
        if read_digits(found.group()[:-1]) > MAX_WIDTH:
            self._at = len(self._template)
            return None
        self._at = found.end()
        return read_digits(found.group())

    def _star(self) -> int | None:
        """Take a number from the arguments; None if the next one is not usable."""
        self._at += 1
        self._after_index = False
        if self._argument >= len(self._arguments):
            return None
        value = self._arguments[self._argument]
        self._argument += 1
        if not isinstance(value, int) or isinstance(value, bool):
            return None
        return int(value) if abs(value) <= MAX_WIDTH else None

    def _index(self) -> None:
        """Read an explicit argument index such as `[2]`."""
        self._after_index = False
        if self._template[self._at : self._at + 1] != "[":
            return
        self._reordered = True
        close = self._template.find("]", self._at)
        if close < 0:
            self._good_index = False
            self._at += 1
            return
        inner = self._template[self._at + 1 : close]
        self._at = close + 1
        self._after_index = _NUMBER.fullmatch(inner) is not None
        if self._after_index and 1 <= read_digits(inner) <= len(self._arguments):
            self._argument = read_digits(inner) - 1
        else:
            self._good_index = False


def _flag(name: str) -> Callable[[Printer], None]:
    return lambda printer: setattr(printer, name, True)


_SET_FLAG = {
    "#": _flag("sharp"),
    "0": _flag("zero"),
    "+": _flag("plus"),
    "-": _flag("minus"),
    " ": _flag("space"),
}
