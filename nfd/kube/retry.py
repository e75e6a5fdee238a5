"""When to try a request again, and how long to wait before."""

import random
from collections.abc import Callable

import attrs

from nfd.kube.errors import ApiError


@attrs.frozen(slots=True)
class Backoff:
    """Waits that double from `base` up to `cap` seconds, each cut by jitter.

    The wait before try n is drawn evenly from the upper half of
    `min(cap, base * 2**n)`, so that a fleet that failed together comes back spread.
    """

    base: float = 0.5
    cap: float = 30.0
    draw: Callable[[], float] = random.random

    def seconds(self, failures: int) -> float:
        """Return the wait after `failures` failures in a row (1 or more)."""
        whole = min(self.cap, self.base * 2.0 ** min(failures - 1, 32))
        return whole * (0.5 + 0.5 * self.draw())


@attrs.frozen(slots=True)
class RetryPolicy:
    """429, 5xx and broken connections are tried again; other refusals are not.

    `attempts` counts the first try. A Retry-After longer than `patience` seconds is
    not waited for: the caller gets the error, with `retry_after` in it. A write
    whose answer was lost may have happened: guards (resourceVersion, `test`) make
    the second try harmless.
    """

    attempts: int = 4
    backoff: Backoff = Backoff(0.25, 5.0)
    patience: float = 30.0

    def wait(self, error: ApiError, failures: int) -> float | None:
        """Return the seconds to wait before the next try, None to give up."""
        if not error.retryable or failures >= self.attempts:
            return None
        seconds = self.backoff.seconds(failures)
        if error.retry_after is None:
            return seconds
        if error.retry_after > self.patience:
            return None
        return error.retry_after + seconds


RETRY = RetryPolicy()
NO_RETRY = RetryPolicy(attempts=1)
