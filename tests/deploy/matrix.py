"""What is rendered for tests: the chart with several values, and all overlays."""

from functools import cache
from typing import Any

from tests.deploy.chart import Manifest, render
from tests.deploy.kustomize import FOLDER, build

EVERYTHING: dict[str, Any] = {
    "gc": {
        "enable": True,
        "networkPolicy": {"enabled": True},
        "podDisruptionBudget": {"enable": True},
    },
    "gpu": {"enable": True},
    "profiles": ["gpu-operator", "network-operator"],
    "featureGates": {"NodeFeatureGroupAPI": True},
    "imagePullSecrets": [{"name": "pull"}],
    "priorityClassName": "system-node-critical",
    "prometheus": {"enable": True, "rules": {"enable": True}},
    "trust": {"enforce": True},
    "aggregatedRoles": {"edit": True},
    "master": {
        "replicaCount": 2,
        "enableTaints": True,
        "instance": "second",
        "resyncPeriod": "2h",
        "nfdApiParallelism": 5,
        "extraLabelNs": ["a.example", "b.example"],
        "denyLabelNs": ["*.c.example"],
        "extraArgs": ["-v=2"],
        "config": {"restrictions": {"disableLabels": True}},
        "networkPolicy": {"enabled": True},
        "podDisruptionBudget": {"enable": True},
    },
    "worker": {
        "ownerRefs": ["node", "pod", "ds"],
        "mountUsrSrc": True,
        "hostUsers": False,
        "config": {"core": {"sleepInterval": "10s"}},
        "networkPolicy": {"enabled": True},
    },
}
MATRIX: dict[str, dict[str, Any]] = {
    "default": {},
    "everything": EVERYTHING,
    "masterless": {"master": {"enable": False}, "publish": "node"},
    "nodefeature": {"publish": "nodefeature"},
    "unfenced": {"admissionPolicy": {"enable": False}},
    "no-accounts": {
        "master": {"serviceAccount": {"create": False}, "rbac": {"create": False}},
        "worker": {"serviceAccount": {"create": False}, "rbac": {"create": False}},
    },
    "nothing": {"master": {"enable": False}, "worker": {"enable": False}},
}
OVERLAYS = sorted(path.name for path in (FOLDER / "overlays").iterdir())
RENDERED = (*MATRIX, *(f"overlay {name}" for name in OVERLAYS))
# Kinds that Kubernetes itself does not have, so that no published schema has them.
CUSTOM = {
    "CustomResourceDefinition",  # described by itself
    "PodMonitor",
    "PrometheusRule",
    "SecurityContextConstraints",
}


@cache
def rendered(name: str) -> list[Manifest]:
    """Render one of `RENDERED`; nobody may change what it returns."""
    overlay = name.removeprefix("overlay ")
    if overlay == name:
        return render(MATRIX[name])
    return counted(build(f"overlays/{overlay}"))


def counted(manifests: list[Manifest]) -> list[Manifest]:
    """Fill in the number of nodes, as the user of default-job has to."""
    for manifest in manifests:
        for key in ("completions", "parallelism"):
            if manifest.get("spec", {}).get(key) == "NUM_NODES":
                manifest["spec"][key] = 3
    return manifests
