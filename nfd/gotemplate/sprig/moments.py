"""Go's `time.Time`: nanoseconds since 1970 and a zone, over any year."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import attrs

from nfd.gotemplate.errors import EvaluationError

_NANO = 1_000_000_000
_DAY = 86_400
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
WEEKDAYS = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
]


class Civil(NamedTuple):
    """A date and time of day in a zone."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    nanosecond: int
    weekday: int
    year_day: int


def days_of(year: int, month: int, day: int) -> int:
    """Count the days from 1970-01-01 in the proleptic Gregorian calendar."""
    # A year that begins in March ends with the leap day.
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + days - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """Undo `days_of`."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (
        365 * year_of_era + year_of_era // 4 - year_of_era // 100
    )
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = (shifted_month + 2) % 12 + 1
    return year_of_era + era * 400 + (month <= 2), month, day


@attrs.frozen(slots=True, eq=True)
class Time:
    """A point in time and the zone to show it in.

    Attributes:
        unix: seconds since 1970-01-01T00:00:00Z.
        nanosecond: 0 to 999,999,999.
        offset: seconds east of Greenwich.
        zone: the zone's abbreviation; "" if only the offset is known.
    """

    GO_TYPE: ClassVar[str] = "time.Time"
    GO_KIND: ClassVar[str] = "struct"
    METHODS: ClassVar[dict[str, Any]]
    FORMAT: ClassVar[Callable[["Time", str], str]]

    unix: int
    nanosecond: int = 0
    offset: int = 0
    zone: str = "UTC"

    @property
    def nanoseconds(self) -> int:
        """Nanoseconds since 1970."""
        return self.unix * _NANO + self.nanosecond

    def plus(self, nanoseconds: int) -> "Time":
        """Return a later time in the same zone."""
        seconds, rest = divmod(self.nanoseconds + nanoseconds, _NANO)
        return Time(seconds, rest, self.offset, self.zone)

    def civil(self) -> Civil:
        """Return date and time of day."""
        days, second = divmod(self.unix + self.offset, _DAY)
        year, month, day = date_of(days)
        hour, second = divmod(second, 3600)
        minute, second = divmod(second, 60)
        return Civil(
            year,
            month,
            day,
            hour,
            minute,
            second,
            self.nanosecond,
            (days + 4) % 7,  # 1970 began on a Thursday
            days - days_of(year, 1, 1) + 1,
        )

    def __str__(self) -> str:
        return Time.FORMAT(self, "2006-01-02 15:04:05.999999999 -0700 MST")

    def json_text(self) -> str:
        """Return how JSON shows a time (RFC 3339)."""
        return Time.FORMAT(self, "2006-01-02T15:04:05.999999999Z07:00")


ZERO = Time(days_of(1, 1, 1) * _DAY)


def in_zone(time: Time, name: str) -> Time:
    """Show a time in a zone of the IANA database; an unknown name means UTC."""
    if name in ("", "UTC", "Local"):
        return Time(time.unix, time.nanosecond)
    from datetime import UTC, datetime, timedelta  # noqa: PLC0415 - rare, 5 ms
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - rare, 5 ms

    try:
        zone = ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        # Not found, a folder, or no name at all: sprig goes on with UTC.
        return Time(time.unix, time.nanosecond)
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=time.unix)
    except OverflowError as error:
        raise EvaluationError("this year is out of range for zones") from error
    local = moment.astimezone(zone)
    offset = local.utcoffset() or timedelta()
    return Time(
        time.unix, time.nanosecond, int(offset.total_seconds()), local.tzname() or ""
    )
