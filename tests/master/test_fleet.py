"""The state machine of the master: events and time in, plans out.

`Cluster` plays the API server: it applies the plans, guards included, and counts
what was removed.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfd.features import Features
from nfd.labels import FEATURE_NS
from nfd.master.fleet import Fleet, FleetConfig
from nfd.master.guard import EDIT, LOST
from nfd.master.merging import Scope
from nfd.publish.nodefeature import WORKER_VERSION
from nfd.publish.ownership import NODE_NAME_LABEL
from nfd.rules.model import Expression, Rule, Term
from nfd.rules.policy import Policy
from tests.master.patching import apply

GPU = Features.of(instances={"pci.device": [{"vendor": "10de"}]})
CONFIG = FleetConfig(scope=Scope("nfd"), policy=Policy(enable_taints=True))
GPU_RULE = Rule(
    "gpu",
    labels={"gpu": "true"},
    match_features=(Term("pci.device", {"vendor": Expression("In", ("10de",))}),),
)


def feature(
    node: str,
    labels: Mapping[str, str] | None = None,
    features: Features = GPU,
    name: str = "",
    **meta: Any,
) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "nfd",
            "name": name or node,
            "uid": "f",
            "labels": {NODE_NAME_LABEL: node},
            "annotations": {WORKER_VERSION: "1"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **meta,
        },
        "spec": {
            "features": features.to_spec(),
            "labels": {"a": "1"} if labels is None else dict(labels),
        },
    }


class Cluster:
    """Nodes as the API server has them, and a master that sees every event."""

    def __init__(self, count: int = 0) -> None:
        self.now = 0.0
        self.removals: list[tuple[str, str]] = []
        self.writes = 0
        self.rules: dict[str, list[Rule]] = {}
        self.features: dict[str, dict[str, Any]] = {}
        self.nodes: dict[str, dict[str, Any]] = {}
        for i in range(count):
            self.add_node(f"n{i}")
            self.features[f"n{i}"] = feature(f"n{i}")

    def add_node(self, name: str, uid: str = "u", **spec: Any) -> None:
        meta = {
            "name": name,
            "uid": uid + name,
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"host": name},
            "annotations": {"k": "v"},
        }
        self.nodes[name] = {
            "kind": "Node",
            "metadata": meta,
            "spec": spec,
            "status": {"capacity": {}, "allocatable": {}},
        }

    def start(self, listed: Mapping[str, Any] | None = None) -> "Cluster":
        """Start a master; `listed` is what its first list shows."""
        self.fleet = Fleet(CONFIG)
        self.fleet.rules_put(self.rules, self.now)
        self.list_features(self.features if listed is None else listed)
        self.list_nodes(self.nodes)
        return self

    def list_nodes(self, listed: Mapping[str, Any]) -> None:
        self.fleet.node_list_begin()
        for node in listed.values():
            self.fleet.node_put(node)
        self.fleet.node_list_end(self.now)

    def list_features(self, listed: Mapping[str, Any]) -> None:
        self.fleet.feature_list_begin()
        for obj in listed.values():
            self.fleet.feature_put(obj)
        self.fleet.feature_list_end(self.now)

    def run(self, seconds: float = 0.0) -> "Cluster":
        """Work off the queue, then let time pass second by second."""
        end = self.now + seconds
        while True:
            self.fleet.tick(self.now)
            if self.fleet.wants_list(self.now):
                self.list_features(self.features)
            if self.fleet.wants_nodes(self.now):
                self.list_nodes(self.nodes)
            while (name := self.fleet.queue.pop()) is not None:
                self._write(name)
            if self.now >= end:
                return self
            self.now += 1.0

    def _write(self, name: str) -> None:
        planned = self.fleet.plan(name, self.now)
        if not planned:
            return
        step = planned.steps[0]
        self.removals += [
            (name, op["path"])
            for op in step.operations
            if op["op"] == "remove" and "nfd.node" not in op["path"]
        ]
        after = apply(self.nodes[name], step.operations)
        meta = after["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        self.nodes[name] = after
        self.writes += 1
        self.fleet.node_put(after)

    def put(self, obj: dict[str, Any]) -> None:
        self.features[obj["metadata"]["name"]] = obj
        self.fleet.feature_put(obj)

    def delete(self, name: str) -> None:
        obj = self.features.pop(name, None)
        if obj is not None:
            self.fleet.feature_deleted(obj, self.now)

    def renew_node(self, name: str, mark: str) -> None:
        self.fleet.node_deleted(name)
        self.add_node(name, uid=f"{mark}{self.now}")
        self.fleet.node_put(self.nodes[name])

    def set_rules(self, *rules: Rule) -> None:
        self.rules = {"r": list(rules)}
        self.fleet.rules_put(self.rules, self.now)

    def ours(self, name: str) -> dict[str, str]:
        """The node's labels of ours, short."""
        return {
            k.removeprefix(FEATURE_NS + "/"): v
            for k, v in self.nodes[name]["metadata"]["labels"].items()
            if k != "host"
        }


def test_new_node_is_labelled_with_one_patch() -> None:
    """NodeFeature and rule outputs together."""
    cluster = Cluster(1)
    cluster.rules = {"r": [GPU_RULE]}

    cluster.start().run()

    assert cluster.ours("n0") == {"a": "1", "gpu": "true"}
    assert cluster.writes == 1


def test_restart_on_a_converged_cluster_writes_nothing() -> None:
    """No GET and no write for a fleet that is as wanted."""
    cluster = Cluster(50).start().run()

    before = cluster.writes
    cluster.start().run(200)

    assert cluster.writes == before
    assert cluster.removals == []


def test_nothing_is_planned_before_all_lists_are_complete() -> None:
    """H38: not a single write on a part of the truth."""
    cluster = Cluster(3)
    fleet = Fleet(CONFIG)
    fleet.rules_put({}, 0.0)
    for obj in cluster.nodes.values():
        fleet.node_put(obj)
    fleet.node_list_end(0.0)
    fleet.feature_list_begin()
    fleet.feature_put(cluster.features["n0"])

    assert not fleet.plan("n0", 0.0)
    assert not fleet.synced


def test_empty_list_once_removes_nothing() -> None:
    """H38 c: the list answers 200 with no items once, then all."""
    cluster = Cluster(600).start().run()

    cluster.start(listed={}).run(61)
    cluster.run(300)

    assert cluster.removals == []
    assert cluster.fleet.held(cluster.now) == ()


def test_node_created_anew_while_a_list_lacks_its_object() -> None:
    """The Node was away for a moment only: that is no proof about its NodeFeature.

    It comes back with the labels that a master wrote before (found by chaos).
    """
    cluster = Cluster(30).start().run(100)
    node = cluster.nodes["n3"]

    cluster.list_features({})
    cluster.fleet.node_deleted("n3")
    cluster.run()
    cluster.fleet.node_put(node)
    cluster.run(200)

    assert cluster.removals == []


def test_empty_lists_of_everything_once_remove_nothing() -> None:
    """Neither Nodes nor NodeFeatures are shown; then the Nodes are back first."""
    cluster = Cluster(60).start().run(100)

    cluster.list_features({})
    cluster.list_nodes({})
    cluster.run(1)
    cluster.list_nodes(cluster.nodes)
    cluster.run(200)

    assert cluster.removals == []


def test_node_back_with_labels_that_nobody_speaks_for() -> None:
    """Two more lists have to show that; then they go."""
    cluster = Cluster(30).start().run(100)
    node = cluster.nodes["n3"]
    cluster.fleet.node_deleted("n3")
    cluster.delete("n3")
    cluster.run(100)

    cluster.fleet.node_put(node)
    cluster.run(59)
    assert cluster.removals == []
    cluster.run(120)

    assert cluster.ours("n3") == {}


def test_many_nodes_back_with_labels_that_nobody_speaks_for_are_held() -> None:
    """The breaker counts them as it counts lost NodeFeatures."""
    cluster = Cluster(30).start().run(100)
    nodes = dict(cluster.nodes)
    for name in nodes:
        cluster.fleet.node_deleted(name)
        cluster.delete(name)
    cluster.run(700)

    cluster.list_nodes(nodes)
    cluster.run(500)

    assert cluster.removals == []
    assert [h.cause for h in cluster.fleet.held(cluster.now)] == [LOST]


def test_object_that_speaks_for_another_node_now() -> None:
    """Seen with our own eyes: the old node's labels go at once."""
    cluster = Cluster(30).start().run(100)

    cluster.put(feature("n4", name="n3"))
    cluster.run()

    assert cluster.ours("n3") == {}


def test_new_nodes_and_an_empty_list() -> None:
    """They have no labels that somebody could miss: they want them all the same."""
    cluster = Cluster(3)

    cluster.start(listed={}).run(61)

    assert cluster.ours("n1") == {"a": "1"}


def test_empty_list_of_nodes() -> None:
    """The Nodes are asked for again; the watch tells only of those that change."""
    cluster = Cluster(3).start().run(100)

    cluster.fleet.node_list_begin()
    written = cluster.nodes["n0"]
    written["metadata"]["resourceVersion"] = "9"
    cluster.fleet.node_written(written)  # an answer is no part of the list
    cluster.fleet.node_list_end(cluster.now)
    cluster.fleet.node_put(cluster.nodes["n2"])
    cluster.put(feature("n1", {"b": "1"}))
    cluster.run(61)

    assert cluster.ours("n1") == {"b": "1"}


def test_one_lost_while_away_goes_after_the_second_list() -> None:
    """H38 e: deleted while the master was down."""
    cluster = Cluster(30).start().run()
    del cluster.features["n3"]

    cluster.start().run(59)
    assert cluster.removals == []
    cluster.run(30)

    assert cluster.removals
    assert {name for name, _ in cluster.removals} == {"n3"}
    assert cluster.ours("n3") == {}


def test_many_lost_while_away_are_held() -> None:
    """H38 f: a list that would strip more than a share is not carried out."""
    cluster = Cluster(30).start().run()
    cluster.features.clear()

    cluster.start().run(500)

    assert cluster.removals == []
    (held,) = cluster.fleet.held(cluster.now)
    assert held.cause == LOST
    assert len(held.nodes) == 30


def test_deleted_nodefeature_takes_its_labels() -> None:
    """A watched deletion is proof; the labels go within seconds."""
    cluster = Cluster(30).start().run(100)

    cluster.delete("n3")
    cluster.run(3)

    assert cluster.ours("n3") == {}
    assert {name for name, _ in cluster.removals} == {"n3"}


def test_mass_deletion_is_held_until_confirmed() -> None:
    """38,938 labels of 600 nodes went within 30 s upstream."""
    cluster = Cluster(60).start().run(100)
    for name in list(cluster.features):
        cluster.delete(name)
    cluster.run(1000)
    assert cluster.removals == []

    assert cluster.fleet.confirm(LOST, cluster.now) == 60
    cluster.run(1)

    assert cluster.ours("n0") == {}


def test_mass_deletion_heals_when_workers_publish_again() -> None:
    """Workers put their objects back within a second: not one label moves."""
    cluster = Cluster(60).start().run(100)
    objects = dict(cluster.features)
    for name in objects:
        cluster.delete(name)
    cluster.run(1)
    for obj in objects.values():
        cluster.put(obj)
    cluster.run(1000)

    assert cluster.removals == []
    assert cluster.fleet.held(cluster.now) == ()


@pytest.mark.parametrize("wrapped", [True, False])
def test_deletion_in_any_shape(wrapped: bool) -> None:  # noqa: FBT001 - parameter
    """H43: a tombstone wrapper, or an object without the node-name label."""
    cluster = Cluster(30).start().run(100)
    obj = cluster.features.pop("n3")
    obj["metadata"].pop("labels")

    cluster.fleet.feature_deleted({"obj": obj} if wrapped else obj, cluster.now)
    cluster.run(3)

    assert cluster.ours("n3") == {}
    assert len(cluster.removals) == 1


def test_changed_labels_go_at_once_even_after_a_start() -> None:
    """An update that this process saw is proof, before the second list too."""
    cluster = Cluster(3).start().run()

    cluster.put(feature("n1", {"b": "1"}))
    cluster.run()

    assert cluster.ours("n1") == {"b": "1"}


def test_key_lost_while_away_waits_for_the_second_list() -> None:
    """Who carried it is not known; after the grace it goes."""
    cluster = Cluster(30).start().run()
    cluster.features["n1"] = feature("n1", {"b": "1"})

    cluster.start().run(59)
    assert cluster.ours("n1") == {"a": "1", "b": "1"}
    cluster.run(30)

    assert cluster.ours("n1") == {"b": "1"}


def test_small_edit_acts_at_once() -> None:
    """Up to ten nodes or a tenth of the fleet."""
    cluster = Cluster(10)
    cluster.rules = {"r": [GPU_RULE]}
    cluster.start().run(100)

    cluster.set_rules()
    cluster.run()

    assert cluster.ours("n0") == {"a": "1"}


def test_large_edit_waits_a_minute_and_can_be_undone() -> None:
    """Additions of the edit are not held up."""
    cluster = Cluster(30)
    cluster.rules = {"r": [GPU_RULE]}
    cluster.start().run(100)

    cluster.set_rules(Rule("all", labels={"new": "1"}))
    cluster.run(30)
    assert cluster.ours("n0") == {"a": "1", "gpu": "true", "new": "1"}
    assert [h.cause for h in cluster.fleet.held(cluster.now)] == [EDIT]

    cluster.set_rules(GPU_RULE, Rule("all", labels={"new": "1"}))
    cluster.run(200)
    assert cluster.removals == []

    cluster.set_rules(Rule("all", labels={"new": "1"}))
    cluster.run(62)
    assert cluster.ours("n0") == {"a": "1", "new": "1"}


def test_confirmed_edit_acts_at_once() -> None:
    """`nfd fleet confirm edit`."""
    cluster = Cluster(30)
    cluster.rules = {"r": [GPU_RULE]}
    cluster.start().run(100)
    cluster.set_rules()
    cluster.run(1)

    assert cluster.fleet.confirm(EDIT, cluster.now) == 30
    cluster.run()

    assert cluster.ours("n0") == {"a": "1"}


def test_node_created_anew_is_labelled_at_once() -> None:
    """H40: new uid, no labels, NodeFeature unchanged."""
    cluster = Cluster(3).start().run(100)

    cluster.fleet.node_deleted("n1")
    cluster.add_node("n1", uid="v")
    cluster.fleet.node_put(cluster.nodes["n1"])
    cluster.run()

    assert cluster.ours("n1") == {"a": "1"}


def test_change_of_metadata_alone_is_no_work() -> None:
    """H45: managedFields, resourceVersion, foreign annotations."""
    cluster = Cluster(3).start().run(100)

    obj = feature("n1", resourceVersion="99", managedFields=[])
    obj["metadata"]["annotations"]["foreign"] = "1"
    cluster.put(obj)

    assert len(cluster.fleet.queue) == 0


def test_object_that_cannot_be_read_keeps_its_last_content() -> None:
    """One bad object costs nobody a label; it is named."""
    cluster = Cluster(3).start().run(100)
    obj = feature("n1")
    obj["spec"]["labels"] = ["a"]

    cluster.fleet.feature_put(obj)
    cluster.run(10)

    assert cluster.ours("n1") == {"a": "1"}
    assert "spec.labels" in cluster.fleet.problems["nfd", "n1"]


def test_object_that_cannot_be_read_after_a_start() -> None:
    """What it said before is not known; the labels stay until it can be read."""
    cluster = Cluster(3).start().run(100)
    good = cluster.features["n1"]
    cluster.features["n1"] = feature("n1")
    cluster.features["n1"]["spec"]["labels"] = ["a"]

    cluster.start().run(500)
    assert cluster.removals == []

    cluster.put({**good, "spec": {"labels": {"b": "1"}}})
    cluster.run()
    assert cluster.ours("n1") == {"b": "1"}


def test_unreadable_object_that_goes_while_nobody_watches() -> None:
    """Two lists prove that, as for any other."""
    cluster = Cluster(30).start().run(100)
    bad = feature("n1", name="of-n1")
    bad["spec"]["labels"] = ["a"]
    del cluster.features["n1"]
    cluster.features["of-n1"] = bad
    cluster.start().run(200)
    assert cluster.removals == []

    del cluster.features["of-n1"]
    cluster.list_features(cluster.features)
    cluster.run(200)

    assert cluster.ours("n1") == {}


def test_deletion_within_a_streaming_list() -> None:
    """The stream shows an object, then says that it is deleted, then ends."""
    cluster = Cluster(30).start().run(100)
    fleet = cluster.fleet
    gone = cluster.features["n3"]

    fleet.feature_list_begin()
    for obj in cluster.features.values():
        fleet.feature_put(obj)
    cluster.delete("n3")
    fleet.feature_list_end(cluster.now)
    cluster.run(3)

    assert gone not in cluster.features.values()
    assert cluster.ours("n3") == {}


def test_startup_taint_is_lifted_after_the_labels() -> None:
    """Not before the NodeFeature of this very Node has been written."""
    taint = {"key": "nfd.node.kubernetes.io/startup", "effect": "NoSchedule"}
    cluster = Cluster(2).start().run(100)
    cluster.add_node("new", taints=[taint])
    cluster.nodes["new"]["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    cluster.fleet.node_put(cluster.nodes["new"])
    cluster.put(feature("new"))  # of an older Node of that name
    cluster.run()
    assert cluster.nodes["new"]["spec"]["taints"] == [taint]

    cluster.put(feature("new", ownerReferences=[{"uid": "unew"}]))
    cluster.run()

    assert cluster.ours("new") == {"a": "1"}
    assert "taints" not in cluster.nodes["new"]["spec"]


def test_urgent_nodes_first() -> None:
    """What was begun is done first, then new nodes, changed ones, a resync."""
    cluster = Cluster(4).start().run(100)
    cluster.fleet.resync()
    cluster.put(feature("n2", {"b": "1"}))
    cluster.add_node("new")
    cluster.fleet.node_put(cluster.nodes["new"])

    written = cluster.nodes["n3"]
    written["metadata"] |= {"resourceVersion": "99", "labels": {}}
    cluster.fleet.node_written(written)

    order = [cluster.fleet.queue.pop() for _ in range(5)]

    assert order == ["n3", "new", "n2", "n0", "n1"]


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "put",
                "delete",
                "rules",
                "no rules",
                "restart",
                "renode",
                "wait",
                "relist",
            ]
        ),
        st.integers(0, 3),
        st.sampled_from(["a", "b"]),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(ACTIONS)
def test_any_history_ends_where_a_fresh_start_ends(
    actions: list[tuple[str, int, str]],
) -> None:
    """Convergence; and foreign labels are never touched."""
    cluster = Cluster(4).start().run()
    for action, index, label in actions:
        name = f"n{index}"
        steps: dict[str, Callable[[], object]] = {
            "put": partial(cluster.put, feature(name, {label: "1"})),
            "delete": partial(cluster.delete, name),
            "rules": partial(cluster.set_rules, GPU_RULE),
            "no rules": cluster.set_rules,
            "restart": cluster.start,
            "renode": partial(cluster.renew_node, name, label),
            "wait": partial(cluster.run, 30.0),
            "relist": partial(cluster.list_features, cluster.features),
        }
        steps[action]()
        cluster.run()

    cluster.run(100)
    cluster.fleet.confirm(LOST, cluster.now)
    cluster.run(800)

    for name, node in cluster.nodes.items():
        assert node["metadata"]["labels"]["host"] == name
        expected: dict[str, str] = {}
        if name in cluster.features:
            expected = dict(cluster.features[name]["spec"]["labels"])
            if cluster.rules.get("r"):
                expected["gpu"] = "true"
        assert expected == cluster.ours(name)


LISTS = st.lists(
    st.tuples(
        st.sampled_from(["features", "nodes", "gone", "back", "wait", "restart"]),
        st.sets(st.integers(0, 4)),
        st.integers(0, 61),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(LISTS)
def test_lists_that_show_too_little_remove_nothing(
    history: list[tuple[str, set[int], int]],
) -> None:
    """Nobody deleted a NodeFeature: whatever lists lack, and Nodes that come and go.

    Between two wrong lists of NodeFeatures is a right one: two in a row are proof.
    """
    cluster = Cluster(5).start().run(100)
    whole = dict(cluster.nodes)
    for action, indices, seconds in history:
        names = {f"n{i}" for i in indices}
        shown = {k: v for k, v in cluster.nodes.items() if k not in names}
        if action == "features":
            objects = cluster.features
            cluster.list_features(objects)
            cluster.list_features({k: v for k, v in objects.items() if k not in names})
        elif action == "nodes":
            cluster.list_nodes(shown)
        elif action == "gone":
            for name in sorted(names):
                cluster.fleet.node_deleted(name)
            cluster.nodes = shown
        elif action == "back":
            cluster.nodes = {**whole, **cluster.nodes}
            cluster.list_nodes(cluster.nodes)
        elif action == "restart":
            cluster.start()
        cluster.run(seconds)

    assert cluster.removals == []
