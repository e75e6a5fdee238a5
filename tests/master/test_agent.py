"""The agent on the fake API server: configuration, namespaces, lease, readiness."""

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nfd.errors import ConfigError, UsageError
from nfd.kube.clock import Stop
from nfd.kube.resources import (
    CONFIGMAPS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODEFEATURERULES,
    NODEFEATURES,
    NODES,
)
from nfd.master.agent import Agent
from nfd.master.config import Selector
from nfd.master.guard import LOST
from nfd.master.holds import CONFIRMED, LEASE, confirmation, incidents
from nfd.master.namespaces import Namespaces
from nfd.master.options import Options
from nfd.publish.demand import CONFIGMAP
from nfd.publish.nodefeature import POD_UID, REFUSED
from tests.fakeapi.server import FakeApi
from tests.master.agents import Lines, config_file, ours, running
from tests.master.test_controller import RULE
from tests.master.test_fleet import feature


def fill(api: FakeApi, count: int = 1) -> None:
    for i in range(count):
        api.node(f"n{i}", {"host": f"n{i}"})
        api.put(NODEFEATURES, feature(f"n{i}"))


def test_labels_and_stops() -> None:
    """From nothing to labels; a stop ends every thread."""
    with FakeApi() as api:
        fill(api)
        with running(api) as master:
            api.wait_for(lambda: ours(api, "n0") == {"a": "1"})

        assert master.log.events("stopped")


def test_readiness_comes_with_the_first_complete_lists() -> None:
    """H38: 503 until every list is in; what is missing is named."""
    with FakeApi() as api:
        fill(api)
        api.deny("list", "nodefeatures")
        api.deny("watch", "nodefeatures")
        with running(api) as master:
            api.wait_for(lambda: bool(master.agent.missing))
            answer = master.agent.ready()

    assert answer.status == 503
    assert any("nodefeatures" in right for right in json.loads(answer.body)["missing"])


def asked(path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:18471{path}") as answer:
        text: str = answer.read().decode()
    return text


def test_pages_are_served() -> None:
    """/healthz at once, /metrics with upstream's names."""
    with FakeApi() as api, running(api, port=18471) as master:
        api.put(NODEFEATURERULES, RULE)
        fill(api)
        api.wait_for(lambda: "gpu" in ours(api, "n0"))
        assert master.agent.controller.wait_idle(10)
        assert asked("/healthz") == ""
        page = asked("/metrics")
        assert json.loads(asked("/readyz"))["synced"]

    for name in (
        "nfd_master_build_info{version=",
        "nfd_master_node_update_requests_total",
        "nfd_master_node_updates_total",
        "nfd_master_node_update_failures_total",
        "nfd_master_node_labels_rejected_total",
        "nfd_master_node_extendedresources_rejected_total",
        "nfd_master_node_taints_rejected_total",
        "nfd_master_nodefeaturerule_processing_errors_total",
        "# TYPE nfd_master_nodefeaturerule_processing_duration_seconds histogram",
        "nfd_master_synced 1.0",
        'duration_seconds_count{name="gpu",node=""} 1.0',
    ):
        assert name in page, name


def test_configuration_is_reloaded_and_a_bad_file_changes_nothing(
    tmp_path: Path,
) -> None:
    """denyLabelNs in the file; then a file that cannot be read; then none."""
    with FakeApi() as api:
        api.node("n0", {"host": "n0"})
        api.put(NODEFEATURES, feature("n0", {"v.io/x": "1", "a": "1"}))
        path = config_file(tmp_path, "denyLabelNs: [v.io]")
        with running(api, config=path) as master:
            api.wait_for(lambda: ours(api, "n0") == {"a": "1"})
            config_file(tmp_path, "denyLabelNs: {")
            master.agent.reload()
            assert master.log.events("configuration not reloaded")
            assert master.agent.config.deny_label_ns == ("v.io",)
            config_file(tmp_path, "")
            master.agent.reload()

            api.wait_for(lambda: "v.io/x" in api.get(NODES, "n0")["metadata"]["labels"])


def test_wrong_configuration_is_refused_at_the_start() -> None:
    with FakeApi() as api, pytest.raises(ConfigError, match="nfdApiParallelism"):
        Agent(
            Options(namespace="nfd", config="", options="nfdApiParallelism: 0"),
            api.client(),
            Lines(),
        )


def test_namespace_selector() -> None:
    """Only NodeFeatures of selected namespaces count; labels of them may change."""
    options = "restrictions: {nodeFeatureNamespaceSelector: {matchLabels: {e2e: fake}}}"
    with FakeApi() as api:
        fill(api)
        space: dict[str, Any] = {"metadata": {"name": "nfd", "labels": {"e2e": "no"}}}
        api.put(NAMESPACES, space)
        with running(api, options=options) as master:
            api.wait_for(lambda: master.agent.controller.synced)
            assert master.agent.controller.wait_idle(10)
            assert ours(api, "n0") == {}

            api.put(
                NAMESPACES, {"metadata": {"name": "nfd", "labels": {"e2e": "fake"}}}
            )
            api.wait_for(lambda: ours(api, "n0") == {"a": "1"})


def test_standby_takes_over() -> None:
    """Two replicas with leader election: one writes, the other is warm."""
    short = (
        "leaderElection: {leaseDuration: 1500ms, renewDeadline: 1s, retryPeriod: 200ms}"
    )
    with FakeApi() as api:
        fill(api)
        more: dict[str, Any] = {"leader_election": True, "options": short}
        with running(api, node_name="m1", **more) as first:
            api.wait_for(lambda: ours(api, "n0") == {"a": "1"})
            with running(api, node_name="m2", **more) as second:
                api.wait_for(lambda: second.agent.controller.synced)
                assert not second.agent.controller.is_leader
                first.end()
                api.put(NODEFEATURES, feature("n0", {"a": "2"}))
                api.wait_for(lambda: ours(api, "n0") == {"a": "2"})
                assert second.agent.controller.is_leader


def test_status_of_rules_is_written_once() -> None:
    """Valid, Applied, Conflict, matchedNodes; the next round writes nothing."""
    bad = {
        "metadata": {"name": "bad"},
        "spec": {"rules": [{"name": "x", "labels": {"kubernetes.io/x": "1"}}]},
    }
    with FakeApi() as api:
        fill(api, 3)
        api.put(NODEFEATURERULES, RULE)
        api.put(NODEFEATURERULES, bad)
        with running(api, options="enableTaints: true") as master:
            api.wait_for(lambda: "status" in api.get(NODEFEATURERULES, "bad"))
            api.wait_for(lambda: "status" in api.get(NODEFEATURERULES, "gpu"))
            good = api.get(NODEFEATURERULES, "gpu")["status"]
            refused = api.get(NODEFEATURERULES, "bad")["status"]
            edits = master.agent.controller.fleet.edits.holding
            written = len(api.asked(resource="nodefeaturerules/status"))
            about = master.agent.controller.rule_feed
            api.wait_for(lambda: all(a.status for a in about.about.values()))
            reporter = master.agent.reporter
            reporter._flushed = float("-inf")
            reporter._dirty = True
            reporter.round(Stop())

            assert len(api.asked(resource="nodefeaturerules/status")) == written
        events = [e["reason"] for e in api.all(EVENTS)]

    assert states(good) == {"Valid": "True", "Applied": "True", "Conflict": "False"}
    assert good["matchedNodes"] == 3
    assert states(refused)["Applied"] == "False"
    assert refused["refused"] == [
        {
            "kind": "label",
            "key": "kubernetes.io/x",
            "reason": "namespace is not allowed",
            "count": 3,
        }
    ]
    assert "OutputRefused" in events
    assert not edits


def states(status: dict[str, Any]) -> dict[str, str]:
    return {c["type"]: c["status"] for c in status["conditions"]}


def test_refusals_stand_on_the_object() -> None:
    """H66: what a tenant may not say is noted on its NodeFeature, and withdrawn."""
    with FakeApi() as api:
        fill(api)
        stranger = feature("n0", {"nvidia.com/gpu.present": "true"}, name="x")
        stranger["metadata"]["namespace"] = "tenant-a"
        api.put(NODEFEATURES, stranger)
        with running(api, options="trust: {enforce: true}") as master:

            def note() -> str:
                meta = api.get(NODEFEATURES, "x", "tenant-a")["metadata"]
                text: str = (meta.get("annotations") or {}).get(REFUSED, "")
                return text

            api.wait_for(lambda: bool(note()))
            assert json.loads(note()).keys() == {"nvidia.com/gpu.present", "pci.device"}
            assert ours(api, "n0") == {"a": "1"}
            assert (
                "nvidia.com/gpu.present"
                not in api.get(NODES, "n0")["metadata"]["labels"]
            )

            mine = api.get(NODEFEATURES, "x", "tenant-a")
            mine["spec"] = {}
            api.put(NODEFEATURES, mine)
            master.agent.reporter._flushed = float("-inf")
            api.wait_for(lambda: not note())


def test_demand_names_what_rules_read() -> None:
    """The ConfigMap follows the rules, and is written only on change."""
    rule = {
        "metadata": {"name": "k"},
        "spec": {
            "rules": [
                {
                    "name": "k",
                    "labels": {"k": "@kernel.config.HZ"},
                    "matchFeatures": [
                        {
                            "feature": "kernel.config",
                            "matchExpressions": {"NO_HZ": {"op": "Exists"}},
                        },
                        {
                            "feature": "kernel.loadedmodule",
                            "matchName": {"op": "Exists"},
                        },
                    ],
                }
            ]
        },
    }

    def data(api: FakeApi) -> dict[str, str]:
        found = [c for c in api.all(CONFIGMAPS) if c["metadata"]["name"] == CONFIGMAP]
        return found[0]["data"] if found else {"": ""}

    with FakeApi() as api:
        fill(api)
        with running(api):
            api.wait_for(lambda: data(api) == {})
            api.put(NODEFEATURERULES, rule)
            api.wait_for(
                lambda: (
                    data(api)
                    == {"kernel.config": "HZ\nNO_HZ", "kernel.loadedmodule": "*"}
                )
            )
        writes = [a for a in api.asked(resource="configmaps") if a.is_write]
        with running(api) as master:
            api.wait_for(lambda: master.agent.reporter._demand is not None)

        assert [a for a in api.asked(resource="configmaps") if a.is_write] == writes


def test_mass_loss_is_held_until_it_is_confirmed() -> None:
    """H38 f: reported in readiness, an Event and on the Lease; confirmed there."""
    with FakeApi() as api:
        fill(api, 30)
        with running(api) as master:
            api.wait_for(lambda: all(ours(api, f"n{i}") for i in range(30)))
            for i in range(10):
                api.remove(NODEFEATURES, f"n{i}", "nfd")

            def told() -> bool:
                leases = api.all(LEASES)
                notes = leases[0]["metadata"].get("annotations") or {} if leases else {}
                return [i.cause for i in incidents(notes)] == [LOST]

            api.wait_for(told)
            assert json.loads(master.agent.ready().body)["held"]
            assert all(ours(api, f"n{i}") for i in range(30))

            lease = api.get(LEASES, LEASE, "nfd")
            (incident,) = incidents(lease["metadata"]["annotations"])
            lease["metadata"]["annotations"][CONFIRMED] = confirmation(incident)
            api.put(LEASES, lease)
            api.wait_for(lambda: not any(ours(api, f"n{i}") for i in range(10)))

        assert all(ours(api, f"n{i}") for i in range(10, 30))
        assert "RemovalsHeld" in [e["reason"] for e in api.all(EVENTS)]


def test_upstream_role_is_enough_for_nodes() -> None:
    """What needs more is left out, asked for once, and named; nothing fails."""
    role = {
        "namespaces": ("list", "watch"),
        "nodes": ("get", "list", "patch", "update"),
        "nodes/status": ("get", "list", "patch", "update"),
        "nodefeatures": ("get", "list", "watch"),
        "nodefeaturerules": ("get", "list", "watch"),
        "nodefeaturegroups": ("get", "list", "watch"),
        "nodefeaturegroups/status": ("patch", "update"),
        "leases": ("create", "get", "update"),
    }
    stranger = feature("n0", {"kubernetes.io/no": "1"}, name="x")
    with FakeApi() as api:
        api.permitted = {(verb, kind) for kind, verbs in role.items() for verb in verbs}
        fill(api, 2)
        api.put(NODEFEATURES, stranger)
        api.put(NODEFEATURES, feature("gone"))
        api.put(NODEFEATURERULES, RULE)
        options = "enableTaints: true\ngarbageCollection: {grace: 100ms}"
        with running(api, options=options, leader_election=True) as master:
            api.wait_for(lambda: all("gpu" in ours(api, f"n{i}") for i in range(2)))
            api.wait_for(lambda: bool(api.get(NODES, "n0")["spec"].get("taints")))
            wanted = {
                "watch nodes",
                "get configmaps",
                "create events",
                "delete nodefeatures.nfd.k8s-sigs.io",
                "patch nodefeatures.nfd.k8s-sigs.io",
                "patch nodefeaturerules/status.nfd.k8s-sigs.io",
            }

            def named() -> set[str]:
                told = " ; ".join(master.agent.missing)
                return {right for right in wanted if right in told}

            api.wait_for(lambda: named() == wanted, 20)
            assert master.agent.ready().status == 200

    refused = [
        (a.verb, a.resource)
        for a in api.requests
        if a.status == 403 and a.verb != "watch"
    ]
    assert len(refused) == len(set(refused))


def test_nodes_that_may_not_be_watched_are_looked_at_when_news_come() -> None:
    """New and re-created Nodes are labelled at once, as upstream's GET does."""
    with FakeApi() as api:
        fill(api, 2)
        api.deny("watch", "nodes")
        with running(api) as master:
            api.wait_for(lambda: ours(api, "n1") == {"a": "1"})
            assert master.agent.controller.wait_idle(10)
            assert not api.asked(verb="get", resource="nodes")

            api.node("new", {"host": "new"})
            api.put(NODEFEATURES, feature("new"))
            api.wait_for(lambda: ours(api, "new") == {"a": "1"})

            api.remove(NODES, "n0")
            api.node("n0", {"host": "n0"})
            again = feature("n0")
            again["metadata"]["annotations"][POD_UID] = "another"
            api.put(NODEFEATURES, again)
            api.wait_for(lambda: ours(api, "n0") == {"a": "1"})


def test_reload_cannot_deselect_everything(tmp_path: Path) -> None:
    """Namespaces are not followed yet: the selector waits for a restart."""
    with FakeApi() as api:
        fill(api)
        path = config_file(tmp_path, "")
        with running(api, config=path) as master:
            api.wait_for(lambda: ours(api, "n0") == {"a": "1"})
            before = master.agent.controller.fleet.config
            config_file(
                tmp_path,
                "restrictions: {nodeFeatureNamespaceSelector: {matchLabels: {a: b}}}",
            )
            master.agent.reload()

            assert master.agent.controller.fleet.config == before
            assert master.log.events("nodeFeatureNamespaceSelector needs a restart")


def test_reload_with_a_wrong_logging_option_changes_nothing(tmp_path: Path) -> None:
    """Whatever is wrong with a file, the master goes on with the old one."""

    def refuse(klog: Mapping[str, str]) -> None:
        if klog:
            raise UsageError("v: no number")

    with FakeApi() as api:
        path = config_file(tmp_path, "")
        options = Options(namespace="nfd", config=path)
        log = Lines()
        agent = Agent(options, api.client(), log, set_up_logs=refuse)
        config_file(tmp_path, "klog: {v: x}\nnoPublish: true")

        agent.reload()

    assert log.events("configuration not reloaded")
    assert not agent.config.no_publish


def test_namespaces_that_one_list_does_not_show() -> None:
    """No cluster is without namespaces: such a list is not believed."""
    found = Namespaces(lambda: None)
    found.item({"metadata": {"name": "nfd", "labels": {"a": "b"}}})

    found.replace_begin()
    found.replace_end()

    assert found.selected(Selector({"a": "b"})) == {"nfd"}
