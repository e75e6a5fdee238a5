"""Node templates for autoscalers, and `nfd export autoscaler-template`."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from nfd.autoscaler import (
    FORMS,
    MAX_REQUIREMENTS,
    MAX_TAGS,
    NodeTemplate,
    is_stable,
    to_aws_tags,
    to_cluster_api,
    to_karpenter,
    to_node,
)
from nfd.rules.model import Taint
from tests.cli.conftest import Nfd, nfd

__all__ = ["nfd"]  # a fixture

ROOT = Path(__file__).parent.parent
GPU = "feature.node.kubernetes.io/pci-10de.present"
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io"
TEMPLATE = NodeTemplate(
    {"vendor.io/b": "", GPU: "true"},
    (Taint("example.com/gpu", "NoSchedule", "a"), Taint("example.com/x", "NoExecute")),
    {"nvidia.com/gpu": "8", "bitfusion.io/gpu": "80", "cpu": "16", "pods": "250"},
)
RULES = """
apiVersion: nfd.k8s-sigs.io/v1alpha1
kind: NodeFeatureRule
metadata: {name: gpus}
spec:
  rules:
  - name: gpus
    labels: {example.com/gpus: "yes", bad..io/x: "1"}
    taints: [{key: example.com/gpu, effect: NoSchedule}]
    extendedResources: {bitfusion.io/gpu: "2k"}
    matchFeatures:
    - feature: pci.device
      matchExpressions: {vendor: {op: In, value: ["10de"]}}
"""


def many(count: int) -> NodeTemplate:
    return NodeTemplate({f"example.com/{i}": "" for i in range(count)})


def test_cluster_api_annotations() -> None:
    """Text that the provider splits at commas, then at the first `=` or `:`."""
    exported = to_cluster_api(TEMPLATE, "gpus")
    (document,) = exported.documents

    assert document == {
        "metadata": {
            "name": "gpus",
            "annotations": {
                f"{CAPACITY}/labels": f"{GPU}=true,vendor.io/b=",
                f"{CAPACITY}/taints": (
                    "example.com/gpu=a:NoSchedule,example.com/x:NoExecute"
                ),
                f"{CAPACITY}/cpu": "16",
                f"{CAPACITY}/maxPods": "250",
                f"{CAPACITY}/gpu-type": "nvidia.com/gpu",
                f"{CAPACITY}/gpu-count": "8",
            },
        }
    }
    assert exported.warnings == (
        (
            "annotations name one extended resource, nvidia.com/gpu; "
            "left out: bitfusion.io/gpu"
        ),
    )


def test_cluster_api_takes_any_resource_when_there_is_no_gpu() -> None:
    exported = to_cluster_api(NodeTemplate({}, (), {"vendor.io/a": "1"}), "x")

    assert exported.documents[0]["metadata"]["annotations"] == {
        f"{CAPACITY}/gpu-type": "vendor.io/a",
        f"{CAPACITY}/gpu-count": "1",
    }
    assert exported.warnings == ()


def test_karpenter_pool_and_overlay() -> None:
    pool, overlay = to_karpenter(TEMPLATE, "gpus").documents
    spec = pool["spec"]["template"]["spec"]

    assert spec["requirements"] == [
        {"key": GPU, "operator": "In", "values": ["true"]},
        {"key": "vendor.io/b", "operator": "In", "values": [""]},
    ]
    assert spec["taints"][1] == {"key": "example.com/x", "effect": "NoExecute"}
    assert spec["startupTaints"] == [
        {
            "key": "startup-taint.cluster-autoscaler.kubernetes.io/nfd",
            "value": "true",
            "effect": "NoSchedule",
        }
    ]
    assert overlay["spec"] == {
        "requirements": [
            {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["gpus"]}
        ],
        "capacity": {"bitfusion.io/gpu": "80", "nvidia.com/gpu": "8"},
    }
    assert len(to_karpenter(many(1), "x").documents) == 1


def test_node_has_the_startup_taint_too() -> None:
    (node,) = to_node(TEMPLATE, "gpus").documents

    assert [taint["key"] for taint in node["spec"]["taints"]] == [
        "example.com/gpu",
        "example.com/x",
        "startup-taint.cluster-autoscaler.kubernetes.io/nfd",
    ]
    assert node["status"]["capacity"] == node["status"]["allocatable"]
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "8"


def test_aws_tags() -> None:
    tag = "k8s.io/cluster-autoscaler/node-template"

    assert to_aws_tags(TEMPLATE, "gpus").documents[0] == {
        f"{tag}/label/{GPU}": "true",
        f"{tag}/label/vendor.io/b": "",
        f"{tag}/taint/example.com/gpu": "a:NoSchedule",
        f"{tag}/taint/example.com/x": ":NoExecute",
        f"{tag}/resources/bitfusion.io/gpu": "80",
        f"{tag}/resources/nvidia.com/gpu": "8",
    }


@pytest.mark.parametrize(
    ("form", "limit"), [("karpenter", MAX_REQUIREMENTS), ("aws-tags", MAX_TAGS)]
)
def test_limits_are_told(form: str, limit: int) -> None:
    assert FORMS[form](many(limit), "x").warnings == ()
    (warning,) = FORMS[form](many(limit + 1), "x").warnings

    assert f"{limit + 1} " in warning
    assert "--labels" in warning


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (GPU, True),
        ("feature.node.kubernetes.io/kernel-version.full", False),
        ("feature.node.kubernetes.io/system-os_release.ID", False),
        ("nvidia.com/gpu.product", True),
        ("nvidia.com/gfd.timestamp", False),
        ("nvidia.com/cuda.driver-version.full", False),
        ("habana.ai/fw.version", False),
    ],
)
def test_stable_labels_state_hardware(key: str, *, expected: bool) -> None:
    assert is_stable(key) == expected


def export(nfd: Nfd, tmp_path: Path, *words: str) -> Any:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    return nfd(
        *("export", "autoscaler-template", "--rules", str(rules)),
        *("--root", str(ROOT / "fixtures/hosts/gpu-server-a100")),
        *("--sources", "pci,kernel"),
        *words,
    )


def test_command_on_a_recorded_host(nfd: Nfd, tmp_path: Path) -> None:
    """Labels of sources and rules, taints, quantities; refusals are told."""
    done = export(nfd, tmp_path, "--capacity", "cpu=64", "--labels", "10de|^example")
    annotations = yaml.safe_load(done.out)["metadata"]["annotations"]

    assert annotations == {
        f"{CAPACITY}/cpu": "64",
        f"{CAPACITY}/gpu-count": "2k",
        f"{CAPACITY}/gpu-type": "bitfusion.io/gpu",
        f"{CAPACITY}/labels": (
            "example.com/gpus=yes,feature.node.kubernetes.io/pci-0302_10de.present=true"
            f",{GPU}=true"
        ),
        f"{CAPACITY}/taints": "example.com/gpu:NoSchedule",
    }
    assert "label bad..io/x is refused" in done.err


def test_command_leaves_software_out_by_default(nfd: Nfd, tmp_path: Path) -> None:
    done = export(nfd, tmp_path, "--form", "node", "-o", "json", "--no-startup-taint")
    node = json.loads(done.out)

    assert GPU in node["metadata"]["labels"]
    assert not [key for key in node["metadata"]["labels"] if "kernel" in key]
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["example.com/gpu"]


def test_command_writes_several_documents(nfd: Nfd, tmp_path: Path) -> None:
    done = export(nfd, tmp_path, "--form", "karpenter", "--name", "gpus")

    assert [document["kind"] for document in yaml.safe_load_all(done.out)] == [
        "NodePool",
        "NodeOverlay",
    ]


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (["--capacity", "cpu"], 2, "--capacity 'cpu': not a quantity"),
        (["--capacity", "=1"], 2, "--capacity '=1': the name part is empty"),
        (["--labels", "("], 2, "--labels: "),
        (["--rules", "missing.yaml"], 1, "missing.yaml: No such file"),
    ],
)
def test_command_refuses(
    nfd: Nfd, tmp_path: Path, words: list[str], status: int, complaint: str
) -> None:
    done = export(nfd, tmp_path, *words)

    assert done.status == status
    assert complaint in done.err
    assert done.out == ""


def test_command_refuses_wrong_rules(nfd: Nfd, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(RULES.replace("op: In", "op: Inside"))
    done = export(nfd, tmp_path, "--rules", str(wrong))

    assert done.status == 1
    assert "Inside" in done.err
