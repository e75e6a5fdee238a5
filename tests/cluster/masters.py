"""Masters of ours against a real control plane."""

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from nfd.kube.clock import Stop
from nfd.master.agent import Agent
from nfd.master.options import Options, client_of, connection_of
from nfd.publish.nodefeature import WORKER_VERSION
from nfd.publish.ownership import NODE_NAME_LABEL
from tests.cluster.controlplane import ControlPlane
from tests.master.agents import NOWHERE, Lines, Running

NFD = "/apis/nfd.k8s-sigs.io/v1alpha1"
FNS = "feature.node.kubernetes.io"
ANS = "nfd.node.kubernetes.io"
API_VERSION = "nfd.k8s-sigs.io/v1alpha1"


@contextmanager
def master(
    plane: ControlPlane,
    namespace: str,
    *,
    kubeconfig: Path | None = None,
    options: str = "",
    **more: Any,
) -> Iterator[Running]:
    """Run a master while the block runs."""
    stop = Stop()
    path = str(kubeconfig or plane.kubeconfig)
    client = client_of("master", connection_of(path), idle=12, stop=stop)
    given: dict[str, Any] = {"config": NOWHERE, "port": 0, **more}
    made = Options(namespace=namespace, options=options, **given)
    log = Lines()
    agent = Agent(made, client, log)
    thread = threading.Thread(target=agent.run, args=(stop,))
    thread.start()
    running = Running(agent, log, stop, thread)
    with contextlib.closing(client.transport):
        try:
            yield running
        finally:
            running.end()


@attrs.frozen
class Space:
    """Objects of one test: a namespace and names that nobody else uses."""

    plane: ControlPlane
    name: str

    def namespace(self, name: str = "", **labels: str) -> str:
        full = f"{self.name}-{name}" if name else self.name
        self.plane.admin.apply(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": full, "labels": labels},
            }
        )
        return full

    def node_name(self, name: str = "n") -> str:
        return f"{self.name}-{name}"

    def node(self, name: str = "n") -> str:
        full = self.node_name(name)
        self.plane.node(full)
        return full

    def feature(
        self,
        spec: Mapping[str, Any],
        *,
        node: str = "n",
        name: str = "",
        namespace: str = "",
    ) -> None:
        """Put a NodeFeature: of the worker, or with a `name` of its own."""
        whole = self.node_name(node)
        notes = {} if name else {WORKER_VERSION: "v0.17.0"}
        self.plane.admin.apply(
            {
                "apiVersion": API_VERSION,
                "kind": "NodeFeature",
                "metadata": {
                    "name": name or whole,
                    "namespace": namespace or self.name,
                    "labels": {NODE_NAME_LABEL: whole},
                    "annotations": notes,
                },
                "spec": spec,
            }
        )

    def delete_feature(self, *, name: str = "", namespace: str = "") -> None:
        space = namespace or self.name
        name = name or self.node_name()
        self.plane.admin.delete(f"{NFD}/namespaces/{space}/nodefeatures/{name}")

    def rules(self, name: str, rules: Sequence[Mapping[str, Any]]) -> None:
        self.plane.admin.apply(
            {
                "apiVersion": API_VERSION,
                "kind": "NodeFeatureRule",
                "metadata": {"name": f"{self.name}-{name}"},
                "spec": {"rules": list(rules)},
            }
        )

    def delete_rules(self, name: str) -> None:
        self.plane.admin.delete(f"{NFD}/nodefeaturerules/{self.name}-{name}")

    def read(self, name: str = "n") -> Any:
        return self.plane.admin.get(f"/api/v1/nodes/{self.node_name(name)}")

    def labels(self, name: str = "n") -> dict[str, str]:
        """Return the Node's labels but those of a kubelet; `FNS/` cut off."""
        labels = self.read(name)["metadata"].get("labels") or {}
        return {
            k.removeprefix(f"{FNS}/"): v
            for k, v in labels.items()
            if not k.startswith("kubernetes.io/")
        }

    def notes(self, name: str = "n") -> dict[str, str]:
        """Return the Node's annotations of features and of tracking, shortened."""
        notes = self.read(name)["metadata"].get("annotations") or {}
        found = {}
        for key, value in notes.items():
            if key.startswith(f"{ANS}/"):
                found["~" + key.removeprefix(f"{ANS}/")] = value
            else:
                found[key.removeprefix(f"{FNS}/")] = value
        return found

    def taints(self, name: str = "n") -> list[str]:
        """Return the Node's taints as kubectl writes them, but the kubelet's."""
        return [
            f"{t['key']}={t.get('value', '')}:{t['effect']}"
            for t in self.read(name)["spec"].get("taints") or ()
            if not t["key"].startswith("node.kubernetes.io/")
        ]

    def resources(self, name: str = "n", kind: str = "capacity") -> dict[str, str]:
        found = self.read(name)["status"].get(kind) or {}
        return {k: v for k, v in found.items() if "/" in k}

    def clean(self) -> None:
        """Delete the rules, which are everybody's."""
        for obj in self.plane.admin.get(f"{NFD}/nodefeaturerules")["items"]:
            name = obj["metadata"]["name"]
            if name.startswith(f"{self.name}-"):
                self.plane.admin.delete(f"{NFD}/nodefeaturerules/{name}")
