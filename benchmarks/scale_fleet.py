"""The fleet of the scale benchmark: Nodes, NodeFeatures, rules; deterministic."""

import random
from typing import Any

FNS = "feature.node.kubernetes.io"
API_VERSION = "nfd.k8s-sigs.io/v1alpha1"
NAMESPACE = "nfd"
MODELS = 20
KERNELS = ("5.14.0", "5.15.0", "6.1.0", "6.6.0", "6.8.0", "6.11.0", "6.12.0")


def name_of(index: int) -> str:
    return f"node-{index:05}.scale.example"


def node(index: int) -> dict[str, Any]:
    """A Node of about 5 kB: a kubelet's labels, capacity, conditions, images."""
    name = name_of(index)
    images = [
        {"names": [f"registry.example/team/app-{i}@sha256:{i:064}"], "sizeBytes": i}
        for i in range(30)
    ]
    capacity = {"cpu": "64", "memory": "263842404Ki", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        "status": {"capacity": capacity, "allocatable": capacity, "images": images},
    }


def node_feature(index: int, *, big: bool, round_: int = 0) -> dict[str, Any]:
    """A NodeFeature; no two are equal as a whole, most of their sets are shared."""
    model = index % MODELS
    draw = random.Random(model)
    kernel = KERNELS[index % len(KERNELS)]
    major, minor, _ = kernel.split(".")
    flags = draw.sample([f"FLAG{i}" for i in range(160)], 90)
    options = 9000 if big else 300
    config = {f"OPTION_{i}": "ym"[(i + int(minor)) % 2] for i in range(options)}
    vendors = ("8086", "10de" if model % 3 == 0 else "1002", "15b3", "1af4")
    devices = [
        {"class": f"{2 + i % 4:02}00", "vendor": vendors[i % 4], "device": f"{i:04x}"}
        for i in range(30 + model)
    ]
    attributes = {
        "cpu.model": {"vendor_id": "Intel", "family": "6", "id": str(model)},
        "kernel.version": {
            "full": f"{kernel}-{index % 9}-generic",
            "major": major,
            "minor": minor,
        },
        "kernel.config": config,
        "memory.numa": {"is_numa": "true", "node_count": str(1 + model % 4)},
        "system.name": {"nodename": name_of(index)},
        "system.serial": {"serial": f"S{index:08}", "round": str(round_)},
    }
    labels = {f"{FNS}/cpu-cpuid.{flag}": "true" for flag in flags[:40]}
    labels |= {
        f"{FNS}/kernel-version.full": f"{kernel}-{index % 9}-generic",
        f"{FNS}/memory-numa": "true",
        f"{FNS}/round": str(round_),
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeFeature",
        "metadata": {
            "name": name_of(index),
            "namespace": NAMESPACE,
            "labels": {"nfd.node.kubernetes.io/node-name": name_of(index)},
            "annotations": {"nfd.node.kubernetes.io/worker.version": "v0.17.1"},
        },
        "spec": {
            "labels": labels,
            "features": {
                "flags": {"cpu.cpuid": {"elements": {flag: {} for flag in flags}}},
                "attributes": {k: {"elements": v} for k, v in attributes.items()},
                "instances": {
                    "pci.device": {"elements": [{"attributes": d} for d in devices]}
                },
            },
        },
    }


def rules(mark: str = "1") -> list[dict[str, Any]]:
    """Twenty rule objects; `mark` is the value of one label, for a rule change."""
    made: list[dict[str, Any]] = []

    def add(matchers: list[dict[str, Any]], **outputs: Any) -> None:
        name = f"scale-{len(made):02}"
        made.append(
            {
                "apiVersion": API_VERSION,
                "kind": "NodeFeatureRule",
                "metadata": {"name": name},
                "spec": {
                    "rules": [{"name": name, "matchFeatures": matchers, **outputs}]
                },
            }
        )

    def has(
        feature: str, element: str, op: str, *values: str, **more: str
    ) -> dict[str, Any]:
        expression = {"op": op, **({"value": list(values)} if values else {}), **more}
        return {"feature": feature, "matchExpressions": {element: expression}}

    for i in range(6):
        add([has("cpu.cpuid", f"FLAG{i}", "Exists")], labels={f"flag-{i}": "true"})
    for i in range(5):
        pattern = f"^OPTION_{i}[0-9]$"
        add(
            [
                {
                    "feature": "kernel.config",
                    "matchName": {"op": "InRegexp", "value": [pattern]},
                }
            ],
            labels={f"config-{i}": "true"},
        )
    gpu = has("pci.device", "vendor", "In", "10de")
    add([gpu], labels={"gpu": "nvidia", "mark": mark}, vars={"has-gpu": "yes"})
    add([has("rule.matched", "has-gpu", "In", "yes")], labels={"accelerated": "true"})
    add(
        [has("kernel.version", "full", "Ge", "6.1", type="version")],
        labels={"modern-kernel": "true"},
    )
    template = "{{ range .pci.device }}{{ .class }}_{{ .vendor }}=present\n{{ end }}"
    add([has("pci.device", "class", "In", "0200", "0300")], labelsTemplate=template)
    for element in ("major", "minor"):
        add(
            [has("kernel.version", element, "Exists")],
            labels={f"k-{element}": f"@kernel.version.{element}"},
        )
    add([has("memory.numa", "node_count", "Gt", "1")], labels={"numa": "several"})
    add([has("cpu.model", "id", "In", "1", "3", "5")], annotations={"model": "odd"})
    add([has("system.serial", "serial", "InRegexp", "7$")], labels={"lucky": "true"})
    return made
