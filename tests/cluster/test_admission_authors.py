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
NODE_NAME = "nfd.node.kubernetes.io/node-name"
FEATURE = "feature.node.kubernetes.io"
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
            {
                "trust": {
                    "enforce": True,
                    "users": [user],
                    "allow": [
                        {
                            "namespaces": ["tenant-*"],
                            "nodes": ["tenant-node-?"],
                            "labels": ["tenant.example/*", f"{FEATURE}/tenant-*"],
                        },
                        {
                            "namespaces": [TENANT],
                            "nodes": ["raw.*"],
                            "features": ["tenant.*"],
                        },
                    ],
                }
            },
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
    with pytest.raises(
        RefusedError,
        match=r"tenant-a:editor is not trusted to set, .* nvidia.com/gpu.present",
    ):
        editor.create(FEATURES, _node_feature("evil", LABELS))


def test_features_of_strangers_are_refused(editor: Api) -> None:
    with pytest.raises(RefusedError, match=r"not trusted to publish.* about node .n9"):
        editor.create(FEATURES, _node_feature("raw", None, RAW))


@pytest.mark.parametrize(
    ("node", "key"),
    [
        ("tenant-node-1", "tenant.example/x"),
        ("tenant-node-1", f"{FEATURE}/tenant-x"),
        ("tenant-node-1", "tenant-x"),  # the master puts the namespace in front
    ],
)
def test_granted_labels_pass(editor: Api, node: str, key: str) -> None:
    editor.create(FEATURES, _node_feature("x", {key: "v"}, node=node), dryRun="All")


@pytest.mark.parametrize(
    ("node", "key"),
    [
        ("tenant-node-12", "tenant.example/x"),  # ? is one character
        ("n9", "tenant.example/x"),
        ("tenant-node-1", "tenant-example/x"),  # a dot is a dot
        ("tenant-node-1", "not.tenant.example/x"),
        ("tenant-node-1", "other"),
    ],
)
def test_other_labels_are_refused(editor: Api, node: str, key: str) -> None:
    with pytest.raises(RefusedError, match="not trusted to set"):
        editor.create(FEATURES, _node_feature("x", {key: "v"}, node=node))


def test_granted_features_pass(editor: Api) -> None:
    manifest = _node_feature("x", None, RAW, node="raw.example")

    editor.create(FEATURES, manifest, dryRun="All")
    with pytest.raises(RefusedError, match="not trusted to publish"):
        editor.create(FEATURES, _node_feature("x", None, RAW, node="tenant-node-1"))


@pytest.mark.parametrize(
    "nodes", [("tenant-node-1", "victim"), ("victim", "tenant-node-1")]
)
def test_label_and_annotation_must_both_be_granted(
    editor: Api, nodes: tuple[str, str]
) -> None:
    label, annotation = nodes
    manifest = _node_feature("x", {"tenant.example/x": "v"}, node=label)
    manifest["metadata"]["annotations"] = {NODE_NAME: annotation}

    with pytest.raises(RefusedError, match="not trusted to set"):
        editor.create(FEATURES, manifest)


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
        {"metadata": {"labels": {NODE_NAME: "victim"}}},
        {"metadata": {"annotations": {NODE_NAME: "victim"}}},
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
    name: str,
    labels: dict[str, str] | None,
    features: dict[str, Any] | None = None,
    node: str = "n9",
) -> Manifest:
    spec = {"labels": labels, "features": features}
    return {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": {
            "name": name,
            "labels": {NODE_NAME: node},
        },
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def _remake(api: Api, manifest: Manifest) -> None:
    with suppress(RefusedError):  # not found
        api.delete(f"{FEATURES}/{manifest['metadata']['name']}")
    api.create(FEATURES, manifest)


def _merge(api: Api, path: str, body: object) -> Any:
    return api.patch(path, body, content_type=MERGE_PATCH)
