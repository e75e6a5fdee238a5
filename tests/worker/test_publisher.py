"""Publishing to Node and NodeFeature: order, cost, refusals, and what never happens."""

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from nfd.config.worker import Owners
from nfd.features import Features
from nfd.kube.resources import NODEFEATURES, NODES, PODS
from nfd.kube.transport import Connection
from nfd.labels import FEATURE_NS
from nfd.publish.nodefeature import POD_UID, SIZE_BUDGET
from nfd.worker.own_node import PROBE
from nfd.worker.results import NODE, OBJECT
from tests.fakeapi import (
    FakeApi,
    Fault,
    Review,
    answer,
    forbidden,
    garbage,
    lost_answer,
    reset,
)
from tests.fakeapi.faults import hang, truncated
from tests.worker.rig import BOTH, NAME, NAMESPACE, fence, key, result, rig

A, B = key("a"), key("b")
ONE = result({A: "true"})
TWO = result({A: "true", B: "true"})


def removals(api: Any) -> list[str]:
    """Every key that any patch or update took away, as the requests say it."""
    gone = []
    for asked in api.requests:
        if asked.verb == "patch" and asked.body and "dryRun" not in asked.query:
            gone += [o["path"] for o in json.loads(asked.body) if o["op"] == "remove"]
        if asked.verb == "delete":
            gone.append(asked.path)
        if asked.verb == "update":
            spec = json.loads(asked.body)["spec"]
            gone += [k for k in (A, B) if k not in spec["labels"]]
    return gone


def test_additions_come_before_the_nodefeature_and_removals_after() -> None:
    """A label is there before a master could rely on it, and goes once unpublished."""
    with rig() as r:
        r.publish(TWO)
        assert r.asked() == [
            "get nodefeatures 404",
            "get nodes 200",
            "patch nodes 403",
            "patch nodes 200",
            "create nodefeatures 201",
        ]

        r.publish(result({B: "false", key("c"): "1"}))

        assert r.asked() == [
            "patch nodes 200",
            "update nodefeatures 200",
            "patch nodes 200",
        ]
        assert r.node_labels() == {B: "false", key("c"): "1"}
        assert r.object()["spec"]["labels"] == {B: "false", key("c"): "1"}


def test_unchanged_passes_ask_for_nothing() -> None:
    with rig() as r:
        r.publish(ONE)
        r.asked()

        for _ in range(10):
            r.publish(result({A: "true"}))
            r.clock.advance(60)

        assert r.asked() == []


def test_a_restart_writes_nothing_and_reads_back_once() -> None:
    with rig() as r:
        r.publish(ONE)
        r.asked()
        with rig(api=r.api) as again:
            again.publish(ONE)

            assert r.asked() == ["get nodefeatures 200", "get nodes 200"]
            (back,) = again.back
            assert back.node_labels == {A: "true"}
            assert back.obj is not None


def test_unprefixed_keys_get_the_default_prefix_on_the_node_only() -> None:
    """The NodeFeature keeps them as upstream's; a master prefixes them the same way."""
    with rig() as r:
        r.publish(result({"rdma.capable": "true"}))

        assert r.node_labels() == {f"{FEATURE_NS}/rdma.capable": "true"}
        assert r.object()["spec"]["labels"] == {"rdma.capable": "true"}


FAULTS: dict[str, Fault] = {
    "403": answer(403, "Forbidden"),
    "409": answer(409, "Conflict"),
    "410": answer(410, "Gone"),
    "422": answer(422, "Invalid"),
    "429": answer(429, "TooManyRequests", retry_after=7),
    "500": answer(500, "InternalError"),
    "503": answer(503, "ServiceUnavailable"),
    "401": answer(401, "Unauthorized"),
    "404": answer(404, "NotFound"),
    "413": answer(413, "RequestEntityTooLarge"),
    "reset": reset(),
    "lost answer": lost_answer(),
    "truncated": truncated(10),
    "garbage": garbage(),
    "strange JSON": Fault(status_line=b'{"portal": true}'),
}


@pytest.mark.parametrize("resource", ["nodes", "nodefeatures"])
@pytest.mark.parametrize("name", FAULTS)
def test_no_fault_removes_a_label(name: str, resource: str) -> None:
    """Each switch on each request in turn ends with all labels and no removal."""
    for nth in range(6):
        with rig() as r:
            r.publish(ONE)
            del r.api.requests[:]
            with rig(api=r.api) as again:
                count = iter(range(100))

                def hit(asked: Any, count: Any = count, nth: int = nth) -> bool:
                    return bool(asked.resource == resource and next(count) == nth)

                r.api.fault(FAULTS[name], times=1, when=hit)
                again.publisher.submit(TWO)
                again.until_published()

                assert removals(r.api) == []
                assert again.node_labels() == {A: "true", B: "true"}
                assert again.object()["spec"]["labels"] == {A: "true", B: "true"}


def test_a_hanging_server_holds_up_nothing_else() -> None:
    with rig() as r:
        r.publish(ONE)
        switch = r.api.fault(hang(), times=1, resource="nodes")

        r.publish(TWO)
        switch.lift()

        assert r.object()["spec"]["labels"] == {A: "true", B: "true"}
        r.until_published()
        assert r.node_labels() == {A: "true", B: "true"}


def test_the_newest_result_wins() -> None:
    with rig() as r:
        switch = r.api.fault(answer(500), times=None)
        r.publish(ONE)
        r.publish(TWO)
        switch.lift()

        r.until_published()

        assert r.object()["spec"]["labels"] == {A: "true", B: "true"}


def test_retry_after_is_honoured() -> None:
    with rig((OBJECT,)) as r:
        r.publish(ONE)
        r.api.fault(answer(429, retry_after=300), times=1, verb="update")
        r.publish(TWO)
        r.asked()

        assert r.after(290) is not None
        assert r.asked() == []
        r.after(20)
        assert r.asked() == ["update nodefeatures 200"]


def test_create_refused_backs_off_and_names_verb_and_resource() -> None:
    """H47 (c): no crash loop; readiness tells what is missing, the log once."""
    with rig((OBJECT,)) as r:
        r.api.deny("create", "nodefeatures")
        waits = []
        r.publisher.submit(ONE)
        for _ in range(8):
            wait = r.settle()
            assert wait is not None
            waits.append(wait)
            r.clock.advance(wait)

        assert waits[-1] > 10 * waits[0]
        assert not r.publisher.has_published
        (said,) = r.log.warnings("publishing")
        assert "missing permission: create nodefeatures.nfd.k8s-sigs.io" in said
        assert r.troubles.now()["publishing the NodeFeature"].grave


def test_owner_refused_is_published_without_the_change() -> None:
    """H47 (a): the spec is published, one warning."""
    why = "cannot set an ownerRef on a resource you can't delete: , <nil>"

    def no_owners(review: Review) -> None:
        new = (review.new or {}).get("metadata", {}).get("ownerReferences")
        old = (review.old or {}).get("metadata", {}).get("ownerReferences")
        if review.resource is NODEFEATURES and new != old:
            raise forbidden(NODEFEATURES, NAME, why)

    with rig((OBJECT,)) as r:
        r.api.admission.append(no_owners)
        r.publish(ONE)
        r.publish(TWO)

        assert r.object()["spec"]["labels"] == {A: "true", B: "true"}
        assert "ownerReferences" not in r.object()["metadata"]
        assert len(r.log.warnings("owners of the NodeFeature")) == 1


def test_own_pod_not_readable_publishes_with_the_other_owners() -> None:
    """H47 (b)."""
    with rig((OBJECT,), owner_refs=Owners(("node", "ds"))) as r:
        r.api.fault(reset(), times=None, resource="pods")

        r.publish(ONE)

        owners = r.object()["metadata"]["ownerReferences"]
        assert [o["kind"] for o in owners] == ["Node"]
        assert len(r.log.warnings("owner ds")) == 1


def test_daemon_set_of_the_pod_owns() -> None:
    """Copied with its `controller`, never blocking deletion."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}
    with rig((OBJECT,), owner_refs=Owners(("pod", "ds"))) as r:
        metadata = {
            "name": "pod-1",
            "namespace": NAMESPACE,
            "ownerReferences": [
                {**owner, "controller": True, "blockOwnerDeletion": True}
            ],
        }
        r.api.put(PODS, {"metadata": metadata, "spec": {}})

        r.publish(ONE)

        pod, daemon_set = r.object()["metadata"]["ownerReferences"]
        assert (pod["kind"], pod["uid"]) == ("Pod", "pod-uid-1")
        assert daemon_set == {**owner, "controller": True, "blockOwnerDeletion": False}


def test_nothing_is_written_without_a_fence() -> None:
    """Node writing stays off with a message; the NodeFeature goes on."""
    with rig(fenced=False) as r:
        r.publish(ONE)

        assert r.node_labels() == {}
        assert r.object()["spec"]["labels"] == {A: "true"}
        assert "no admission policy fences" in r.log.warnings("to the Node")[0]
        assert not r.troubles.now()["publishing to the Node"].grave
        assert r.publisher.has_published

        r.api.admission.append(fence)
        r.after(3601)
        assert r.node_labels() == {A: "true"}


def test_trust_unfenced_overrides() -> None:
    with rig(fenced=False, trust_unfenced=True) as r:
        r.publish(ONE)

        assert r.node_labels() == {A: "true"}
        assert not any(PROBE.encode() in a.body for a in r.api.requests)


def test_refused_namespace_leaves_the_feature_namespace() -> None:
    """After a refusal it goes on with the feature namespace; nothing is removed."""

    def only_features(review: Review) -> None:
        labels = (review.new or {}).get("metadata", {}).get("labels") or {}
        if review.resource is NODES and any("nvidia" in k for k in labels):
            raise forbidden(NODES, NAME, "a worker may not change labels outside")

    with rig() as r:
        r.api.admission.append(only_features)
        r.publish(result({A: "true", "nvidia.com/gpu.count": "8"}))

        assert r.node_labels() == {A: "true"}
        assert r.object()["spec"]["labels"]["nvidia.com/gpu.count"] == "8"
        assert len(r.log.warnings("namespaces of labels")) == 1


def test_keys_that_nobody_will_write_are_named() -> None:
    """Without a master; with one they are its business."""
    labels = result({A: "true", "vendor.example/x": "1"})
    for targets, told in (((NODE,), True), (BOTH, False)):
        with rig(targets) as r:
            r.publish(labels)

            assert r.node_labels() == {A: "true"}
            found = r.troubles.now().get("labels outside core.labelNamespaces")
            assert (found is not None) is told
            assert found is None or found.text == "not written: vendor.example/x"


def test_keys_of_others_are_yielded_one_by_one() -> None:
    with rig() as r:
        labels = {A: "theirs"}
        r.api.put(NODES, {"metadata": {"name": NAME, "labels": labels}}, manager="m")
        r.publish(TWO)

        assert r.node_labels() == {A: "theirs", B: "true"}
        (said,) = r.log.warnings("label ")
        assert said == "left to m, who set it to 'theirs'; this worker wants 'true'"

        r.publish(result({A: "theirs", B: "true"}))
        assert "label feature.node.kubernetes.io/a" not in r.troubles.now()


def test_a_node_that_changed_is_read_again_before_a_removal() -> None:
    with rig((NODE,)) as r:
        r.publish(TWO)
        r.api.node(NAME, {A: "true", B: "true", "zone": "1"})
        r.asked()

        r.publish(ONE)

        assert r.asked() == ["patch nodes 422", "get nodes 200", "patch nodes 200"]
        assert r.node_labels() == {A: "true", "zone": "1"}


def test_foreign_labels_stay_for_ever() -> None:
    with rig() as r:
        r.api.node(NAME, {"zone": "1", key("by-hand"): "1"})
        r.publish(ONE)
        r.publish(result({}))

        assert r.node_labels() == {"zone": "1", key("by-hand"): "1"}


def test_node_made_again_is_labelled_again() -> None:
    """H40 for the worker: its patch is bound to the Node's uid."""
    with rig() as r:
        r.publish(ONE)
        r.api.remove(NODES, NAME)
        r.api.node(NAME)

        r.publish(TWO)

        assert r.node_labels() == {A: "true", B: "true"}


def test_missing_node_costs_only_the_node() -> None:
    with rig() as r:
        r.api.remove(NODES, NAME)

        r.publish(ONE)

        assert r.object()["spec"]["labels"] == {A: "true"}
        assert "nodes n1: 404" in r.log.warnings("reading the Node")[0]


def test_node_alone_is_read_again_every_five_minutes() -> None:
    """No master would put a label back that someone took away."""
    with rig((NODE,)) as r:
        r.publish(ONE)
        r.api.node(NAME, {})
        r.asked()

        r.after(299)
        assert r.asked() == []
        r.after(2)

        assert r.node_labels() == {A: "true"}


def test_deleted_or_edited_object_is_put_back() -> None:
    with rig((OBJECT,)) as r:
        r.publish(ONE)
        own = r.publisher.object
        assert own is not None
        r.api.remove(NODEFEATURES, NAME, NAMESPACE)
        own.deleted({"metadata": {"uid": own_uid(r)}})
        r.settle()
        assert r.object()["spec"]["labels"] == {A: "true"}

        edited = r.object()
        edited["spec"]["labels"] = {}
        own.modified(r.api.put(NODEFEATURES, edited))
        r.settle()
        assert r.object()["spec"]["labels"] == {A: "true"}


def own_uid(r: Any) -> str:
    return str(r.publisher.object._found.metadata["uid"])


def test_echo_of_an_older_write_repairs_nothing() -> None:
    with rig((OBJECT,)) as r:
        r.publish(ONE)
        before = r.object()
        r.publish(TWO)
        r.asked()
        assert r.publisher.object is not None

        r.publisher.object.modified(before)
        r.settle()

        assert r.asked() == []


def test_two_workers_do_not_fight_for_ever() -> None:
    """Both say so, and the object comes to rest."""
    with rig((OBJECT,)) as one, rig((OBJECT,), api=one.api, pod_uid="other") as two:
        one.publish(ONE)
        two.publish(TWO)
        del one.api.requests[:]
        for _ in range(50):
            for r in (one, two):
                assert r.publisher.object is not None
                r.publisher.object.modified(one.object())
                r.after(1)

        assert len(one.api.asked(verb="update")) <= 12
        for r, other in ((one, "other"), (two, "pod-uid-1")):
            assert any(other in said for said in r.log.warnings("NodeFeature of this"))


def test_two_workers_do_not_fight_for_a_node_label() -> None:
    other = result({A: "false"})
    with rig((NODE,)) as one, rig((NODE,), api=one.api) as two:
        one.publish(ONE)
        two.publish(other)
        del one.api.requests[:]
        for _ in range(20):
            one.after(301)
            two.after(301)

        assert len(one.api.asked(verb="patch")) <= 10
        assert any("left to nfd-worker" in s for s in one.log.warnings("label "))


def test_object_that_nobody_watches_is_looked_at_every_hour() -> None:
    with rig((OBJECT,)) as r:
        r.publish(ONE)
        r.api.remove(NODEFEATURES, NAME, NAMESPACE)
        r.asked()

        r.after(3500)
        assert r.asked() == []
        r.after(200)

        assert r.object()["spec"]["labels"] == {A: "true"}


def test_masters_note_and_foreign_edits_of_annotations() -> None:
    """What a master notes stays, other annotations go as with upstream."""
    with rig((OBJECT,)) as r:
        r.publish(ONE)
        noted = r.object()
        refused = "nfd.node.kubernetes.io/refused"
        noted["metadata"]["annotations"] |= {refused: "{}", "x": "y"}
        r.api.put(NODEFEATURES, noted)

        r.publish(TWO)
        r.until_published()

        notes = r.object()["metadata"]["annotations"]
        assert notes[refused] == "{}"
        assert notes[POD_UID] == "pod-uid-1"
        assert "x" not in notes


def test_size_over_the_budget_names_the_largest_sets() -> None:
    with rig((OBJECT,)) as r:
        big = {f"OPTION_{i:05}": "y" for i in range(9000)}
        features = Features.of(attributes={"kernel.config": big})

        r.publish(attrs.evolve(ONE, features=features))

        (said,) = r.log.warnings("size")
        assert f"over {SIZE_BUDGET} bytes" in said
        assert "kernel.config" in said


def test_features_are_chosen_by_the_configuration() -> None:
    """`noPublishFeatures` takes away, `publishFeatures` leaves nothing else."""
    sets = {"pci_device": {"x"}, "cpu_cpuid": {"y"}, "cpu_model": {"z"}}
    core: dict[str, Any] = {
        "no_publish_features": ("cpu.m*",),
        "publish_features": ("cpu.*",),
    }
    with rig((OBJECT,), **core) as r:
        r.publish(result({A: "true"}, **sets))

        assert list(r.object()["spec"]["features"]["flags"]) == ["cpu.cpuid"]


@pytest.mark.parametrize("targets", [BOTH, (OBJECT,), (NODE,)])
def test_nothing_is_written_before_what_was_there_is_known(
    targets: tuple[str, ...],
) -> None:
    with rig(targets) as r:
        switch = r.api.fault(answer(500), times=None, verb="get")
        r.publish(ONE)
        r.after(1000)

        assert not [a for a in r.api.requests if a.is_write]
        assert any(t.grave for t in r.troubles.now().values())
        switch.lift()
        r.until_published()


def test_unusable_certificates_end_nothing(tmp_path: Path) -> None:
    """The kubelet is just writing them; the next try reads them again."""
    with FakeApi(tls=True) as api:
        api.node(NAME)
        authority = tmp_path / "ca.crt"
        authority.write_text("half")
        connection = Connection(server=api.url, ca_file=str(authority))
        with rig((OBJECT,), api=api, connection=connection) as r:
            r.publish(ONE)
            assert "TLS files" in r.log.warnings("reading")[0]

            authority.write_bytes(Path(api.ca_file).read_bytes())
            r.until_published()
