"""Planning of Node writes: tables, and that any plan converges without harm."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfd.master.plan import NodePlan, Removal, owns_anything, plan
from nfd.master.resources import same_quantity
from nfd.master.state import NodeState, Tracking, Wanted
from nfd.master.taints import parse_taints
from nfd.publish.ownership import Hold
from nfd.rules.model import Taint
from tests.master.patching import PatchRefusedError, apply

TRACKING = Tracking.of()
FNS = "feature.node.kubernetes.io"


def node(  # noqa: PLR0917 - the parts of a Node
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    capacity: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    managed: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    meta = {
        "name": "n1",
        "uid": "u1",
        "resourceVersion": "7",
        "labels": {"kubernetes.io/hostname": "n1", **(labels or {})},
        "annotations": {"kubelet": "x", **(annotations or {})},
        "managedFields": managed or [],
    }
    capacity = {"cpu": "4", **(capacity or {})}
    status = {
        "capacity": capacity,
        "allocatable": {"cpu": "4", **(allocatable or {})},
    }
    spec = {"taints": taints} if taints else {}
    return {"kind": "Node", "metadata": meta, "spec": spec, "status": status}


def write(
    document: dict[str, Any],
    wanted: Wanted,
    tracking: Tracking = TRACKING,
    **how: Any,
) -> tuple[Any, int]:
    """Write step by step, planning again after each, as the writer does."""
    for count in range(10):
        planned = plan(NodeState.from_object(document), wanted, tracking, **how)
        if not planned:
            return document, count
        document = apply(document, planned.steps[0].operations)
        version = int(document["metadata"]["resourceVersion"]) + 1
        document["metadata"]["resourceVersion"] = str(version)
    raise AssertionError(f"does not converge: {planned}")


def planned(document: dict[str, Any], wanted: Wanted, **how: Any) -> NodePlan:
    return plan(NodeState.from_object(document), wanted, TRACKING, **how)


def test_labels_and_tracking_go_in_one_patch() -> None:
    """A changed node costs one PATCH (upstream: a GET and a PATCH)."""
    old = node({f"{FNS}/old": "1"}, {TRACKING.labels: "old"})

    after, writes = write(old, Wanted(labels={f"{FNS}/a": "1", "v.io/b": "x"}))

    assert writes == 1
    assert after["metadata"]["labels"] == {
        "kubernetes.io/hostname": "n1",
        f"{FNS}/a": "1",
        "v.io/b": "x",
    }
    assert after["metadata"]["annotations"][TRACKING.labels] == "a,v.io/b"


def test_unchanged_node_costs_nothing() -> None:
    """The second pass plans nothing."""
    wanted = Wanted(
        labels={f"{FNS}/a": "1"},
        annotations={f"{FNS}/n": "t"},
        resources={"v.io/r": "2Gi"},
        taints=(Taint("v.io/t", "NoSchedule", "x"),),
    )
    after, _ = write(node(), wanted)

    assert not planned(after, wanted)


@pytest.mark.parametrize(
    ("owned", "exists", "want", "overwrite", "expected"),
    [
        (True, "1", None, True, None),
        (True, "1", None, False, None),
        (False, "1", None, True, "1"),
        (False, "1", None, False, "1"),
        (False, None, "2", False, "2"),
        (True, "1", "2", True, "2"),
        (True, "1", "2", False, "2"),  # upstream leaves it, against its documentation
        (False, "1", "2", True, "2"),
        (False, "1", "2", False, "1"),  # upstream overwrites it
        (False, "2", "2", True, "2"),
    ],
)
def test_decision_table(
    owned: bool,  # noqa: FBT001 - a column of the table
    exists: str | None,
    want: str | None,
    overwrite: bool,  # noqa: FBT001 - a column of the table
    expected: str | None,
) -> None:
    """spec/master.md section 2.8, the column "intended by docs"."""
    document = node(
        {f"{FNS}/k": exists} if exists else {}, {TRACKING.labels: "k"} if owned else {}
    )

    after, _ = write(
        document,
        Wanted(labels={f"{FNS}/k": want} if want else {}),
        allow_overwrite=overwrite,
    )

    assert expected == after["metadata"]["labels"].get(f"{FNS}/k")


def test_foreign_key_of_equal_value_is_never_ours() -> None:
    """What an administrator set stays when rules stop wanting the same."""
    managed = [{"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {}}}}]
    managed[0]["fieldsV1"]["f:metadata"]["f:labels"] = {f"f:{FNS}/k": {}}  # type: ignore[index] # nested literal
    document = node({f"{FNS}/k": "1"}, managed=managed)

    after, _ = write(document, Wanted(labels={f"{FNS}/k": "1"}))
    after, _ = write(after, Wanted())

    assert after["metadata"]["labels"][f"{FNS}/k"] == "1"


def test_conflict_is_reported_with_its_holder() -> None:
    """A key that is taken over or left is named, with who holds it."""
    document = node({f"{FNS}/k": "1"})

    (taken,) = planned(document, Wanted(labels={f"{FNS}/k": "2"})).conflicts
    (left,) = planned(
        document, Wanted(labels={f"{FNS}/k": "2"}), allow_overwrite=False
    ).conflicts

    assert (taken.taken, taken.found, taken.wanted) == (True, "1", "2")
    assert not left.taken


def test_held_keys_stay_and_stay_ours() -> None:
    """Without proof nothing goes, and the tracking annotations go on naming it."""
    taint = {"key": "v.io/t", "value": "x", "effect": "NoSchedule"}
    document = node(
        {f"{FNS}/k": "1"},
        {
            TRACKING.labels: "k",
            TRACKING.resources: "v.io/r",
            TRACKING.taints: "v.io/t=x:NoSchedule",
        },
        capacity={"v.io/r": "1"},
        allocatable={"v.io/r": "1"},
        taints=[taint],
    )

    kept = planned(document, Wanted(hold=Hold(everything=True)))

    assert not kept
    assert {f"{FNS}/k", "v.io/r", "v.io/t:NoSchedule"} == kept.held
    assert {"label", "extendedResource", "taint"} == {
        r.kind for r in planned(document, Wanted()).removals
    }


def test_resources_go_to_capacity_and_allocatable() -> None:
    """The scheduler reads allocatable; it must not wait for a kubelet."""
    after, writes = write(node(), Wanted(resources={"nvidia.com/gpu": "8"}))

    assert writes == 2  # tracking first, then status
    for place in ("capacity", "allocatable"):
        assert after["status"][place] == {"cpu": "4", "nvidia.com/gpu": "8"}
    assert after["metadata"]["annotations"][TRACKING.resources] == "nvidia.com/gpu"


def test_zeroed_resource_is_put_back() -> None:
    """A restarted kubelet zeroes what it does not know."""
    document = node(
        {},
        {TRACKING.resources: "v.io/r"},
        capacity={"v.io/r": "0"},
        allocatable={"v.io/r": "0"},
    )

    after, _ = write(document, Wanted(resources={"v.io/r": "3"}))

    assert after["status"]["allocatable"]["v.io/r"] == "3"


def test_resource_of_a_device_plugin_is_not_claimed() -> None:
    """Equal value, not tracked: a device plugin serves it; it is never removed."""
    document = node({}, {}, capacity={"v.io/r": "8"}, allocatable={"v.io/r": "7"})
    wanted = Wanted(resources={"v.io/r": "8"})

    assert not planned(document, wanted)


def test_resource_removal_takes_both_and_narrows_last() -> None:
    """NFD#1119: while the status write fails, the annotation names the resource."""
    document = node(
        {},
        {TRACKING.resources: "v.io/r"},
        capacity={"v.io/r": "1"},
        allocatable={"v.io/r": "1"},
    )

    steps = planned(document, Wanted()).steps

    assert [s.target for s in steps] == ["status", "node"]
    after, _ = write(document, Wanted())
    assert after["status"] == {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}
    assert TRACKING.resources not in after["metadata"]["annotations"]


def test_equal_quantities_are_equal() -> None:
    """NFD H26: 2Gi against 2147483648 must not patch for ever."""
    assert same_quantity("2Gi", "2147483648")
    assert not same_quantity("2G", "2147483648")
    assert not same_quantity("abc", "1")


def test_foreign_taints_stay() -> None:
    """Only tracked taints and start-up taints go."""
    foreign = {"key": "team", "value": "a", "effect": "NoSchedule"}
    startup = {"key": "nfd.node.kubernetes.io/startup", "effect": "NoSchedule"}
    mine = {"key": "v.io/t", "value": "x", "effect": "NoExecute"}
    document = node(
        {},
        {TRACKING.taints: "v.io/t=x:NoExecute"},
        taints=[foreign, startup, mine],
    )

    done = planned(document, Wanted(lift=frozenset({startup["key"]})))
    after, _ = write(document, Wanted(lift=frozenset({startup["key"]})))

    assert after["spec"]["taints"] == [foreign]
    assert (Removal("taint", "v.io/t:NoExecute"),) == done.removals
    assert done.lifted == ("nfd.node.kubernetes.io/startup:NoSchedule",)
    assert TRACKING.taints not in after["metadata"]["annotations"]


def test_wanted_taint_that_somebody_set_is_not_ours() -> None:
    """It has our value already; it stays when the rule goes."""
    foreign = {"key": "v.io/t", "value": "x", "effect": "NoSchedule"}
    document = node(taints=[foreign])

    after, _ = write(document, Wanted(taints=(Taint("v.io/t", "NoSchedule", "x"),)))
    after, _ = write(after, Wanted())

    assert after["spec"]["taints"] == [foreign]


def test_first_taint_is_guarded_by_its_absence() -> None:
    """An `add` of the list would erase taints that came since the Node was read."""
    steps = planned(node(), Wanted(taints=(Taint("k", "NoSchedule"),))).steps

    assert {"op": "test", "path": "/spec/taints", "value": None} in steps[1].operations


def test_late_removal_is_refused() -> None:
    """A patch carried out after its answer was lost, when the label is back."""
    document = node({f"{FNS}/k": "1"}, {TRACKING.labels: "k"})
    (late,) = planned(document, Wanted()).steps

    after, _ = write(document, Wanted())
    after, _ = write(after, Wanted(labels={f"{FNS}/k": "1"}))

    with pytest.raises(PatchRefusedError):
        apply(after, late.operations)


def test_many_labels_are_guarded_by_one_test() -> None:
    """A new Node of eighty labels is tested for its version, not eighty times."""
    many = Wanted(labels={f"{FNS}/k{i}": "1" for i in range(80)})
    few = Wanted(labels={f"{FNS}/k{i}": "1" for i in range(3)})

    (step,) = planned(node(), many).steps
    tests = [op["path"] for op in step.operations if op["op"] == "test"]

    assert tests == ["/metadata/uid", "/metadata/resourceVersion"]
    assert len(planned(node(), few).steps[0].operations) == 9
    after, _ = write(node(), many)
    assert many.labels.items() <= after["metadata"]["labels"].items()


def test_every_step_is_bound_to_the_node() -> None:
    """A Node created again under the same name is another Node."""
    steps = planned(
        node(),
        Wanted(labels={f"{FNS}/a": "1"}, taints=(Taint("k", "NoSchedule", ""),)),
    ).steps

    for step in steps:
        assert step.operations[0] == {
            "op": "test",
            "path": "/metadata/uid",
            "value": "u1",
        }


def test_metadata_alone_plans_no_status_and_keeps_tracking() -> None:
    """Without status, resources and taints stay as they are and stay tracked."""
    document = node(
        {f"{FNS}/a": "1"},
        {
            TRACKING.labels: "a",
            TRACKING.resources: "v.io/r",
            TRACKING.taints: "k:NoSchedule",
        },
    )
    partial = {"kind": "PartialObjectMetadata", "metadata": document["metadata"]}

    assert not planned(partial, Wanted(labels={f"{FNS}/a": "1"}))


def test_duplicate_taint_of_upstream_is_read() -> None:
    """spec/master.md section 2.8: upstream writes duplicates and then chokes."""
    text = "k=v:NoSchedule,k=w:NoSchedule,,bad,n:NoExecute"

    assert parse_taints(text) == (
        Taint("k", "NoSchedule", "v"),
        Taint("n", "NoExecute", ""),
    )


def test_node_without_maps_gets_them() -> None:
    """A hand-made Node may lack labels and annotations."""
    document = node()
    del document["metadata"]["labels"]
    del document["metadata"]["annotations"]

    after, _ = write(document, Wanted(labels={f"{FNS}/a": "1"}))

    assert after["metadata"]["labels"] == {f"{FNS}/a": "1"}


def test_instances_keep_apart() -> None:
    """A key tracked by another instance is not ours."""
    other = Tracking.of("blue")
    document = node({f"{FNS}/k": "1"}, {other.labels: "k"})

    assert not planned(document, Wanted())
    assert owns_anything(NodeState.from_object(document), other)
    assert not owns_anything(NodeState.from_object(document), TRACKING)


def test_taints_of_another_instance_stay() -> None:
    """Upstream's masters of all instances list theirs in one annotation."""
    taint = {"key": "v.io/t", "value": "x", "effect": "NoSchedule"}
    document = node({}, {TRACKING.taints: "v.io/t=x:NoSchedule"}, taints=[taint])

    assert not plan(NodeState.from_object(document), Wanted(), Tracking.of("blue"))


def test_wanted_taint_of_upstreams_same_instance_is_taken_over() -> None:
    """It goes with its rule, as it would have gone there."""
    blue = Tracking.of("blue")
    taint = {"key": "v.io/t", "value": "x", "effect": "NoSchedule"}
    document = node({}, {TRACKING.taints: "v.io/t=x:NoSchedule"}, taints=[taint])
    wanted = Wanted(taints=(Taint("v.io/t", "NoSchedule", "x"),))

    after, _ = write(document, wanted, tracking=blue)
    gone, _ = write(after, Wanted(), tracking=blue)

    assert after["spec"]["taints"] == [taint]
    assert after["metadata"]["annotations"][blue.taints] == "v.io/t=x:NoSchedule"
    assert "taints" not in gone["spec"]


KEYS = st.sampled_from([f"{FNS}/a", f"{FNS}/b", "v.io/c", "d"])
VALUES = st.sampled_from(["", "1", "2"])
AMOUNTS = st.sampled_from(["1", "2Gi", "2147483648", "1k"])
TAINTS = st.lists(
    st.builds(
        Taint,
        st.sampled_from(["v.io/t", "k"]),
        st.sampled_from(["NoSchedule", "NoExecute"]),
        VALUES,
    ),
    unique_by=lambda t: (t.key, t.effect),
    max_size=3,
)
WANTED = st.builds(
    Wanted,
    labels=st.dictionaries(KEYS, VALUES),
    annotations=st.dictionaries(KEYS, VALUES),
    resources=st.dictionaries(st.sampled_from(["v.io/r", "w.io/s"]), AMOUNTS),
    taints=TAINTS.map(tuple),
)


@given(
    st.dictionaries(KEYS, VALUES),
    st.dictionaries(st.sampled_from(["v.io/r", "w.io/s"]), AMOUNTS),
    TAINTS,
    st.lists(WANTED, min_size=1, max_size=4),
    st.booleans(),
)
def test_any_history_converges_and_spares_foreign_things(
    labels: dict[str, str],
    resources: dict[str, str],
    taints: list[Taint],
    history: list[Wanted],
    overwrite: bool,  # noqa: FBT001 - drawn
) -> None:
    """Whatever was wanted before, in the end the Node is as a fresh start makes it,
    and when nothing is wanted, all that is left was there before."""
    raw = [
        {"key": t.key, "effect": t.effect, **({"value": t.value} if t.value else {})}
        for t in taints
    ]
    first = node(labels, {}, resources, resources, raw)
    document = first
    for wanted in history:
        document, writes = write(document, wanted, allow_overwrite=overwrite)
        assert writes <= 4
        for key, value in wanted.labels.items():
            if key not in labels or overwrite:
                assert document["metadata"]["labels"][key] == value
        for key, text in wanted.resources.items():
            if key not in resources or overwrite:
                assert same_quantity(document["status"]["capacity"][key], text)

    document, _ = write(document, Wanted(), allow_overwrite=overwrite)

    assert document["metadata"]["labels"].items() <= first["metadata"]["labels"].items()
    assert set(document["metadata"]["annotations"]) == {"kubelet"}
    if not overwrite:
        # A key with the same value and no known writer counts as ours (upstream's
        # worker wrote it); all others are back to what they were.
        assert document["status"] == first["status"]
        assert sorted(document["spec"].get("taints", []), key=str) == sorted(
            raw, key=str
        )
