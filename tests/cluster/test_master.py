"""The master on a real API server: the scenarios that users of upstream rely on.

The scenarios are those of spec/master.md section 9, told with data of our own.
"""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from nfd.master.options import GATES
from tests.cluster.controlplane import ControlPlane
from tests.cluster.masters import ANS, FNS, NFD, Space, master
from tests.cluster.processes import free_port
from tests.cluster.roles import grant_upstream_master

FAKE: dict[str, Any] = {
    "features": {
        "flags": {"fake.flag": {"elements": {"flag_1": {}, "flag_2": {}}}},
        "attributes": {
            "fake.attribute": {
                "elements": {"attr_1": "true", "attr_2": "false", "attr_3": "10"}
            }
        },
        "instances": {
            "fake.instance": {
                "elements": [
                    {"attributes": {"name": "i1", "attr_1": "true", "attr_3": "10"}},
                    {"attributes": {"name": "i2", "attr_1": "true", "attr_3": "100"}},
                    {"attributes": {"name": "i3"}},
                ]
            }
        },
    },
    "labels": {"fake-a": "true", f"{FNS}/fake-b": "true"},
}
FAKE_LABELS = {"fake-a": "true", "fake-b": "true"}


def has(feature: str, **expressions: Any) -> dict[str, Any]:
    return {
        "feature": feature,
        "matchExpressions": {
            key: {"op": op, **({"value": value} if value else {})}
            for key, (op, *value) in expressions.items()
        },
    }


@pytest.fixture
def space(
    control_plane: ControlPlane, request: pytest.FixtureRequest
) -> Iterator[Space]:
    name = request.node.name.removeprefix("test_").replace("_", "-")[:40].rstrip("-")
    found = Space(control_plane, f"m-{name}")
    found.namespace()
    found.node()
    yield found
    found.clean()


def test_walk(space: Space) -> None:
    """worker → NodeFeature → rule → label, taint, annotation, extended resource."""
    plane = space.plane
    space.feature(FAKE)
    space.rules(
        "all",
        [
            {
                "name": "everything",
                "labels": {"ruled": "true"},
                "annotations": {"note": "hello there", "v.io/own": "x"},
                "taints": [{"key": "v.io/t", "value": "x", "effect": "NoSchedule"}],
                "extendedResources": {
                    "units": "2",
                    "v.io/ten": "@fake.attribute.attr_3",
                },
                "matchFeatures": [has("fake.flag", flag_1=["Exists"])],
            }
        ],
    )
    with master(plane, space.name, options="enableTaints: true"):
        plane.wait_for(space.labels, {**FAKE_LABELS, "ruled": "true"})
        plane.wait_for(
            space.notes,
            {
                "note": "hello there",
                "v.io/own": "x",
                "~feature-labels": "fake-a,fake-b,ruled",
                "~feature-annotations": "note,v.io/own",
                "~extended-resources": "units,v.io/ten",
                "~taints": "v.io/t=x:NoSchedule",
            },
        )
        plane.wait_for(space.taints, ["v.io/t=x:NoSchedule"])
        wanted = {f"{FNS}/units": "2", "v.io/ten": "10"}
        plane.wait_for(space.resources, wanted)
        plane.wait_for(lambda: space.resources(kind="allocatable"), wanted)

        space.delete_rules("all")
        plane.wait_for(space.labels, FAKE_LABELS)
        plane.wait_for(space.notes, {"~feature-labels": "fake-a,fake-b"})
        plane.wait_for(space.taints, [])
        plane.wait_for(space.resources, {})

        space.delete_feature()
        plane.wait_for(space.labels, {})
        plane.wait_for(space.notes, {})


def test_objects_of_others(space: Space) -> None:
    """Prefixed keys win in one object, later objects win, deny and allow lists."""
    plane = space.plane
    other = space.namespace("other")
    space.feature(FAKE)
    options = (
        "denyLabelNs: ['*.denied.ns', random.unwanted.ns, '*.vendor.io']\n"
        "extraLabelNs: [custom.vendor.io]"
    )
    with master(plane, space.name, options=options):
        plane.wait_for(space.labels, FAKE_LABELS)
        mine = {"x": "plain", f"{FNS}/x": "prefixed", "fake-b": "theirs"}
        space.feature({"labels": mine}, name="zzz-one")
        plane.wait_for(
            space.labels, {"fake-a": "true", "fake-b": "theirs", "x": "prefixed"}
        )
        space.feature({"labels": {"x": "elsewhere"}}, name="two", namespace=other)
        plane.wait_for(lambda: space.labels()["x"], "elsewhere")
        space.delete_feature(name="two", namespace=other)
        plane.wait_for(lambda: space.labels()["x"], "prefixed")
        space.delete_feature(name="zzz-one")
        plane.wait_for(space.labels, FAKE_LABELS)

        denied = {
            "a.denied.ns/x": "1",
            "random.unwanted.ns/x": "1",
            "kubernetes.io/x": "1",
            "sub.kubernetes.io/x": "1",
            "custom.vendor.io/x": "1",
            "plain": "1",
        }
        space.feature({"labels": denied}, name="zzz-three")
        plane.wait_for(
            space.labels, {**FAKE_LABELS, "custom.vendor.io/x": "1", "plain": "1"}
        )


def test_rule_language_end_to_end(space: Space) -> None:
    """Matchers on all kinds, back-references, `@` values, templates."""
    plane = space.plane
    space.feature({**FAKE, "labels": {}})
    space.rules(
        "a",
        [
            {
                "name": "first",
                "labels": {"flag": "true"},
                "vars": {"flag.not": "false"},
                "matchFeatures": [
                    has("fake.flag", flag_1=["Exists"], nope=["DoesNotExist"])
                ],
            },
            {
                "name": "instance",
                "labels": {"instance": "true"},
                "matchFeatures": [
                    has("fake.instance", attr_1=["In", "true"], attr_3=["Gt", "10"])
                ],
            },
            {
                "name": "negative",
                "labels": {"never": "true"},
                "matchFeatures": [has("fake.attribute", attr_2=["IsTrue"])],
            },
        ],
    )
    space.rules(
        "b",
        [
            {
                "name": "refers",
                "labels": {"dynamic": "@rule.matched.instance"},
                "labelsTemplate": "{{ range .fake.instance }}{{ .name }}=found\n{{ end }}",
                "matchFeatures": [
                    has("rule.matched", flag=["In", "true"]),
                    has("fake.instance", attr_1=["IsTrue"]),
                ],
            }
        ],
    )
    with master(plane, space.name):
        plane.wait_for(
            space.labels,
            {
                "flag": "true",
                "instance": "true",
                "dynamic": "true",
                "i1": "found",
                "i2": "found",
            },
        )
        assert space.notes()["~feature-labels"] == "dynamic,flag,i1,i2,instance"


def test_taints_follow_their_rule(space: Space) -> None:
    """Order of the rule, a swap by an update, refused namespaces, deletion."""
    plane = space.plane
    rule: dict[str, Any] = {
        "name": "t",
        "matchFeatures": [has("fake.flag", flag_1=["Exists"])],
    }

    def taints(*listed: str) -> dict[str, Any]:
        made = [item.split(":") for item in listed]
        return {
            **rule,
            "taints": [
                {
                    "key": text.partition("=")[0],
                    "value": text.partition("=")[2],
                    "effect": effect,
                }
                for text, effect in made
            ],
        }

    space.feature({**FAKE, "labels": {}})
    special = f"{FNS}/special=exists:PreferNoSchedule"
    dedicated = f"{FNS}/dedicated=true:NoExecute"
    space.rules("t", [taints(special, dedicated)])
    with master(plane, space.name, options="enableTaints: true"):
        plane.wait_for(space.taints, [special, dedicated])
        plane.wait_for(space.notes, {"~taints": f"{special},{dedicated}"})
        refused = ["kubernetes.io/no=1:NoExecute", "node.kubernetes.io/no=2:NoSchedule"]
        new = f"{FNS}/foo=true:NoExecute"
        space.rules("t", [taints(special, new, *refused, "plain=1:NoSchedule")])
        plane.wait_for(space.taints, [special, new])
        plane.wait_for(space.notes, {"~taints": f"{special},{new}"})
        space.delete_rules("t")
        plane.wait_for(space.taints, [])
        plane.wait_for(space.notes, {})


def test_restrictions(space: Space) -> None:
    """disableLabels; then denyNodeFeatureLabels."""
    plane = space.plane
    space.feature(FAKE)
    space.feature({"labels": {"third": "1"}}, name="third")
    matched = [has("fake.flag", flag_1=["Exists"])]
    rule = {
        "name": "r",
        "labels": {f"e2e.{FNS}/label": "true"},
        "annotations": {f"e2e.{FNS}/note": "yes"},
        "extendedResources": {f"e2e.{FNS}/er": "2"},
        "matchFeatures": matched,
    }
    space.rules("r", [rule])
    tracking = {
        f"e2e.{FNS}/note": "yes",
        "~feature-annotations": f"e2e.{FNS}/note",
        "~extended-resources": f"e2e.{FNS}/er",
    }
    with master(plane, space.name, options="restrictions: {disableLabels: true}"):
        plane.wait_for(space.notes, tracking)
        plane.wait_for(space.resources, {f"e2e.{FNS}/er": "2"})
        assert space.labels() == {}
    options = "restrictions: {denyNodeFeatureLabels: true}"
    with master(plane, space.name, options=options):
        labels = {**FAKE_LABELS, f"e2e.{FNS}/label": "true"}
        plane.wait_for(space.labels, labels)
        plane.wait_for(
            space.notes,
            {**tracking, "~feature-labels": f"e2e.{FNS}/label,fake-a,fake-b"},
        )


def test_namespace_selector(space: Space) -> None:
    """Labels come and go with the label of the namespace."""
    plane = space.plane
    space.feature(FAKE)
    options = "restrictions: {nodeFeatureNamespaceSelector: {matchLabels: {e2e: fake}}}"
    with master(plane, space.name, options=options) as running:
        plane.wait_for(lambda: running.agent.controller.synced, wanted=True)
        assert space.labels() == {}
        space.namespace(e2e="fake")
        plane.wait_for(space.labels, FAKE_LABELS)


def test_node_made_anew_and_tampered_with(space: Space) -> None:
    """H40: labelled again at once; an altered label is put right."""
    plane = space.plane
    space.feature(FAKE)
    with master(plane, space.name):
        plane.wait_for(space.labels, FAKE_LABELS)
        path = f"/api/v1/nodes/{space.node_name()}"
        plane.admin.delete(path)
        space.node()
        plane.wait_for(space.labels, FAKE_LABELS, seconds=5)

        altered = {"metadata": {"labels": {f"{FNS}/fake-a": "altered"}}}
        plane.admin.patch(path, altered, content_type="application/merge-patch+json")
        plane.wait_for(space.labels, FAKE_LABELS, seconds=5)


def test_status_of_a_rule(space: Space) -> None:
    """Conditions, counts and refusals are on the object, and in its columns."""
    plane = space.plane
    space.feature({"features": {"flags": {"only.here": {"elements": {"x": {}}}}}})
    rule = {
        "name": "r",
        "labels": {"kubernetes.io/no": "1", "fine": "1"},
        "matchFeatures": [has("only.here", x=["Exists"])],
    }
    space.rules("r", [rule])
    with master(plane, space.name):
        path = f"{NFD}/nodefeaturerules/{space.name}-r"
        plane.wait_for(
            lambda: plane.admin.get(path).get("status", {}).get("matchedNodes"), 1
        )
        status = plane.admin.get(path)["status"]

    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "Valid": "True",
        "Applied": "False",
        "Conflict": "False",
    }
    assert [(r["key"], r["count"]) for r in status["refused"]] == [
        ("kubernetes.io/no", 1)
    ]


def test_upstream_role_and_definitions(upstream_control_plane: ControlPlane) -> None:
    """Runs with the rights and the definitions that upstream's manifests bring."""
    plane = upstream_control_plane
    space = Space(plane, "m-upstream")
    space.namespace()
    space.node()
    grant_upstream_master(plane, space.name, "master")
    token = plane.bound_token(space.name, "master")
    kubeconfig = plane.token_kubeconfig("m-upstream", token)
    space.feature(FAKE)
    rule = {
        "name": "r",
        "labels": {"ruled": "true"},
        "extendedResources": {"units": "2"},
        "taints": [{"key": "v.io/t", "value": "x", "effect": "NoSchedule"}],
        "matchFeatures": [has("fake.flag", flag_1=["Exists"])],
    }
    space.rules("r", [rule])
    with master(
        plane,
        space.name,
        kubeconfig=kubeconfig,
        options="enableTaints: true",
        leader_election=True,
    ) as running:
        plane.wait_for(space.labels, {**FAKE_LABELS, "ruled": "true"})
        plane.wait_for(space.taints, ["v.io/t=x:NoSchedule"])
        plane.wait_for(space.resources, {f"{FNS}/units": "2"})
        space.delete_rules("r")
        plane.wait_for(space.labels, FAKE_LABELS)
        plane.wait_for(space.taints, [])
        told = json.loads(running.agent.ready().body)

    assert any(right.startswith("watch nodes") for right in told["missing"])


def test_program(space: Space) -> None:
    """The program: flags, pages, labels, SIGTERM and exit status 0."""
    plane = space.plane
    space.feature(FAKE)
    port = free_port()
    words = ["-kubeconfig", str(plane.kubeconfig), "-port", str(port), "-config="]
    environment = {**os.environ, "KUBERNETES_NAMESPACE": space.name}
    process = subprocess.Popen(
        [sys.executable, "-m", "nfd", "master", *words], env=environment
    )
    try:
        plane.wait_for(space.labels, FAKE_LABELS)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            assert json.load(answer)["synced"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()


def test_groups(space: Space) -> None:
    """Members come and go with features; the status is the API's."""
    plane = space.plane
    space.node("other")
    only: dict[str, Any] = {
        "features": {"flags": {"group.here": {"elements": {"x": {}}}}}
    }
    space.feature(only)
    space.feature(FAKE, node="other")
    rule = {"name": "g", "matchFeatures": [has("group.here", x=["Exists"])]}
    meta = {"name": "g", "namespace": space.name}
    path = f"{NFD}/namespaces/{space.name}/nodefeaturegroups/g"
    plane.admin.apply(
        {
            "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
            "kind": "NodeFeatureGroup",
            "metadata": meta,
            "spec": {"featureGroupRules": [rule]},
        }
    )

    def members() -> list[str]:
        status = plane.admin.get(path).get("status", {})
        return sorted(n["name"] for n in status.get("nodes", ()))

    with master(plane, space.name, gates={**GATES, "NodeFeatureGroupAPI": True}):
        plane.wait_for(members, [space.node_name()])
        space.feature(only, node="other")
        plane.wait_for(members, [space.node_name(), space.node_name("other")])
        space.delete_feature()
        plane.wait_for(members, [space.node_name("other")])


def test_startup_taint_is_lifted(space: Space) -> None:
    """Of a Node that has its labels already, and only the start-up taint."""
    plane = space.plane
    space.feature(FAKE)
    with master(plane, space.name):
        plane.wait_for(space.labels, FAKE_LABELS)
    taints = [
        {"key": f"{ANS}/startup", "effect": "NoSchedule"},
        {"key": "v.io/mine", "effect": "NoSchedule"},
    ]
    path = f"/api/v1/nodes/{space.node_name()}"
    patch = {"spec": {"taints": taints}}
    plane.admin.patch(path, patch, content_type="application/merge-patch+json")
    with master(plane, space.name):
        plane.wait_for(space.taints, ["v.io/mine=:NoSchedule"])


def test_annotation_of_upstream_instance_is_left(space: Space) -> None:
    """Masters of several instances track their labels apart."""
    plane = space.plane
    space.feature(FAKE)
    with master(plane, space.name, instance="one"):
        plane.wait_for(space.labels, FAKE_LABELS)

    notes = space.read()["metadata"]["annotations"]
    assert notes[f"one.{ANS}/feature-labels"] == "fake-a,fake-b"
