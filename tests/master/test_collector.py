"""Garbage collection: only what is certainly orphaned goes."""

import threading
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from nfd.kube.clock import Stop
from nfd.kube.errors import ApiError
from nfd.kube.resources import NODEFEATURES, NODES
from nfd.master.collector import TOPOLOGIES, Collector, Standalone
from nfd.master.orphans import Orphans
from tests.fakeapi.faults import empty_list
from tests.fakeapi.server import FakeApi
from tests.master.agents import running
from tests.master.test_fleet import feature


@attrs.define
class Seen:
    gone: list[str] = attrs.field(factory=list)
    errors: list[ApiError] = attrs.field(factory=list)

    def deleted(self, kind: str) -> None:
        self.gone.append(kind)

    def not_deleted(self, kind: str, error: ApiError) -> None:
        del kind
        self.errors.append(error)


def test_orphans_need_their_grace() -> None:
    """Seen without its node for the whole grace; a return starts it anew."""
    orphans: Orphans[str] = Orphans(60)

    assert orphans.seen({"a": "n1"}, {"n2"}, 0) == []
    assert orphans.seen({"a": "n1"}, {"n2"}, 59) == []
    assert orphans.seen({"a": "n1"}, {"n1"}, 60) == []
    assert orphans.seen({"a": "n1"}, {"n2"}, 61) == []
    assert orphans.seen({"a": "n1"}, {"n2"}, 121) == ["a"]


def test_objects_that_name_no_node_stay() -> None:
    orphans: Orphans[str] = Orphans(0)

    assert orphans.seen({"a": ""}, {"n2"}, 0) == []


def test_a_cluster_without_nodes_is_not_believed() -> None:
    orphans: Orphans[str] = Orphans(0)

    assert orphans.seen({"a": "n1"}, set(), 0) == []


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 100)), max_size=20))
def test_nothing_goes_whose_node_was_seen_within_the_grace(
    views: list[tuple[bool, float]],
) -> None:
    orphans: Orphans[str] = Orphans(60)
    now, present_at = 0.0, 0.0
    for present, pause in views:
        now += pause
        nodes = {"n1", "other"} if present else {"other"}
        if present:
            present_at = now
        due = orphans.seen({"a": "n1"}, nodes, now)

        assert not due or now - present_at >= 60


def names(api: FakeApi, resource: Any = NODEFEATURES) -> set[str]:
    return {o["metadata"]["name"] for o in api.all(resource)}


def run(api: FakeApi, seen: Seen, **more: Any) -> tuple[Stop, list[threading.Thread]]:
    stop = Stop()
    settings: dict[str, Any] = {
        "interval": 0.3,
        "grace": 0.1,
        "page_size": 2,
        "on_error": seen.errors.append,
        **more,
    }
    found = Standalone(api.client("gc", stop=stop), seen, **settings)
    threads = [
        threading.Thread(target=work, args=(stop,))
        for work in (found.feed.run, found.run)
    ]
    for thread in threads:
        thread.start()
    return stop, threads


def end(stop: Stop, threads: list[threading.Thread]) -> None:
    stop.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_standalone_removes_what_nodes_left_behind() -> None:
    """Existing orphans, later ones, and topologies; those of real nodes stay."""
    with FakeApi() as api:
        api.serve(TOPOLOGIES)
        api.permitted = {  # upstream's role of nfd-gc
            (verb, kind)
            for verb, kind in (
                ("list", "nodes"),
                ("watch", "nodes"),
                ("list", "nodefeatures"),
                ("delete", "nodefeatures"),
                ("list", "noderesourcetopologies"),
                ("delete", "noderesourcetopologies"),
            )
        }
        api.node("n1")
        api.node("n2")
        for node in ("n1", "n2", "gone"):
            api.put(NODEFEATURES, feature(node))
            api.put(TOPOLOGIES, {"metadata": {"name": node}})
        nameless = feature("n1", name="nameless")
        nameless["metadata"]["labels"] = {}
        api.put(NODEFEATURES, nameless)
        seen = Seen()
        stop, threads = run(api, seen)
        try:
            api.wait_for(lambda: names(api) == {"n1", "n2", "nameless"})
            api.wait_for(lambda: names(api, TOPOLOGIES) == {"n1", "n2"})
            api.remove(NODES, "n2")
            api.wait_for(lambda: names(api) == {"n1", "nameless"})
        finally:
            end(stop, threads)

    assert seen.errors == []


def test_recreated_object_is_another_one() -> None:
    """The precondition on the UID keeps a successor."""
    with FakeApi() as api:
        api.node("n1")
        made = api.put(NODEFEATURES, feature("gone"))
        seen = Seen()
        collector = Collector(api.client(), seen, 0.0)
        old = {("nfd", "gone"): ("an-older-uid", "gone")}

        collector.features(old, {"n1"})

        assert names(api) == {"gone"}
        assert seen.gone == []
        collector.features({("nfd", "gone"): (made["metadata"]["uid"], "gone")}, {"n1"})

        assert names(api) == set()


def test_node_that_is_back_keeps_its_object() -> None:
    """One more look for the Node before each deletion."""
    with FakeApi() as api:
        api.node("n1")
        made = api.put(NODEFEATURES, feature("n1"))
        collector = Collector(api.client(), Seen(), 0.0)

        collector.features({("nfd", "n1"): (made["metadata"]["uid"], "n1")}, {"other"})

        assert names(api) == {"n1"}


def test_empty_list_of_nodes_deletes_nothing() -> None:
    """H38 c for the collector: an API server that shows no Nodes for once."""
    with FakeApi() as api:
        api.streaming_lists = False
        api.node("n1")
        api.put(NODEFEATURES, feature("n1"))
        switch = api.fault(empty_list(), verb="list", resource="nodes", times=1)
        stop, threads = run(api, Seen())
        try:
            api.wait_for(lambda: switch.hits == 1)
            api.wait_for_requests(3, verb="list", resource="nodefeatures")
        finally:
            end(stop, threads)

        assert names(api) == {"n1"}


def test_master_collects_by_what_it_knows() -> None:
    """No list beyond the master's own; each orphan costs one look and one delete."""
    with FakeApi() as api:
        api.node("n1")
        api.put(NODEFEATURES, feature("n1"))
        api.put(NODEFEATURES, feature("gone"))
        with running(api, options="garbageCollection: {grace: 100ms}"):
            api.wait_for(lambda: names(api) == {"n1"})

        assert len(api.asked(verb="list", resource="nodefeatures")) == 0
        assert len(api.asked(verb="list", resource="nodes")) <= 2


def test_missing_right_to_delete_is_asked_for_once() -> None:
    """Upstream's role of the master: no collection, no failure."""
    with FakeApi() as api:
        api.node("n1")
        api.put(NODEFEATURES, feature("gone"))
        api.deny("delete", "nodefeatures")
        with running(api, options="garbageCollection: {grace: 50ms}") as master:
            api.wait_for_requests(1, verb="delete")
            api.wait_for(lambda: "delete" in " ".join(master.agent.missing))

        assert names(api) == {"gone"}
        assert len(api.asked(verb="delete")) == 1
