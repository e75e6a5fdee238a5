"""What an API server does, as checks that run against the fake and the real one.

Each `check_…` function gets a `World` and may not assume to be alone on the server.
"""

import uuid
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from nfd.kube import errors, patch
from nfd.kube.client import Client
from nfd.kube.clock import Stop
from nfd.kube.events import EventRecorder, Reference
from nfd.kube.lease import LeaseElector
from nfd.kube.listing import ListMetadata
from nfd.kube.reflector import Reflector
from nfd.kube.resources import (
    CONFIGMAPS,
    EVENTS,
    LEASES,
    NODEFEATUREGROUPS,
    NODEFEATURERULES,
    NODEFEATURES,
    NODES,
    JsonObject,
    Resource,
)
from tests.fakeapi import FakeClock
from tests.kube.recording import Recording, running

NAMESPACE = "default"
LABELS = ("metadata", "labels")


@attrs.frozen
class World:
    """A server, an administrator's client, and one that may do nothing.

    `compact` makes the server forget its past, or skips the test.
    """

    client: Client
    powerless: Client
    compact: Callable[[], None]
    tag: str = attrs.field(factory=lambda: f"b{uuid.uuid4().hex[:10]}")

    def node(
        self, suffix: str = "n", labels: dict[str, str] | None = None
    ) -> JsonObject:
        labels = {"behaviour": self.tag, **(labels or {})}
        metadata = {"name": f"{self.tag}-{suffix}", "labels": labels}
        return self.client.create(
            NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        )

    def feature(self, suffix: str = "n", **spec: Any) -> JsonObject:
        return self.client.create(
            NODEFEATURES,
            {
                "apiVersion": NODEFEATURES.api_version,
                "kind": NODEFEATURES.kind,
                "metadata": {
                    "name": f"{self.tag}-{suffix}",
                    "namespace": NAMESPACE,
                    "labels": {"behaviour": self.tag},
                },
                "spec": {"features": {}, "labels": {}, **spec},
            },
        )

    @property
    def selector(self) -> str:
        return f"behaviour={self.tag}"


def name_of(obj: JsonObject) -> str:
    return str(obj["metadata"]["name"])


def version_of(obj: JsonObject) -> str:
    return str(obj["metadata"]["resourceVersion"])


def managers(obj: JsonObject) -> dict[str, set[str]]:
    """Field manager to the label keys that it holds."""
    found: dict[str, set[str]] = {}
    for entry in obj["metadata"]["managedFields"]:
        labels = entry["fieldsV1"].get("f:metadata", {}).get("f:labels", {})
        keys = {k.removeprefix("f:") for k in labels if k != "."}
        if keys:
            found.setdefault(entry["manager"], set()).update(keys)
    return found


def check_create_and_get(world: World) -> None:
    made = world.node()
    assert made["metadata"]["uid"]
    assert made == world.client.get(NODES, name_of(made))
    with pytest.raises(errors.AlreadyExists, match=f'nodes "{name_of(made)}" already'):
        world.node()


def check_what_is_served(world: World) -> None:
    served = world.client.served(NODEFEATURES)
    names = {"nodefeatures", "nodefeaturerules", "nodefeaturegroups"}
    assert names <= served
    assert {"nodefeaturerules/status", "nodefeaturegroups/status"} <= served
    assert "nodefeatures/status" not in served
    assert {"nodes", "nodes/status"} <= world.client.served(NODES)
    nothing = Resource("example.com", "v1", "things", "Thing", namespaced=True)
    assert not world.client.served(nothing)
    assert world.powerless.served(NODEFEATURES) == served


def check_missing_object(world: World) -> None:
    with pytest.raises(errors.NotFound) as raised:
        world.client.get(NODEFEATURES, f"{world.tag}-no", NAMESPACE)

    expected = f'nodefeatures.nfd.k8s-sigs.io "{world.tag}-no" not found'
    assert expected == raised.value.message
    assert raised.value.reason == "NotFound"


def check_missing_resource(world: World) -> None:
    nothing = Resource("nfd.k8s-sigs.io", "v1alpha1", "nothings", "No", namespaced=True)
    with pytest.raises(errors.NotFound):
        world.client.get(nothing, "x", NAMESPACE)


def check_update_conflict(world: World) -> None:
    first = world.feature()
    second = world.client.update(
        NODEFEATURES, {**first, "spec": {"labels": {"a": "1"}}}
    )
    assert version_of(first) != version_of(second)
    with pytest.raises(errors.Conflict, match="the object has been modified") as raised:
        world.client.update(NODEFEATURES, first)

    assert not isinstance(raised.value, errors.AlreadyExists)


def check_update_of_nothing_keeps_the_version(world: World) -> None:
    made = world.feature()

    assert version_of(made) == version_of(world.client.update(NODEFEATURES, made))


def check_update_of_a_missing_object(world: World) -> None:
    made = world.feature()
    world.client.delete(NODEFEATURES, name_of(made), NAMESPACE)
    with pytest.raises(errors.NotFound):
        world.client.update(NODEFEATURES, made)


def check_generation_follows_the_spec(world: World) -> None:
    made = world.feature()
    assert made["metadata"]["generation"] == 1
    labels = {**made["metadata"]["labels"], "more": "1"}
    same = world.client.update(
        NODEFEATURES, {**made, "metadata": {**made["metadata"], "labels": labels}}
    )
    assert same["metadata"]["generation"] == 1
    changed = world.client.update(
        NODEFEATURES, {**same, "spec": {"labels": {"a": "1"}}}
    )
    assert changed["metadata"]["generation"] == 2


def check_json_patch_changes_only_its_keys(world: World) -> None:
    node = world.node(labels={"a": "1", "b": "1", "c": "1"})
    operations = [
        patch.same_object(node["metadata"]["uid"]),
        *patch.change_map(
            LABELS,
            node["metadata"]["labels"],
            {"a": "2", "b": None, "example.com/d~e": None, "example.com/f": "3"},
        ),
    ]
    changed = world.client.json_patch(NODES, name_of(node), operations)

    expected = {"behaviour": world.tag, "a": "2", "c": "1", "example.com/f": "3"}
    assert expected == changed["metadata"]["labels"]


def check_json_patch_that_fails_changes_nothing(world: World) -> None:
    node = world.node(labels={"a": "1"})
    extra = patch.add((*LABELS, "z"), "1")
    for bad in (
        patch.expect((*LABELS, "a"), "2"),
        patch.expect((*LABELS, "missing"), "2"),
        patch.same_object("another"),
        patch.remove((*LABELS, "missing")),
        patch.add(("metadata", "nothing", "there"), "1"),
    ):
        with pytest.raises(errors.Invalid):
            world.client.json_patch(NODES, name_of(node), [extra, bad])
    assert node == world.client.get(NODES, name_of(node))


def check_json_patch_may_test_for_absence(world: World) -> None:
    node = world.node()
    absent = patch.expect((*LABELS, "a"), None)
    add = patch.add((*LABELS, "a"), "1")
    world.client.json_patch(NODES, name_of(node), [absent, add])
    with pytest.raises(errors.Invalid):
        world.client.json_patch(NODES, name_of(node), [absent, add])


def check_json_patch_replaces_what_is_not_there(world: World) -> None:
    node = world.node()
    replace = [patch.replace((*LABELS, "a"), "1")]

    changed = world.client.json_patch(NODES, name_of(node), replace)
    assert changed["metadata"]["labels"]["a"] == "1"


def check_json_patch_of_a_missing_object(world: World) -> None:
    with pytest.raises(errors.NotFound):
        world.client.json_patch(NODES, f"{world.tag}-no", [patch.add(LABELS, {})])


def check_json_patch_of_lists(world: World) -> None:
    name = name_of(world.node())

    def taint(key: str) -> JsonObject:
        return {"key": key, "effect": "PreferNoSchedule"}

    def patched(*operations: patch.Operation) -> list[str]:
        node = world.client.json_patch(NODES, name, operations)
        return [t["key"] for t in node["spec"].get("taints", [])]

    taints = ("spec", "taints")
    assert patched(patch.add(taints, [taint("a")])) == ["a"]
    assert patched(patch.add((*taints, "-"), taint("b"))) == ["a", "b"]
    assert patched(patch.add((*taints, "0"), taint("c"))) == ["c", "a", "b"]
    assert patched(patch.replace((*taints, "1"), taint("d"))) == ["c", "d", "b"]
    assert patched(patch.remove((*taints, "0"))) == ["d", "b"]
    assert (
        patched(patch.expect(taints, [taint("d"), taint("b")]), patch.remove(taints))
        == []
    )
    move = {"op": "move", "from": "/metadata/labels/behaviour", "path": "/spec/podCIDR"}
    with pytest.raises(errors.Invalid):
        patched(patch.remove((*taints, "0")), move)
    with pytest.raises(errors.Invalid):
        patched(patch.add((*taints, "5"), taint("e")))


def check_json_patch_copies_and_moves(world: World) -> None:
    node = world.node(labels={"a": "1", "b": "2"})
    copy = {"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/c"}
    move = {"op": "move", "from": "/metadata/labels/b", "path": "/metadata/labels/d"}
    changed = world.client.json_patch(NODES, name_of(node), [copy, move])

    expected = {"behaviour": world.tag, "a": "1", "c": "1", "d": "2"}
    assert expected == changed["metadata"]["labels"]


def check_managed_fields_follow_the_writers(world: World) -> None:
    worker = world.client.but(field_manager="nfd-worker")
    master = world.client.but(field_manager="nfd-master")
    name = name_of(world.node())

    def write(client: Client, **labels: str | None) -> dict[str, set[str]]:
        have = client.get(NODES, name)["metadata"]["labels"]
        operations = patch.change_map(LABELS, have, labels)
        if not operations:  # the same value again, on purpose
            operations = [patch.add((*LABELS, k), v) for k, v in labels.items()]
        done = client.json_patch(NODES, name, operations)
        return {
            k: v for k, v in managers(done).items() if k in {"nfd-worker", "nfd-master"}
        }

    assert write(worker, a="1", b="1") == {"nfd-worker": {"a", "b"}}
    assert write(master, a="1") == {"nfd-worker": {"a", "b"}}
    assert write(master, a="2") == {"nfd-worker": {"b"}, "nfd-master": {"a"}}
    assert write(master, b=None) == {"nfd-master": {"a"}}


def check_dry_run_changes_nothing(world: World) -> None:
    node = world.node()
    name = name_of(node)
    add = [patch.add((*LABELS, "a"), "1")]
    tried = world.client.json_patch(NODES, name, add, dry_run=True)
    assert tried["metadata"]["labels"]["a"] == "1"
    world.client.delete(NODES, name, dry_run=True)
    assert node == world.client.get(NODES, name)
    ghost = {"metadata": {"name": f"{world.tag}-ghost"}}
    assert name_of(world.client.create(NODES, ghost, dry_run=True)) == name_of(ghost)
    with pytest.raises(errors.NotFound):
        world.client.get(NODES, name_of(ghost))


def check_strategic_patch_is_bound_to_the_version(world: World) -> None:
    """What the master sends a new Node: neither another version nor another Node."""
    node = world.node(labels={"a": "1"})
    about = {k: node["metadata"][k] for k in ("uid", "resourceVersion")}
    wanted = {"a": "2", "example.com/b": "1"}
    body = {"metadata": {**about, "labels": wanted}}
    changed = world.client.strategic_patch(
        NODES, name_of(node), body, metadata_only=True
    )

    expected = {"behaviour": world.tag, **wanted}
    assert (expected, True) == (changed["metadata"]["labels"], "spec" not in changed)
    with pytest.raises(errors.Conflict):
        world.client.strategic_patch(NODES, name_of(node), body)
    version = changed["metadata"]["resourceVersion"]
    other = {"uid": "00000000-0000-0000-0000-000000000000", "resourceVersion": version}
    with pytest.raises((errors.Conflict, errors.Invalid)):
        world.client.strategic_patch(NODES, name_of(node), {"metadata": other})


def check_merge_patch(world: World) -> None:
    node = world.node(labels={"a": "1", "b": "1"})
    patched = world.client.merge_patch(
        NODES, name_of(node), {"metadata": {"labels": {"a": None, "c": "3"}}}
    )

    expected = {"behaviour": world.tag, "b": "1", "c": "3"}
    assert expected == patched["metadata"]["labels"]


def check_status_is_a_subresource(world: World) -> None:
    name = f"{world.tag}-r"
    rule = world.client.create(
        NODEFEATURERULES,
        {
            "apiVersion": NODEFEATURERULES.api_version,
            "kind": NODEFEATURERULES.kind,
            "metadata": {"name": name},
            "spec": {"rules": [{"name": "a", "labels": {"x": "1"}}]},
        },
    )
    condition = {
        "type": "Valid",
        "status": "True",
        "reason": "Fine",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"conditions": [condition]}
    ignored = world.client.update(NODEFEATURERULES, {**rule, "status": status})
    assert "status" not in ignored
    written = world.client.update(
        NODEFEATURERULES,
        {**rule, "spec": {"rules": []}, "status": status},
        subresource="status",
    )
    assert written["status"]["conditions"][0]["type"] == "Valid"
    assert written["spec"] == rule["spec"]
    assert written["metadata"]["generation"] == 1


def check_node_status_patch(world: World) -> None:
    name = name_of(world.node())
    status = [patch.add(("status", part), {}) for part in ("capacity", "allocatable")]
    add = [
        patch.add(("status", "capacity", "example.com/x"), "4"),
        patch.add(("status", "allocatable", "example.com/x"), "4"),
    ]
    kept = world.client.json_patch(NODES, name, [patch.add((*LABELS, "a"), "1")])
    changed = world.client.json_patch(
        NODES, name, [*status, *add], subresource="status"
    )
    assert changed["status"]["capacity"] == {"example.com/x": "4"}
    assert changed["status"]["allocatable"] == {"example.com/x": "4"}
    assert kept["metadata"]["labels"] == changed["metadata"]["labels"]


def check_group_status_update(world: World) -> None:
    made = world.client.create(
        NODEFEATUREGROUPS,
        {
            "apiVersion": NODEFEATUREGROUPS.api_version,
            "kind": NODEFEATUREGROUPS.kind,
            "metadata": {"name": f"{world.tag}-g", "namespace": NAMESPACE},
            "spec": {"featureGroupRules": [{"name": "a"}]},
        },
    )
    status = {"nodes": [{"name": "n1"}]}
    written = world.client.update(
        NODEFEATUREGROUPS, {**made, "status": status}, subresource="status"
    )
    assert status == written["status"]


def check_list_in_pages(world: World) -> None:
    expected = [name_of(world.node(f"n{i}")) for i in range(5)]
    for limit in (0, 1, 2, 5, 100):
        metadata = ListMetadata()
        found = world.client.list(
            NODES, label_selector=world.selector, limit=limit, metadata=metadata
        )
        assert expected == [name_of(obj) for obj in found]
        assert int(metadata.resource_version) > 0


def check_pages_show_one_moment(world: World) -> None:
    names = [name_of(world.node(f"n{i}")) for i in range(4)]
    found = world.client.list(NODES, label_selector=world.selector, limit=2)
    seen = [name_of(next(found))]
    world.client.delete(NODES, names[3])
    world.node("n0a")
    seen += [name_of(obj) for obj in found]
    assert names == seen


def check_empty_list(world: World) -> None:
    metadata = ListMetadata()
    found = world.client.list(
        NODEFEATURES, NAMESPACE, label_selector=world.selector, metadata=metadata
    )
    assert list(found) == []
    assert int(metadata.resource_version) > 0


def check_metadata_only(world: World) -> None:
    made = world.feature()
    got = world.client.get(NODEFEATURES, name_of(made), NAMESPACE, metadata_only=True)
    assert got["kind"] == "PartialObjectMetadata"
    assert made["metadata"] == got["metadata"]
    assert "spec" not in got
    listed = list(
        world.client.list(
            NODEFEATURES,
            NAMESPACE,
            label_selector=world.selector,
            metadata_only=True,
        )
    )
    assert [made["metadata"]] == [obj["metadata"] for obj in listed]
    assert not any("spec" in obj for obj in listed)


def check_selectors(world: World) -> None:
    names = [name_of(world.node(s, {"kind": s})) for s in ("a", "b", "c")]

    def select(labels: str, fields: str = "") -> list[str]:
        both = f"{world.selector},{labels}".rstrip(",")
        found = world.client.list(NODES, label_selector=both, field_selector=fields)
        return [name_of(obj) for obj in found]

    assert names[:1] == select("kind=a")
    assert names[1:] == select("kind!=a")
    assert names[:2] == select("kind in (a, b)")
    assert names[2:] == select("kind notin (a,b)")
    assert names == select("kind")
    assert select("!kind") == []
    assert names[1:2] == select("", f"metadata.name={names[1]}")


def check_watch_tells_what_happened(world: World) -> None:
    first = world.feature("a")
    name = name_of(first)
    changed = world.client.update(
        NODEFEATURES, {**first, "spec": {"labels": {"a": "1"}}}
    )
    world.feature("b")
    world.client.delete(NODEFEATURES, name, NAMESPACE)
    query = {
        "resourceVersion": version_of(first),
        "labelSelector": world.selector,
        "timeoutSeconds": "30",
    }
    seen: list[tuple[str, str]] = []
    with world.client.watch(
        NODEFEATURES, NAMESPACE, query=query, read_timeout=30
    ) as watch:
        for kind, obj in watch:
            seen.append((kind, name_of(obj)))
            if kind == "MODIFIED":
                assert version_of(changed) == version_of(obj)
            if kind == "DELETED":
                assert int(version_of(obj)) > int(version_of(changed))
                break

    other = f"{world.tag}-b"
    assert [("MODIFIED", name), ("ADDED", other), ("DELETED", name)] == seen


def check_watch_of_one_name_and_of_metadata(world: World) -> None:
    first = world.feature("a")
    world.feature("b")
    world.client.delete(NODEFEATURES, name_of(first), NAMESPACE)
    query = {
        "resourceVersion": version_of(first),
        "fieldSelector": f"metadata.name={name_of(first)}",
    }
    with world.client.watch(
        NODEFEATURES, NAMESPACE, query=query, read_timeout=30, metadata_only=True
    ) as watch:
        kind, obj = next(iter(watch))

    assert ("DELETED", name_of(first)) == (kind, name_of(obj))
    assert obj["kind"] == "PartialObjectMetadata"


def check_watch_sees_objects_leave_a_selection(world: World) -> None:
    node = world.node(labels={"in": "yes"})
    name = name_of(node)
    world.client.merge_patch(NODES, name, {"metadata": {"labels": {"in": "no"}}})
    world.client.merge_patch(NODES, name, {"metadata": {"labels": {"in": "yes"}}})
    query = {
        "resourceVersion": version_of(node),
        "labelSelector": f"{world.selector},in=yes",
    }
    with world.client.watch(NODES, query=query, read_timeout=30) as watch:
        events = iter(watch)
        assert [next(events)[0], next(events)[0]] == ["DELETED", "ADDED"]


def check_watch_ends_by_its_timeout(world: World) -> None:
    made = world.feature()
    query = {
        "resourceVersion": version_of(made),
        "labelSelector": world.selector,
        "timeoutSeconds": "1",
    }
    with world.client.watch(
        NODEFEATURES, NAMESPACE, query=query, read_timeout=30
    ) as watch:
        assert list(watch) == []


def check_watch_from_a_forgotten_version(world: World) -> None:
    world.compact()
    query = {"resourceVersion": "1", "timeoutSeconds": "5"}
    with (
        world.client.watch(NODES, query=query, read_timeout=30) as watch,
        pytest.raises(errors.Gone),
    ):
        list(watch)


def check_streaming_list(world: World) -> None:
    names = {name_of(world.node(s)) for s in "abc"}
    query = {
        "labelSelector": world.selector,
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "30",
    }
    seen = set()
    with world.client.watch(NODES, query=query, read_timeout=30) as watch:
        for kind, obj in watch:
            if kind == "BOOKMARK":
                break
            assert kind == "ADDED"
            seen.add(name_of(obj))

    assert names == seen
    annotations = obj["metadata"]["annotations"]
    assert annotations["k8s.io/initial-events-end"] == "true"
    assert int(version_of(obj)) > 0


def check_delete_is_guarded_by_uid(world: World) -> None:
    made = world.feature()
    name = name_of(made)
    with pytest.raises(errors.Conflict, match="UID in the precondition"):
        world.client.delete(NODEFEATURES, name, NAMESPACE, uid="another")
    world.client.delete(NODEFEATURES, name, NAMESPACE, uid=made["metadata"]["uid"])
    with pytest.raises(errors.NotFound):
        world.client.delete(NODEFEATURES, name, NAMESPACE)


def check_missing_permissions_are_named(world: World) -> None:
    node = world.node()
    cases: list[tuple[str, Callable[[], object]]] = [
        (
            "patch nodes at the cluster scope",
            lambda: world.powerless.json_patch(NODES, name_of(node), []),
        ),
        (
            "patch nodes/status at the cluster scope",
            lambda: world.powerless.json_patch(
                NODES, name_of(node), [], subresource="status"
            ),
        ),
        (
            "list nodes at the cluster scope",
            lambda: list(world.powerless.list(NODES)),
        ),
        (
            "watch nodes at the cluster scope",
            lambda: world.powerless.watch(NODES, query={}, read_timeout=30),
        ),
        (
            f'get nodefeatures.nfd.k8s-sigs.io in the namespace "{NAMESPACE}"',
            lambda: world.powerless.get(NODEFEATURES, "x", NAMESPACE),
        ),
        (
            f'create leases.coordination.k8s.io in the namespace "{NAMESPACE}"',
            lambda: world.powerless.create(
                LEASES, {"metadata": {"name": "x", "namespace": NAMESPACE}}
            ),
        ),
    ]
    for expected, call in cases:
        with pytest.raises(errors.Forbidden) as raised:
            call()

        assert expected == raised.value.missing_permission
        assert f"(missing permission: {expected})" in str(raised.value)


def check_bad_labels_are_refused(world: World) -> None:
    node = world.node()
    for key, value in (
        ("a", "bad value!"),
        ("a", "x" * 64),
        ("-a", "1"),
        ("a//b", "1"),
    ):
        with pytest.raises(errors.Invalid, match=r"is invalid: metadata\.labels"):
            world.client.json_patch(
                NODES, name_of(node), [patch.add((*LABELS, key), value)]
            )


def check_bad_names_are_refused(world: World) -> None:
    with pytest.raises(errors.Invalid, match=r"is invalid: metadata\.name"):
        world.client.create(NODES, {"metadata": {"name": "Upper"}})


def check_config_map(world: World) -> None:
    metadata = {"name": f"{world.tag}-c", "namespace": NAMESPACE}
    made = world.client.create(CONFIGMAPS, {"metadata": metadata, "data": {"a": "1"}})
    assert made["data"] == {"a": "1"}
    changed = world.client.update(CONFIGMAPS, {**made, "data": {"b": "2"}})
    assert changed["data"] == {"b": "2"}


def check_events_are_told_once(world: World) -> None:
    node = world.node()
    clock = FakeClock()
    recorder = EventRecorder(
        client=world.client.but(clock=clock), component="nfd-test", window=600
    )
    about = Reference.to(NODES, node)

    def told() -> list[JsonObject]:
        mine = f"involvedObject.name={about.name}"
        found = world.client.list(EVENTS, "default", field_selector=mine)
        return list(found)

    for _ in range(3):
        recorder.record(about, "Warning", "Refused", "a label was refused")
    assert [event["count"] for event in told()] == [1]
    clock.advance(601)
    recorder.record(about, "Warning", "Refused", "a label was refused")
    assert [event["count"] for event in told()] == [4]
    assert told()[0]["involvedObject"]["uid"] == node["metadata"]["uid"]


def check_one_lease_has_one_holder(world: World) -> None:
    clock = FakeClock()

    def elector(identity: str) -> LeaseElector:
        return LeaseElector(
            client=world.client.but(clock=clock),
            name=f"{world.tag}-l",
            namespace=NAMESPACE,
            identity=identity,
        )

    first, second = elector("first"), elector("second")
    first.step()
    second.step()
    assert (first.is_leader, second.is_leader) == (True, False)
    clock.advance(9.9)
    assert first.is_leader
    clock.advance(0.1)
    assert not first.is_leader
    second.step()
    assert not second.is_leader
    clock.advance(5)
    second.step()
    assert (first.is_leader, second.is_leader) == (False, True)
    first.step()
    assert (first.is_leader, second.is_leader) == (False, True)
    assert first.holder == "second"
    second.release()
    first.step()
    assert (first.is_leader, second.is_leader) == (True, False)


def check_lease_annotations_survive_renewals(world: World) -> None:
    name = f"{world.tag}-l"
    elector = LeaseElector(
        client=world.client, name=name, namespace=NAMESPACE, identity="me"
    )
    elector.step()
    note = {"metadata": {"annotations": {"confirm": "yes"}}}
    world.client.merge_patch(LEASES, name, note, NAMESPACE)
    elector.step()
    assert elector.is_leader
    assert elector.annotations["confirm"] == "yes"
    stored = world.client.get(LEASES, name, NAMESPACE)
    assert stored["metadata"]["annotations"] == {"confirm": "yes"}


def check_lease_needs_its_version(world: World) -> None:
    elector = LeaseElector(
        client=world.client, name=f"{world.tag}-l", namespace=NAMESPACE, identity="me"
    )
    elector.step()
    lease = world.client.get(LEASES, f"{world.tag}-l", NAMESPACE)
    world.client.update(LEASES, lease)
    stale = {**lease, "metadata": {**lease["metadata"], "resourceVersion": "1"}}
    with pytest.raises(errors.Conflict):
        world.client.update(LEASES, stale)


def _follow(world: World, *, streaming: bool) -> None:
    for suffix in "abc":
        world.feature(suffix)
    seen = Recording()
    reflector = Reflector(
        client=world.client,
        resource=NODEFEATURES,
        namespace=NAMESPACE,
        label_selector=world.selector,
        handler=seen,
        page_size=2,
        streaming_lists=streaming,
    )
    with running(reflector, Stop()):
        a, b, c, d = (f"{world.tag}-{s}" for s in "abcd")
        listed = ["begin", f"item {a}", f"item {b}", f"item {c}", "end"]
        assert sorted(listed) == sorted(seen.wait_for("end"))
        world.feature("d")
        seen.wait_for(f"added {d}")
        world.client.merge_patch(
            NODEFEATURES, d, {"spec": {"labels": {"x": "1"}}}, NAMESPACE
        )
        seen.wait_for(f"modified {d}")
        world.client.delete(NODEFEATURES, a, NAMESPACE)
        seen.wait_for(f"deleted {a}")
        seen.log.clear()
        reflector.relist()
        again = ["begin", f"item {b}", f"item {c}", f"item {d}", "end"]
        assert sorted(again) == sorted(seen.wait_for("end"))
        assert reflector.error is None


def check_reflector_with_streaming_lists(world: World) -> None:
    _follow(world, streaming=True)


def check_reflector_with_pages(world: World) -> None:
    _follow(world, streaming=False)


CHECKS = [f for n, f in sorted(globals().items()) if n.startswith("check_")]
