"""The policy about who may write NodeFeatures (`trust.enforce`), on a real server."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.cluster.api import MERGE_PATCH, Api, RefusedError
from tests.cluster.controlplane import ControlPlane
from tests.deploy.chart import Manifest, render

pytestmark = pytest.mark.usefixtures("helm")

NAMESPACE = "trusting"
TENANT = "tenant-a"
FEATURES = f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{TENANT}/nodefeatures"
LABELS = {"nvidia.com/gpu.present": "true"}
RAW: dict[str, Any] = {"flags": {"a.b": {"elements": {"c": {}}}}}


@pytest.fixture(scope="module")
def strict(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The policy in force; everybody may write NodeFeatures as far as roles go."""
    plane = control_plane
    plane.service_account(TENANT, "vendor")
    user = f"system:serviceaccount:{TENANT}:vendor"
    manifests = [
        manifest
        for manifest in render(
            {"trust": {"enforce": True, "users": [user]}},
            namespace=NAMESPACE,
            release="trusting",
        )
        if manifest["metadata"]["name"].endswith("-authors")
    ]
    manifests += _everybody_writes_node_features()
    for manifest in manifests:
        plane.admin.apply(manifest)
    probe = plane.client(plane.bound_token(TENANT, "editor"))

    def in_force() -> bool:
        try:
            probe.create(FEATURES, _node_feature("probe", LABELS), dryRun="All")
        except RefusedError as error:
            return "not trusted" in error.message
        return False

    plane.wait_for(in_force, wanted=True)
    yield plane
    for manifest in manifests:
        plane.admin.delete(plane.admin.path_of(manifest))


@pytest.fixture
def editor(strict: ControlPlane) -> Api:
    """A user who may edit the namespace and is not trusted."""
    return strict.client(strict.bound_token(TENANT, "editor"))


@pytest.fixture
def vendor(strict: ControlPlane) -> Api:
    """A trusted author."""
    return strict.client(strict.bound_token(TENANT, "vendor"))


def test_labels_of_strangers_are_refused(editor: Api) -> None:
    with pytest.raises(RefusedError, match="tenant-a:editor is not trusted to set"):
        editor.create(FEATURES, _node_feature("evil", LABELS))


def test_features_of_strangers_are_refused(editor: Api) -> None:
    with pytest.raises(RefusedError, match="not trusted to publish features"):
        editor.create(FEATURES, _node_feature("raw", None, RAW))


def test_trusted_authors_pass(vendor: Api) -> None:
    vendor.create(FEATURES, _node_feature("trusted", LABELS, RAW), dryRun="All")


def test_administrators_pass(strict: ControlPlane) -> None:
    strict.admin.create(FEATURES, _node_feature("admins", LABELS), dryRun="All")


def test_workers_pass(strict: ControlPlane) -> None:
    worker = strict.client(
        strict.bound_token(NAMESPACE, "trusting-node-feature-discovery-worker")
    )

    worker.create(FEATURES, _node_feature("workers", LABELS), dryRun="All")


def test_strangers_may_touch_what_they_do_not_change(vendor: Api, editor: Api) -> None:
    """Collectors and the master annotate objects whose content others wrote."""
    _remake(vendor, _node_feature("shared", LABELS, RAW))
    path = f"{FEATURES}/shared"

    touched = _merge(editor, path, {"metadata": {"annotations": {"a": "b"}}})
    held = _merge(editor, path, {"metadata": {"finalizers": ["example.com/x"]}})
    _merge(editor, path, {"metadata": {"finalizers": None}})

    assert touched["metadata"]["annotations"] == {"a": "b"}
    assert held["spec"] == touched["spec"]


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"labels": {"more.example/x": "y"}}},
        {"spec": {"features": {"flags": {"d.e": {"elements": {}}}}}},
        {"metadata": {"labels": {"nfd.node.kubernetes.io/node-name": "victim"}}},
    ],
)
def test_strangers_may_not_change_what_others_wrote(
    vendor: Api, editor: Api, change: dict[str, Any]
) -> None:
    _remake(vendor, _node_feature("kept", LABELS, RAW))

    with pytest.raises(RefusedError, match="not trusted"):
        _merge(editor, f"{FEATURES}/kept", change)


def test_strangers_may_delete_what_roles_let_them(vendor: Api, editor: Api) -> None:
    _remake(vendor, _node_feature("gone", LABELS))

    editor.delete(f"{FEATURES}/gone")


def _everybody_writes_node_features() -> list[Manifest]:
    api_version = "rbac.authorization.k8s.io/v1"
    metadata = {"name": "trusting-everybody"}
    return [
        {
            "apiVersion": api_version,
            "kind": "ClusterRole",
            "metadata": metadata,
            "rules": [
                {
                    "apiGroups": ["nfd.k8s-sigs.io"],
                    "resources": ["nodefeatures"],
                    "verbs": ["*"],
                }
            ],
        },
        {
            "apiVersion": api_version,
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": metadata["name"],
            },
            "subjects": [
                {
                    "kind": "Group",
                    "apiGroup": "rbac.authorization.k8s.io",
                    "name": f"system:serviceaccounts:{namespace}",
                }
                for namespace in (TENANT, NAMESPACE)
            ],
        },
    ]


def _node_feature(
    name: str, labels: dict[str, str] | None, features: dict[str, Any] | None = None
) -> Manifest:
    spec = {"labels": labels, "features": features}
    return {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": {
            "name": name,
            "labels": {"nfd.node.kubernetes.io/node-name": "n9"},
        },
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def _remake(api: Api, manifest: Manifest) -> None:
    with suppress(RefusedError):  # not found
        api.delete(f"{FEATURES}/{manifest['metadata']['name']}")
    api.create(FEATURES, manifest)


def _merge(api: Api, path: str, body: object) -> Any:
    return api.patch(path, body, content_type=MERGE_PATCH)
