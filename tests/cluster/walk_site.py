"""The cluster that the walk goes through: what is seen in it, what is done to it."""

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from nfd.library import scan
from nfd.rules.policy import Policy
from tests.cluster import walk_objects as objects
from tests.cluster.binaries import UnavailableError
from tests.cluster.controlplane import ControlPlane
from tests.cluster.kubelets import Kubelets
from tests.cluster.tools import tools
from tests.cluster.walk_objects import NAMESPACE, OPERATOR
from tests.deploy.chart import ROOT, only, render

FIXTURES = ROOT / "fixtures" / "hosts"
FEATURE_NS = "feature.node.kubernetes.io/"
NODEFEATURES = f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{NAMESPACE}/nodefeatures"
STALE = "nfd.node.kubernetes.io/stale-sources"


@attrs.define
class Site:
    """A control plane whose Nodes are recorded hosts.

    Args:
        plane: running, with controller manager, scheduler and kwok, CRDs applied.
        folder: for copies of hosts, configuration and logs.
    """

    plane: ControlPlane
    folder: Path
    kubelets: Kubelets = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        logs = self.folder / "pods"
        logs.mkdir()
        self.kubelets = Kubelets(self.plane, logs, NAMESPACE, {})

    # ---- what is seen ----------------------------------------------------------

    def labels(self, node: str) -> dict[str, str]:
        """Return the labels of a Node."""
        found = self.plane.admin.get(f"/api/v1/nodes/{node}")
        return dict(found["metadata"].get("labels", {}))

    def label(self, node: str, key: str) -> str | None:
        """Return one label of a Node."""
        return self.labels(node).get(key)

    def labels_of(self, node: str, prefix: str = FEATURE_NS) -> dict[str, str]:
        """Return the labels of a Node that begin so."""
        labels = self.labels(node).items()
        return {key: value for key, value in labels if key.startswith(prefix)}

    def expected_labels(self, node: str, prefix: str = FEATURE_NS) -> dict[str, str]:
        """Return what the library says of the recorded host of a Node."""
        found = Policy().prefixed(scan(self.kubelets.hosts[node]).labels).items()
        return {key: label.value for key, label in found if key.startswith(prefix)}

    def labelled(self, label: str) -> list[str]:
        """Return the Nodes with a label of the value `true`."""
        listed = self.plane.admin.get("/api/v1/nodes", labelSelector=f"{label}=true")
        return sorted(item["metadata"]["name"] for item in listed["items"])

    def taints(self, node: str) -> list[str]:
        """Return the keys of a Node's taints."""
        spec = self.plane.admin.get(f"/api/v1/nodes/{node}")["spec"]
        return [taint["key"] for taint in spec.get("taints", ())]

    def resources(self, node: str, part: str = "allocatable") -> dict[str, str]:
        """Return a Node's extended resources that are not zero."""
        status = self.plane.admin.get(f"/api/v1/nodes/{node}")["status"]
        return {k: v for k, v in status[part].items() if "/" in k and v != "0"}

    def all_nodes(self) -> dict[str, Any]:
        """Return what anybody may have written to the Nodes, heartbeats left out."""
        listed = self.plane.admin.get("/api/v1/nodes")["items"]
        return {
            item["metadata"]["name"]: {
                "labels": item["metadata"].get("labels", {}),
                "annotations": item["metadata"].get("annotations", {}),
                "taints": item["spec"].get("taints", []),
                "capacity": item["status"]["capacity"],
                "allocatable": item["status"]["allocatable"],
            }
            for item in listed
        }

    def settled(self) -> bool:
        """Whether the controllers have written what they write to every Node."""
        return all(
            "node.alpha.kubernetes.io/ttl" in node["annotations"]
            and "beta.kubernetes.io/arch" in node["labels"]
            and all("not-ready" not in taint["key"] for taint in node["taints"])
            for node in self.all_nodes().values()
        )

    def running_pods(self, namespace: str, app: str) -> list[dict[str, Any]]:
        """Return the pods of an app that are not on their way out."""
        listed = self.plane.admin.get(
            f"/api/v1/namespaces/{namespace}/pods", labelSelector=f"app={app}"
        )
        return [i for i in listed["items"] if "deletionTimestamp" not in i["metadata"]]

    def on_nodes(self, app: str) -> list[str]:
        """Return the Nodes on which pods of one of the operator's apps run."""
        return sorted(
            pod["spec"]["nodeName"]
            for pod in self.running_pods(OPERATOR, app)
            if pod["status"].get("phase") == "Running"
        )

    def notebooks(self) -> dict[str, int]:
        """Return the number of notebooks by phase."""
        pods = self.running_pods("default", "notebook")
        return dict(Counter(pod["status"]["phase"] for pod in pods))

    def excuses(self) -> list[str]:
        """Return why notebooks are not scheduled."""
        return [
            condition.get("message", "")
            for pod in self.running_pods("default", "notebook")
            for condition in pod["status"].get("conditions", ())
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ]

    def stale_sources(self, node: str) -> list[str]:
        """Return which sources a Node's NodeFeature calls stale."""
        found = self.plane.admin.get(f"{NODEFEATURES}/{node}")
        text = found["metadata"].get("annotations", {}).get(STALE, "{}")
        return sorted(json.loads(text))

    def worker_daemon_set(self) -> str:
        """Return the name of the worker's DaemonSet."""
        return str(only(self.release(), "DaemonSet", "-worker")["metadata"]["name"])

    def rolled_out(self, daemon_set: str, wanted: int) -> bool:
        """Whether all `wanted` pods of a DaemonSet are of its newest template."""
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/{daemon_set}"
        found = self.plane.admin.get(path)
        status = found["status"]
        return bool(
            status.get("observedGeneration") == found["metadata"]["generation"]
            and status.get("updatedNumberScheduled") == wanted
            and status.get("numberReady") == wanted
        )

    def audit_mark(self) -> int:
        """Return how many audit events there are."""
        return len(self.plane.audit_events())

    def removals(self, since: int) -> list[str]:
        """Return every label that somebody took off a Node since an audit event."""
        return list(removals(self.plane.audit_events(), since))

    def pruned(self) -> bool:
        """Whether the Job that prunes has succeeded."""
        jobs = self.plane.admin.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs")
        return [job["status"].get("succeeded") for job in jobs["items"]] == [1]

    # ---- what is done ----------------------------------------------------------

    def release(self, *, hooks: bool = False) -> list[dict[str, Any]]:
        """Render the chart; the objects of its hooks, or all the others."""
        manifests = render(objects.VALUES, release="nfd", namespace=NAMESPACE)
        return [
            manifest
            for manifest in manifests
            if ("helm.sh/hook" in manifest["metadata"].get("annotations", {})) == hooks
        ]

    def kubectl(self, *words: str, stdin: str = "") -> None:
        """Run the real kubectl."""
        done = subprocess.run(
            [str(tools()["kubectl"]), *words],
            env=os.environ | {"KUBECONFIG": str(self.plane.kubeconfig)},
            input=stdin,
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"kubectl {words}: {done.stderr}"

    def apply(self, manifests: list[dict[str, Any]]) -> None:
        """Apply objects with the real kubectl."""
        self.kubectl("apply", "--server-side", "-f", "-", stdin=as_list(manifests))

    def make_node(self, manifest: dict[str, Any]) -> None:
        """Register a Node as its kubelet would."""
        self.plane.admin.create("/api/v1/nodes", manifest)

    def make_host(self, node: str, host: str) -> None:
        """Copy a recorded host for a Node, with a driver where it has NVIDIA GPUs."""
        target = self.folder / "hosts" / node
        shutil.copytree(FIXTURES / host, target, symlinks=True)
        self.kubelets.hosts[node] = target
        for device in self.nvidia(node):  # recorded without it
            (device / "config").write_bytes(bytes(256))
        if self.count_gpus(node):
            self.install_driver(node)

    def driver(self, node: str) -> Path:
        """Return where the NVIDIA driver's library is on a Node's host."""
        return self.kubelets.hosts[node] / "usr/lib64/libnvidia-ml.so.1"

    def install_driver(self, node: str) -> None:
        """Install a driver library that tells of as many GPUs as the bus has."""
        built = self.folder / "libnvidia-ml.so.1"
        if not built.exists():
            build_library(built)
        place = self.driver(node)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(built, place)
        buses = [path.name for path in self.gpus(node)]
        (place.parent / "description").write_text(objects.driver_description(buses))

    def devices(self, node: str) -> Path:
        """Return the folder of PCI devices of a Node's host."""
        return self.kubelets.hosts[node] / "sys/bus/pci/devices"

    def nvidia(self, node: str) -> list[Path]:
        """Return the NVIDIA devices of a Node's host."""
        return [
            device
            for device in sorted(self.devices(node).iterdir())
            if (device / "vendor").read_text().strip() == "0x10de"
        ]

    def gpus(self, node: str) -> list[Path]:
        """Return those of the display class."""
        return [
            device
            for device in self.nvidia(node)
            if (device / "class").read_text().startswith("0x03")
        ]

    def count_gpus(self, node: str) -> int:
        """Return the number of a Node's NVIDIA GPUs."""
        return len(self.gpus(node))

    def pull_gpus(self, node: str) -> None:
        """Take every NVIDIA device off the bus, as a hot removal does."""
        pulled = self.folder / f"{node}.pulled"
        pulled.mkdir()
        for device in self.nvidia(node):
            device.rename(pulled / device.name)

    def put_gpus_back(self, node: str) -> None:
        """Undo `pull_gpus`."""
        for device in (self.folder / f"{node}.pulled").iterdir():
            device.rename(self.devices(node) / device.name)


def removals(events: list[dict[str, Any]], since: int) -> Iterator[str]:
    """Return every label that a write took off a Node, by whomever, from an event on.

    A write's answer has the whole Node; a label that the answer before had and this
    one lacks was taken off.
    """
    before: dict[str, set[str]] = {}
    for index, event in enumerate(events):
        answer = event.get("responseObject") or {}
        if answer.get("kind") != "Node":
            continue
        name = answer["metadata"]["name"]
        labels = set(answer["metadata"].get("labels", {}))
        if index >= since:
            for label in sorted(before.get(name, set()) - labels):
                yield f"{name}: {label} by {event['user'].get('username')}"
        before[name] = labels


def changes(
    before: Any, after: Any, path: str = "", *, only_gone: bool = False
) -> list[str]:
    """Return what differs between two trees, or what is gone, one line a leaf."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            line
            for key in sorted({*before, *after})
            for line in changes(
                before.get(key), after.get(key), f"{path} {key}", only_gone=only_gone
            )
        ]
    if before == after or (only_gone and after is not None):
        return []
    return [f"{path}: {before!r} is now {after!r}"]


def build_library(target: Path) -> None:
    """Compile the tests' NVML.

    Raises:
        UnavailableError: there is no compiler.
    """
    compiler = shutil.which("gcc")
    if compiler is None:
        raise UnavailableError("gcc is not installed, so there is no driver library")
    source = ROOT / "tests" / "nvmlstub" / "nvmlstub.c"
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", f"-Wl,-soname,{target.name}"]
    subprocess.run([compiler, *flags, "-o", str(target), str(source)], check=True)


def as_list(manifests: list[dict[str, Any]]) -> str:
    """Write objects as kubectl reads them."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
