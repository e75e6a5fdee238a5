"""Objects that tests put into a cluster."""

from collections.abc import Mapping
from typing import Any


def manifest(
    version: str, kind: str, name: str, namespace: str | None = None
) -> dict[str, Any]:
    """Begin an object."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def pod(
    namespace: str, name: str, service_account: str, node: str | None
) -> dict[str, Any]:
    """Describe a pod that stays where it is put, whatever the taints."""
    spec: dict[str, Any] = {
        "serviceAccountName": service_account,
        "containers": [{"name": "pause", "image": "pause"}],
        "tolerations": [{"operator": "Exists"}],
    }
    if node:
        spec["nodeName"] = node
    return manifest("v1", "Pod", name, namespace) | {"spec": spec}


def node(name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """Describe a ready Node as its kubelet registers it."""
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    described = manifest("v1", "Node", name)
    described["metadata"]["labels"] = {
        "kubernetes.io/hostname": name[:63].rstrip("-."),  # as kubelets cut it
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    } | dict(labels)
    described["status"] = {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": [ready],
    }
    return described
