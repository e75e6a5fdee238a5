"""The chart's admission policies on a real API server, with real bound tokens."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.cluster.api import MERGE_PATCH, Api, RefusedError
from tests.cluster.controlplane import ControlPlane
from tests.cluster.roles import apply_chart

pytestmark = pytest.mark.usefixtures("helm")

NAMESPACE = "fenced"
ACCOUNT = "nfd-node-feature-discovery-worker"
OWN = "fenced-own"
OTHER = "fenced-other"
LONG = "fenced-" + "long." * 12 + "example"  # 74 characters
FEATURE = "feature.node.kubernetes.io"
LABELS = "/metadata/labels"
FEATURES = f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{NAMESPACE}/nodefeatures"


@pytest.fixture(scope="module")
def fenced(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The chart's roles and policies, in force."""
    plane = control_plane
    for name in (OWN, OTHER, LONG):
        plane.node(name, **{f"{FEATURE}/old": "true", "vendor.example/old": "true"})
    manifests = apply_chart(plane, NAMESPACE)
    probe = plane.client(plane.bound_token(NAMESPACE, ACCOUNT, "probe", node=OWN))

    def in_force() -> bool:
        actions = (
            lambda: probe.patch(f"/api/v1/nodes/{OTHER}", [], dryRun="All"),
            lambda: probe.create(FEATURES, _node_feature(OTHER), dryRun="All"),
        )
        return all("belongs to node" in _refusal(action) for action in actions)

    plane.wait_for(in_force, wanted=True)
    yield plane
    for manifest in manifests:
        with suppress(RefusedError):
            plane.admin.delete(plane.admin.path_of(manifest))


@pytest.fixture(scope="module")
def worker(fenced: ControlPlane) -> Api:
    """A worker with a token bound to its pod on OWN."""
    return fenced.client(fenced.bound_token(NAMESPACE, ACCOUNT, "own", node=OWN))


@pytest.fixture(scope="module")
def loose(fenced: ControlPlane) -> Api:
    """The worker's account with a token that is bound to no pod."""
    return fenced.client(fenced.bound_token(NAMESPACE, ACCOUNT))


@pytest.mark.parametrize(
    "key",
    [
        f"{FEATURE}/pci-10de.present",
        f"intel.{FEATURE}/gpu",
        "profile.node.kubernetes.io/x",
        "nvidia.com/gpu.count",
        "beta.amd.com/gpu.family",
    ],
)
def test_own_node_labels_pass(worker: Api, key: str) -> None:
    node = _patch_node(worker, OWN, _put(LABELS, key))

    assert node["metadata"]["labels"][key] == "v"


def test_own_labels_change_and_go(worker: Api) -> None:
    key = f"{FEATURE}/mine"
    _patch_node(worker, OWN, _put(LABELS, key))
    changed = _patch_node(worker, OWN, _put(LABELS, key, "w"))
    pointer = f"{LABELS}/{_escaped(key)}"
    gone = _patch_node(worker, OWN, [{"op": "remove", "path": pointer}])

    assert changed["metadata"]["labels"][key] == "w"
    assert key not in gone["metadata"]["labels"]


def test_label_is_written_with_the_workers_manager(worker: Api) -> None:
    key = f"{FEATURE}/managed"
    node = worker.patch(
        f"/api/v1/nodes/{OWN}", _put(LABELS, key), fieldManager="nfd-worker"
    )

    managers = {
        entry["manager"]: entry["fieldsV1"]["f:metadata"]["f:labels"]
        for entry in node["metadata"]["managedFields"]
        if "f:labels" in entry["fieldsV1"].get("f:metadata", {})
    }
    assert f"f:{key}" in managers["nfd-worker"]


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (("labels", "vendor.example/x"), "outside its namespaces: vendor.example/x"),
        (("labels", "unprefixed"), "outside its namespaces: unprefixed"),
        (("labels", "node-role.kubernetes.io/control-plane"), "outside its namespaces"),
        (("labels", "kubernetes.io/hostname"), "outside its namespaces"),
        (("labels", f"evil{FEATURE}/x"), "outside its namespaces"),
        (("labels", f"{FEATURE}.evil/x"), "outside its namespaces"),
        (("annotations", "nfd.node.kubernetes.io/feature-labels"), "annotations"),
    ],
)
def test_foreign_keys_are_refused(
    worker: Api, patch: tuple[str, str], message: str
) -> None:
    where, key = patch
    body = {"metadata": {where: {key: "v"}}}

    _assert_refused(worker, OWN, body, message)


def test_removal_of_a_foreign_label_is_refused(worker: Api) -> None:
    body = {"metadata": {"labels": {"vendor.example/old": None}}}

    _assert_refused(worker, OWN, body, "outside its namespaces: vendor.example/old")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}, "taints"),
        ({"spec": {"unschedulable": True}}, "spec"),
        ({"spec": {"providerID": "x://y"}}, "spec"),
        (
            {
                "metadata": {
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}
                    ]
                }
            },
            "ownerReferences",
        ),
        ({"metadata": {"finalizers": ["example.com/hold"]}}, "finalizers"),
    ],
)
def test_all_else_of_the_own_node_is_refused(
    worker: Api, body: dict[str, Any], message: str
) -> None:
    _assert_refused(worker, OWN, body, message)


def test_one_bad_part_refuses_the_whole_patch(worker: Api) -> None:
    body = {"metadata": {"labels": {f"{FEATURE}/good": "v", "vendor.example/x": "v"}}}

    _assert_refused(worker, OWN, body, "outside its namespaces")


def test_another_node_is_refused(worker: Api) -> None:
    body = {"metadata": {"labels": {f"{FEATURE}/x": "v"}}}

    _assert_refused(worker, OTHER, body, f"belongs to node {OWN}")


def test_token_without_node_claim_is_refused(loose: Api) -> None:
    body = {"metadata": {"labels": {f"{FEATURE}/x": "v"}}}

    _assert_refused(loose, OWN, body, "not bound to a pod")
    with pytest.raises(RefusedError, match="not bound to a pod"):
        loose.create(FEATURES, _node_feature(OWN))


@pytest.mark.parametrize("verb", ["PUT", "DELETE", "POST"])
def test_roles_leave_no_other_way_to_nodes(worker: Api, verb: str) -> None:
    path = "/api/v1/nodes" + ("" if verb == "POST" else f"/{OWN}")
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": OWN}}

    with pytest.raises(RefusedError) as caught:
        worker.request(verb, path, body)

    assert caught.value.status == 403


def test_status_is_closed_even_where_a_role_opens_it(fenced: ControlPlane) -> None:
    """Somebody gives the worker more: labels could be set through the status."""
    role = "fenced-too-much"
    meta = {"name": role}
    fenced.admin.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": meta,
            "rules": [
                {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]}
            ],
        }
    )
    fenced.admin.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": meta,
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [
                {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
            ],
        }
    )
    worker = fenced.client(fenced.bound_token(NAMESPACE, ACCOUNT, "own", node=OWN))

    body = {"status": {"capacity": {"example.com/x": "1"}}}

    def refused_by_policy() -> bool:
        path = f"/api/v1/nodes/{OWN}/status"
        message = _refusal(lambda: worker.patch(path, body, content_type=MERGE_PATCH))
        return "subresource of a node" in message

    fenced.wait_for(refused_by_policy, wanted=True)


def test_own_node_feature_is_made_changed_and_deleted(worker: Api) -> None:
    made = worker.create(FEATURES, _node_feature(OWN))
    made["spec"] = {"labels": {"any.example/key": "v"}}
    changed = worker.replace(f"{FEATURES}/{OWN}", made)
    worker.delete(f"{FEATURES}/{OWN}")

    assert changed["spec"] == made["spec"]


def test_another_nodes_node_feature_is_refused(
    fenced: ControlPlane, worker: Api
) -> None:
    _remake(fenced.admin, _node_feature(OTHER))
    held = fenced.admin.get(f"{FEATURES}/{OTHER}")

    with pytest.raises(RefusedError, match=f"belongs to node {OWN}"):
        worker.create(FEATURES, _node_feature(f"{OTHER}-2"))
    with pytest.raises(RefusedError, match=f"belongs to node {OWN}"):
        worker.replace(f"{FEATURES}/{OTHER}", held | {"spec": {}})
    with pytest.raises(RefusedError, match=f"belongs to node {OWN}"):
        worker.delete(f"{FEATURES}/{OTHER}")


def test_own_name_with_another_nodes_label_is_refused(worker: Api) -> None:
    """The master goes by the label, so it must be the claim too."""
    with pytest.raises(RefusedError, match=f'speak for node "{OTHER}"'):
        worker.create(FEATURES, _node_feature(OWN, label=OTHER))
    with pytest.raises(RefusedError, match='speak for node ""'):
        worker.create(FEATURES, _node_feature(OWN, label=None))


def test_finalizer_on_the_own_node_feature_is_refused(worker: Api) -> None:
    manifest = _node_feature(OWN)
    manifest["metadata"]["finalizers"] = ["example.com/hold"]

    with pytest.raises(RefusedError, match="finalizers"):
        worker.create(FEATURES, manifest)


def test_long_node_name_has_a_short_label(fenced: ControlPlane) -> None:
    """The label cannot hold it; the annotation does, and the master checks the hash."""
    worker = fenced.client(fenced.bound_token(NAMESPACE, ACCOUNT, "long", node=LONG))
    digest = "0123456789abcdef"
    label = f"{LONG[:46]}-{digest}"

    worker.create(FEATURES, _node_feature(LONG, label=label, annotation=LONG))
    worker.delete(f"{FEATURES}/{LONG}")
    for manifest in (
        _node_feature(LONG, label=label),
        _node_feature(LONG, label=label, annotation=f"{LONG}.other"),
        _node_feature(LONG, label=f"{'x' * 46}-{digest}", annotation=LONG),
    ):
        with pytest.raises(RefusedError, match="speak for node"):
            worker.create(FEATURES, manifest)


def test_annotation_with_another_nodes_name_is_refused(worker: Api) -> None:
    with pytest.raises(RefusedError, match=f'speak for node "{OTHER}" .annotation'):
        worker.create(FEATURES, _node_feature(OWN, annotation=OTHER))


def test_many_labels_are_within_the_servers_budget(
    fenced: ControlPlane, worker: Api
) -> None:
    """The cost of expressions is limited; a Node with 2,000 labels is far below."""
    foreign = {f"vendor.example/label-{number}": "v" for number in range(1500)}
    ours = {f"{FEATURE}/label-{number}": "v" for number in range(500)}
    fenced.admin.patch(
        f"/api/v1/nodes/{OWN}",
        {"metadata": {"labels": foreign}},
        content_type=MERGE_PATCH,
    )

    worker.patch(
        f"/api/v1/nodes/{OWN}",
        {"metadata": {"labels": ours}},
        content_type=MERGE_PATCH,
    )
    # Too many keys for the message, which then names none.
    _assert_refused(
        worker,
        OWN,
        {"metadata": {"labels": dict.fromkeys(foreign)}},
        "outside its namespaces",
    )


def test_big_node_feature_passes(worker: Api) -> None:
    """The expressions do not read the features, so their size costs nothing."""
    elements = {f"OPTION_{number}": "y" for number in range(9000)}
    manifest = _node_feature(OWN)
    manifest["spec"] = {
        "features": {"attributes": {"kernel.config": {"elements": elements}}}
    }

    made = worker.create(FEATURES, manifest)
    made["spec"]["labels"] = {"a": "b"}
    worker.replace(f"{FEATURES}/{OWN}", made)
    worker.delete(f"{FEATURES}/{OWN}")


def test_others_are_not_hindered(fenced: ControlPlane) -> None:
    """Administrators, vendors' agents and the garbage collector go their way."""
    admin = fenced.admin
    vendor = _node_feature("vendor-features", label=OWN)
    vendor["spec"] = {"labels": {"vendor.example/x": "v"}}
    _remake(admin, vendor)
    body = {"metadata": {"annotations": {"a": "b"}, "labels": {"x.example/y": "z"}}}
    admin.patch(f"/api/v1/nodes/{OWN}", body, content_type=MERGE_PATCH)
    collector = fenced.certificate_client(
        "system:serviceaccount:kube-system:generic-garbage-collector", "system:masters"
    )

    collector.delete(f"{FEATURES}/vendor-features")


def test_kubelet_is_not_hindered(fenced: ControlPlane) -> None:
    kubelet = fenced.certificate_client(f"system:node:{OWN}", "system:nodes")
    body = {"metadata": {"annotations": {"kubelet": "was here"}}}

    kubelet.patch(f"/api/v1/nodes/{OWN}", body, content_type=MERGE_PATCH)


def test_fence_can_be_proved_without_a_write(worker: Api) -> None:
    """A dry run of a forbidden label is refused, which is how a worker finds out."""
    body = {"metadata": {"labels": {"fence.example/probe": "v"}}}

    with pytest.raises(RefusedError, match="outside its namespaces") as caught:
        worker.patch(
            f"/api/v1/nodes/{OWN}", body, content_type=MERGE_PATCH, dryRun="All"
        )

    assert caught.value.status == 403
    assert caught.value.reason == "Forbidden"


def _refusal(action: Callable[[], Any]) -> str:
    """Return the message of the refusal, or "" where there is none."""
    try:
        action()
    except RefusedError as error:
        return error.message
    return ""


def _node_feature(
    name: str, label: str | None = "", annotation: str | None = None
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    key = "nfd.node.kubernetes.io/node-name"
    if label is not None:
        metadata["labels"] = {key: label or name}
    if annotation is not None:
        metadata["annotations"] = {key: annotation}
    return {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": metadata,
        "spec": {},
    }


def _remake(api: Api, manifest: dict[str, Any]) -> None:
    with suppress(RefusedError):  # not found
        api.delete(f"{FEATURES}/{manifest['metadata']['name']}")
    api.create(FEATURES, manifest)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _put(where: str, key: str, value: str = "v") -> list[dict[str, str]]:
    return [{"op": "add", "path": f"{where}/{_escaped(key)}", "value": value}]


def _patch_node(api: Api, node: str, patch: object) -> Any:
    return api.patch(f"/api/v1/nodes/{node}", patch)


def _assert_refused(api: Api, node: str, body: object, message: str) -> None:
    with pytest.raises(RefusedError) as caught:
        api.patch(f"/api/v1/nodes/{node}", body, content_type=MERGE_PATCH)

    assert caught.value.status == 403
    assert message in caught.value.message
