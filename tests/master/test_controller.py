"""The controller on the fake API server: events in, patches out."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from nfd.kube.clock import Stop
from nfd.kube.errors import ApiError
from nfd.kube.resources import NODEFEATURERULES, NODEFEATURES, NODES
from nfd.labels import FEATURE_NS
from nfd.master.controller import Controller, ControllerConfig
from nfd.master.evaluate import Evaluation
from nfd.master.fleet import FleetConfig
from nfd.master.merging import Scope
from nfd.master.plan import NodePlan, Step
from nfd.rules.load import Loaded
from nfd.rules.policy import Policy
from tests.fakeapi.faults import answer
from tests.fakeapi.server import FakeApi
from tests.master.test_fleet import feature

CONFIG = FleetConfig(scope=Scope("nfd"), policy=Policy(enable_taints=True))
RULE = {
    "metadata": {"name": "gpu"},
    "spec": {
        "rules": [
            {
                "name": "gpu",
                "labels": {"gpu": "true"},
                "extendedResources": {"v.io/gpu": "2"},
                "taints": [{"key": "v.io/t", "value": "x", "effect": "NoSchedule"}],
                "annotations": {"note": "hello"},
                "matchFeatures": [
                    {
                        "feature": "pci.device",
                        "matchExpressions": {"vendor": {"op": "In", "value": ["10de"]}},
                    }
                ],
            }
        ]
    },
}


@attrs.define
class Seen:
    """An observer that remembers."""

    errors: list[ApiError] = attrs.field(factory=list)
    written: list[tuple[str, str]] = attrs.field(factory=list)
    failed_once: threading.Event = attrs.field(factory=threading.Event)

    def rules_loaded(self, loaded: Mapping[str, Loaded]) -> None:
        pass

    def planned(self, evaluation: Evaluation, plan: NodePlan) -> None:
        pass

    def wrote(self, plan: NodePlan, step: Step) -> None:
        self.written.append((plan.node, step.target))

    def failed(self, _node: str, error: ApiError, _failures: int) -> None:
        self.errors.append(error)
        self.failed_once.set()

    def trouble(self, error: ApiError) -> None:
        self.errors.append(error)


@contextmanager
def running(api: FakeApi, seen: Seen, **settings: Any) -> Iterator[Controller]:
    stop = Stop()
    client = api.client("master", stop=stop)
    controller = Controller(
        client, CONFIG, seen, settings=ControllerConfig(writers=2, **settings)
    )
    thread = threading.Thread(target=controller.run, args=(stop,))
    thread.start()
    try:
        yield controller
    finally:
        stop.set()
        thread.join(5)
        assert not thread.is_alive()


def labels_of(api: FakeApi, name: str) -> dict[str, str]:
    labels: dict[str, str] = api.get(NODES, name)["metadata"].get("labels") or {}
    return {k.removeprefix(FEATURE_NS + "/"): v for k, v in labels.items()}


def patches(api: FakeApi) -> int:
    return sum(asked.verb == "patch" for asked in api.requests)


def test_walk_from_nodefeature_to_node() -> None:
    """worker → NodeFeature → rule → label, annotation, extended resource, taint."""
    with FakeApi() as api:
        api.node("n1", {"host": "n1"})
        api.put(NODEFEATURES, feature("n1"))
        api.put(NODEFEATURERULES, RULE)
        with running(api, Seen()) as controller:
            assert controller.wait_idle(10)

        node = api.get(NODES, "n1")

    assert labels_of_node(node) == {"host": "n1", "a": "1", "gpu": "true"}
    assert node["status"]["capacity"] == {"v.io/gpu": "2"}
    assert node["status"]["allocatable"] == {"v.io/gpu": "2"}
    assert node["spec"]["taints"] == [
        {"key": "v.io/t", "value": "x", "effect": "NoSchedule"}
    ]
    assert node["metadata"]["annotations"][f"{FEATURE_NS}/note"] == "hello"


def labels_of_node(node: Mapping[str, Any]) -> dict[str, str]:
    labels = node["metadata"]["labels"]
    return {k.removeprefix(FEATURE_NS + "/"): v for k, v in labels.items()}


def test_restart_reads_three_lists_and_writes_nothing() -> None:
    """No GET, no PATCH, whatever the size of the fleet."""
    with FakeApi() as api:
        for i in range(20):
            api.node(f"n{i}", {"host": "x"})
            api.put(NODEFEATURES, feature(f"n{i}"))
        with running(api, Seen()) as controller:
            assert controller.wait_idle(10)
        assert patches(api) == 20
        api.requests.clear()

        with running(api, Seen()) as controller:
            assert controller.wait_idle(10)

        verbs = {asked.verb for asked in api.requests}
    assert verbs <= {"list", "watch"}


def test_changes_are_followed() -> None:
    """A new label, a deleted object, a rule that comes and goes."""
    with FakeApi() as api:
        api.node("n1", {"host": "n1"})
        api.put(NODEFEATURES, feature("n1"))
        with running(api, Seen()) as controller:
            assert controller.wait_idle(10)
            api.put(NODEFEATURES, feature("n1", {"b": "1"}))
            wait_for(controller, api, "n1", {"host": "n1", "b": "1"})
            api.put(NODEFEATURERULES, RULE)
            wait_for(controller, api, "n1", {"host": "n1", "b": "1", "gpu": "true"})
            api.remove(NODEFEATURERULES, "gpu")
            wait_for(controller, api, "n1", {"host": "n1", "b": "1"})
            api.remove(NODES, "n1")
            api.node("n1", {"host": "n1"})
            wait_for(controller, api, "n1", {"host": "n1", "b": "1"})


def wait_for(
    controller: Controller, api: FakeApi, name: str, expected: dict[str, str]
) -> None:
    """Wait until the controller has brought a node there; it signals each change."""
    with controller._changed:
        done = controller._changed.wait_for(
            lambda: labels_of(api, name) == expected, timeout=10
        )
    assert done, labels_of(api, name)


def test_refused_writes_are_tried_again() -> None:
    """H45: 409 once, 429 with Retry-After, then it succeeds; nothing ends."""
    with FakeApi() as api:
        api.node("n1", {"host": "n1"})
        api.put(NODEFEATURES, feature("n1"))
        api.fault(answer(409), verb="patch", times=1)
        api.fault(answer(429, retry_after=0.1), verb="patch", times=1)
        seen = Seen()
        with running(api, seen) as controller:
            assert seen.failed_once.wait(10)
            wait_for(controller, api, "n1", {"host": "n1", "a": "1"})

    assert seen.errors[0].status == 409


def test_stale_view_of_a_node_is_looked_up() -> None:
    """A failed `test` means that somebody else wrote: look, plan again, succeed."""
    with FakeApi() as api:
        api.node("n1", {"host": "n1"})
        api.put(NODEFEATURES, feature("n1"))
        with running(api, Seen()) as controller:
            assert controller.wait_idle(10)
            with controller.changing() as fleet:
                node = fleet.nodes.get("n1")
                assert node is not None
                wrong = {**node.labels, f"{FEATURE_NS}/a": "other"}
                fleet.nodes.put(attrs.evolve(node, labels=wrong, resource_version="1"))
            api.put(NODEFEATURES, feature("n1", {"a": "2"}))
            wait_for(controller, api, "n1", {"host": "n1", "a": "2"})


def put_later(api: FakeApi, obj: dict[str, Any]) -> None:
    """Put a NodeFeature with a later date than that of any Node."""
    today, api.store.now = api.store.now, lambda: "2999-01-01T00:00:00Z"
    api.put(NODEFEATURES, obj)
    api.store.now = today


def test_startup_taints_of_nodes_that_need_no_write_are_lifted() -> None:
    """Metadata alone shows no taints: the first list, in pages, is of whole Nodes."""
    taint = {"key": "nfd.node.kubernetes.io/startup", "effect": "NoSchedule"}
    other = {"key": "v.io/mine", "effect": "NoSchedule"}
    with FakeApi() as api:
        for i in range(3):
            api.node(f"n{i}", {"host": f"n{i}"})
            put_later(api, feature(f"n{i}"))
        with running(api, Seen()) as controller:
            assert controller.wait_idle(10)
        node = api.get(NODES, "n1")
        node["spec"]["taints"] = [taint, other]
        api.put(NODES, node)

        del api.requests[:]
        with running(api, Seen(), page_size=2):
            api.wait_for(lambda: api.get(NODES, "n1")["spec"]["taints"] == [other])

        assert len(api.asked(verb="list", resource="nodes")) == 2
        assert not api.asked(verb="get", resource="nodes")


def test_startup_taint_of_a_node_that_comes_back_labelled_is_lifted() -> None:
    """The watch shows metadata only, and there is nothing to write: look once."""
    taint = {"key": "nfd.node.kubernetes.io/startup", "effect": "NoSchedule"}
    with FakeApi() as api:
        api.node("n1", {"host": "n1"})
        put_later(api, feature("n1"))
        with running(api, Seen()) as controller:
            assert controller.wait_idle(10)
            node = api.get(NODES, "n1")
            api.remove(NODES, "n1")
            wait_for_nodes(controller, 0)
            kept = {k: node["metadata"][k] for k in ("name", "labels", "annotations")}
            api.put(NODES, {"metadata": kept, "spec": {"taints": [taint]}})
            api.wait_for(lambda: not api.get(NODES, "n1")["spec"].get("taints"))

        assert len(api.asked(verb="get", resource="nodes")) == 1


def wait_for_nodes(controller: Controller, count: int) -> None:
    """Wait until the controller knows so many Nodes."""
    with controller._changed:
        assert controller._changed.wait_for(
            lambda: len(controller.fleet.nodes) == count, timeout=10
        )


def test_startup_taint_of_a_new_node_is_lifted_once_it_is_labelled() -> None:
    """The answer to the first write shows it; labels come first."""
    taint = {"key": "nfd.node.kubernetes.io/startup", "effect": "NoSchedule"}
    with FakeApi() as api:
        put_later(api, feature("n1"))
        with running(api, Seen()) as controller:
            assert controller.wait_idle(10)
            node = {"metadata": {"name": "n1"}, "spec": {"taints": [taint]}}
            api.put(NODES, node)
            api.wait_for(lambda: not api.get(NODES, "n1")["spec"].get("taints"))

        assert labels_of(api, "n1") == {"a": "1"}


def test_resource_that_only_tracking_tells_of_is_taken_back() -> None:
    """No rule has resources any more: the tracking annotation asks for whole Nodes."""
    with FakeApi() as api:
        api.node("n1", {"host": "n1"})
        api.put(NODEFEATURES, feature("n1"))
        api.put(NODEFEATURERULES, RULE)
        with running(api, Seen()) as controller:
            assert controller.wait_idle(10)
        api.remove(NODEFEATURERULES, "gpu")
        limits = attrs.evolve(CONFIG.limits, list_interval=0.3)

        with running(api, Seen()) as controller:
            with controller.changing() as fleet:
                fleet.configure(attrs.evolve(CONFIG, limits=limits), 0.0)
            api.wait_for(lambda: not api.get(NODES, "n1")["status"].get("capacity"), 20)
            api.wait_for(lambda: not api.get(NODES, "n1")["spec"].get("taints"), 20)
