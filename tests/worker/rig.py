"""A worker against the fake API server, without threads and without waiting."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import attrs

from nfd.config.worker import CoreConfig, Owners
from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.kube.resources import NODEFEATURES, NODES
from nfd.kube.retry import NO_RETRY
from nfd.kube.transport import Connection, Transport
from nfd.labels import FEATURE_NS, Label, Provenance
from nfd.publish.nodefeature import Identity
from nfd.source import FeatureSpec, LabelValue, Source
from nfd.worker.own_node import PROBE
from nfd.worker.owners import Pod
from nfd.worker.publisher import Publisher
from nfd.worker.results import NODE, OBJECT, Published, Result, Self
from nfd.worker.troubles import Troubles
from tests.fakeapi import FakeApi, FakeClock, Review, forbidden

NAME, NAMESPACE, POD = "n1", "nfd", "pod-uid-1"
BOTH = (NODE, OBJECT)


def key(name: str) -> str:
    return f"{FEATURE_NS}/{name}"


def result(labels: Mapping[str, str], **sets: set[str]) -> Result:
    """What a pass found: full label keys, and flags by `source_feature`."""
    return Result(
        Features.of(flags={k.replace("_", "."): v for k, v in sets.items()}),
        {k: Label(k, v, Provenance("x")) for k, v in labels.items()},
    )


def fence(review: Review) -> None:
    """Refuse what the admission policy of the chart refuses."""
    labels = (review.new or {}).get("metadata", {}).get("labels") or {}
    if review.resource is NODES and PROBE in labels:
        raise forbidden(NODES, NAME, "a worker may not change labels outside")


@attrs.define
class Log:
    """Remembers what is said."""

    said: list[tuple[str, str, dict[str, Any]]] = attrs.field(factory=list)

    def info(self, event: str, **fields: Any) -> None:
        self.said.append(("info", event, fields))

    def warning(self, event: str, **fields: Any) -> None:
        self.said.append(("warning", event, fields))

    def warnings(self, what: str = "") -> list[str]:
        """The reasons of troubles that were said, in order."""
        return [
            str(fields.get("reason"))
            for level, _, fields in self.said
            if level == "warning" and what in str(fields.get("what"))
        ]


@attrs.define
class Rig:
    """A publisher whose attempts the test makes; each retry waits on a fake clock."""

    api: FakeApi
    clock: FakeClock
    log: Log
    troubles: Troubles
    publisher: Publisher
    back: list[Published]

    def publish(self, what: Result) -> None:
        """Submit and try until nothing is due at once."""
        self.publisher.submit(what)
        self.settle()

    def settle(self) -> float | None:
        """Try while something is due at once; return what the publisher waits for."""
        for _ in range(20):
            wait = self.publisher.attempt()
            if wait is None or wait > 0:
                return wait
        raise AssertionError("never settles")

    def after(self, seconds: float) -> float | None:
        """Let time pass, then as `settle`."""
        self.clock.advance(seconds)
        return self.settle()

    def until_published(self, tries: int = 100) -> None:
        """Let the waits pass that the publisher asks for."""
        for _ in range(tries):
            wait = self.settle()
            if self.publisher.up_to_date:
                return
            assert wait is not None
            self.clock.advance(wait)
        raise AssertionError(f"not published: {self.troubles.now()}")

    def node_labels(self) -> dict[str, str]:
        """The labels of the Node."""
        return self.api.get(NODES, NAME)["metadata"].get("labels") or {}

    def object(self) -> dict[str, Any]:
        """The NodeFeature."""
        return self.api.get(NODEFEATURES, NAME, NAMESPACE)

    def asked(self) -> list[str]:
        """What was asked since the last call: verb, resource and status."""
        told = [f"{a.verb} {a.resource} {a.status}" for a in self.api.requests]
        del self.api.requests[:]
        return told


@contextmanager
def rig(
    targets: tuple[str, ...] = BOTH,
    *,
    api: FakeApi | None = None,
    pod_uid: str = POD,
    fenced: bool = True,
    connection: Connection | None = None,
    wrap: Callable[[Transport], Transport] = lambda transport: transport,
    **core: Any,
) -> Iterator[Rig]:
    """Make a publisher for node n1, on a server of its own unless one is given."""
    with FakeApi() if api is None else contextlib.nullcontext(api) as server:
        if api is None:
            server.node(NAME)
            if fenced:
                server.admission.append(fence)
        clock = FakeClock()
        log = Log()
        troubles = Troubles(log, clock.monotonic)
        client = server.client(
            "worker",
            connection=connection,
            clock=clock,
            retry=NO_RETRY,
            field_manager="nfd-worker",
            timeout=2.0,
        )
        client = client.but(transport=wrap(client.transport))
        back: list[Published] = []
        publisher = Publisher(
            client,
            Self(
                NAME,
                Identity(NAMESPACE, "1.0", pod_uid),
                Pod(NAMESPACE, "pod-1", pod_uid),
            ),
            targets,
            CoreConfig(**{"owner_refs": Owners(("pod",)), **core}),
            troubles=troubles,
            read_back=back.append,
        )
        yield Rig(server, clock, log, troubles, publisher, back)


@attrs.define
class Facts:
    """What the host of `FlakySource` has; tests change it."""

    names: set[str] = attrs.field(factory=lambda: {"a", "b"})
    error: str = ""
    runs: int = 0


class FlakySource(Source[Any]):
    """Finds what `facts` says, and fails when told to."""

    name = "flaky"
    feature_specs = (FeatureSpec("flaky.found", ("flag",), None, "names"),)
    facts: ClassVar[Facts] = Facts()

    def discover(self, host: HostRoot, settings: Any) -> Features:
        del host, settings
        facts = type(self).facts
        facts.runs += 1
        if facts.error:
            raise OSError(5, facts.error, "/sys/x")
        return Features.of(flags={"flaky.found": facts.names})

    def labels(
        self, features: Features, settings: Any
    ) -> Mapping[str, LabelValue | str]:
        del settings
        return dict.fromkeys(features.flags.get("flaky.found", ()), "true")


def tree(folder: Path) -> HostRoot:
    """A captured host with nothing on it."""
    (folder / "sys").mkdir(parents=True, exist_ok=True)
    return HostRoot.open(str(folder), live=False)
