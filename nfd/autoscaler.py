"""What a cluster autoscaler must be told of nodes that do not exist yet.

An autoscaler that scales a group from zero knows the template of its nodes only, and
no label that is discovered later. These functions write what a discovered host of the
group has in the forms that autoscalers read. Pure. Sources: the READMEs of the cluster
autoscaler's providers clusterapi and aws, Karpenter's NodePool and NodeOverlay.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import attrs

from nfd.labels import FEATURE_NS, split_key
from nfd.rules.model import Taint

STARTUP_TAINT = Taint(
    "startup-taint.cluster-autoscaler.kubernetes.io/nfd", "NoSchedule", "true"
)
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"
AWS_TAG = "k8s.io/cluster-autoscaler/node-template/"
MAX_REQUIREMENTS = 100  # of a Karpenter NodePool
MAX_TAGS = 50  # of an AWS resource

# Resources that the cluster autoscaler itself knows as GPUs, the likeliest first.
GPU_RESOURCES = (
    "nvidia.com/gpu",
    "amd.com/gpu",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "microsoft.com/directx",
)
_KUBELET = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
_DISK = {"ephemeral-storage": "ephemeral-disk", "pods": "maxPods"}

# Facts of the installed software, which an upgrade changes under a template.
_SOFTWARE = ("kernel-", "system-os_release")
_SOFTWARE_PARTS = ("timestamp", "driver", "cuda.", "firmware", "fw.", "kernel.")


@attrs.frozen(slots=True)
class NodeTemplate:
    """What every node of a group has once it is discovered."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    resources: Mapping[str, str] = MappingProxyType({})  # name: quantity
    startup_taint: Taint | None = STARTUP_TAINT

    @property
    def extended(self) -> dict[str, str]:
        """The resources that no kubelet reports of itself."""
        return {k: v for k, v in sorted(self.resources.items()) if k not in _KUBELET}


@attrs.frozen(slots=True)
class Exported:
    """Plain data, a list of documents, and what the form cannot say."""

    documents: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...] = ()


Export: TypeAlias = Callable[[NodeTemplate, str], Exported]


def is_stable(key: str) -> bool:
    """Tell whether a label states hardware, so that a template may promise it."""
    namespace, name = split_key(key)
    if namespace == FEATURE_NS:
        return not name.startswith(_SOFTWARE)
    return not any(part in name for part in _SOFTWARE_PARTS)


def to_cluster_api(template: NodeTemplate, name: str) -> Exported:
    """Write the annotations of a MachineSet or MachineDeployment.

    The provider reads one extended resource, `gpu-type` and `gpu-count`; cpu and
    memory come from the infrastructure's template unless they are given.
    """
    annotations: dict[str, str] = {}
    if template.labels:
        pairs = sorted(template.labels.items())
        annotations[CAPACITY + "labels"] = ",".join(f"{k}={v}" for k, v in pairs)
    if template.taints:
        annotations[CAPACITY + "taints"] = ",".join(map(str, template.taints))
    for resource, quantity in sorted(template.resources.items()):
        if resource in _KUBELET:
            annotations[CAPACITY + _DISK.get(resource, resource)] = quantity
    extended = template.extended
    chosen = next(
        (r for r in GPU_RESOURCES if r in extended), min(extended, default="")
    )
    warnings = []
    if chosen:
        annotations[CAPACITY + "gpu-type"] = chosen
        annotations[CAPACITY + "gpu-count"] = extended.pop(chosen)
    if extended:
        warnings.append(
            f"annotations name one extended resource, {chosen}; "
            f"left out: {', '.join(extended)}"
        )
    return Exported(
        ({"metadata": {"name": name, "annotations": annotations}},), tuple(warnings)
    )


def to_karpenter(template: NodeTemplate, name: str) -> Exported:
    """Write the parts of a NodePool, and a NodeOverlay for extended resources."""
    requirements = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in sorted(template.labels.items())
    ]
    spec: dict[str, Any] = {"requirements": requirements}
    if template.taints:
        spec["taints"] = [taint_plain(taint) for taint in template.taints]
    if template.startup_taint:
        spec["startupTaints"] = [taint_plain(template.startup_taint)]
    documents: list[dict[str, Any]] = [
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": name},
            "spec": {"template": {"spec": spec}},
        }
    ]
    if extended := template.extended:
        pool = {"key": "karpenter.sh/nodepool", "operator": "In", "values": [name]}
        documents.append(
            {
                "apiVersion": "karpenter.sh/v1alpha1",
                "kind": "NodeOverlay",
                "metadata": {"name": name},
                "spec": {"requirements": [pool], "capacity": extended},
            }
        )
    warnings = []
    if len(requirements) > MAX_REQUIREMENTS:
        warnings.append(
            f"{len(requirements)} requirements, a NodePool may have "
            f"{MAX_REQUIREMENTS}: choose labels with --labels"
        )
    return Exported(tuple(documents), tuple(warnings))


def to_node(template: NodeTemplate, name: str) -> Exported:
    """Write a Node, as simulators and providers with Node templates take it."""
    taints = list(template.taints)
    if template.startup_taint:
        taints.append(template.startup_taint)
    node: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(sorted(template.labels.items()))},
        "spec": {"taints": [taint_plain(taint) for taint in taints]},
    }
    if template.resources:
        resources = dict(sorted(template.resources.items()))
        node["status"] = {"capacity": resources, "allocatable": dict(resources)}
    return Exported((node,))


def to_aws_tags(template: NodeTemplate, name: str) -> Exported:
    """Write the tags of an Auto Scaling group, as name and value."""
    tags = {
        f"{AWS_TAG}label/{key}": value for key, value in sorted(template.labels.items())
    }
    for taint in template.taints:
        tags[f"{AWS_TAG}taint/{taint.key}"] = f"{taint.value}:{taint.effect}"
    for resource, quantity in template.extended.items():
        tags[f"{AWS_TAG}resources/{resource}"] = quantity
    warnings = []
    if len(tags) > MAX_TAGS:
        warnings.append(
            f"{len(tags)} tags, {name} may have {MAX_TAGS}: choose labels with --labels"
        )
    return Exported((tags,), tuple(warnings))


FORMS: Mapping[str, Export] = MappingProxyType(
    {
        "cluster-api": to_cluster_api,
        "karpenter": to_karpenter,
        "node": to_node,
        "aws-tags": to_aws_tags,
    }
)


def taint_plain(taint: Taint) -> dict[str, str]:
    """Write a taint as the API does; an empty value is left out."""
    plain = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    return {key: value for key, value in plain.items() if value}
