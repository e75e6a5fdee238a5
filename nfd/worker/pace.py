"""How often things are tried: back-off of a publishing target, limit on repairs.

Pure: time comes in as seconds that never jump.
"""

import attrs

from nfd.errors import NfdError
from nfd.kube.errors import ApiError, Forbidden
from nfd.kube.retry import Backoff

REPAIRS = 5  # at once
REPAIR_INTERVAL = 600.0  # seconds, after those
_DENIED = 3600.0  # the longest wait where a permission is missing


@attrs.define(slots=True)
class Target:
    """One place to publish to: what version it has, and when to try again."""

    name: str
    backoff: Backoff = Backoff(1.0, 120.0)  # noqa: RUF009 - frozen
    done: int = 0  # version of what was published last; 0: again
    ever: bool = False  # whether anything was published
    since: float = 0.0  # of the failures that go on now
    failures: int = 0
    not_before: float = 0.0

    def due(self, version: int, now: float) -> bool:
        """Whether there is something to do, and it is time."""
        return self.done != version and now >= self.not_before

    def wait(self, version: int, now: float) -> float | None:
        """Return the seconds until it is due; None while there is nothing to do."""
        if self.done == version:
            return None
        return max(0.0, self.not_before - now)

    def succeeded(self, version: int) -> None:
        """Note that this version is published."""
        self.done, self.ever = version, True
        self.failures, self.not_before = 0, 0.0

    def failed(self, error: NfdError, now: float) -> None:
        """Note a failure; the next try comes later and later."""
        if not self.failures:
            self.since = now
        self.failures += 1
        backoff = self.backoff
        if isinstance(error, Forbidden) and error.missing_permission:
            backoff = attrs.evolve(backoff, cap=_DENIED)
        after = error.retry_after if isinstance(error, ApiError) else None
        wait = max(backoff.seconds(self.failures), after or 0.0)
        self.not_before = now + wait


@attrs.define(slots=True)
class Repairs:
    """Bounds how often an object is put back that others keep changing.

    So two workers that were given one node by mistake do not fight for ever.
    """

    left: float = REPAIRS
    at: float = 0.0

    @property
    def strained(self) -> bool:
        """Whether several repairs were needed of late."""
        return self.left < REPAIRS - 2

    def quiet(self, now: float) -> bool:
        """Whether nothing had to be repaired for a while."""
        return now >= self.at + REPAIR_INTERVAL

    def take(self, now: float) -> float:
        """Allow a repair and return 0, or return the seconds until one is allowed."""
        self.left = min(REPAIRS, self.left + (now - self.at) / REPAIR_INTERVAL)
        self.at = now
        if self.left >= 1:
            self.left -= 1
            return 0.0
        return (1 - self.left) * REPAIR_INTERVAL
