"""Time and stopping, injectable, so that nothing in tests has to sleep."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Stop(threading.Event):
    """An event that also interrupts what is blocked in the network when set.

    A signal handler may set it; the thread that the signal interrupts should then
    wait with time-outs (a few seconds), for a wait that is just beginning is not
    woken.
    """

    def __init__(self) -> None:
        super().__init__()
        # The signal may come while its own thread holds the lock.
        self._cond = threading.Condition(threading.RLock())
        self._callbacks: list[Callable[[], None]] = []

    def set(self) -> None:
        """Set the event, then call every registered callback."""
        super().set()
        for callback in tuple(self._callbacks):
            callback()

    @contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Have `callback` called when the event is set while the block runs.

        It is called at once where the event is set already, and may be called twice.
        """
        self._callbacks.append(callback)
        try:
            if self.is_set():
                callback()
            yield
        finally:
            self._callbacks.remove(callback)


class Clock(Protocol):
    """What the clients know of time."""

    def monotonic(self) -> float:
        """Seconds that never jump; they count on while the machine is suspended."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch."""
        ...

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait, at most until `stop` is set; return whether it is."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        """Return CLOCK_BOOTTIME, which a suspended leader needs to see pass."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall(self) -> float:
        """Return seconds since the epoch."""
        return time.time()

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait, at most until `stop` is set; return whether it is."""
        return stop.wait(max(0.0, seconds))


SYSTEM_CLOCK = SystemClock()
