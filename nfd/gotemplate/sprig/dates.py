"""Sprig's dates. "Local" is UTC here, and nothing reads the clock.

A label must not change with the time or the zone of the agent, so what would fall
back to the present time upstream is an error.
"""

import re
from typing import Any

from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.functions import Function, GoType
from nfd.gotemplate.literals import read_digits
from nfd.gotemplate.sprig.durations import (
    SECOND,
    format_duration,
    parse_duration,
    round_duration,
)
from nfd.gotemplate.sprig.layouts import format_time, parse_time
from nfd.gotemplate.sprig.moments import ZERO, Time, in_zone
from nfd.gotemplate.values import INT_MAX, INT_MIN, Int64, Uint8, Uint64, go_type

_HTML_LAYOUT = "2006-01-02"
_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)


def _time(value: Any) -> Time:
    if isinstance(value, Time):
        return value
    if isinstance(value, int) and not isinstance(value, bool | Uint8 | Uint64):
        return Time(int(value))
    raise EvaluationError(
        f"expected a time or seconds, found {go_type(value)}; the present time "
        "is not given, since a label must be the same on every run"
    )


def date_in_zone(layout: str, value: Any, zone: str) -> str:
    """Format a time, or seconds since 1970, in a zone; an unknown zone is UTC."""
    return format_time(in_zone(_time(value), zone), layout)


def to_date(layout: str, text: str) -> Time:
    """Read a time; what cannot be read is the zero time."""
    try:
        return parse_time(layout, text)
    except EvaluationError:
        # Sprig's toDate gives the zero time; mustToDate tells.
        return ZERO


def date_modify(duration: str, time: Time) -> Time:
    """Add a duration such as "-1.5h"; one that cannot be read adds nothing."""
    try:
        return must_date_modify(duration, time)
    except EvaluationError:
        # Sprig's dateModify returns the time as it is; mustDateModify tells.
        return time


def must_date_modify(duration: str, time: Time) -> Time:
    """Add a duration such as "-1.5h"."""
    return time.plus(parse_duration(duration))


def duration(seconds: Any) -> str:
    """Format seconds, given as a text or `int64`, as "1h2m3s"; others are "0s"."""
    count = 0
    if isinstance(seconds, str) and _WHOLE.fullmatch(seconds):
        count = read_digits(seconds.lstrip("+-"))
        count = max(INT_MIN, min(-count if seconds[0] == "-" else count, INT_MAX))
    elif isinstance(seconds, Int64):
        count = int(seconds)
    nanoseconds = (count * SECOND - INT_MIN) % (1 << 64) + INT_MIN
    return format_duration(nanoseconds)


def duration_round(value: Any) -> str:
    """Round a duration, a text or nanoseconds as `int64`, to its largest unit."""
    nanoseconds = 0
    if isinstance(value, Time):
        raise EvaluationError(
            "the time since then reads the clock, and a label must be the same on "
            "every run"
        )
    if isinstance(value, str):
        try:
            nanoseconds = parse_duration(value)
        except EvaluationError:
            # Sprig takes what cannot be read as no time at all.
            nanoseconds = 0
    elif isinstance(value, Int64):
        nanoseconds = int(value)
    return round_duration(nanoseconds)


_TIME = GoType("time.Time", Time)
Time.METHODS = {
    "Day": Function(lambda time: time.civil().day),
    "Format": Function(format_time, "string"),
    "Hour": Function(lambda time: time.civil().hour),
    "IsZero": Function(lambda time: time.nanoseconds == ZERO.nanoseconds),
    "Minute": Function(lambda time: time.civil().minute),
    "Nanosecond": Function(lambda time: time.civil().nanosecond),
    "Second": Function(lambda time: time.civil().second),
    "String": Function(str),
    "UTC": Function(lambda time: in_zone(time, "UTC")),
    "Unix": Function(lambda time: Int64(time.unix)),
    "YearDay": Function(lambda time: time.civil().year_day),
    "Year": Function(lambda time: time.civil().year),
}

FUNCTIONS = {
    "date": Function(
        lambda layout, value: date_in_zone(layout, value, ""), "string", "any"
    ),
    "dateInZone": Function(date_in_zone, "string", "any", "string"),
    "dateModify": Function(date_modify, "string", _TIME),
    "date_in_zone": Function(date_in_zone, "string", "any", "string"),
    "date_modify": Function(date_modify, "string", _TIME),
    "duration": Function(duration, "any"),
    "durationRound": Function(duration_round, "any"),
    "htmlDate": Function(lambda value: date_in_zone(_HTML_LAYOUT, value, ""), "any"),
    "htmlDateInZone": Function(
        lambda value, zone: date_in_zone(_HTML_LAYOUT, value, zone), "any", "string"
    ),
    "mustDateModify": Function(must_date_modify, "string", _TIME),
    "mustToDate": Function(parse_time, "string", "string"),
    "must_date_modify": Function(must_date_modify, "string", _TIME),
    "toDate": Function(to_date, "string", "string"),
    "unixEpoch": Function(lambda time: str(time.unix), _TIME),
}
