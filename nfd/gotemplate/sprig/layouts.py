"""Formats and reads times by Go's layouts, such as "2006-01-02T15:04:05Z07:00"."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.sprig.moments import (
    MONTHS,
    WEEKDAYS,
    Civil,
    Time,
    days_of,
)

_LONGEST: Final = 1000  # characters of a layout
_ELEMENT: Final = re.compile(
    r"""January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|002|01|02|03|04|05|06|2006
    |__2|_2(?!006)|15|1|2|3|4|5|PM|pm
    |[-Z]07:00:00|[-Z]070000|[-Z]07:00|[-Z]0700|[-Z]07
    |[.,]0+(?![0-9])|[.,]9+(?![0-9])""",
    re.VERBOSE,
)


def _elements(layout: str) -> Iterator[tuple[str, str]]:
    """Yield the text before each element and the element; the last may be ""."""
    last = 0
    for found in _ELEMENT.finditer(layout):
        yield layout[last : found.start()], found.group()
        last = found.end()
    yield layout[last:], ""


def _check_layout(layout: str) -> None:
    if len(layout) > _LONGEST:
        raise EvaluationError(f"the layout {layout[:20]!r}... is too long")


# Format -----------------------------------------------------------------------


def _year(year: int) -> str:
    return f"-{-year:04d}" if year < 0 else f"{year:04d}"


_WRITE: Final[dict[str, Callable[[Civil], str]]] = {
    "01": lambda at: f"{at.month:02d}",
    "002": lambda at: f"{at.year_day:03d}",
    "02": lambda at: f"{at.day:02d}",
    "03": lambda at: f"{at.hour % 12 or 12:02d}",
    "04": lambda at: f"{at.minute:02d}",
    "05": lambda at: f"{at.second:02d}",
    "06": lambda at: f"{at.year % 100:02d}",
    "1": lambda at: str(at.month),
    "15": lambda at: f"{at.hour:02d}",
    "2": lambda at: str(at.day),
    "2006": lambda at: _year(at.year),
    "3": lambda at: str(at.hour % 12 or 12),
    "4": lambda at: str(at.minute),
    "5": lambda at: str(at.second),
    "Jan": lambda at: MONTHS[at.month - 1][:3],
    "January": lambda at: MONTHS[at.month - 1],
    "Mon": lambda at: WEEKDAYS[at.weekday][:3],
    "Monday": lambda at: WEEKDAYS[at.weekday],
    "PM": lambda at: "PM" if at.hour >= 12 else "AM",
    "_2": lambda at: f"{at.day:2d}",
    "__2": lambda at: f"{at.year_day:3d}",
    "pm": lambda at: "pm" if at.hour >= 12 else "am",
}


def format_time(time: Time, layout: str) -> str:
    """Write a time by a layout."""
    _check_layout(layout)
    civil = time.civil()
    pieces: list[str] = []
    for literal, element in _elements(layout):
        pieces.append(literal)
        write = _WRITE.get(element)
        if write is not None:
            pieces.append(write(civil))
        elif element == "MST":
            pieces.append(time.zone or _numeric_zone(time.offset))
        elif element[:1] in ("-", "Z"):
            pieces.append(_offset(time.offset, element))
        elif element:
            pieces.append(_fraction(civil.nanosecond, element))
    return "".join(pieces)


def _numeric_zone(offset: int) -> str:
    sign = "-" if offset < 0 else "+"
    minutes = abs(offset) // 60
    return f"{sign}{minutes // 60:02d}{minutes % 60:02d}"


def _offset(offset: int, element: str) -> str:
    if element[0] == "Z" and offset == 0:
        return "Z"
    minutes, seconds = divmod(abs(offset), 60)
    colon = ":" if ":" in element else ""
    text = f"{'-' if offset < 0 else '+'}{minutes // 60:02d}"
    if len(element) > 3:
        text += f"{colon}{minutes % 60:02d}"
    if len(element.replace(":", "")) > 5:
        text += f"{colon}{seconds:02d}"
    return text


def _fraction(nanosecond: int, element: str) -> str:
    digits = f"{nanosecond:09d}".ljust(len(element) - 1, "0")[: len(element) - 1]
    if element[1] == "9":
        digits = digits.rstrip("0")
        return element[0] + digits if digits else ""
    return element[0] + digits


# Parse ------------------------------------------------------------------------

_TWO, _ONE_OR_TWO, _THREE = r"[0-9]{2}", r"[0-9]{1,2}", r"[0-9]{3}"
_NAMES = {
    "Jan": "|".join(name[:3] for name in MONTHS),
    "January": "|".join(MONTHS),
    "Mon": "|".join(name[:3] for name in WEEKDAYS),
    "Monday": "|".join(WEEKDAYS),
}
_READ: Final[dict[str, str]] = {
    "01": _TWO,
    "002": _THREE,
    "02": _TWO,
    "03": _TWO,
    "04": _TWO,
    "05": _TWO,
    "06": _TWO,
    "1": _ONE_OR_TWO,
    "15": _ONE_OR_TWO,
    "2": _ONE_OR_TWO,
    "2006": r"[0-9]{4}",
    "3": _ONE_OR_TWO,
    "4": _ONE_OR_TWO,
    "5": _ONE_OR_TWO,
    "MST": r"UTC|GMT(?:[+-][0-9]{1,2})?|[+-][0-9]{2}(?:[0-9]{2})?|ChST|MeST|[A-Z]{3,5}",
    "PM": "AM|PM",
    "_2": r"[ ]?[0-9]{1,2}",
    "__2": r"[ ]{0,2}[0-9]{1,3}",
    "pm": "am|pm",
    **_NAMES,
}
_MEANING = {
    "01": "month",
    "002": "year_day",
    "02": "day",
    "03": "hour12",
    "04": "minute",
    "05": "second",
    "06": "short_year",
    "1": "month",
    "15": "hour",
    "2": "day",
    "2006": "year",
    "3": "hour12",
    "4": "minute",
    "5": "second",
    "_2": "day",
    "__2": "year_day",
}


class _Reader:
    """Reads one text by one layout."""

    def __init__(self, layout: str, text: str) -> None:
        self._layout = layout
        self._text = text
        self._at = 0
        self._numbers: dict[str, int] = {}
        self._afternoon: bool | None = None
        self._nanosecond = 0
        self._offset: int | None = None
        self._zone = ""

    def _error(self) -> EvaluationError:
        return EvaluationError(
            f"cannot read the time {self._text!r}; expected one like {self._layout!r}"
        )

    def _take(self, pattern: str, *, ignores_case: bool = False) -> str:
        flags = re.IGNORECASE if ignores_case else 0
        found = re.compile(pattern, flags).match(self._text, self._at)
        if found is None:
            raise self._error()
        self._at = found.end()
        return found.group()

    def read(self) -> Time:
        """Return the time; parts that the layout lacks are the earliest possible."""
        for literal, element in _elements(self._layout):
            self._literal(literal)
            if element:
                self._element(element)
        if self._at != len(self._text):
            raise self._error()
        return self._time()

    def _literal(self, literal: str) -> None:
        # A run of spaces matches any run of spaces.
        for part in re.findall(r" +|[^ ]+", literal):
            if part[0] == " ":
                if self._at < len(self._text) and self._text[self._at] != " ":
                    raise self._error()
                self._take(" *")
            elif self._text.startswith(part, self._at):
                self._at += len(part)
            else:
                raise self._error()

    def _element(self, element: str) -> None:
        if element[0] in ".,":
            self._fraction(element)
        elif element[0] in "-Z":
            self._read_offset(element)
        elif element in ("PM", "pm"):
            self._afternoon = self._take(_READ[element]).lower() == "pm"
        elif element == "MST":
            self._read_zone()
        elif element in _NAMES:
            name = self._take(_NAMES[element], ignores_case=True)
            if element.startswith("Jan"):
                months = [month[:3].lower() for month in MONTHS]
                self._numbers["month"] = months.index(name[:3].lower()) + 1
        else:
            number = int(self._take(_READ[element]))
            self._numbers[_MEANING[element]] = number
            after = self._text[self._at :]
            if element in ("05", "5") and re.match(r"[.,][0-9]", after):
                rest = self._layout[self._layout.find(element) + len(element) :]
                if not re.match(r"[.,](?:0+|9+)(?![0-9])", rest):
                    self._nanosecond = _nanoseconds(self._take(r"[.,][0-9]+"))

    def _fraction(self, element: str) -> None:
        if element[1] == "9":
            if re.compile(r"[.,][0-9]").match(self._text, self._at):
                self._nanosecond = _nanoseconds(self._take(r"[.,][0-9]+"))
            return
        self._nanosecond = _nanoseconds(self._take(rf"[.,][0-9]{{{len(element) - 1}}}"))

    def _read_offset(self, element: str) -> None:
        if element[0] == "Z" and self._text.startswith("Z", self._at):
            self._at += 1
            self._offset, self._zone = 0, "UTC"
            return
        colon = ":" if ":" in element else ""
        parts = (len(element.replace(":", "")) - 1) // 2
        text = self._take(r"[+-]" + colon.join([_TWO] * parts))
        digits = text[1:].replace(":", "")
        hours, minutes, seconds = (int(digits[at : at + 2] or 0) for at in (0, 2, 4))
        if hours > 24 or minutes > 59 or seconds > 59:
            raise self._error()
        offset = hours * 3600 + minutes * 60 + seconds
        self._offset = -offset if text[0] == "-" else offset

    def _read_zone(self) -> None:
        name = self._take(_READ["MST"])
        self._offset, self._zone = 0, name
        if name.startswith("GMT") and len(name) > 3:
            self._offset = int(name[3:]) * 3600

    def _hour(self) -> int:
        hour = self._numbers.get("hour", 0)
        if "hour12" in self._numbers:
            hour = self._numbers["hour12"]
            if hour > 12:
                raise self._error()
        if self._afternoon is True and hour < 12:
            return hour + 12
        return 0 if self._afternoon is False and hour == 12 else hour

    def _date(self) -> int:
        numbers = self._numbers
        year = numbers.get("year", 0)
        if "short_year" in numbers:
            short = numbers["short_year"]
            year = short + (1900 if short >= 69 else 2000)
        month, day = numbers.get("month"), numbers.get("day")
        if "year_day" in numbers:
            days = days_of(year, 1, 1) + numbers["year_day"] - 1
            if not days_of(year, 1, 1) <= days < days_of(year + 1, 1, 1):
                raise self._error()
            return days
        month = 1 if month is None else month
        day = 1 if day is None else day
        if not 1 <= month <= 12:
            raise self._error()
        following = days_of(year + month // 12, month % 12 + 1, 1)
        days = days_of(year, month, 1) + day - 1
        if not day or days >= following:
            raise self._error()
        return days

    def _time(self) -> Time:
        hour = self._hour()
        minute = self._numbers.get("minute", 0)
        second = self._numbers.get("second", 0)
        if hour > 23 or minute > 59 or second > 59:
            raise self._error()
        offset = self._offset or 0
        unix = self._date() * 86_400 + hour * 3600 + minute * 60 + second - offset
        zone = self._zone
        if self._offset is None or (not offset and not zone):
            zone = "UTC"
        return Time(unix, self._nanosecond, offset, zone)


def _nanoseconds(text: str) -> int:
    return int(text[1:10].ljust(9, "0"))


def parse_time(layout: str, text: str) -> Time:
    """Read a time by a layout."""
    _check_layout(layout)
    return _Reader(layout, text).read()


Time.FORMAT = format_time
