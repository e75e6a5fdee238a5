"""What is wrong now: each trouble is said once, and again only when it changes."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import attrs


@attrs.frozen(slots=True)
class Trouble:
    """One thing that is wrong; a grave one makes the worker unready in time."""

    text: str
    since: float  # seconds, monotonic
    grave: bool = False


class Troubles:
    """Keeps the troubles of now by what they concern; threads may share it."""

    def __init__(self, log: Any, now: Callable[[], float]) -> None:
        """Log to `log` (structlog's interface); `now` returns monotonic seconds."""
        self._log = log
        self._now = now
        self._lock = threading.Lock()
        self._troubles: dict[str, Trouble] = {}

    def begin(
        self, what: str, text: str, *, grave: bool = False, optional: bool = False
    ) -> None:
        """Say what is wrong with `what`; silent where that is known already.

        `optional`: it is no fault that it is so, only worth to know.
        """
        with self._lock:
            before = self._troubles.get(what)
            since = before.since if before else self._now()
            self._troubles[what] = Trouble(text, since, grave)
        if before is None or before.text != text:
            say = self._log.info if optional else self._log.warning
            say("trouble", what=what, reason=text)

    def end(self, what: str) -> None:
        """Say that `what` is well again; silent where nothing was wrong."""
        with self._lock:
            before = self._troubles.pop(what, None)
        if before is not None:
            seconds = round(self._now() - before.since, 1)
            self._log.info("trouble over", what=what, seconds=seconds)

    def settle(self, kind: str, texts: Mapping[str, str]) -> None:
        """Make `texts` all the troubles whose name is `<kind> <key>`."""
        prefix = f"{kind} "
        for what in [*self._troubles]:
            if what.startswith(prefix) and what.removeprefix(prefix) not in texts:
                self.end(what)
        for key, text in sorted(texts.items()):
            self.begin(prefix + key, text)

    def now(self) -> dict[str, Trouble]:
        """Return all troubles by what they concern, sorted."""
        with self._lock:
            return dict(sorted(self._troubles.items()))
