"""The harness keeps its promises, so that tests may lean on them."""

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes
import pytest

from tests.cluster.api import RefusedError
from tests.cluster.controlplane import ControlPlane


@pytest.fixture
def own(tmp_path: Path) -> ControlPlane:
    """Not started; for tests that break things."""
    return ControlPlane(tmp_path / "own")


def test_serves_the_pinned_version(control_plane: ControlPlane) -> None:
    assert control_plane.admin.get("/version")["gitVersion"] == "v1.36.3"


def test_kubeconfig_works_with_the_official_client(control_plane: ControlPlane) -> None:
    client = kubernetes.config.new_client_from_config(str(control_plane.kubeconfig))

    names = [item.metadata.name for item in client_namespaces(client)]

    assert "kube-system" in names


def client_namespaces(client: kubernetes.client.ApiClient) -> list[Any]:
    return list(kubernetes.client.CoreV1Api(client).list_namespace().items)


def test_bound_token_carries_the_node_claim(control_plane: ControlPlane) -> None:
    control_plane.node("claimed")

    token = control_plane.bound_token("claims", "worker", "worker-1", node="claimed")
    review = control_plane.client(token).create(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    )["status"]["userInfo"]

    assert review["username"] == "system:serviceaccount:claims:worker"
    assert review["extra"]["authentication.kubernetes.io/node-name"] == ["claimed"]
    assert review["extra"]["authentication.kubernetes.io/pod-name"] == ["worker-1"]


def test_unbound_token_carries_no_node_claim(control_plane: ControlPlane) -> None:
    token = control_plane.bound_token("claims", "worker")
    review = control_plane.client(token).create(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    )["status"]["userInfo"]

    assert "authentication.kubernetes.io/node-name" not in review["extra"]


def test_authorization_is_on(control_plane: ControlPlane) -> None:
    token = control_plane.bound_token("claims", "nobody")

    with pytest.raises(RefusedError) as caught:
        control_plane.client(token).get("/api/v1/nodes")

    assert caught.value.status == 403


def test_node_restriction_is_on(control_plane: ControlPlane) -> None:
    control_plane.node("kubelet-a")
    control_plane.node("kubelet-b")
    kubelet = control_plane.certificate_client("system:node:kubelet-a", "system:nodes")
    patch = [{"op": "add", "path": "/metadata/labels/x", "value": "y"}]

    kubelet.patch("/api/v1/nodes/kubelet-a", patch)
    with pytest.raises(RefusedError, match="kubelet-b"):
        kubelet.patch("/api/v1/nodes/kubelet-b", patch)


def test_audit_log_shows_who_did_what(control_plane: ControlPlane) -> None:
    control_plane.node("audited")
    control_plane.admin.request(
        "PATCH",
        "/api/v1/nodes/audited",
        [{"op": "add", "path": "/metadata/labels/a", "value": "b"}],
        content_type="application/json-patch+json",
        user_agent="auditor/1",
    )

    events = control_plane.audit_events(agent="auditor", resource="nodes")

    assert [(event["verb"], event["responseStatus"]["code"]) for event in events] == [
        ("patch", 200)
    ]
    assert events[0]["responseObject"]["metadata"]["labels"]["a"] == "b"


def test_restarted_api_server_has_the_same_objects(own: ControlPlane) -> None:
    with own:
        made = own.node("kept")["metadata"]["uid"]
        own.restart_api_server()
        after_stop = own.admin.get("/api/v1/nodes/kept")["metadata"]["uid"]
        own.restart_api_server(kill=True)
        after_kill = own.admin.get("/api/v1/nodes/kept")["metadata"]["uid"]

    assert made == after_stop == after_kill


def test_paused_etcd_hangs_writes_and_resumes(own: ControlPlane) -> None:
    with own:
        own.node("frozen")
        own.pause("etcd")
        with pytest.raises(Exception, match=r"timed out|timeout"):
            own.admin.request("DELETE", "/api/v1/nodes/frozen", timeout=0.5)
        own.resume("etcd")
        own._wait("kube-apiserver", own._api_server_ready)

        assert own.admin.get("/version")["gitVersion"] == "v1.36.3"


def test_nothing_outlives_a_killed_owner(tmp_path: Path) -> None:
    """SIGKILL of the process that started it takes the whole control plane along."""
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.cluster.up", "--folder", str(tmp_path / "up")],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    assert str(tmp_path / "up" / "admin.kubeconfig") == owner.stdout.readline().strip()
    listed = Path(f"/proc/{owner.pid}/task/{owner.pid}/children").read_text()
    children = [os.pidfd_open(int(child)) for child in listed.split()]

    owner.kill()
    owner.communicate()

    assert len(children) == 2
    for child in children:
        ended, _, _ = select.select([child], [], [], 10)
        os.close(child)
        assert ended
