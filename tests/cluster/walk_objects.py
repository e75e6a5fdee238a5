"""The objects of the walk: nodes, an operator's DaemonSets, a rule, notebooks."""

from collections.abc import Mapping, Sequence
from typing import Any

Manifest = dict[str, Any]

NAMESPACE = "nfd"
OPERATOR = "gpu-operator"
GPU_LABEL = "feature.node.kubernetes.io/pci-10de.present"
GPU = "nvidia.com/gpu"
BITFUSION = "bitfusion.io/gpu"
PRODUCT = "nvidia.com/gpu.product"
MODEL = "NVIDIA-A100-SXM4-40GB"
OPERANDS = ("driver", "toolkit", "device-plugin", "monitoring")
CONTROL_PLANE_ROLE = "node-role.kubernetes.io/control-plane"

# Recorded hosts send no device events, so that workers look again every second.
VALUES: Mapping[str, Any] = {
    "worker": {"config": {"core": {"sleepInterval": "1s"}}},
    "gpu": {"enable": True, "sleepInterval": "1s"},
    "postDeleteCleanup": True,
}


def node(
    name: str,
    *,
    control_plane: bool = False,
    taints: Sequence[Mapping[str, str]] = (),
) -> Manifest:
    """Make a Node as its kubelet registers it."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    all_taints = [dict(taint) for taint in taints]
    if control_plane:
        labels[CONTROL_PLANE_ROLE] = ""
        all_taints.append({"key": CONTROL_PLANE_ROLE, "effect": "NoSchedule"})
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": all_taints},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady"}
            ],
        },
    }


def operator() -> list[Manifest]:
    """Make the DaemonSets that a GPU operator deploys, with pause containers."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": OPERATOR},
    }
    return [namespace, *(_operand(name) for name in OPERANDS)]


def _operand(name: str) -> Manifest:
    spec = {
        "nodeSelector": {GPU_LABEL: "true"},
        "containers": [{"name": "pause", "image": "pause"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": OPERATOR},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def rule() -> Manifest:
    """Make the rule that advertises GPUs, ten shares of each beside the whole."""
    return {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeatureRule",
        "metadata": {"name": "gpus"},
        "spec": {
            "rules": [
                {
                    "name": "count",
                    "varsTemplate": (
                        "gpus={{ len .pci.device }}\n"
                        "shares={{ mul 10 (len .pci.device) }}\n"
                    ),
                    "matchFeatures": [
                        {
                            "feature": "pci.device",
                            "matchExpressions": {
                                "vendor": {"op": "In", "value": ["10de"]},
                                "class": {"op": "InRegexp", "value": ["^03"]},
                            },
                        }
                    ],
                    "extendedResources": {
                        GPU: "@rule.matched.gpus",
                        BITFUSION: "@rule.matched.shares",
                    },
                }
            ]
        },
    }


def notebooks(replicas: int) -> Manifest:
    """Make a deployment whose pods need one GPU each."""
    container = {
        "name": "notebook",
        "image": "pause",
        "resources": {"limits": {GPU: "1"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "notebooks", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "notebook"}},
            "template": {
                "metadata": {"labels": {"app": "notebook"}},
                "spec": {"containers": [container]},
            },
        },
    }


def runtime_class() -> Manifest:
    """Make the runtime class that gives containers the driver."""
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "nvidia",
    }


def driver_description(buses: Sequence[str]) -> str:
    """Describe to the tests' NVML what its GPUs are, by their PCI addresses."""
    lines = ["driver 550.54.15", "cuda 12040"]
    for number, bus in enumerate(buses):
        lines += [
            "device",
            "name NVIDIA A100-SXM4-40GB",
            f"uuid GPU-{number}",
            f"bus 0000{bus}",
            "memory 42505273344",
            "cc 8 0",
        ]
    return "\n".join(lines) + "\n"
