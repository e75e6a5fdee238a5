"""Metrics in Prometheus' text format, written without a library.

Format: the Prometheus documentation "Exposition formats", version 0.0.4. Counters
and gauges are written when asked from what a function returns; a histogram counts.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import attrs

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Samples = Iterable[tuple[Labels, float]]


@attrs.frozen(slots=True)
class Metric:
    """A counter or gauge; `read` returns its samples, each with its labels."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    read: Callable[[], Samples]

    def lines(self) -> list[str]:
        """Return its part of the page."""
        samples = [_line(self.name, labels, value) for labels, value in self.read()]
        return [*_head(self.name, self.kind, self.help), *samples]


class Counts:
    """A counter by one label, to be read as a `Metric`; threads may share it."""

    def __init__(self, label: str, start: Iterable[str] = ()) -> None:
        """Count by the values of `label`; those in `start` show from the beginning."""
        self._label = label
        self._counts = dict.fromkeys(start, 0)
        self._lock = threading.Lock()

    def add(self, value: str, count: int = 1) -> None:
        """Count once more for this value of the label."""
        with self._lock:
            self._counts[value] = self._counts.get(value, 0) + count

    def __call__(self) -> Samples:
        """Return the samples."""
        with self._lock:
            return [({self._label: v}, n) for v, n in sorted(self._counts.items())]


class Histogram:
    """Counts observations in cumulative buckets; threads may share it."""

    def __init__(
        self,
        name: str,
        said: str,
        buckets: Sequence[float],
        labels: Labels,
    ) -> None:
        self.name = name
        self.help = said
        self._labels = labels
        self._buckets = tuple(buckets)
        self._counts = [0] * (len(self._buckets) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def observe(self, value: float) -> None:
        """Count one observation."""
        place = sum(value > bound for bound in self._buckets)
        with self._lock:
            self._counts[place] += 1
            self._sum += value

    def lines(self) -> list[str]:
        """Return its part of the page."""
        with self._lock:
            counts, total = list(self._counts), self._sum
        lines = _head(self.name, "histogram", self.help)
        seen = 0
        bounds = [*(f"{bound:g}" for bound in self._buckets), "+Inf"]
        for bound, count in zip(bounds, counts, strict=True):
            seen += count
            labels = {**self._labels, "le": bound}
            lines.append(_line(f"{self.name}_bucket", labels, seen))
        lines.append(_line(f"{self.name}_sum", self._labels, total))
        lines.append(_line(f"{self.name}_count", self._labels, seen))
        return lines


def page(metrics: Iterable[Metric | Histogram]) -> str:
    """Return the whole page, metrics in the order given."""
    return "".join(f"{line}\n" for metric in metrics for line in metric.lines())


def _head(name: str, kind: str, said: str) -> list[str]:
    escaped = said.replace("\\", "\\\\").replace("\n", "\\n")
    return [f"# HELP {name} {escaped}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Labels, value: float) -> str:
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    shown = repr(float(value)) if value % 1 else str(int(value))
    return f"{name}{{{pairs}}} {shown}" if pairs else f"{name} {shown}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
