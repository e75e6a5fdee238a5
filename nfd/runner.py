"""Runs sources on a host, isolated from each other, and times them."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from nfd.errors import HostError, NfdError, NotPresentError, NotReadyError
from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.source import Source

DEFAULT_TIMEOUT = 10.0  # seconds a source may take

Status: TypeAlias = Literal["ok", "absent", "failed"]


@attrs.frozen(slots=True)
class SourceResult:
    """What one source found; `error` says why it is absent or failed.

    `not_ready` says of an absent one that its hardware is there, so that facts from
    before still hold.
    """

    name: str
    status: Status
    features: Features = Features()
    error: str = ""
    seconds: float = 0.0
    not_ready: bool = False

    def to_plain(self) -> dict[str, Any]:
        """Return status, seconds (to the microsecond) and the error if there is one."""
        plain: dict[str, Any] = {
            "status": self.status,
            "seconds": round(self.seconds, 6),
        }
        if self.error:
            plain["error"] = self.error
        return plain


class Runner:
    """Runs sources one after the other in a thread that it can leave behind.

    A source over its time-out counts as failed, is not started again while it hangs,
    and its late result is dropped. One thread serves all sources that keep the time.
    """

    def __init__(self, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Give each source `timeout` seconds."""
        self.timeout = timeout
        self._hanging: dict[str, _Batch] = {}

    def run(
        self,
        host: HostRoot,
        sources: Sequence[Source[Any]],
        settings: Mapping[str, Any],
    ) -> dict[str, SourceResult]:
        """Run each source; results in the order of `sources`. Raises nothing."""
        results: dict[str, SourceResult] = {}
        todo: list[Source[Any]] = []
        for source in sources:
            hanging = self._hanging.get(source.name)
            if hanging is not None and hanging.is_alive():
                error = f"still hangs since a run that took over {self.timeout:g} s"
                results[source.name] = failure(source, error)
            else:
                self._hanging.pop(source.name, None)
                todo.append(source)
        while todo:
            batch = _Batch(host, todo, settings)
            batch.start()
            finished = batch.wait(self.timeout)
            results.update((r.name, r) for r in finished)
            todo = todo[len(finished) :]
            if todo:  # the first of them hangs
                hung = todo.pop(0)
                self._hanging[hung.name] = batch
                error = f"timed out after {self.timeout:g} s"
                results[hung.name] = failure(hung, error, self.timeout)
        return {s.name: results[s.name] for s in sources}


class _Batch(threading.Thread):
    """Runs a list of sources until one is given up.

    Nobody is woken between two sources: handing the interpreter lock back and forth
    would double the time of a scan.
    """

    def __init__(
        self,
        host: HostRoot,
        sources: Sequence[Source[Any]],
        settings: Mapping[str, Any],
    ) -> None:
        super().__init__(name="nfd-sources", daemon=True)
        self._host = host
        self._sources = sources
        self._settings = settings
        self._results: list[SourceResult] = []
        self._lock = threading.Lock()  # of the two below
        self._since = time.monotonic()  # the source that runs now
        self._given_up = False

    def run(self) -> None:
        for source in self._sources:
            result = run_source(self._host, source, self._settings.get(source.name))
            with self._lock:
                if self._given_up:
                    return
                self._results.append(result)
                self._since = time.monotonic()

    def wait(self, timeout: float) -> list[SourceResult]:
        """Wait for all results; fewer when one source took over `timeout` seconds.

        The thread then ends once that source returns.
        """
        rest = timeout
        while True:
            self.join(rest)
            with self._lock:
                rest = self._since + timeout - time.monotonic()
                if not self.is_alive() or len(self._results) == len(self._sources):
                    return self._results
                if rest <= 0:
                    self._given_up = True
                    return self._results


def run_source(
    host: HostRoot, source: Source[Any], settings: Any = None
) -> SourceResult:
    """Run one source in this thread, without a time-out. Raises nothing."""
    name = source.name
    start = time.perf_counter()
    status: Status = "ok"
    error = ""
    found = Features()
    not_ready = False
    try:
        if settings is None:
            settings = source.settings_class()
        with host.attributed(name):
            _check_mounts(host, source)
            found = source.discover(host, settings)
        error = _shape_problem(name, found)
        if error:
            status = "failed"
    except NotPresentError as absent:
        status, error = "absent", str(absent)
        not_ready = isinstance(absent, NotReadyError)
    except BaseException as problem:  # noqa: BLE001 - a plug-in costs only itself
        status, error = "failed", describe(problem)
    seconds = time.perf_counter() - start
    if status == "failed":
        return failure(source, error, seconds)
    return SourceResult(name, status, found, error, seconds, not_ready)


def _check_mounts(host: HostRoot, source: Source[Any]) -> None:
    """Fail where what every running host has is missing; captures may lack it."""
    for path in source.needs if host.live else ():
        if not host.exists(path):
            raise HostError(f"{path} is missing; is it mounted?")


def failure(source: Source[Any], error: str, seconds: float = 0.0) -> SourceResult:
    """Return a failed result, in which all documented feature sets are unknown.

    Rules that read them are then undecided, instead of taking them for absent.
    """
    unknown = {spec.key: error for spec in source.feature_specs}
    return SourceResult(
        source.name, "failed", Features(unknown=unknown), error, seconds
    )


def _shape_problem(name: str, found: object) -> str:
    if not isinstance(found, Features):
        return f"discover returned {type(found).__name__}, not Features"
    for key in (*found.keys(), *found.unknown):
        if not key.startswith(name + "."):
            return f"feature {key!r} does not begin with {name + '.'!r}"
    return ""


def describe(error: BaseException) -> str:
    """Say what an exception says, with its type unless the text is enough."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    text = str(error)
    if isinstance(error, NfdError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
