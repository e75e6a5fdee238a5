"""NodeFeatureGroups: members, vars, unknown features, size of the status."""

from typing import Any

from nfd.features import Features
from nfd.kube.resources import NODEFEATUREGROUPS, NODEFEATURES, NODES
from nfd.master.groups import member, status_of
from nfd.master.options import GATES
from nfd.rules.load import load_document
from nfd.rules.sets import Sets
from tests.fakeapi.server import FakeApi
from tests.master.agents import running
from tests.master.test_fleet import feature

GATE = {**GATES, "NodeFeatureGroupAPI": True}


def group(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "NodeFeatureGroup",
        "metadata": {"name": name, "namespace": "nfd"},
        "spec": {"featureGroupRules": list(rules)},
    }


def vendor(value: str, **more: Any) -> dict[str, Any]:
    expressions = {"vendor": {"op": "In", "value": [value]}}
    term = {"feature": "pci.device", "matchExpressions": expressions}
    return {"name": value, "matchFeatures": [term], **more}


def sets(vendor_id: str, **more: Any) -> Sets:
    return Sets.of(
        Features.of(instances={"pci.device": [{"vendor": vendor_id}]}, **more)
    )


def test_any_rule_makes_a_member_by_the_name_it_gives_itself() -> None:
    found = load_document(group("g", vendor("1"), vendor("2")), "g")
    named = {"system.name": {"nodename": "self"}}

    assert member(found.rules, sets("2"), "n", None) == "n"
    assert member(found.rules, sets("2", attributes=named), "n", None) == "self"
    assert member(found.rules, sets("3"), "n", "n") is None


def test_rules_see_the_vars_of_earlier_ones_only() -> None:
    refers = {
        "name": "refers",
        "matchFeatures": [
            {"feature": "rule.matched", "matchExpressions": {"v": {"op": "Exists"}}}
        ],
    }
    found = load_document(group("g", refers), "g")
    with_var = load_document(group("g", vendor("9", vars={"v": "1"}), refers), "g")

    assert member(found.rules, sets("9"), "n", None) is None
    assert member(with_var.rules, sets("9"), "n", None) == "n"


def test_unknown_features_keep_the_membership() -> None:
    found = load_document(group("g", vendor("1")), "g")
    unknown = Sets.of(Features(unknown={"pci.device": "not read"}))

    assert member(found.rules, unknown, "n", "n") == "n"
    assert member(found.rules, unknown, "n", None) is None


def test_status_is_cut_and_says_so() -> None:
    """Never near the limit of etcd, whatever the number of nodes."""
    names = [f"node-{i:05}.example.org" for i in range(60_000)]

    status = status_of(names, load_document(group("g"), "g"))

    truncated = status["conditions"][1]
    assert len(str(status["nodes"])) < 1_500_000
    assert (truncated.type, truncated.status) == ("Truncated", "True")
    assert truncated.message == f"{len(status['nodes'])} of 60000 members are listed"


def members(api: FakeApi, name: str) -> list[str] | None:
    status = api.get(NODEFEATUREGROUPS, name, "nfd").get("status") or {}
    if "nodes" not in status:
        return None
    return [n["name"] for n in status["nodes"]]


def test_groups_follow_nodes_and_features() -> None:
    """Members come and go; a converged group is not written again."""
    with FakeApi() as api:
        for i in range(3):
            api.node(f"n{i}")
            api.put(NODEFEATURES, feature(f"n{i}"))
        api.node("silent")
        api.put(NODEFEATUREGROUPS, group("all", {"name": "everyone"}))
        api.put(NODEFEATUREGROUPS, group("gpu", vendor("10de")))
        with running(api, gates=GATE):
            api.wait_for(lambda: members(api, "all") == ["n0", "n1", "n2"])
            api.wait_for(lambda: members(api, "gpu") == ["n0", "n1", "n2"])
            api.put(NODEFEATURES, feature("n1", features=Features()))
            api.wait_for(lambda: members(api, "gpu") == ["n0", "n2"])
            api.remove(NODES, "n2")
            api.put(NODEFEATURES, feature("n0", {"more": "1"}))
            api.wait_for(lambda: members(api, "gpu") == ["n0"])
        api.requests.clear()
        with running(api, gates=GATE) as master:
            groups = master.agent.groups
            assert groups is not None
            api.wait_for(lambda: len(groups._evaluated) == 2)

        assert not api.asked(resource="nodefeaturegroups/status")


def test_gate_is_off_by_default() -> None:
    with FakeApi() as api:
        api.put(NODEFEATUREGROUPS, group("all", {"name": "everyone"}))
        with running(api) as master:
            api.wait_for(lambda: master.agent.controller.synced)

        assert not api.asked(resource="nodefeaturegroups")
