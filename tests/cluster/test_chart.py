"""The chart on a real cluster: accepted, installed, upgraded from upstream's."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from nfd.master.rehearsal import rehearsal_pod
from tests.cluster.api import RefusedError
from tests.cluster.controlplane import ControlPlane
from tests.cluster.tools import tools
from tests.deploy.chart import CHART, ROOT, Manifest, containers, render
from tests.deploy.kustomize import NAMESPACE
from tests.deploy.matrix import CUSTOM, EVERYTHING, RENDERED, rendered
from tests.deploy.upstream import upstreams_values

pytestmark = pytest.mark.usefixtures("helm")

NAME = "nfd-node-feature-discovery"


@pytest.fixture(scope="module")
def namespaced(control_plane: ControlPlane) -> ControlPlane:
    """With the namespaces that the rendered objects name."""
    for level in ("privileged", "baseline", "restricted"):
        control_plane.ensure(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": f"level-{level}",
                    "labels": {"pod-security.kubernetes.io/enforce": level},
                },
            }
        )
        control_plane.service_account(f"level-{level}", "default")
    for namespace in ("nfd", NAMESPACE):
        control_plane.service_account(namespace, "default")
    return control_plane


@pytest.mark.parametrize("name", RENDERED)
def test_the_server_accepts_every_object(namespaced: ControlPlane, name: str) -> None:
    """Dry runs with strict validation: no unknown, no doubled field."""
    known = CUSTOM - {"CustomResourceDefinition"}
    for manifest in rendered(name):
        if manifest["kind"] not in known:
            namespaced.admin.apply(manifest, dryRun="All", fieldValidation="Strict")


@pytest.mark.parametrize(
    ("suffix", "level", "objections"),
    [
        ("-master", "restricted", []),
        ("-gc", "restricted", []),
        ("-prune", "restricted", []),
        # The host's files are what it is there for.
        ("-worker", "baseline", ["hostPath volumes"]),
        ("-worker", "restricted", ["restricted volume types"]),
        # It writes features.d, a folder of the host's root.
        ("-gpu", "baseline", ["hostPath volumes"]),
        (
            "-gpu",
            "restricted",
            ["restricted volume types", "runAsNonRoot != true", "runAsUser=0"],
        ),
        ("-worker", "privileged", []),
        ("-gpu", "privileged", []),
    ],
)
def test_pod_security(
    namespaced: ControlPlane, suffix: str, level: str, objections: list[str]
) -> None:
    """Each pod passes the strictest level that its task allows."""
    values = {**EVERYTHING, "priorityClassName": "", "imagePullSecrets": []}
    (spec,) = (
        pod for name, pod, _ in containers(render(values)) if name.endswith(suffix)
    )
    allowed = ("serviceAccountName", "runtimeClassName", "restartPolicy")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": f"level-{level}"},
        "spec": {key: value for key, value in spec.items() if key not in allowed},
    }

    assert _objections(namespaced, pod) == objections


def test_policies_are_well_typed(whole_control_plane: ControlPlane) -> None:
    """The server's own type checker has nothing to say about the expressions."""
    policies = [
        manifest
        for manifest in render({"trust": {"enforce": True}}, release="typed")
        if manifest["kind"] == "ValidatingAdmissionPolicy"
    ]
    admin = whole_control_plane.admin
    for policy in policies:
        admin.apply(policy)

        def checked(policy: Manifest = policy) -> Any:
            status = admin.get(admin.path_of(policy)).get("status", {})
            return status.get("typeChecking")

        whole_control_plane.wait_for(checked, wanted={})
        admin.delete(admin.path_of(policy))


def test_viewers_see_and_do_not_touch(whole_control_plane: ControlPlane) -> None:
    plane, namespace = whole_control_plane, "viewed"
    plane.service_account(namespace, "viewer")
    for manifest in render(release="viewed"):
        if manifest["metadata"]["name"].endswith("-view"):
            plane.admin.apply(manifest)
    plane.admin.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "viewer", "namespace": namespace},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "view",
            },
            "subjects": [
                {"kind": "ServiceAccount", "name": "viewer", "namespace": namespace}
            ],
        }
    )
    viewer = plane.client(plane.bound_token(namespace, "viewer"))
    path = f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{namespace}/nodefeatures"

    def may_list() -> bool:
        try:
            return bool(viewer.get(path)["items"] == [])
        except RefusedError:
            return False

    plane.wait_for(may_list, wanted=True)
    with pytest.raises(RefusedError, match="cannot create"):
        viewer.create(path, {})


def test_upgrade_over_a_release_of_upstreams_shape(
    whole_control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Same names, same selectors: the objects are taken over, not made again."""
    plane, namespace = whole_control_plane, "upgraded"
    plane.node("upgraded-node")
    apps = f"/apis/apps/v1/namespaces/{namespace}"
    workloads = [
        f"{apps}/deployments/{NAME}-master",
        f"{apps}/daemonsets/{NAME}-worker",
    ]
    _write_chart_of_upstreams_shape(tmp_path / "upstream")
    _helm(plane, namespace, "install", str(tmp_path / "upstream"), "--create-namespace")
    before = [plane.admin.get(path)["metadata"]["uid"] for path in workloads]
    collector = plane.admin.get(f"{apps}/deployments/{NAME}-gc")

    upstream_values = {"worker": {"ownerRefs": ["pod", "ds"]}, "gc": {"enable": False}}
    values = tmp_path / "values.json"
    values.write_text(json.dumps(upstream_values))
    _helm(plane, namespace, "upgrade", str(CHART), "--values", str(values))

    after = [plane.admin.get(path) for path in workloads]
    assert [item["metadata"]["uid"] for item in after] == before
    assert [
        item["spec"]["template"]["spec"]["containers"][0]["command"] for item in after
    ] == [["nfd-master"], ["nfd-worker"]]
    assert all(
        len(item["spec"]["template"]["spec"]["containers"]) == 1 for item in after
    )
    with pytest.raises(RefusedError, match="not found"):
        plane.admin.get(plane.admin.path_of(collector))
    plane.wait_for(lambda: _ready(plane, workloads[1]), wanted=True)
    _helm(plane, namespace, "uninstall", "--no-hooks")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--server-side", "--force-conflicts", "-f", str(ROOT / "deploy" / "crds")],
        ["--server-side", "--force-conflicts", "-k", str(ROOT / "deploy" / "crds")],
    ],
)
def test_crds_are_applied_as_the_manual_says(
    upstream_control_plane: ControlPlane, arguments: list[str]
) -> None:
    """Over those of upstream's, in a dry run; both ways of naming the folder work."""
    done = subprocess.run(
        [str(tools()["kubectl"]), "apply", "--dry-run=server", *arguments],
        env=os.environ | {"KUBECONFIG": str(upstream_control_plane.kubeconfig)},
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3


def test_install_and_uninstall(
    whole_control_plane: ControlPlane, tmp_path: Path
) -> None:
    """A new release with upstream's values comes up, and leaves nothing but the CRDs."""
    plane, namespace = whole_control_plane, "installed"
    plane.node("installed-node")
    apps = f"/apis/apps/v1/namespaces/{namespace}"
    values = tmp_path / "values.json"
    values.write_text(json.dumps(upstreams_values()))
    arguments = ("--create-namespace", "--values", str(values))
    _helm(plane, namespace, "install", str(CHART), *arguments)

    plane.wait_for(
        lambda: _ready(plane, f"{apps}/daemonsets/{NAME}-worker"), wanted=True
    )
    _rehearse(plane, namespace)
    _helm(plane, namespace, "uninstall", "--no-hooks")

    assert plane.admin.get(f"{apps}/daemonsets")["items"] == []
    roles = plane.admin.get("/apis/rbac.authorization.k8s.io/v1/clusterroles")["items"]
    assert not [role for role in roles if role["metadata"]["name"].startswith(NAME)]
    assert plane.admin.get("/apis/nfd.k8s-sigs.io/v1alpha1/nodefeatures")


def _rehearse(plane: ControlPlane, namespace: str) -> None:
    """The Pod of `nfd fleet plan --master-image`, made of the master's, is accepted."""
    path = f"/api/v1/namespaces/{namespace}/pods"

    def made() -> Manifest | None:
        return rehearsal_pod(plane.admin.get(path)["items"], "registry.example/nfd:2")

    plane.wait_for(lambda: made() is not None, wanted=True)
    plane.admin.create(path, made(), dryRun="All", fieldValidation="Strict")


def _objections(plane: ControlPlane, pod: Manifest) -> list[str]:
    path = plane.admin.path_of(pod, named=False)
    try:
        plane.admin.create(path, pod, dryRun="All")
    except RefusedError as error:
        _, _, listed = error.message.partition('": ')
        depth, names, name = 0, [], ""
        for character in listed + ",":
            depth += {"(": 1, ")": -1}.get(character, 0)
            if character == "," and depth == 0:
                names.append(name.partition(" (")[0].strip())
                name = ""
            else:
                name += character
        return names
    return []


def _helm(plane: ControlPlane, namespace: str, verb: str, *arguments: str) -> None:
    done = subprocess.run(
        [str(tools()["helm"]), verb, "nfd", *arguments, "--namespace", namespace],
        env=os.environ | {"KUBECONFIG": str(plane.kubeconfig)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def _ready(plane: ControlPlane, daemon_set: str) -> bool:
    found = plane.admin.get(daemon_set)
    status = found["status"]
    return bool(
        status.get("observedGeneration") == found["metadata"]["generation"]
        and status.get("numberReady")
        and status["numberReady"] == status["desiredNumberScheduled"]
        and status.get("updatedNumberScheduled") == status["numberReady"]
    )


def _write_chart_of_upstreams_shape(folder: Path) -> None:
    """Write a chart whose objects have the names and selectors of upstream's."""
    templates = folder / "templates"
    templates.mkdir(parents=True)
    chart = {
        "apiVersion": "v2",
        "name": "node-feature-discovery",
        "version": "0.2.1",
        "appVersion": "master",
    }
    (folder / "Chart.yaml").write_text(yaml.safe_dump(chart))
    labels = {
        "app.kubernetes.io/name": "node-feature-discovery",
        "app.kubernetes.io/instance": "nfd",
    }
    for kind, component, account in (
        ("Deployment", "master", NAME),
        ("DaemonSet", "worker", f"{NAME}-worker"),
        ("Deployment", "gc", f"{NAME}-gc"),
    ):
        selector = {**labels, "role": component}
        service_account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account, "labels": labels},
        }
        manifest = {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {
                "name": f"{NAME}-{component}",
                "labels": {**labels, "role": component},
            },
            "spec": {
                "selector": {"matchLabels": selector},
                "template": {
                    "metadata": {"labels": selector},
                    "spec": {
                        "serviceAccountName": account,
                        "containers": [
                            {
                                "name": component,
                                "image": "upstream:v0",
                                "command": [f"nfd-{component}"],
                                "args": ["-port=8080", "-v=1"],
                                "env": [{"name": "GOMEMLIMIT", "value": "1"}],
                            }
                        ],
                    },
                },
            },
        }
        path = templates / f"{component}.yaml"
        path.write_text(yaml.safe_dump_all([service_account, manifest]))
