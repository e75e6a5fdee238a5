"""What the worker tells about itself: metrics and readiness."""

import time
from collections.abc import Iterable

import attrs

from nfd._version import __version__
from nfd.http_status import Answer
from nfd.metrics_text import CONTENT_TYPE, Counts, Histogram, Metric, Samples, page
from nfd.worker.look import Seen
from nfd.worker.publisher import Publisher
from nfd.worker.troubles import Troubles

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)  # seconds, as upstream
GRACE = 60.0  # seconds that a grave trouble may last while we are ready


@attrs.define(slots=True)
class Status:
    """Collects what `/metrics`, `/healthz` and `/readyz` answer."""

    node: str
    troubles: Troubles
    publisher: Publisher | None
    started: float = attrs.field(factory=time.time)
    seen: Seen | None = None
    config_errors: Counts = attrs.field(factory=lambda: Counts("kind", ("file",)))
    durations: Histogram = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.durations = Histogram(
            "nfd_worker_feature_discovery_duration_seconds",
            "Time taken to discover the features of the node.",
            BUCKETS,
            {"node": self.node},
        )

    def metrics(self) -> Answer:
        """Return the page of metrics."""
        return Answer(page(self._metrics()), content_type=CONTENT_TYPE)

    def healthz(self) -> Answer:
        """Return that the process is there; always 200, as upstream."""
        return Answer()

    def readyz(self, now: float) -> Answer:
        """Return whether this node is labelled from what is known; `now` monotonic."""
        unready = self.unready(now)
        lines = [f"not ready: {reason}" for reason in unready]
        for what, trouble in self.troubles.now().items():
            seconds = round(now - trouble.since)
            lines.append(f"{what}: {trouble.text} (for {seconds} s)")
        text = "".join(f"{line}\n" for line in lines) or "ok\n"
        return Answer(text, 503 if unready else 200)

    def unready(self, now: float) -> list[str]:
        """Say why the worker is not ready; nothing when it is."""
        if self.seen is None:
            return ["the first discovery is not over"]
        reasons = [
            what
            for what, trouble in self.troubles.now().items()
            if trouble.grave and now - trouble.since >= GRACE
        ]
        if self.publisher is not None and not self.publisher.has_published:
            reasons.append("nothing has been published yet")
        return reasons

    def _metrics(self) -> Iterable[Metric | Histogram]:
        yield Metric(
            "nfd_worker_build_info",
            "gauge",
            "Version of the worker; the value is the time of its start.",
            lambda: [({"version": __version__}, int(self.started))],
        )
        yield self.durations
        yield Metric(
            "nfd_worker_source_up",
            "gauge",
            "1 where the source completed its last discovery, 0 where it failed.",
            self._source_up,
        )
        yield Metric(
            "nfd_worker_source_stale_seconds",
            "gauge",
            "Age of the last good features of sources that fail.",
            self._stale,
        )
        yield Metric("nfd_worker_labels", "gauge", "Labels of the node.", self._labels)
        yield Metric(
            "nfd_worker_troubles",
            "gauge",
            "What is wrong now, as /readyz tells it.",
            lambda: [({}, len(self.troubles.now()))],
        )
        yield Metric(
            "nfd_worker_configuration_errors_total",
            "counter",
            "Configuration files and rules that were refused.",
            self.config_errors,
        )
        if self.publisher is not None:
            yield from self._publishing(self.publisher)

    def _publishing(self, publisher: Publisher) -> Iterable[Metric]:
        yield Metric(
            "nfd_worker_writes_total",
            "counter",
            "Writes to the API server.",
            publisher.writes,
        )
        yield Metric(
            "nfd_worker_write_failures_total",
            "counter",
            "Failed tries to publish.",
            publisher.failures,
        )
        yield Metric(
            "nfd_worker_nodefeature_bytes",
            "gauge",
            "Size of the NodeFeature as JSON.",
            lambda: [({}, publisher.size)],
        )

    def _source_up(self) -> Samples:
        if self.seen is None:
            return []
        failed = self.seen.failed
        return [({"source": n}, n not in failed) for n in sorted(self.seen.results)]

    def _stale(self) -> Samples:
        if self.seen is None:
            return []
        now = time.time()
        return [
            ({"source": n}, round(now - when, 1))
            for n, when in sorted(self.seen.stale.items())
        ]

    def _labels(self) -> Samples:
        return [] if self.seen is None else [({}, len(self.seen.labels))]
