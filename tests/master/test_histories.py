"""Sequences that made masters strip clusters (issue cases H38 to H45), and upgrades."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from nfd.kube.resources import NODEFEATURERULES as RULES
from nfd.kube.resources import NODEFEATURES, NODES
from nfd.labels import ANNOTATION_NS, FEATURE_NS
from nfd.master.controller import Controller
from nfd.publish.ownership import NODE_NAME_LABEL
from tests.fakeapi.faults import answer, dropped, empty_list, reset, truncated
from tests.fakeapi.server import FakeApi
from tests.master.agents import ours, running
from tests.master.test_controller import RULE
from tests.master.test_fleet import feature

NODE_COUNT = 60
QUICK = "removalGuard: {listInterval: 700ms}\nenableTaints: true\ninformerPageSize: 20"


def fill(api: FakeApi) -> None:
    for i in range(NODE_COUNT):
        api.node(f"n{i}", {"host": f"n{i}"})
        api.put(NODEFEATURES, feature(f"n{i}"))
    api.put(RULES, RULE)


@contextmanager
def settled(api: FakeApi) -> Iterator[Controller]:
    """Run a master that has the proof of its second list."""
    with running(api, options=QUICK) as master:
        controller = master.agent.controller
        api.wait_for(lambda: controller.fleet.settling.done, 20)
        yield controller


def converge(api: FakeApi) -> None:
    """Let a first master label everything, then forget what was asked."""
    with running(api, options=QUICK) as master:
        api.wait_for(lambda: all(complete(api, f"n{i}") for i in range(NODE_COUNT)))
        assert master.agent.controller.wait_idle(20)
    api.requests.clear()


def complete(api: FakeApi, name: str) -> bool:
    node = api.get(NODES, name)
    tracked = f"{ANNOTATION_NS}/taints" in (node["metadata"].get("annotations") or {})
    return tracked and ours(api, name) == {"a": "1", "gpu": "true"}


def node_writes(api: FakeApi) -> list[Any]:
    return [
        json.loads(a.body)
        for a in api.requests
        if a.is_write and a.resource.startswith("nodes")
    ]


def expired_page(api: FakeApi) -> None:
    api.streaming_lists = False
    api.fault(
        answer(410, "Expired"),
        resource="nodefeatures",
        when=lambda a: "continue" in a.query,
    )


def hung_list(api: FakeApi) -> None:
    api.streaming_lists = False
    api.fault(reset(), verb="list", resource="nodefeatures", times=2)


def half_list(api: FakeApi) -> None:
    api.streaming_lists = False
    api.fault(truncated(3000), verb="list", resource="nodefeatures", times=2)


def empty_once(api: FakeApi) -> None:
    api.streaming_lists = False
    api.fault(empty_list(), verb="list", resource="nodefeatures", times=1)


def empty_rules_once(api: FakeApi) -> None:
    api.streaming_lists = False
    api.fault(empty_list(), verb="list", resource="nodefeaturerules", times=1)


def empty_nodes_once(api: FakeApi) -> None:
    api.streaming_lists = False
    api.fault(empty_list(), verb="list", resource="nodes", times=1)


def everything_empty_once(api: FakeApi) -> None:
    empty_once(api)
    empty_rules_once(api)
    empty_nodes_once(api)


def watch_drops(api: FakeApi) -> None:
    api.fault(
        dropped(), verb="watch", times=4, when=lambda a: "resourceVersion" in a.query
    )


@pytest.mark.parametrize(
    "trouble",
    [
        expired_page,
        hung_list,
        half_list,
        empty_once,
        empty_rules_once,
        empty_nodes_once,
        everything_empty_once,
        watch_drops,
    ],
)
def test_restart_in_trouble_writes_nothing(trouble: Callable[[FakeApi], None]) -> None:
    """H38 a to d: not one write, whatever the lists and watches go through."""
    with FakeApi() as api:
        fill(api)
        converge(api)
        trouble(api)
        with running(api, options=QUICK) as master:
            api.wait_for(lambda: master.agent.controller.synced, 20)
            fleet = master.agent.controller.fleet
            api.wait_for(lambda: len(fleet.features) == NODE_COUNT, 20)
            api.wait_for(lambda: fleet.settling.done, 20)
            assert master.agent.controller.wait_idle(20)

        assert node_writes(api) == []


def test_new_cluster_of_which_the_first_lists_show_nothing() -> None:
    """Nobody misses a label yet; they come as soon as the lists are asked for again."""
    with FakeApi() as api:
        fill(api)
        everything_empty_once(api)
        with running(api, options=QUICK):
            api.wait_for(lambda: all(complete(api, f"n{i}") for i in range(5)), 20)


def test_rules_that_one_list_does_not_show() -> None:
    """H38 c for rules, in the middle of life: a second list is asked for."""
    with FakeApi() as api:
        fill(api)
        converge(api)
        api.streaming_lists = False
        with settled(api) as controller:
            empty_rules_once(api)
            controller._rules.relist()
            feed = controller.rule_feed
            api.wait_for(lambda: feed.unproven, 20)
            api.wait_for(lambda: not feed.unproven, 20)
            assert controller.wait_idle(20)

        assert node_writes(api) == []


def test_nothing_is_listed_in_the_middle_of_life() -> None:
    """An API server that lost sight of everything, once; Nodes come back first."""
    with FakeApi() as api:
        fill(api)
        converge(api)
        api.streaming_lists = False
        with settled(api) as controller:
            everything_empty_once(api)
            controller._nodes.relist()
            api.wait_for(lambda: not len(controller.fleet.nodes), 20)
            controller._features.relist()
            api.wait_for(lambda: controller.fleet.presence.losses.unproven, 20)
            api.wait_for(lambda: len(controller.fleet.nodes) == NODE_COUNT, 20)
            api.wait_for(lambda: not controller.fleet.presence.losses.unproven, 20)
            assert controller.wait_idle(20)

        assert node_writes(api) == []


def test_not_ready_before_a_complete_list() -> None:
    """H38: readiness waits for the lists."""
    with FakeApi() as api:
        fill(api)
        converge(api)
        api.streaming_lists = False
        switch = api.fault(reset(), verb="list", resource="nodefeatures", times=None)
        with running(api, options=QUICK) as master:
            api.wait_for(lambda: switch.hits >= 2)
            assert master.agent.ready().status == 503
            switch.lift()
            api.wait_for(lambda: master.agent.ready().status == 200, 20)


def test_one_deleted_while_away() -> None:
    """H38 e: its labels go after two complete lists, resync off."""
    with FakeApi() as api:
        fill(api)
        converge(api)
        api.remove(NODEFEATURES, "n7", "nfd")
        with running(api, options=QUICK + "\nresyncPeriod: 0s"):
            api.wait_for(lambda: ours(api, "n7") == {}, 20)

        lists = [a for a in api.asked(resource="nodefeatures") if _is_list(a)]
        assert len(lists) >= 2
        assert all(complete(api, f"n{i}") for i in range(NODE_COUNT) if i != 7)


def _is_list(asked: Any) -> bool:
    return asked.verb == "list" or "sendInitialEvents" in asked.query


def test_many_deleted_while_away_are_held() -> None:
    """H38 f: reported, and not carried out."""
    with FakeApi() as api:
        fill(api)
        converge(api)
        for i in range(20):
            api.remove(NODEFEATURES, f"n{i}", "nfd")
        with running(api, options=QUICK) as master:
            api.wait_for(lambda: bool(master.agent.controller.held()), 20)
            assert "n3" in master.agent.controller.held()[0].nodes
            assert master.agent.controller.wait_idle(20)

        assert node_writes(api) == []


# --- upgrade ---------------------------------------------------------------------------

OLD = "nfd-master"  # field manager of upstream's master: the name of its program


def upstream_node(name: str) -> dict[str, Any]:
    """A Node as upstream's master leaves it (spec/master.md sections 1.5 and 2.8)."""
    return {
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                f"{FEATURE_NS}/a": "1",
                f"{FEATURE_NS}/gpu": "true",
            },
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                f"{FEATURE_NS}/note": "hello",
                f"{ANNOTATION_NS}/feature-labels": "a,gpu",
                f"{ANNOTATION_NS}/feature-annotations": "note",
                f"{ANNOTATION_NS}/extended-resources": "v.io/gpu",
                f"{ANNOTATION_NS}/taints": "v.io/t=x:NoSchedule",
            },
        },
        "spec": {"taints": [{"key": "v.io/t", "value": "x", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "8", "v.io/gpu": "2"},
            "allocatable": {"cpu": "8", "v.io/gpu": "2"},
        },
    }


def put_upstream_node(api: FakeApi, node: dict[str, Any]) -> None:
    """Let a kubelet register the Node, and upstream's master write the rest."""
    name = node["metadata"]["name"]
    hostname = {"kubernetes.io/hostname": name}
    api.put(NODES, {"metadata": {"name": name, "labels": hostname}}, manager="kubelet")
    api.put(NODES, node, manager=OLD)
    api.put(NODES, node, manager=OLD, subresource="status")


def upstream_feature(name: str) -> dict[str, Any]:
    """A NodeFeature of upstream's worker: owned by Pod and DaemonSet."""
    owners = [
        {"apiVersion": "v1", "kind": "Pod", "name": "w", "uid": "p"},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "w", "uid": "d"},
    ]
    made = feature(name)
    made["metadata"] |= {
        "labels": {NODE_NAME_LABEL: name},
        "annotations": {
            f"{ANNOTATION_NS}/worker.version": "v0.17.1",
            f"{ANNOTATION_NS}/worker.pod.uid": "p",
        },
        "ownerReferences": owners,
    }
    return made


def test_upgrade_from_upstream_takes_over_without_one_write() -> None:
    """Labels, annotations, taints, resources and their tracking stay as they are."""
    with FakeApi() as api:
        for i in range(5):
            put_upstream_node(api, upstream_node(f"n{i}"))
            api.put(NODEFEATURES, upstream_feature(f"n{i}"))
        api.put(RULES, RULE)
        before = [api.get(NODES, f"n{i}") for i in range(5)]
        uids = [o["metadata"]["uid"] for o in api.all(NODEFEATURES)]
        with settled(api) as controller:
            assert controller.wait_idle(20)

        assert [api.get(NODES, f"n{i}") for i in range(5)] == before
        assert [o["metadata"]["uid"] for o in api.all(NODEFEATURES)] == uids
        assert node_writes(api) == []


def test_upgrade_owns_what_upstream_owned() -> None:
    """A rule that goes takes away what upstream's master had written for it."""
    with FakeApi() as api:
        node = upstream_node("n0")
        node["metadata"]["annotations"][f"{ANNOTATION_NS}/master.version"] = "v0.10"
        put_upstream_node(api, node)
        api.put(NODEFEATURES, upstream_feature("n0"))
        api.put(RULES, RULE)
        with settled(api) as controller:
            api.remove(RULES, "gpu")
            api.wait_for(lambda: ours(api, "n0") == {"a": "1"}, 20)
            api.wait_for(lambda: not api.get(NODES, "n0")["spec"].get("taints"), 20)
            api.wait_for(
                lambda: api.get(NODES, "n0")["status"]["capacity"] == {"cpu": "8"}, 20
            )
            assert controller.wait_idle(20)

        assert api.get(NODES, "n0")["metadata"]["annotations"] == {
            "node.alpha.kubernetes.io/ttl": "0",
            f"{ANNOTATION_NS}/feature-labels": "a",
        }


# --- two masters ------------------------------------------------------------------------

SHORT = (
    "leaderElection: {leaseDuration: 2s, renewDeadline: 1s, retryPeriod: 200ms}\n"
    + QUICK
)


@pytest.mark.parametrize("lease_only", [False, True])
def test_partitioned_master_stops_before_another_starts(lease_only: bool) -> None:  # noqa: FBT001 - parameter
    """No write of the old leader after the first of the new one."""
    with FakeApi() as api:
        api.node("n0", {"host": "n0"})
        api.put(NODEFEATURES, feature("n0", {"a": "0"}))
        with running(
            api, options=SHORT, leader_election=True, node_name="m1", component="m1"
        ):
            api.wait_for(lambda: ours(api, "n0") == {"a": "0"})
            with running(
                api, options=SHORT, leader_election=True, node_name="m2", component="m2"
            ) as second:
                api.wait_for(lambda: second.agent.controller.synced)
                cut = api.fault(
                    reset(),
                    times=None,
                    when=lambda a: (
                        a.user_agent.startswith("nfd-m1")
                        and (a.resource == "leases" or not lease_only)
                    ),
                )
                for value in range(1, 40):
                    api.put(NODEFEATURES, feature("n0", {"a": str(value)}))
                    api.wait_for(lambda v=value: ours(api, "n0") == {"a": str(v)}, 20)  # type: ignore[misc] # no types of defaults
                    if second.agent.controller.is_leader and value > 20:
                        break
                    second.stop.wait(0.1)
                assert second.agent.controller.is_leader
                cut.lift()
                api.put(NODEFEATURES, feature("n0", {"a": "end"}))
                api.wait_for(lambda: ours(api, "n0") == {"a": "end"}, 20)

        writers = [
            a.user_agent.split("/")[0]
            for a in api.requests
            if a.is_write and a.resource == "nodes" and a.status == 200
        ]
    taken = writers.index("nfd-m2")
    assert set(writers[:taken]) == {"nfd-m1"}
    assert set(writers[taken:]) == {"nfd-m2"}
