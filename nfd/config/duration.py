"""Durations as Go writes them: `60s`, `1h30m`, `1.5s` (time.ParseDuration)."""

import re
from typing import Any, Self

from nfd.config.decode import wrong

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"(\d+)?(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_LIMIT = (1 << 63) - 1  # nanoseconds in a Go int64, 292 years


class Duration(int):
    """A duration in nanoseconds, Go's unit; `seconds` is what Python wants."""

    __slots__ = ()

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return self / 1_000_000_000

    @classmethod
    def of_seconds(cls, seconds: float) -> Self:
        """Make a duration of so many seconds."""
        return cls(round(seconds * 1_000_000_000))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read Go's notation: numbers with units, `0` alone needs none.

        Raises:
            ValueError: The text is no duration.

        """
        body = text.lstrip("+-") if text[:2] not in ("+-", "-+", "--", "++") else ""
        if body == "0":
            return cls(0)
        total = 0
        position = 0
        while position < len(body):
            match = _PART.match(body, position)
            if match is None or not (match[1] or match[2]):
                position = 0
                break
            scale = _UNITS[match[3]]
            total += int(match[1] or "0") * scale
            if match[2]:
                total += int(match[2]) * scale // 10 ** len(match[2])
            position = match.end()
        if position == 0 or total > _LIMIT:
            raise ValueError(text)
        return cls(-total if text[0] == "-" else total)

    @classmethod
    def from_config(cls, value: Any, path: str) -> Self:
        """Read a configuration value: Go's notation, or a number of nanoseconds.

        Raises:
            ConfigError: The value is neither; null is not allowed.

        """
        if isinstance(value, str):
            try:
                return cls.parse(value)
            except ValueError:
                pass
        elif isinstance(value, int | float) and not isinstance(value, bool):
            return cls(int(value))
        raise wrong(path, value, "a duration with units, as '60s' or '1h30m'")

    def __str__(self) -> str:
        """Return Go-readable text: whole hours, minutes or seconds where exact."""
        for unit in ("h", "m", "s", "ms", "us", "ns"):
            if self and self % _UNITS[unit] == 0:
                return f"{self // _UNITS[unit]}{unit}"
        return "0s"
