"""Metrics of the master: upstream's names, and ours beside them.

Names: spec/master.md section 7, docs/master.md.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from nfd._version import __version__
from nfd.kube.errors import ApiError
from nfd.labels import ANNOTATION_NS
from nfd.master.evaluate import Evaluation
from nfd.master.guard import HeldCause
from nfd.master.plan import NodePlan, Step
from nfd.rules.load import Loaded
from nfd.rules.model import Rule

# A time beside each counter, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call] # theirs has no types
CONTENT_TYPE: str = CONTENT_TYPE_LATEST
_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01)
_REJECTED = {
    "label": "labels",
    "extendedResource": "extendedresources",
    "taint": "taints",
    "annotation": "annotations",
}


@attrs.frozen(slots=True)
class Figures:
    """What is read when somebody asks for the metrics."""

    synced: bool = False
    leader: bool = False
    nodes: int = 0
    node_features: int = 0
    queue: int = 0
    held: Sequence[HeldCause] = ()
    matched: Mapping[str, int] = attrs.field(factory=dict)  # rule object → nodes


class Metrics:
    """An observer that counts; `page` is the answer to `/metrics`."""

    def __init__(self, figures: Callable[[], Figures]) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._figures = figures

        def counter(name: str, said: str, labels: Sequence[str] = ()) -> Counter:
            return Counter(f"nfd_master_{name}", said, labels, registry=self.registry)

        _build_info("nfd_master_build_info", self.registry)
        self.requests = counter("node_update_requests", "Looks at a node.")
        self.updates = counter("node_updates", "Writes to nodes.")
        self.failures = counter("node_update_failures", "Writes that failed.")
        self.rejected = {
            kind: counter(f"node_{name}_rejected", "Outputs that were refused.")
            for kind, name in _REJECTED.items()
        }
        self.removals = counter(
            "node_removals", "Keys taken from nodes, by kind.", ["kind"]
        )
        self.conflicts = counter(
            "node_conflicts", "Keys found to be held by somebody else."
        )
        self.errors = counter(
            "nodefeaturerule_processing_errors", "Rules that failed on a node."
        )
        self.seconds = Histogram(
            "nfd_master_nodefeaturerule_processing_duration_seconds",
            "Time to evaluate one rule; node is empty, results serve many nodes.",
            ["name", "node"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.trouble_count = counter(
            "api_errors",
            "Failed requests to the API server.",
            ["verb", "resource", "code"],
        )
        self.reloads = counter("config_reloads", "Reloads by outcome.", ["outcome"])
        self.collection = CollectionMetrics(self.registry)
        self.registry.register(self)

    # --- Observer ---------------------------------------------------------------

    def rules_loaded(self, loaded: Mapping[str, Loaded]) -> None:
        """Nothing is counted here; see `evaluated`."""

    def planned(self, evaluation: Evaluation, plan: NodePlan) -> None:
        """Count a look at a node and what was refused."""
        self.requests.inc()
        for refusal in (*evaluation.output.refused, *evaluation.refused):
            count = self.rejected.get(refusal.kind)
            if count is not None:
                count.inc()
        for _ in evaluation.output.errors:
            self.errors.inc()
        if plan.conflicts:
            self.conflicts.inc(len(plan.conflicts))

    def wrote(self, plan: NodePlan, step: Step) -> None:
        """Count a write and what it took away."""
        self.updates.inc()
        for kind, count in removed(plan, step).items():
            self.removals.labels(kind).inc(count)

    def failed(self, node: str, error: ApiError, failures: int, /) -> None:
        """Count a write that failed."""
        del node, failures
        self.failures.inc()
        self._count(error)

    def trouble(self, error: ApiError) -> None:
        """Count a request that failed."""
        self._count(error)

    def evaluated(self, rule: Rule, seconds: float) -> None:
        """Count the time of one evaluation."""
        self.seconds.labels(rule.origin, "").observe(seconds)

    def _count(self, error: ApiError) -> None:
        self.trouble_count.labels(error.verb, error.resource, str(error.status)).inc()

    # --- page -------------------------------------------------------------------

    def page(self) -> str:
        """Return the text for `/metrics`."""
        return page(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Yield what is read on demand."""
        now = self._figures()
        plain = (
            ("synced", "Whether all first lists are complete.", now.synced),
            ("leader", "Whether this master may write.", now.leader),
            ("nodes", "Nodes known.", now.nodes),
            ("nodefeatures", "NodeFeatures known.", now.node_features),
            ("queue_length", "Nodes that wait for a look.", now.queue),
        )
        for name, said, value in plain:
            yield GaugeMetricFamily(f"nfd_master_{name}", said, value=float(value))
        held = GaugeMetricFamily(
            "nfd_master_held_nodes",
            "Nodes whose removals the guard holds back, by cause.",
            labels=["cause"],
        )
        for cause in now.held:
            held.add_metric([cause.cause], float(len(cause.nodes)))
        yield held
        matched = GaugeMetricFamily(
            "nfd_master_nodefeaturerule_matched_nodes",
            "Nodes that the rules of an object match.",
            labels=["name"],
        )
        for rule, count in sorted(now.matched.items()):
            matched.add_metric([rule], float(count))
        yield matched


class CollectionMetrics:
    """Counts what garbage collection does."""

    def __init__(
        self, registry: CollectorRegistry, *, build_info: bool = False
    ) -> None:
        self._deleted = Counter(
            "nfd_gc_objects_deleted",
            "Objects of nodes that are gone.",
            ["kind"],
            registry=registry,
        )
        self._failures = Counter(
            "nfd_gc_object_delete_failures",
            "Objects that could not be deleted.",
            ["kind"],
            registry=registry,
        )
        if build_info:
            _build_info("nfd_gc_build_info", registry)

    def deleted(self, kind: str) -> None:
        """Count an object that was deleted."""
        self._deleted.labels(kind).inc()

    def not_deleted(self, kind: str, error: ApiError) -> None:
        """Count an object that was not."""
        del error
        self._failures.labels(kind).inc()


def _build_info(name: str, registry: CollectorRegistry) -> None:
    said = "Time of the start, in seconds since the epoch."
    build = Gauge(name, said, ["version"], registry=registry)
    build.labels(__version__).set(time.time())


def page(registry: CollectorRegistry) -> str:
    """Return the text for `/metrics`."""
    text: bytes = generate_latest(registry)
    return text.decode()


def removed(plan: NodePlan, step: Step) -> dict[str, int]:
    """Count what one step takes away, by kind; annotations of our own left out."""
    counts: dict[str, int] = {}
    for op in step.operations:
        path = op["path"]
        if path == "/spec/taints" and op["op"] != "test":
            taints = sum(r.kind == "taint" for r in plan.removals)
            if taints:
                counts["taint"] = taints
        if op["op"] != "remove":
            continue
        kind = ""
        if path.startswith("/metadata/labels/"):
            kind = "label"
        elif path.startswith("/metadata/annotations/"):
            name = path.rpartition("/")[2]
            own = name.partition("~1")[0]
            kind = "" if own.endswith(ANNOTATION_NS) else "annotation"
        elif path.startswith("/status/capacity/"):
            kind = "extendedResource"
        if kind:
            counts[kind] = counts.get(kind, 0) + 1
    return counts
