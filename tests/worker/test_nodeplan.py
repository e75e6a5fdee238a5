"""What a worker writes onto its own Node."""

from typing import Any

import attrs

from nfd.labels import FEATURE_NS
from nfd.publish.ownership import Hold
from nfd.worker.nodeplan import OwnNode, plan_labels

KEY = f"{FEATURE_NS}/pci-10de.present"


def own(labels: dict[str, str], **writers: tuple[str, ...]) -> OwnNode:
    managed: list[dict[str, Any]] = [
        {
            "manager": manager.replace("_", "-"),
            "fieldsV1": {"f:metadata": {"f:labels": {f"f:{k}": {} for k in keys}}},
        }
        for manager, keys in writers.items()
    ]
    return OwnNode.from_metadata(
        {"uid": "u1", "labels": labels, "managedFields": managed}
    )


def test_new_label_is_added_under_the_node_guard() -> None:
    """One patch, bound to this Node's uid."""
    plan = plan_labels(own({"a": "1"}), {KEY: "true"})

    assert plan.operations[0] == {"op": "test", "path": "/metadata/uid", "value": "u1"}
    assert plan.added == (KEY,)


def test_unchanged_pass_writes_nothing() -> None:
    """Not even the guard."""
    assert plan_labels(own({KEY: "true"}, nfd_worker=(KEY,)), {KEY: "true"}) == (
        plan_labels(own({}), {})
    )


def test_key_of_another_writer_is_yielded() -> None:
    """A rule's value on the master wins; the worker says so and leaves it."""
    plan = plan_labels(own({KEY: "no"}, nfd_master=(KEY,)), {KEY: "true"})

    assert plan.operations == ()
    assert [(c.key, c.manager) for c in plan.yielded] == [(KEY, "nfd-master")]


def test_only_own_keys_are_removed() -> None:
    """Foreign labels in our namespace stay."""
    other = f"{FEATURE_NS}/set-by-hand"

    plan = plan_labels(own({KEY: "true", other: "1"}, nfd_worker=(KEY,)), {})

    assert plan.removed == (KEY,)


def test_removals_wait_for_the_second_half_and_for_proof() -> None:
    """Additions first, then the NodeFeature, then removals; held keys stay."""
    node = own({KEY: "true"}, nfd_worker=(KEY,))

    assert plan_labels(node, {}, removals=False).operations == ()
    assert plan_labels(node, {}, hold=Hold(keys=frozenset({KEY}))).held == {KEY}


def test_a_removal_holds_for_this_version_of_the_node_only() -> None:
    """A patch whose answer was lost must not take a key that came back since."""
    node = attrs.evolve(own({KEY: "true"}, nfd_worker=(KEY,)), resource_version="7")

    version = {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}
    assert version in plan_labels(node, {}).operations
    assert version not in plan_labels(node, {KEY: "false"}).operations


def test_keys_outside_the_namespaces_are_left_to_the_master() -> None:
    """The admission policy would refuse the whole patch."""
    plan = plan_labels(own({}), {"v.io/x": "1", "a.nvidia.com/y": "1", "plain": "1"})

    assert plan.added == ("a.nvidia.com/y",)
    assert plan.outside == ("plain", "v.io/x")
