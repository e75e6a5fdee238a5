"""Go's durations (`time.ParseDuration`, `Duration.String`), in nanoseconds."""

import re

from nfd.gotemplate.errors import EvaluationError

SECOND = 1_000_000_000
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
_ROUNDED = (("y", 8760), ("mo", 720), ("d", 24), ("h", 1))
_LIMIT = 1 << 63
_LONGEST = 200  # characters


def parse_duration(text: str) -> int:
    """Read a duration such as "-1h30m" or "1.5s"."""
    if len(text) > _LONGEST:
        raise EvaluationError(f"the duration {text[:20]!r}... is too long")
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    total = at = 0
    while at < len(body):
        found = _PART.match(body, at)
        unit = _UNITS.get(found[3]) if found else None
        if found is None or unit is None or not (found[1] or found[2]):
            raise EvaluationError(f"bad duration {text!r}; expected one such as 1h30m")
        fraction = found[2] or ""
        total += int(found[1] or 0) * unit
        total += int(fraction or 0) * unit // 10 ** len(fraction)
        at = found.end()
    negative = text.startswith("-")
    if not body or total > _LIMIT - (not negative):
        raise EvaluationError(f"bad duration {text!r}; expected one such as 1h30m")
    return -total if negative else total


def format_duration(nanoseconds: int) -> str:
    """Write a duration as "1h2m3.5s"; below a second with a smaller unit."""
    sign = "-" if nanoseconds < 0 else ""
    size = abs(nanoseconds)
    if size == 0:
        return "0s"
    if size < SECOND:
        unit, scale = next(
            (unit, scale)
            for unit, scale in (("ms", 1_000_000), ("\u00b5s", 1_000), ("ns", 1))
            if size >= scale
        )
        return sign + _decimal(size, scale) + unit
    minutes, rest = divmod(size, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}h" if hours else ""
    text += f"{minutes}m" if hours or minutes else ""
    return f"{sign}{text}{_decimal(rest, SECOND)}s"


def _decimal(size: int, scale: int) -> str:
    whole, fraction = divmod(size, scale)
    digits = f"{fraction:0{len(str(scale)) - 1}d}".rstrip("0") if fraction else ""
    return f"{whole}.{digits}" if digits else str(whole)


def round_duration(nanoseconds: int) -> str:
    """Write the largest unit of a duration, from years to seconds."""
    size = abs(nanoseconds)
    for unit, hours in _ROUNDED:
        if size > hours * 3600 * SECOND:
            return f"{size // (hours * 3600 * SECOND)}{unit}"
    for unit, seconds in (("m", 60), ("s", 1)):
        if size > seconds * SECOND:
            return f"{size // (seconds * SECOND)}{unit}"
    return "0s"
