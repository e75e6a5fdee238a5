"""The seam to RE2, whose syntax and verdicts are those of Go's `regexp` package.

Rules and templates are written for Go's engine: no back-references, no look-around,
linear time, `$` only at the end of the text (spec: worker, section 6.2).
"""

import functools
from collections.abc import Iterator
from typing import Any

import attrs

from nfd.errors import NfdError

CACHE_SIZE = 1024  # compiled patterns kept, each a few kilobytes


class PatternError(NfdError):
    """A pattern that Go's `regexp` would refuse; holds `pattern` and `reason`."""

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(f"invalid regular expression {pattern!r}: {reason}")
        self.pattern = pattern
        self.reason = reason


@attrs.frozen(slots=True)
class Pattern:
    """A compiled pattern; safe to share between threads."""

    text: str
    _program: Any

    def search(self, text: str) -> bool:
        """Tell whether the pattern matches anywhere in the text."""
        try:
            return self._program.search(text) is not None
        except UnicodeEncodeError:
            return self._program.search(replace_surrogates(text)) is not None

    def matches(self, text: str, limit: int = -1) -> Iterator[Any]:
        """Yield successive non-overlapping matches, as Go's FindAll does.

        An empty match right after another match is left out. `limit` below 0 means
        all. The text must not hold lone surrogates (see `replace_surrogates`).
        """
        position, previous_end = 0, -1
        while limit != 0 and position <= len(text):
            match = self._program.search(text, position)
            if match is None:
                return
            start, end = match.span()
            accepted = start != end or start != previous_end
            position = end + 1 if end == position else end
            previous_end = end
            if accepted:
                limit -= 1
                yield match


@functools.lru_cache(maxsize=CACHE_SIZE)
def compile(pattern: str) -> Pattern:  # noqa: A001 - reads as regex.compile
    r"""Compile a pattern, or raise `PatternError` with the pattern and the reason.

    `\C` (any byte) is refused: RE2 has it, Go does not.
    """
    import re2  # noqa: PLC0415 - 6 ms, paid by the first pattern only

    if _has_any_byte(pattern):
        raise PatternError(pattern, r"invalid escape sequence: \C")
    options = re2.Options()
    options.log_errors = False
    try:
        return Pattern(pattern, re2.compile(pattern, options))
    except re2.error as error:
        reason = error.args[0] if error.args else "unknown"
        if isinstance(reason, bytes):
            reason = reason.decode(errors="replace")
        raise PatternError(pattern, str(reason)) from error
    except UnicodeEncodeError as error:
        raise PatternError(pattern, "invalid UTF-8") from error


def replace_surrogates(text: str) -> str:
    """Put U+FFFD where a lone surrogate stands, since those are no UTF-8 text."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _has_any_byte(pattern: str) -> bool:
    r"""Tell whether a `\C` stands in the pattern outside of `\Q...\E`."""
    position = pattern.find("\\")
    while position >= 0:
        letter = pattern[position + 1 : position + 2]
        if letter == "C":
            return True
        if letter == "Q":
            position = pattern.find("\\E", position)
            if position < 0:
                return False
        position = pattern.find("\\", position + 2)
    return False
