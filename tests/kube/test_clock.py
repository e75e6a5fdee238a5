"""Stopping."""

import signal
import threading

from nfd.kube.clock import SYSTEM_CLOCK, Stop


def test_callbacks_are_called_once_set() -> None:
    stop = Stop()
    called: list[str] = []
    with stop.calling(lambda: called.append("inside")):
        stop.set()
    with stop.calling(lambda: called.append("late")):
        assert stop.is_set()
    stop.set()

    assert called == ["inside", "late"]


def test_callbacks_are_forgotten() -> None:
    stop = Stop()
    called: list[str] = []
    with stop.calling(lambda: called.append("no")):
        pass
    stop.set()

    assert called == []


def test_a_signal_handler_may_set_it_while_its_thread_holds_the_lock() -> None:
    stop = Stop()
    before = signal.signal(signal.SIGUSR1, lambda *_: stop.set())
    try:
        with stop._cond:
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert stop.is_set()


def test_waiting_ends_with_the_stop() -> None:
    stop = Stop()
    timer = threading.Timer(0.01, stop.set)
    timer.start()
    assert SYSTEM_CLOCK.wait(stop, 60.0)
    timer.join()
    assert not SYSTEM_CLOCK.wait(Stop(), -1.0)


def test_time_does_not_run_backwards() -> None:
    first = SYSTEM_CLOCK.monotonic()
    assert first <= SYSTEM_CLOCK.monotonic()
    assert SYSTEM_CLOCK.wall() > 1.7e9
