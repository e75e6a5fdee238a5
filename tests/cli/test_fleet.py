"""`nfd fleet` and the one-shot forms of `nfd master`, on the fake API server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from nfd.cli import main
from nfd.kube.resources import LEASES, NODEFEATURERULES, NODEFEATURES, NODES, PODS
from nfd.labels import ANNOTATION_NS, FEATURE_NS
from nfd.master.holds import CONFIRMED, HELD, LEASE
from tests.fakeapi import FakeApi, Review
from tests.master.agents import running
from tests.master.test_controller import RULE
from tests.master.test_fleet import feature
from tests.master.test_rehearsal import IMAGE, MASTER, ended, waits


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as running_api:
        for i in range(4):
            running_api.node(f"n{i}", {"host": f"n{i}"})
            running_api.put(NODEFEATURES, feature(f"n{i}"))
        running_api.put(NODEFEATURERULES, RULE)
        yield running_api


@pytest.fixture
def kubeconfig(api: FakeApi, tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig_of(api))
    return str(path)


def kubeconfig_of(api: FakeApi) -> str:
    named: Any = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "fake",
        "contexts": [
            {"name": "fake", "context": {"cluster": "fake", "namespace": "nfd"}}
        ],
        "clusters": [{"name": "fake", "cluster": {"server": api.url}}],
    }
    return yaml.safe_dump(named)


def test_plan_of_an_unlabelled_fleet_adds(
    kubeconfig: str, capsys: pytest.CaptureFixture[str], api: FakeApi
) -> None:
    """Grouped by key, with the nodes; nothing is written; 0 without removals."""
    status = main(["fleet", "plan", "--kubeconfig", kubeconfig, "--nodes", "2"])

    out = capsys.readouterr().out
    assert status == 0
    assert f"  label {FEATURE_NS}/gpu=true  on 4 nodes: n0, n1 and 2 more\n" in out
    assert "4 of 4 nodes would be written, 0 are as wanted\n" in out
    assert not any(a.is_write for a in api.requests)


def test_plan_with_a_rule_file_that_takes_a_label(
    kubeconfig: str,
    capsys: pytest.CaptureFixture[str],
    api: FakeApi,
    tmp_path: Path,
) -> None:
    """Status 3 where something would be removed."""
    nodes = [f"n{i}" for i in range(4)]
    with running(api):  # the status, with the resource, is written last
        api.wait_for(
            lambda: all(
                "v.io/gpu"
                in (api.get(NODES, n).get("status") or {}).get("capacity", {})
                for n in nodes
            )
        )
    file = tmp_path / "gpu.yaml"
    file.write_text(
        "apiVersion: nfd.k8s-sigs.io/v1alpha1\nkind: NodeFeatureRule\n"
        "metadata: {name: gpu}\nspec: {rules: [{name: x, labels: {new: '1'}}]}\n"
    )

    status = main(
        [
            "fleet",
            "plan",
            "--kubeconfig",
            kubeconfig,
            "--rules",
            str(file),
            "-o",
            "json",
        ]
    )

    found = json.loads(capsys.readouterr().out)
    changes = {(c["action"], c["kind"], c["key"]) for c in found["changes"]}
    assert status == 3
    assert changes == {
        ("remove", "label", f"{FEATURE_NS}/gpu"),
        ("remove", "annotation", f"{FEATURE_NS}/note"),
        ("remove", "extendedResource", "v.io/gpu"),
        ("add", "label", f"{FEATURE_NS}/new"),
    }


def test_dry_run_of_a_master(
    kubeconfig: str, capsys: pytest.CaptureFixture[str], api: FakeApi
) -> None:
    """`nfd master -dry-run` takes the master's own flags."""
    words = ["-kubeconfig", kubeconfig, "-config=", "-deny-label-ns", FEATURE_NS]

    status = main(["master", "-dry-run", *words, "-enable-taints"])

    out = capsys.readouterr().out
    assert status == 0
    assert "label" not in out
    assert "taint v.io/t:NoSchedule" in out
    assert not any(a.is_write for a in api.requests)


def test_prune_leaves_nodes_as_they_were(
    kubeconfig: str, capsys: pytest.CaptureFixture[str], api: FakeApi
) -> None:
    """Labels, annotations, taints, resources and tracking go; foreign things stay."""
    with running(api, options="enableTaints: true"):
        api.wait_for(lambda: all(_whole(api, f"n{i}") for i in range(4)))

    status = main(["master", "-prune", "-kubeconfig", kubeconfig, "-config="])

    capsys.readouterr()
    node = api.get(NODES, "n0")
    assert status == 0
    assert node["metadata"]["labels"] == {"host": "n0"}
    assert not node["metadata"].get("annotations")
    assert not node["spec"].get("taints")
    assert not node["status"].get("capacity")


def _whole(api: FakeApi, name: str) -> bool:
    notes = api.get(NODES, name)["metadata"].get("annotations") or {}
    return f"{ANNOTATION_NS}/taints" in notes and bool(
        api.get(NODES, name)["spec"].get("taints")
    )


def test_confirm_needs_something_held(
    kubeconfig: str, capsys: pytest.CaptureFixture[str], api: FakeApi
) -> None:
    """An old habit must not confirm the next incident."""
    status = main(["fleet", "confirm", "--kubeconfig", kubeconfig, "lost-nodefeatures"])

    assert status == 2
    assert "is not held" in capsys.readouterr().err
    assert not api.all(LEASES)


def test_confirm_answers_the_incident(
    kubeconfig: str, capsys: pytest.CaptureFixture[str], api: FakeApi
) -> None:
    """Cause and mark of the incident that the Lease tells."""
    held = {"edit": {"mark": "abc", "nodes": 12, "reason": "an edit"}}
    meta = {"name": LEASE, "namespace": "nfd", "annotations": {HELD: json.dumps(held)}}
    api.put(LEASES, {"metadata": meta, "spec": {}})

    listed = main(["fleet", "held", "--kubeconfig", kubeconfig])
    status = main(["fleet", "confirm", "--kubeconfig", kubeconfig, "edit"])

    assert (listed, status) == (0, 0)
    assert capsys.readouterr().out.startswith("edit: an edit\n")
    lease = api.get(LEASES, LEASE, "nfd")
    assert lease["metadata"]["annotations"][CONFIRMED] == "edit=abc"


def kubelet(api: FakeApi, status: dict[str, Any], log: str) -> None:
    """Have each new Pod end as told."""

    def run(review: Review) -> None:
        if review.resource is PODS and review.old is None and review.new:
            review.new["status"] = status
            review.new["metadata"]["annotations"] = {"fakeapi/log": log}

    api.put(PODS, MASTER)
    api.admission.append(run)


def test_plan_of_an_image_says_what_it_printed(
    api: FakeApi,
    kubeconfig: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Status 3 where the other release would remove something; no Pod stays."""
    kubelet(api, ended(3), "remove:\n  label a  on 1 node: n0\n")

    words = ["fleet", "plan", "--kubeconfig", kubeconfig, "--master-image", IMAGE]
    assert main(words) == 3

    assert capsys.readouterr().out == "remove:\n  label a  on 1 node: n0\n"
    assert [p["metadata"]["name"] for p in api.all(PODS)] == ["nfd-master-x"]


@pytest.mark.parametrize(
    ("status", "words", "told"),
    [
        (ended(2), (), "exit status 2: flag provided but not defined"),
        (waits("ErrImagePull"), (), "ErrImagePull: no such image"),
        (ended(0), ("-o", "json"), "prints text"),
        (ended(0), ("-n", "elsewhere"), "no Pod of a master runs in namespace"),
    ],
)
def test_plan_of_an_image_that_cannot_tell(
    *,
    api: FakeApi,
    kubeconfig: str,
    capsys: pytest.CaptureFixture[str],
    status: dict[str, Any],
    words: tuple[str, ...],
    told: str,
) -> None:
    """The reason is told, and the Pod does not stay behind."""
    kubelet(api, status, "flag provided but not defined: -dry-run\n")

    command = ["fleet", "plan", "--kubeconfig", kubeconfig, "--master-image", IMAGE]
    assert main([*command, *words]) not in {0, 3}

    assert told in capsys.readouterr().err
    assert [p["metadata"]["name"] for p in api.all(PODS)] == ["nfd-master-x"]
