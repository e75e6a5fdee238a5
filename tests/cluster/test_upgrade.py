"""A cluster as upstream's release leaves it is taken over, and handed back.

Real helm, kubectl, API server, garbage collector and DaemonSet controller; the state
is in upstream's form (spec/master.md 1.5, 2.8 and 8.5), written by its field managers.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

import nfd
from tests.cluster.api import MERGE_PATCH, RefusedError
from tests.cluster.binaries import KUBERNETES, KWOK
from tests.cluster.conftest import UPSTREAM_DEFINITIONS, require
from tests.cluster.controlplane import ControlPlane
from tests.cluster.kubelets import Kubelets
from tests.cluster.masters import ANS, API_VERSION, FNS, NFD, Space, master
from tests.cluster.roles import RBAC
from tests.cluster.test_chart import (
    NAME,
    _helm,
    _ready,
    _write_chart_of_upstreams_shape,
)
from tests.cluster.tools import tools
from tests.deploy.chart import CHART, ROOT
from tests.deploy.kustomize import FOLDER
from tests.deploy.kustomize import NAMESPACE as KUSTOMIZED

pytestmark = pytest.mark.usefixtures("helm")

NAMESPACE = "upgrade"
HOSTS = {
    name: ROOT / "fixtures" / "hosts" / host
    for name, host in (("gpu", "gpu-server-a100"), ("plain", "vm-without-gpu"))
}
# Labels that upstream does not make: by vendor alone, of networks and of other devices.
OURS = re.compile(rf"^{FNS}/pci-([0-9a-f]{{4}}|(02|0880)[0-9a-f]*_[0-9a-f]{{4}})\.")
TAINT = "v.io/gpu=yes:PreferNoSchedule"
RULE = {
    "name": "gpu",
    "labels": {"gpu-node": "true"},
    "annotations": {"gpu-note": "yes"},
    "extendedResources": {"v.io/gpus": "8"},
    "taints": [{"key": "v.io/gpu", "value": "yes", "effect": "PreferNoSchedule"}],
    "matchFeatures": [
        {
            "feature": "pci.device",
            "matchExpressions": {"vendor": {"op": "In", "value": ["10de"]}},
        }
    ],
}
FEATURES = f"{NFD}/namespaces/{NAMESPACE}/nodefeatures"
DAEMON_SET = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/{NAME}-worker"


@attrs.frozen
class Upstreams:
    """What upstream's release has written about a node."""

    labels: dict[str, str]
    uid: str  # of the worker's NodeFeature


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    require(KUBERNETES, KWOK)
    folder = tmp_path_factory.mktemp("upgrade")
    with ControlPlane(
        folder, controller_manager=True, scheduler=True, kwok=True
    ) as running:
        running.apply_files(*sorted(UPSTREAM_DEFINITIONS.glob("*.yaml")))
        yield running


def test_there_and_back(plane: ControlPlane, tmp_path: Path) -> None:
    _write_chart_of_upstreams_shape(tmp_path / "upstream")
    before = _upstreams_release(plane, tmp_path / "upstream")
    marked = len(plane.audit_events())

    # ---- forward, as docs/upgrade.md says ----
    assert _dry_run(plane) == 0  # nothing would be removed
    _apply_definitions(plane)
    values = tmp_path / "values.json"
    values.write_text(json.dumps({"master": {"enableTaints": True}}))
    _helm(plane, NAMESPACE, "upgrade", str(CHART), "--values", str(values))
    plane.wait_for(lambda: _ready(plane, DAEMON_SET), wanted=True)
    plane.wait_for(lambda: len(_pods(plane)), 3)  # the master, and two workers
    kubelets = Kubelets(plane, tmp_path, NAMESPACE, HOSTS)
    try:
        for name in HOSTS:
            kubelets.wait(partial(_owners, plane, name), ["Node"])
        kubelets.wait(lambda: _resources(plane, "gpu"), ["8", "8"])
        kubelets.until(lambda: _is_all_tracked(plane))
    finally:
        kubelets.stop()

    events = plane.audit_events()[marked:]
    assert _writers(events) >= {NAME, f"{NAME}-worker"}
    assert _removals(events) == []
    assert _makings(events) == []
    assert f"{FNS}/pci-10de.present" in _node(plane, "gpu")["metadata"]["labels"]
    for name, state in before.items():
        node = _node(plane, name)
        assert state.labels.items() <= node["metadata"]["labels"].items()
        assert _feature(plane, name)["metadata"]["uid"] == state.uid
    assert _taints(_node(plane, "gpu")) == [TAINT]

    # ---- and back ----
    after = {name: _node(plane, name) for name in HOSTS}
    _helm(plane, NAMESPACE, "rollback", "1")
    plane.wait_for(lambda: _ready(plane, DAEMON_SET), wanted=True)

    for name, state in before.items():
        node = _node(plane, name)
        assert node["metadata"]["labels"] == after[name]["metadata"]["labels"]
        assert _feature(plane, name)["metadata"]["uid"] == state.uid
        assert _upstream_would_remove(plane, name) == set()
        # What we added is upstream's to remove once its worker no longer wants it.
        made = {key for key in node["metadata"]["labels"] if key.startswith(FNS)}
        assert made <= _tracked(plane, name)
    notes = _node(plane, "gpu")["metadata"]["annotations"]
    assert notes[f"{ANS}/taints"] == TAINT
    assert notes[f"{ANS}/extended-resources"] == "v.io/gpus"
    assert notes[f"{ANS}/feature-annotations"] == "gpu-note"
    assert _policies(plane) == []


def test_kustomize_over_upstreams(plane: ControlPlane, tmp_path: Path) -> None:
    """Names and selectors are upstream's: the same objects go on with our image."""
    upstream = tmp_path / "upstream.yaml"
    upstream.write_text(yaml.safe_dump_all(_upstreams_manifests()))
    _kubectl(plane, "create", "namespace", KUSTOMIZED)
    _kubectl(plane, "apply", "-f", str(upstream))
    apps = f"/apis/apps/v1/namespaces/{KUSTOMIZED}"
    paths = [f"{apps}/deployments/nfd-master", f"{apps}/daemonsets/nfd-worker"]
    before = [plane.admin.get(path)["metadata"]["uid"] for path in paths]

    _apply_definitions(plane)
    overlay = str(FOLDER / "overlays" / "default")
    _kubectl(plane, "apply", "-k", overlay)

    after = [plane.admin.get(path) for path in paths]
    assert [found["metadata"]["uid"] for found in after] == before
    for found in after:
        (container,) = found["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "node-feature-discovery"
        assert "GOMEMLIMIT" not in [e["name"] for e in container["env"]]
    (role,) = plane.admin.get(f"/apis/{RBAC}/v1/clusterroles/nfd-master")["rules"][1:2]
    assert "update" not in role["verbs"]

    _kubectl(plane, "apply", "-f", str(upstream))  # and back
    back = [plane.admin.get(path)["metadata"]["uid"] for path in paths]
    assert back == before


def test_beside_upstream(plane: ControlPlane) -> None:
    """A master with an instance name takes away what is its own alone."""
    space = Space(plane, "beside")
    for namespace in ("", "upstream"):
        space.namespace(namespace)
    name = space.node()
    theirs = {f"{ANS}/feature-labels": "shared", f"{ANS}/taints": TAINT}
    plane.admin.patch(
        f"/api/v1/nodes/{name}",
        {
            "metadata": {"labels": {f"{FNS}/shared": "1"}, "annotations": theirs},
            "spec": {"taints": RULE["taints"]},
        },
        content_type=MERGE_PATCH,
        fieldManager="nfd-master",
    )
    space.feature({"labels": {"shared": "1"}}, namespace="beside-upstream")
    space.feature({"labels": {"ours": "1"}}, name="ours")

    def labels() -> set[str]:
        return space.labels().keys() & {"shared", "ours"}

    with master(plane, space.name, instance="second", options="enableTaints: true"):
        plane.wait_for(labels, {"shared", "ours"})
        space.delete_feature(namespace="beside-upstream")
        space.delete_feature(name="ours")
        plane.wait_for(labels, {"shared"})

    assert space.taints() == [TAINT]
    assert theirs.items() <= space.read()["metadata"]["annotations"].items()


# ---- the state that upstream leaves ----------------------------------------------


def _upstreams_release(plane: ControlPlane, chart: Path) -> dict[str, Upstreams]:
    for name in HOSTS:
        plane.node(name)
    _helm(plane, NAMESPACE, "install", str(chart), "--create-namespace")
    plane.wait_for(lambda: _ready(plane, DAEMON_SET), wanted=True)
    plane.admin.apply(
        {
            "apiVersion": API_VERSION,
            "kind": "NodeFeatureRule",
            "metadata": {"name": "gpus"},
            "spec": {"rules": [RULE]},
        }
    )
    return {name: _upstreams_node(plane, name) for name in HOSTS}


def _upstreams_manifests() -> list[dict[str, Any]]:
    """Return what upstream's kustomize base makes, as far as ours has it too."""
    made: list[dict[str, Any]] = []
    for kind, name in (("Deployment", "nfd-master"), ("DaemonSet", "nfd-worker")):
        meta = {"name": name, "namespace": KUSTOMIZED}
        subject = {"kind": "ServiceAccount", **meta}
        role = "ClusterRole" if name == "nfd-master" else "Role"
        where = {"name": name} if role == "ClusterRole" else meta
        reference = {"apiGroup": RBAC, "kind": role, "name": name}
        rights = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["update"]}
        container = {
            "name": name,
            "image": "upstream:v0",
            "command": [name],
            "env": [{"name": "GOMEMLIMIT", "value": "1"}],
        }
        labels = {"app": name}
        made += [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": role,
                "metadata": where,
                "rules": [rights, rights],
            },
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": f"{role}Binding",
                "metadata": where,
                "roleRef": reference,
                "subjects": [subject],
            },
            {
                "apiVersion": "apps/v1",
                "kind": kind,
                "metadata": {**meta, "labels": {"app": "nfd"}},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {
                            "serviceAccountName": name,
                            "containers": [container],
                        },
                    },
                },
            },
        ]
    return made


def _upstreams_node(plane: ControlPlane, name: str) -> Upstreams:
    found = nfd.scan(HOSTS[name])
    labels = {
        key: label.value for key, label in found.labels.items() if not OURS.match(key)
    }
    vendors = {f"{FNS}/vendor-tool": "1"}
    spec = {"labels": labels, "features": found.features.to_spec()}
    uid = _write_feature(plane, name, spec)
    plane.service_account("vendor", "default")
    plane.admin.apply(_feature_manifest("vendor", f"vendor-{name}", name, vendors))
    on_node = {_prefixed(key): value for key, value in (labels | vendors).items()}
    notes: dict[str, str] = {}
    if name == "gpu":
        on_node |= {f"{FNS}/gpu-node": "true"}
        notes = {
            f"{FNS}/gpu-note": "yes",
            f"{ANS}/feature-annotations": "gpu-note",
            f"{ANS}/extended-resources": "v.io/gpus",
            f"{ANS}/taints": TAINT,
        }
        _as_upstreams_master(
            plane, f"{name}/status", [_add("/status/capacity", "v.io/gpus", "8")]
        )
        taints = {"op": "add", "path": "/spec/taints", "value": RULE["taints"]}
        _as_upstreams_master(plane, name, [taints])
    notes[f"{ANS}/feature-labels"] = ",".join(
        sorted(key.removeprefix(f"{FNS}/") for key in on_node)
    )
    _as_upstreams_master(
        plane,
        name,
        [
            *(_add("/metadata/labels", k, v) for k, v in on_node.items()),
            *(_add("/metadata/annotations", k, v) for k, v in notes.items()),
        ],
    )
    return Upstreams(on_node, uid)


def _write_feature(plane: ControlPlane, name: str, spec: dict[str, Any]) -> str:
    """Write what upstream's worker does: owned by its pod and its DaemonSet."""
    (pod,) = (
        pod
        for pod in _pods(plane)
        if pod["spec"]["nodeName"] == name and "-worker-" in pod["metadata"]["name"]
    )
    daemon_set = plane.admin.get(DAEMON_SET)
    manifest = _feature_manifest(NAMESPACE, name, name, {})
    manifest["spec"] = spec
    manifest["metadata"] |= {
        "annotations": {
            f"{ANS}/worker.version": "v0.18.0",
            f"{ANS}/worker.pod.uid": pod["metadata"]["uid"],
        },
        "ownerReferences": [
            {
                "apiVersion": version,
                "kind": kind,
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
            }
            for version, kind, owner in (
                ("v1", "Pod", pod),
                ("apps/v1", "DaemonSet", daemon_set),
            )
        ],
    }
    made = plane.admin.create(FEATURES, manifest, fieldManager="nfd-worker")
    return str(made["metadata"]["uid"])


def _feature_manifest(
    namespace: str, name: str, node: str, labels: dict[str, str]
) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeFeature",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {f"{ANS}/node-name": node},
        },
        "spec": {"labels": labels},
    }


def _add(where: str, key: str, value: str) -> dict[str, str]:
    return {"op": "add", "path": f"{where}/{key.replace('/', '~1')}", "value": value}


def _as_upstreams_master(plane: ControlPlane, path: str, patch: list[Any]) -> None:
    plane.admin.patch(f"/api/v1/nodes/{path}", patch, fieldManager="nfd-master")


# ---- what is seen ------------------------------------------------------------------


def _dry_run(plane: ControlPlane) -> int:
    """Ask a master of ours what it would do."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "nfd", "master", "-dry-run", "-enable-taints"),
            f"-kubeconfig={plane.kubeconfig}",
        ],
        env=os.environ | {"KUBERNETES_NAMESPACE": NAMESPACE},
        check=False,
    ).returncode


def _apply_definitions(plane: ControlPlane) -> None:
    folder = str(ROOT / "deploy" / "crds")
    _kubectl(plane, "apply", "--server-side", "--force-conflicts", "-f", folder)


def _kubectl(plane: ControlPlane, *arguments: str) -> None:
    done = subprocess.run(
        [str(tools()["kubectl"]), *arguments],
        env=os.environ | {"KUBECONFIG": str(plane.kubeconfig)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def _pods(plane: ControlPlane) -> list[Any]:
    found = plane.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    return [
        pod
        for pod in found
        if pod["status"].get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
    ]


def _node(plane: ControlPlane, name: str) -> Any:
    return plane.admin.get(f"/api/v1/nodes/{name}")


def _feature(plane: ControlPlane, name: str) -> Any:
    return plane.admin.get(f"{FEATURES}/{name}")


def _owners(plane: ControlPlane, name: str) -> list[str]:
    owners = _feature(plane, name)["metadata"].get("ownerReferences", [])
    return [owner["kind"] for owner in owners]


def _taints(node: Any) -> list[str]:
    return [
        f"{t['key']}={t.get('value', '')}:{t['effect']}"
        for t in node["spec"].get("taints", [])
    ]


def _resources(plane: ControlPlane, name: str) -> list[str | None]:
    status = _node(plane, name)["status"]
    return [status[kind].get("v.io/gpus") for kind in ("capacity", "allocatable")]


def _tracked(plane: ControlPlane, name: str) -> set[str]:
    """Read the tracking annotation as upstream's master does."""
    text = _node(plane, name)["metadata"]["annotations"][f"{ANS}/feature-labels"]
    return {_prefixed(key) for key in text.split(",")}


def _prefixed(key: str) -> str:
    return key if "/" in key else f"{FNS}/{key}"


def _upstream_would_remove(plane: ControlPlane, name: str) -> set[str]:
    """Tell what the first pass of upstream's master takes: tracked and not wanted."""
    wanted = {f"{FNS}/gpu-node"} if name == "gpu" else set()
    for feature in plane.admin.get(f"{NFD}/nodefeatures")["items"]:
        if feature["metadata"]["labels"][f"{ANS}/node-name"] == name:
            wanted |= {_prefixed(key) for key in feature["spec"]["labels"]}
    return _tracked(plane, name) - wanted


def _is_all_tracked(plane: ControlPlane) -> bool:
    """Whether the master has taken in what the workers publish."""
    for name in HOSTS:
        wanted = _feature(plane, name)["spec"]["labels"]
        if not {_prefixed(key) for key in wanted} <= _tracked(plane, name):
            return False
    return True


def _writers(events: list[dict[str, Any]]) -> set[str]:
    """Return the accounts that wrote Nodes."""
    return {
        event["user"]["username"].rpartition(":")[2]
        for event in events
        if event["verb"] == "patch" and event["objectRef"].get("resource") == "nodes"
    }


def _removals(events: list[dict[str, Any]]) -> list[Any]:
    """Return all that was taken from Nodes."""
    return [
        operation
        for event in events
        if event["verb"] == "patch" and event["objectRef"].get("resource") == "nodes"
        for operation in event.get("requestObject") or ()
        if isinstance(operation, dict) and operation.get("op") == "remove"
    ]


def _makings(events: list[dict[str, Any]]) -> list[Any]:
    """Return who made or deleted NodeFeatures."""
    return [
        (event["verb"], event["user"]["username"])
        for event in events
        if event.get("objectRef", {}).get("resource") == "nodefeatures"
        and event["verb"] in {"create", "delete", "deletecollection"}
        and "dryRun" not in event["requestURI"]
    ]


def _policies(plane: ControlPlane) -> list[Any]:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    try:
        return list(plane.admin.get(path)["items"])
    except RefusedError:
        return []
