"""A consumer of a reflector that writes down what it is told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from nfd.kube.clock import Stop
from nfd.kube.reflector import Reflector
from nfd.kube.resources import JsonObject


class Recording:
    """Each call becomes one line, such as `added n1`."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self._told = threading.Condition()

    def replace_begin(self) -> None:
        self._tell("begin")

    def item(self, obj: JsonObject) -> None:
        self._tell("item", obj)

    def replace_end(self) -> None:
        self._tell("end")

    def added(self, obj: JsonObject) -> None:
        self._tell("added", obj)

    def modified(self, obj: JsonObject) -> None:
        self._tell("modified", obj)

    def deleted(self, obj: JsonObject) -> None:
        self._tell("deleted", obj)

    def wait_for(self, line: str, times: int = 1) -> list[str]:
        """Wait until a line was written so often; return all lines."""
        with self._told:
            if not self._told.wait_for(lambda: self.log.count(line) >= times, 10):
                raise AssertionError(f"no {line!r} within 10 s: {self.log}")
            return list(self.log)

    def _tell(self, what: str, obj: JsonObject | None = None) -> None:
        with self._told:
            self.log.append(f"{what} {obj['metadata']['name']}" if obj else what)
            self._told.notify_all()


@contextmanager
def running(reflector: Reflector, stop: Stop) -> Iterator[None]:
    """Run a reflector in a thread; it has to end within a second of its stop."""
    thread = threading.Thread(target=reflector.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(1.0)
        alive = thread.is_alive()
        thread.join(60.0)
    assert not alive, "the reflector did not stop within a second"
