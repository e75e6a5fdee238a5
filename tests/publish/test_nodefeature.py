"""The NodeFeature object: built, compared and read back."""

import copy
from typing import Any

from nfd.features import Features
from nfd.labels import FEATURE_NS, Label, Provenance
from nfd.publish import nodefeature as nf
from nfd.publish.demand import Demand, trim
from nfd.publish.ownership import NODE_NAME_LABEL, managers_of, node_name_label

FEATURES = Features.of(
    attributes={"kernel.version": {"full": "6.1"}, "kernel.config": {"A": "y"}},
    instances={"pci.device": [{"vendor": "10de"}]},
)
LABELS = {
    label.key: label
    for label in (
        Label(f"{FEATURE_NS}/pci-10de.present", "true", Provenance("pci")),
        Label("v.io/x", "1", Provenance("custom", rule="r1")),
        Label("v.io/y", "1", Provenance("local")),
    )
}
OWNER = nf.OwnerReference("v1", "Node", "n1", "u1")
IDENTITY = nf.Identity("nfd", "0.1", "pod-1")


def made(**change: Any) -> dict[str, Any]:
    said = nf.Publication(
        node=change.pop("node", "n1"),
        labels=change.pop("labels", LABELS),
        trimmed=trim(FEATURES, change.pop("demand", Demand())),
        stale=change.pop("stale", {}),
    )
    return nf.build(said, IDENTITY, change.pop("owners", [OWNER]))


def test_object_is_what_upstreams_master_expects() -> None:
    """spec/worker.md section 3.3: name, label, annotations, spec."""
    built = made()

    assert built["metadata"]["name"] == "n1"
    assert built["metadata"]["labels"] == {NODE_NAME_LABEL: "n1"}
    assert built["metadata"]["annotations"][nf.WORKER_VERSION] == "0.1"
    assert built["metadata"]["annotations"][nf.POD_UID] == "pod-1"
    assert built["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "name": "n1",
            "uid": "u1",
            "blockOwnerDeletion": False,
        }
    ]
    assert built["spec"]["features"]["instances"]["pci.device"] == {
        "elements": [{"attributes": {"vendor": "10de"}}]
    }
    assert built["spec"]["labels"]["v.io/x"] == "1"


def test_long_node_names_are_hashed_in_the_label_alone() -> None:
    """A label value holds 63 characters, a Node's name 253."""
    name = "a" * 60 + ".example.org"

    built = made(node=name)

    label = built["metadata"]["labels"][NODE_NAME_LABEL]
    assert label == node_name_label(name)
    assert len(label) == 63
    assert label.startswith("a" * 46 + "-")
    assert built["metadata"]["annotations"][nf.NODE_NAME] == name
    assert built["metadata"]["name"] == name


def test_read_back_is_what_was_published() -> None:
    """After a restart the last good facts and their makers are known again."""
    back = nf.read_back(made(stale={"pci": 1000.5}))

    assert back.features == Features.of(
        attributes={"kernel.version": {"full": "6.1"}, "kernel.config": {}},
        instances={"pci.device": [{"vendor": "10de"}]},
    )
    assert back.makers == {"v.io/x": "rule:r1", "v.io/y": "local"}
    assert back.stale == {"pci": 1000.0}
    assert back.problems == ()


def test_unreadable_parts_are_named_and_cost_only_themselves() -> None:
    """Somebody may have edited the object by hand."""
    broken = made()
    broken["metadata"]["annotations"][nf.MAKERS] = "{"
    broken["spec"]["features"]["flags"] = {"cpu.cpuid": {"elements": 3}}

    back = nf.read_back(broken)

    assert len(back.problems) == 2
    assert back.labels["v.io/x"] == "1"


def test_hash_sees_only_what_the_worker_decides() -> None:
    """Server fields, null parts and the master's notes cause no write."""
    built = made()
    served = copy.deepcopy(built)
    served["metadata"] |= {"resourceVersion": "9", "uid": "x", "managedFields": [{}]}
    served["metadata"]["annotations"][nf.REFUSED] = "{}"
    served["spec"]["features"]["flags"] = None

    assert nf.content_hash(built) == nf.content_hash(served)
    assert nf.content_hash(built) != nf.content_hash(made(stale={"pci": 1.0}))
    assert nf.content_hash(built) != nf.content_hash(made(owners=[]))


def test_replacement_keeps_refusals_and_unknown_owners() -> None:
    """The PUT carries the version; owners stay where ours are not known."""
    found = copy.deepcopy(made())
    found["metadata"] |= {"resourceVersion": "9", "uid": "x"}
    found["metadata"]["annotations"] |= {nf.REFUSED: '{"a":"b"}', "foreign": "1"}

    put = nf.replacement(made(owners=None), found)

    assert put["metadata"]["resourceVersion"] == "9"
    assert put["metadata"]["annotations"][nf.REFUSED] == '{"a":"b"}'
    assert "foreign" not in put["metadata"]["annotations"]
    assert put["metadata"]["ownerReferences"] == found["metadata"]["ownerReferences"]


def test_largest_sets_are_named_with_their_size() -> None:
    """For the warning over the budget."""
    big = Features.of(attributes={"a.big": {str(i): "y" for i in range(99)}, "b.c": {}})

    assert [key for key, _ in nf.largest_sets(big, 1)] == ["a.big"]


def test_newest_writer_of_a_key_counts() -> None:
    """managedFields may list a key twice while a server upgrades."""
    metadata = {
        "managedFields": [
            {
                "manager": "b",
                "time": "2026-01-02T00:00:00Z",
                "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:x": {}}}},
            },
            {
                "manager": "a",
                "time": "2026-01-01T00:00:00Z",
                "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:x": {}, "f:y": {}}},
                },
            },
            {"manager": "c"},
        ]
    }

    assert managers_of(metadata).labels == {"x": "b", "y": "a"}
