"""A clock that only moves when it is told to, or when someone waits."""

import threading
from collections.abc import Callable


class FakeClock:
    """See `nfd.kube.clock.Clock`. Waiting takes no time and is written down.

    `on_wait` is called with the seconds of each wait, for instance to stop a loop.
    """

    def __init__(
        self,
        now: float = 1_000_000.0,
        on_wait: Callable[[float], None] = lambda _: None,
    ) -> None:
        self.now = now
        self.on_wait = on_wait
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1_764_000_000.0 + self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now += seconds
        self.on_wait(seconds)
        return stop.is_set()
