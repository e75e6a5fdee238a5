"""What all nodes together say about rules and NodeFeatures."""

import json
from typing import Any

from nfd.features import Features
from nfd.master.demand import demand_of
from nfd.master.fleet import Fleet, FleetConfig
from nfd.master.merging import Scope, Trust
from nfd.master.tally import MOST, Tally, refusals_text, with_times
from nfd.publish.demand import Demand
from nfd.rules.load import load_document
from nfd.rules.model import Expression, Rule, Term
from tests.master.test_fleet import feature


def loaded(name: str, *rules: dict[str, Any]) -> Any:
    made = {"kind": "NodeFeatureRule", "metadata": {"name": name}}
    return load_document({**made, "spec": {"rules": list(rules)}}, name)


def tally(nodes: int, objects: dict[str, Any], **scope: Any) -> tuple[Tally, Fleet]:
    fleet = Fleet(FleetConfig(scope=Scope("nfd", **scope)))
    fleet.rules_put({n: found.rules for n, found in objects.items()}, 0.0)
    for i in range(nodes):
        fleet.feature_put(feature(f"n{i}"))
    found = Tally()
    for i in range(nodes):
        assert found.note(fleet.evaluate(f"n{i}"))
        assert not found.note(fleet.evaluate(f"n{i}"))
    return found, fleet


def states(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in status["conditions"]}


def test_good_rule() -> None:
    objects = {"good": loaded("good", {"name": "r", "labels": {"x": "1"}})}

    status = tally(3, objects)[0].statuses(objects)["good"]

    assert status["matchedNodes"] == 3
    assert states(status) == {
        "Valid": ("True", "Valid"),
        "Applied": ("True", "Applied"),
        "Conflict": ("False", "NoConflict"),
    }


def test_rule_that_cannot_be_read_and_its_neighbour() -> None:
    """The bad one is named, the good one counts."""
    bad = {"name": "bad", "matchFeatures": "x"}
    objects = {"o": loaded("o", bad, {"name": "good", "labels": {"y": "1"}})}

    status = tally(1, objects)[0].statuses(objects)["o"]

    assert states(status)["Valid"] == ("False", "Invalid")
    assert status["matchedNodes"] == 1


def test_rule_that_fails_on_nodes() -> None:
    template = {
        "name": "t",
        "labelsTemplate": "{{ .no.such }}=1",
        "matchFeatures": [{"feature": "pci.device"}],
    }
    objects = {"o": loaded("o", template)}

    status = tally(2, objects)[0].statuses(objects)["o"]

    assert states(status)["Applied"] == ("False", "RuleFailed")
    assert status["lastError"].startswith("t: ")
    assert status["matchedNodes"] == 0


def test_conflict_is_on_both_objects() -> None:
    objects = {
        "a": loaded("a", {"name": "one", "labels": {"x": "1"}}),
        "b": loaded("b", {"name": "two", "labels": {"x": "2"}}),
        "c": loaded("c", {"name": "three", "labels": {"z": "2"}}),
    }

    statuses = tally(1, objects)[0].statuses(objects)

    assert states(statuses["a"])["Conflict"] == ("True", "Conflict")
    assert statuses["b"]["conflicts"] == [
        {"key": "feature.node.kubernetes.io/x", "rules": ["one", "two"]}
    ]
    assert states(statuses["c"])["Conflict"] == ("False", "NoConflict")


def test_nodes_that_are_gone_do_not_count() -> None:
    objects = {"o": loaded("o", {"name": "r", "labels": {"x": "1"}})}
    found, _ = tally(3, objects)

    found.keep(["n1"])

    assert found.statuses(objects)["o"]["matchedNodes"] == 1


def test_notes_on_objects_of_others() -> None:
    """H66: what the trust policy refuses is noted for the object."""
    fleet = Fleet(FleetConfig(scope=Scope("nfd", Trust(enforce=True))))
    stranger = feature("n0", {"v.io/x": "1"}, Features(), name="theirs")
    stranger["metadata"]["namespace"] = "tenant"
    fleet.rules_put({}, 0.0)
    fleet.feature_put(stranger)
    found = Tally()
    found.note(fleet.evaluate("n0"))

    notes = found.object_notes()

    assert list(notes) == [("tenant", "theirs")]
    assert "trust.allow" in json.loads(notes["tenant", "theirs"])["v.io/x"]


def test_note_of_many_refusals_is_cut() -> None:
    text = refusals_text({f"v.io/{i:04}": "no" for i in range(500)})

    plain = json.loads(text)
    assert len(plain) == MOST + 1
    assert plain["..."] == f"and {500 - MOST} more"


def test_times_of_conditions_that_stay() -> None:
    objects = {"o": loaded("o", {"name": "r", "labels": {"x": "1"}})}
    status = tally(1, objects)[0].statuses(objects)["o"]
    first = with_times(status, {}, 1, "then")

    second = with_times(status, first, 1, "now")

    assert second == first
    assert {c["lastTransitionTime"] for c in second["conditions"]} == {"then"}


def test_demand_of_rules() -> None:
    """Elements named, whole sets by name, `@` values; nothing that is not bulky."""
    exists = Expression("Exists")
    rules = [
        Rule("a", match_features=(Term("Kernel.Config", {"X": exists}),)),
        Rule("b", match_features=(Term("kernel.loadedmodule", name=exists),)),
        Rule("c", labels={"l": "@kernel.config.Y"}),
        Rule("d", match_features=(Term("kernel.enabledmodule"),)),
        Rule("e", match_features=(Term("pci.device", {"vendor": exists}),)),
    ]

    assert demand_of(rules) == Demand(
        {
            "kernel.config": frozenset({"X", "Y"}),
            "kernel.enabledmodule": frozenset(),
            "kernel.loadedmodule": None,
        }
    )
