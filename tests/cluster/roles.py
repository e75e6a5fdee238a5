"""What components may do: as upstream's manifests grant it, and as our chart does."""

from collections.abc import Mapping
from typing import Any

from tests.cluster.controlplane import ControlPlane
from tests.deploy.chart import Manifest, render

RBAC = "rbac.authorization.k8s.io"
GROUP = "nfd.k8s-sigs.io"


def grant_upstream_master(plane: ControlPlane, namespace: str, account: str) -> None:
    """Give an account what upstream's master has (spec/master.md 8.2)."""
    nfd = ("nodefeatures", "nodefeaturerules", "nodefeaturegroups")
    lease = {"resourceNames": ["nfd-master.nfd.kubernetes.io"]}
    _grant(
        plane,
        namespace,
        account,
        "ClusterRole",
        [
            _rule("", ["namespaces"], ["watch", "list"]),
            _rule("", ["nodes", "nodes/status"], ["get", "patch", "update", "list"]),
            _rule(GROUP, nfd, ["get", "list", "watch"]),
            _rule(GROUP, ["nodefeaturegroups/status"], ["patch", "update"]),
            _rule("coordination.k8s.io", ["leases"], ["create"]),
            _rule("coordination.k8s.io", ["leases"], ["get", "update"]) | lease,
        ],
    )


def grant_upstream_worker(
    plane: ControlPlane, namespace: str, account: str, *, node_owner: bool = False
) -> None:
    """Give an account what upstream's worker has; `node_owner`: with `get` of nodes."""
    _grant(
        plane,
        namespace,
        account,
        "Role",
        [
            _rule(GROUP, ["nodefeatures"], ["create", "get", "update", "delete"]),
            _rule("", ["pods"], ["get"]),
        ],
    )
    if node_owner:
        _grant(
            plane, namespace, account, "ClusterRole", [_rule("", ["nodes"], ["get"])]
        )


def grant_upstream_gc(plane: ControlPlane, namespace: str, account: str) -> None:
    """Give an account what upstream's garbage collector has."""
    topology = "noderesourcetopologies"
    _grant(
        plane,
        namespace,
        account,
        "ClusterRole",
        [
            _rule("", ["nodes"], ["list", "watch"]),
            _rule("topology.node.k8s.io", [topology], ["delete", "list"]),
            _rule(GROUP, ["nodefeatures"], ["delete", "list"]),
        ],
    )


def apply_chart(
    plane: ControlPlane,
    namespace: str,
    values: Mapping[str, Any] | None = None,
    *,
    release: str = "nfd",
) -> list[Manifest]:
    """Apply accounts, rights and policies of the chart, and no workload.

    The accounts are `<release>-node-feature-discovery` (master), and the same with
    `-worker` and `-gc`. A policy is in force about a second later.
    """
    plane.service_account(namespace, "default")
    groups = (RBAC, "admissionregistration.k8s.io")
    applied = [
        manifest
        for manifest in render(values, release=release, namespace=namespace)
        if manifest["kind"] == "ServiceAccount"
        or manifest["apiVersion"].startswith(groups)
    ]
    for manifest in applied:
        plane.admin.apply(manifest)
    return applied


def _rule(group: str, resources: Any, verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": verbs}


def _grant(
    plane: ControlPlane,
    namespace: str,
    account: str,
    kind: str,
    rules: list[dict[str, Any]],
) -> None:
    plane.service_account(namespace, account)
    name = f"{namespace}-{account}"
    metadata = {"name": name} | ({"namespace": namespace} if kind == "Role" else {})
    common = {"apiVersion": f"{RBAC}/v1", "metadata": metadata}
    plane.admin.apply({**common, "kind": kind, "rules": rules})
    plane.admin.apply(
        {
            **common,
            "kind": f"{kind}Binding",
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": [
                {"kind": "ServiceAccount", "name": account, "namespace": namespace}
            ],
        }
    )
