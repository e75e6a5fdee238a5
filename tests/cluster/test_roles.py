"""Upstream's rights, as the tests grant them, are really these."""

import pytest

from tests.cluster.api import RefusedError
from tests.cluster.controlplane import ControlPlane
from tests.cluster.roles import (
    grant_upstream_gc,
    grant_upstream_master,
    grant_upstream_worker,
)

NAMESPACE = "upstream-roles"
NFD = "/apis/nfd.k8s-sigs.io/v1alpha1"
FEATURES = f"{NFD}/namespaces/{NAMESPACE}/nodefeatures"


def test_upstream_worker(upstream_control_plane: ControlPlane) -> None:
    plane = upstream_control_plane
    plane.node("roles-node")
    grant_upstream_worker(plane, NAMESPACE, "worker")
    api = plane.client(plane.bound_token(NAMESPACE, "worker", "w", node="roles-node"))
    manifest = {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": {"name": "roles-node"},
        "spec": {},
    }

    made = api.create(FEATURES, manifest)
    api.replace(f"{FEATURES}/roles-node", made)
    api.get(f"/api/v1/namespaces/{NAMESPACE}/pods/w")
    api.delete(f"{FEATURES}/roles-node")
    for path in (FEATURES, "/api/v1/nodes/roles-node"):
        with pytest.raises(RefusedError, match="forbidden"):
            api.get(path)


def test_upstream_worker_with_node_owner(upstream_control_plane: ControlPlane) -> None:
    plane = upstream_control_plane
    plane.node("roles-node")
    grant_upstream_worker(plane, NAMESPACE, "owner", node_owner=True)
    api = plane.client(plane.bound_token(NAMESPACE, "owner"))

    api.get("/api/v1/nodes/roles-node")
    with pytest.raises(RefusedError, match="forbidden"):
        api.patch("/api/v1/nodes/roles-node", [])


def test_upstream_master(upstream_control_plane: ControlPlane) -> None:
    plane = upstream_control_plane
    plane.node("roles-node")
    grant_upstream_master(plane, NAMESPACE, "master")
    api = plane.client(plane.bound_token(NAMESPACE, "master"))

    for path in ("/api/v1/nodes", f"{NFD}/nodefeatures", f"{NFD}/nodefeaturerules"):
        api.get(path)
    api.patch("/api/v1/nodes/roles-node", [])
    with pytest.raises(RefusedError, match="forbidden"):
        api.get("/api/v1/nodes", watch="true")
    with pytest.raises(RefusedError, match="forbidden"):
        api.delete(f"{FEATURES}/x")


def test_upstream_gc(upstream_control_plane: ControlPlane) -> None:
    plane = upstream_control_plane
    grant_upstream_gc(plane, NAMESPACE, "gc")
    api = plane.client(plane.bound_token(NAMESPACE, "gc"))

    api.get("/api/v1/nodes")
    api.get(f"{NFD}/nodefeatures")
    with pytest.raises(RefusedError, match="not found"):
        api.delete(f"{FEATURES}/x")
    with pytest.raises(RefusedError, match="forbidden"):
        api.get(f"{NFD}/nodefeaturerules")
