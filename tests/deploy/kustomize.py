"""The kustomize base is derived from the chart, so that the two cannot drift apart.

`python -m tests.deploy.kustomize` writes it anew; a test compares. Names, labels and
environment are those of upstream's kustomize base (spec/master.md 8.4).
"""

import copy
import subprocess
from collections.abc import Iterator
from typing import Any

import yaml

from tests.cluster.api import documents
from tests.cluster.tools import tools
from tests.deploy.chart import ROOT, Manifest, only, render

FOLDER = ROOT / "deploy" / "kustomize"
NAMESPACE = "node-feature-discovery"
HEAD = "# Derived from the chart: python -m tests.deploy.kustomize\n"
VALUES: dict[str, Any] = {
    "fullnameOverride": "nfd",
    "master": {"serviceAccount": {"name": "nfd-master"}},
    "worker": {"serviceAccount": {"name": "nfd-worker"}},
    "gc": {"enable": True},
}
ENVIRONMENT = [
    {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
    for name, path in (
        ("NODE_NAME", "spec.nodeName"),
        ("POD_NAME", "metadata.name"),
        ("POD_UID", "metadata.uid"),
    )
]


class _Dumper(yaml.SafeDumper):
    """Block style, no anchors."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def build(path: str) -> list[Manifest]:
    """Build a kustomization below deploy/kustomize with the real kubectl."""
    done = subprocess.run(
        [str(tools()["kubectl"]), "kustomize", str(FOLDER / path)],
        check=True,
        capture_output=True,
        text=True,
    )
    return list(documents(done.stdout))


def derive() -> dict[str, str]:
    """Return path below deploy/kustomize → text of every derived file."""
    chart = render(VALUES, namespace=NAMESPACE)
    return {
        path: HEAD
        + "---\n".join(
            yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=100)
            for manifest in manifests
        )
        for path, manifests in _files(chart).items()
    }


def _files(chart: list[Manifest]) -> dict[str, list[Manifest]]:
    names = ("nfd-worker-node", "nfd-worker-nodefeature")
    return {
        "base/master/deployment.yaml": [_workload(chart, "Deployment", "nfd-master")],
        "base/master/rbac.yaml": [
            _account("nfd-master"),
            *_role(chart, "ClusterRole", "nfd", "nfd-master"),
            *_role(chart, "Role", "nfd-master"),
        ],
        "base/worker/daemonset.yaml": [_workload(chart, "DaemonSet", "nfd-worker")],
        "base/worker/serviceaccount.yaml": [_account("nfd-worker")],
        "base/worker-node-rbac/rbac.yaml": list(
            _role(chart, "ClusterRole", "nfd-worker")
        ),
        "base/worker-nodefeature-rbac/rbac.yaml": list(
            _role(chart, "Role", "nfd-worker")
        ),
        "base/admission/policies.yaml": [
            _bare(only(chart, kind, name), name)
            for name in names
            for kind in (
                "ValidatingAdmissionPolicy",
                "ValidatingAdmissionPolicyBinding",
            )
        ],
        "base/gc/deployment.yaml": [_workload(chart, "Deployment", "nfd-gc")],
        "base/gc/rbac.yaml": [
            _account("nfd-gc"),
            *_role(chart, "ClusterRole", "nfd-gc"),
        ],
        "overlays/default-job/job.yaml": [_oneshot(chart)],
        "overlays/prune/job.yaml": [_workload(chart, "Job", "nfd-prune")],
        "overlays/prune/rbac.yaml": [
            _account("nfd-prune"),
            *_role(chart, "ClusterRole", "nfd-prune"),
        ],
    }


def _bare(manifest: Manifest, name: str) -> Manifest:
    bare = copy.deepcopy(manifest)
    bare["metadata"] = {"name": name}
    return bare


def _account(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}


def _role(
    chart: list[Manifest], kind: str, old: str, new: str = ""
) -> Iterator[Manifest]:
    name = new or old
    (role,) = (m for m in chart if m["kind"] == kind and m["metadata"]["name"] == old)
    (binding,) = (
        m
        for m in chart
        if m["kind"] == f"{kind}Binding" and m["metadata"]["name"] == old
    )
    yield _bare(role, name)
    bound = _bare(binding, name)
    bound["roleRef"]["name"] = name
    yield bound


def _workload(chart: list[Manifest], kind: str, name: str) -> Manifest:
    workload = _bare(only(chart, kind, name), name)
    workload["metadata"]["labels"] = {"app": "nfd"}
    spec = workload["spec"]
    if kind != "Job":
        spec["selector"] = {"matchLabels": {"app": name}}
    spec["template"]["metadata"] = {"labels": {"app": name}}
    pod = spec["template"]["spec"]
    pod.pop("hostNetwork")
    (container,) = pod["containers"]
    container["name"] = name
    container["image"] = "node-feature-discovery"
    container["env"] = ENVIRONMENT
    for volume in pod.get("volumes", []):
        if "configMap" in volume:
            volume["configMap"]["name"] = f"{name}-conf"
    return workload


def _oneshot(chart: list[Manifest]) -> Manifest:
    """Make the worker a job that runs once on each of NUM_NODES nodes."""
    template = _workload(chart, "DaemonSet", "nfd-worker")["spec"]["template"]
    pod = template["spec"]
    pod["restartPolicy"] = "Never"
    pod["affinity"] = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "nfd-worker"}},
                }
            ]
        }
    }
    (container,) = pod["containers"]
    container["args"] = ["-oneshot", "-publish=nodefeature", "-owner-refs=node"]
    for key in ("ports", "livenessProbe", "readinessProbe"):
        del container[key]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "nfd-worker", "labels": {"app": "nfd"}},
        "spec": {
            "completions": "NUM_NODES",
            "parallelism": "NUM_NODES",
            "ttlSecondsAfterFinished": 3600,
            "template": template,
        },
    }


def main() -> None:
    """Write the derived files."""
    for path, text in derive().items():
        target = FOLDER / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


if __name__ == "__main__":
    main()
