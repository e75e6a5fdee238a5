"""Runs sources on a host, isolated and timed, and collects the labels they make.

`discover` is the whole: results per source, labels, refusals. The worker keeps a
`Runner`, replaces failed results by their last good ones and calls `collect_labels`,
which is pure, itself. Source: spec/worker.md sections 0.2 and 0.3.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import attrs

from nfd.errors import NfdError, NotPresentError, NotReadyError
from nfd.features import Features, merge
from nfd.hostroot import HostRoot
from nfd.labels import (
    FEATURE_NS,
    Label,
    Provenance,
    Refusal,
    key_problem,
    split_key,
    value_problem,
)
from nfd.source import LabelValue, Source

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


class LabelRules(Protocol):
    """The label source over all features: `nfd.custom.CustomSource`."""

    @property
    def name(self) -> str:
        """The word for it in `core.labelSources`."""
        ...

    @property
    def label_priority(self) -> int:
        """As `Source.label_priority`."""
        ...

    def labels(self, features: Features) -> tuple[list[Label], list[Refusal]]:
        """Return the wanted labels, keys as they are, and what rules refused."""
        ...


class Plan(NamedTuple):
    """What a discovery runs: loaded sources, whose labels count, and settings.

    `broken` holds selected sources that could not be loaded, with the reason.
    """

    sources: tuple[Source[Any], ...]
    label_sources: frozenset[str]
    settings: Mapping[str, Any] = MappingProxyType({})
    label_whitelist: str = ""  # RE2, searched in the name part of each key
    rules: LabelRules | None = None
    broken: Mapping[str, str] = MappingProxyType({})

    def settings_of(self, source: Source[Any]) -> Any:
        """Return the settings of a source, its defaults when none were given."""
        if source.name in self.settings:
            return self.settings[source.name]
        return source.settings_class()


class Collected(NamedTuple):
    """Labels by key; what was refused; label sources that raised, with the error."""

    labels: Mapping[str, Label]
    refused: tuple[Refusal, ...] = ()
    failed: Mapping[str, str] = MappingProxyType({})


@attrs.frozen(slots=True)
class Discovery:
    """All that one discovery found out about a host.

    `refused` tells which labels and rules came to nothing and why, `warnings` what
    is odd about the configuration and the plug-ins.
    """

    results: Mapping[str, SourceResult]
    labels: Mapping[str, Label]
    refused: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def features(self) -> Features:
        """The features of all sources together."""
        return merge(r.features for r in self.results.values())

    @property
    def failed(self) -> tuple[SourceResult, ...]:
        """The sources that failed, by name."""
        return tuple(r for r in self.results.values() if r.status == "failed")

    def to_plain(self, *, features: bool = False) -> dict[str, Any]:
        """Return sorted plain maps: `labels`, `sources` and, if asked, `features`."""
        plain: dict[str, Any] = {
            "labels": {key: label.value for key, label in sorted(self.labels.items())},
            "sources": {n: r.to_plain() for n, r in sorted(self.results.items())},
        }
        if features:
            plain["features"] = self.features.to_plain()
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


def collect_labels(plan: Plan, results: Mapping[str, SourceResult]) -> Collected:
    """Ask the label sources for labels of `results` and check each one.

    Sources come in the order of (priority, name) and later ones overwrite. A source
    without a result, or with neither success nor features, makes no labels.
    """
    labels: dict[str, Label] = {}
    refused: list[Refusal] = []
    failed: dict[str, str] = {}
    allowed = _whitelist(plan.label_whitelist)
    makers: list[Source[Any] | LabelRules] = [
        s for s in plan.sources if s.name in plan.label_sources
    ]
    if plan.rules is not None and plan.rules.name in plan.label_sources:
        makers.append(plan.rules)
    for maker in sorted(makers, key=lambda m: (m.label_priority, m.name)):
        try:
            if isinstance(maker, Source):
                wanted = _source_labels(maker, results.get(maker.name), plan)
            else:
                everything = merge(r.features for r in results.values())
                wanted, refusals = maker.labels(everything)
                refused += refusals
        except Exception as error:  # noqa: BLE001 - a plug-in costs only itself
            failed[maker.name] = f"labels: {describe(error)}"
            continue
        for label in wanted:
            problem = _label_problem(label, allowed)
            if problem:
                refused.append(_refusal(label, problem))
                continue
            before = labels.get(label.key)
            if before is not None:
                refused.append(
                    _refusal(before, f"overwritten by source {maker.name!r}")
                )
            labels[label.key] = label
    return Collected(dict(sorted(labels.items())), tuple(refused), failed)


def _source_labels(
    source: Source[Any], result: SourceResult | None, plan: Plan
) -> list[Label]:
    if result is None or (result.status != "ok" and not result.features.keys()):
        return []
    made = source.labels(result.features, plan.settings_of(source))
    labels = []
    for key, value in sorted(made.items()):
        full = key
        if source.prefix_labels and "/" not in key:
            full = f"{FEATURE_NS}/{source.name}-{key}"
        if isinstance(value, LabelValue):
            provenance = Provenance(
                source.name, value.feature, value.element, because=value.because
            )
            value = value.value  # noqa: PLW2901 - unwrapped
        else:
            provenance = Provenance(source.name)
        labels.append(Label(full, value, provenance))
    return labels


class _Pattern(Protocol):
    def search(self, text: str, /) -> bool: ...


def _whitelist(pattern: str) -> _Pattern | None:
    if not pattern:
        return None
    from nfd import regex  # noqa: PLC0415 - RE2 is loaded only for a whitelist

    return regex.compile(pattern)


def _label_problem(label: Label, allowed: _Pattern | None) -> str:
    problem = key_problem(label.key)
    if problem:
        return problem
    if not isinstance(label.value, str):
        return f"the value is {type(label.value).__name__}, not text"
    problem = value_problem(label.value)
    if problem:
        return problem
    if allowed is not None and not allowed.search(split_key(label.key)[1]):
        return "the name does not match core.labelWhiteList"
    return ""


def _refusal(label: Label, reason: str) -> Refusal:
    return Refusal("label", label.key, label.value, reason, label.provenance)


def discover(host: HostRoot, plan: Plan, runner: Runner | None = None) -> Discovery:
    """Run the sources of `plan` on `host` and collect their labels. Raises nothing.

    A source whose labels raise is *failed* too, and keeps its features.
    """
    results = (runner or Runner()).run(
        host, plan.sources, {s.name: plan.settings_of(s) for s in plan.sources}
    )
    for name, error in plan.broken.items():
        results[name] = SourceResult(name, "failed", error=error)
    return assemble(results, collect_labels(plan, results))


def assemble(results: Mapping[str, SourceResult], collected: Collected) -> Discovery:
    """Put results and labels together; sources whose labels raised become failed."""
    marked = {
        name: attrs.evolve(result, status="failed", error=collected.failed[name])
        if name in collected.failed
        else result
        for name, result in sorted(results.items())
    }
    return Discovery(marked, collected.labels, collected.refused)
