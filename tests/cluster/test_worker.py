"""The worker on a real API server, with the rights of the chart and of upstream."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.api import MERGE_PATCH, RefusedError
from tests.cluster.controlplane import ControlPlane
from tests.cluster.processes import free_port
from tests.cluster.roles import apply_chart, grant_upstream_worker

pytestmark = pytest.mark.usefixtures("helm")

RELEASE, NAMESPACE = "wk", "nfd-worker"
ACCOUNT = f"{RELEASE}-node-feature-discovery-worker"
FEATURE = "feature.node.kubernetes.io"
CUSTOM = f"{FEATURE}/custom.made"
AGENT = "nfd-worker"
BOTH = "-publish=nodefeature,node"
HOST = Path(__file__).parents[2] / "fixtures" / "hosts" / "sriov-server"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The chart's roles and policies, in force."""
    control_plane.node("wk-probe")
    control_plane.node("wk-other")
    manifests = apply_chart(control_plane, NAMESPACE, release=RELEASE)
    token = control_plane.bound_token(NAMESPACE, ACCOUNT, "probe", node="wk-probe")
    probe = control_plane.client(token)

    def in_force() -> bool:
        try:
            probe.patch("/api/v1/nodes/wk-other", [], dryRun="All")
        except RefusedError as error:
            return "belongs to node" in error.message
        return False

    control_plane.wait_for(in_force, wanted=True)
    yield control_plane
    for manifest in manifests:
        with suppress(RefusedError):
            control_plane.admin.delete(control_plane.admin.path_of(manifest))


class Running:
    """A worker process on a node of its own."""

    def __init__(
        self,
        plane: ControlPlane,
        node: str,
        folder: Path,
        *,
        namespace: str = NAMESPACE,
        account: str = ACCOUNT,
    ) -> None:
        self.plane, self.node, self.namespace = plane, node, namespace
        self.uid = plane.node(node)["metadata"]["uid"]
        token = plane.bound_token(namespace, account, f"w-{node}", node=node)
        self.kubeconfig = plane.token_kubeconfig(f"w-{node}", token)
        self.config = folder / "nfd-worker.conf"
        self.config.write_text("{}")
        self.log = folder / "log"
        self.features = f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/{namespace}"

    def command(self, *arguments: str) -> tuple[list[str], dict[str, str]]:
        words = [sys.executable, "-m", "nfd", "worker", "-port=0"]
        words += [f"-kubeconfig={self.kubeconfig}", f"-config={self.config}"]
        words += [f"-root={HOST}", *arguments]
        environment = {
            **os.environ,
            "NODE_NAME": self.node,
            "KUBERNETES_NAMESPACE": self.namespace,
            "POD_NAME": f"w-{self.node}",
        }
        return words, environment

    def once(self, *arguments: str) -> int:
        words, environment = self.command("-oneshot", *arguments)
        with self.log.open("a") as log:
            return subprocess.run(
                words, env=environment, stderr=log, check=False, timeout=120
            ).returncode

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        words, environment = self.command(*arguments)
        with (
            self.log.open("a") as log,
            subprocess.Popen(words, env=environment, stderr=log) as process,
        ):
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    def labels(self) -> dict[str, str]:
        """The Node's feature labels."""
        found = self.plane.admin.get(f"/api/v1/nodes/{self.node}")
        labels = found["metadata"]["labels"]
        return {k: v for k, v in labels.items() if FEATURE in k}

    def object(self) -> Any:
        """The NodeFeature; None where there is none."""
        try:
            return self.plane.admin.get(f"{self.features}/nodefeatures/{self.node}")
        except RefusedError:
            return None

    def asked(self) -> list[dict[str, Any]]:
        """What this worker asked, watches that go on left out."""
        user = f"system:serviceaccount:{self.namespace}:{ACCOUNT}"
        events = self.plane.audit_events(agent=AGENT)
        claim = "authentication.kubernetes.io/node-name"
        return [
            e
            for e in events
            if e["user"].get("extra", {}).get(claim) == [self.node]
            and user.split(":")[2] in e["user"]["username"]
        ]

    def told(self) -> list[str]:
        """What was asked, in short; without asking again for missing rights."""
        return [
            f"{e['stageTimestamp']} {e['verb']} {e['requestURI']}"
            f" {e['responseStatus']['code']}"
            for e in self.asked()
            if e["responseStatus"]["code"] != 403
        ]

    def writes(self) -> list[str]:
        """Verb and resource of each write that took effect."""
        verbs = {"create", "update", "patch", "delete"}
        return [
            f"{e['verb']} {e['objectRef']['resource']}"
            for e in self.asked()
            if e["verb"] in verbs
            and e["responseStatus"]["code"] < 300
            and "dryRun" not in e["requestURI"]
        ]

    def events(self) -> list[dict[str, Any]]:
        """The lines of the log."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]


def removed(events: Sequence[dict[str, Any]]) -> list[str]:
    """The labels that patches of Nodes took away."""
    return [
        operation["path"]
        for e in events
        if e["verb"] == "patch" and e["objectRef"]["resource"] == "nodes"
        for operation in e.get("requestObject", [])
        if operation["op"] == "remove"
    ]


def test_oneshot_labels_the_node_and_publishes(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """Owned by the Node that the token names; a second time writes nothing."""
    worker = Running(plane, "wk-once", tmp_path)

    assert worker.once(BOTH) == 0

    labels = worker.labels()
    assert labels[f"{FEATURE}/network-sriov.capable"] == "true"
    found = worker.object()
    assert labels.items() <= found["spec"]["labels"].items()
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Node", worker.uid)
    assert worker.writes() == ["patch nodes", "create nodefeatures"]

    assert worker.once(BOTH) == 0
    assert worker.writes() == ["patch nodes", "create nodefeatures"]


def passes(port: int) -> int:
    """How often a worker has looked at its host, by its metrics."""
    address = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(address, timeout=5) as answer:
        text = answer.read().decode()
    name = "nfd_worker_feature_discovery_duration_seconds_count"
    return round(float(re.findall(rf"^{name}\S* (\S+)$", text, re.MULTILINE)[0]))


def test_ten_unchanged_passes_ask_for_nothing(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """Audit log of the API server."""
    worker = Running(plane, "wk-idle", tmp_path)
    port = free_port()
    often = '-options={"core":{"sleepInterval":"1s"}}'
    with worker.running(BOTH, often, f"-port={port}"):
        plane.wait_for(lambda: worker.object() is not None, wanted=True)
        plane.wait_for(
            lambda: f"{FEATURE}/network-sriov.capable" in worker.labels(), wanted=True
        )
        start = passes(port)
        plane.wait_for(lambda: passes(port) > start + 2, wanted=True)
        before = len(worker.asked())
        plane.wait_for(lambda: passes(port) > start + 12, wanted=True)

        assert len(worker.asked()) == before


def test_object_is_put_back_within_a_second(
    plane: ControlPlane, tmp_path: Path
) -> None:
    worker = Running(plane, "wk-repair", tmp_path)
    path = f"{worker.features}/nodefeatures/{worker.node}"
    with worker.running():
        plane.wait_for(lambda: worker.object() is not None, wanted=True)
        plane.admin.delete(path)
        plane.wait_for(lambda: worker.object() is not None, wanted=True, seconds=1)

        labels = dict(worker.object()["spec"]["labels"])
        plane.admin.patch(
            path,
            {"spec": {"labels": {f"{FEATURE}/forged": "true"}}},
            content_type=MERGE_PATCH,
        )
        plane.wait_for(
            lambda: worker.object()["spec"]["labels"], wanted=labels, seconds=1
        )


def test_change_is_published_and_a_stop_leaves_everything(
    plane: ControlPlane, tmp_path: Path
) -> None:
    worker = Running(plane, "wk-change", tmp_path)
    with worker.running(BOTH) as process:
        plane.wait_for(lambda: worker.object() is not None, wanted=True)
        before = worker.labels()
        rule = {"name": "r", "labels": {CUSTOM: "true"}}
        worker.config.write_text(json.dumps({"sources": {"custom": [rule]}}))
        plane.wait_for(lambda: CUSTOM in worker.labels(), wanted=True, seconds=2)
        worker.config.write_text("{}")
        plane.wait_for(worker.labels, wanted=before, seconds=2)

        process.send_signal(signal.SIGTERM)
        assert process.wait(2) == 0

    assert worker.labels() == before
    assert worker.object() is not None


def test_kill_at_any_point_loses_nothing(plane: ControlPlane, tmp_path: Path) -> None:
    """What is there stays there, however often the worker dies at its start."""
    worker = Running(plane, "wk-kill", tmp_path)
    assert worker.once(BOTH) == 0
    before = worker.labels(), worker.object()["spec"]
    for delay in (0.2, 0.35, 0.5, 0.65, 0.8, 1.0):
        with worker.running(BOTH) as process:
            time.sleep(delay)
            process.kill()
        assert (worker.labels(), worker.object()["spec"]) == before

    assert removed(worker.asked()) == []


def test_prune_hands_the_node_back(plane: ControlPlane, tmp_path: Path) -> None:
    """What others put there stays."""
    worker = Running(plane, "wk-prune", tmp_path)
    plane.admin.patch(
        f"/api/v1/nodes/{worker.node}",
        {"metadata": {"labels": {f"{FEATURE}/by-hand": "1"}}},
        content_type=MERGE_PATCH,
    )
    assert worker.once(BOTH) == 0
    words, environment = worker.command("-prune", BOTH)

    assert subprocess.run(words, env=environment, check=False).returncode == 0

    assert worker.object() is None
    assert worker.labels() == {f"{FEATURE}/by-hand": "1"}


def test_api_server_that_restarts_costs_no_label(tmp_path: Path) -> None:
    """Killed and started again under a worker that goes on and catches up."""
    with ControlPlane(tmp_path / "plane") as own:
        own.apply_files(
            *sorted((Path(__file__).parents[2] / "deploy" / "crds").glob("*.yaml"))
        )
        grant_upstream_worker(own, NAMESPACE, ACCOUNT)
        worker = Running(own, "wk-outage", tmp_path)
        with worker.running() as process:
            own.wait_for(lambda: worker.object() is not None, wanted=True)
            own.programs["kube-apiserver"].kill()
            rule = {"name": "r", "labels": {CUSTOM: "true"}}
            worker.config.write_text(json.dumps({"sources": {"custom": [rule]}}))
            own.wait_for(lambda: "trouble" in str(worker.events()), wanted=True)
            own.start_api_server()

            own.wait_for(
                lambda: CUSTOM in worker.object()["spec"]["labels"],
                wanted=True,
                seconds=60,
            )
            assert process.poll() is None


def test_exactly_upstreams_role_is_enough(
    upstream_control_plane: ControlPlane, tmp_path: Path
) -> None:
    """With upstream's CRDs; each missing right is one line, none is a failure."""
    plane = upstream_control_plane
    grant_upstream_worker(plane, NAMESPACE, ACCOUNT)
    worker = Running(plane, "wk-upstream", tmp_path)
    with worker.running("-owner-refs=pod,ds") as process:
        plane.wait_for(lambda: worker.object() is not None, wanted=True)
        rule = {"name": "r", "labels": {CUSTOM: "true"}}
        worker.config.write_text(json.dumps({"sources": {"custom": [rule]}}))
        plane.wait_for(
            lambda: CUSTOM in worker.object()["spec"]["labels"], wanted=True, seconds=5
        )
        before = worker.told()
        time.sleep(3)

        assert worker.told() == before
        assert process.poll() is None
    said = [e["what"] for e in worker.events() if e["event"] in {"note", "trouble"}]
    assert said.count("watching the NodeFeature") == 1
    assert said.count("following the demand for features") == 1
    assert [e for e in worker.events() if e["level"] in {"warning", "error"}] == []


def test_without_a_fence_the_node_is_not_written(
    upstream_control_plane: ControlPlane, tmp_path: Path
) -> None:
    """A server without the policies, and a role that may patch nodes."""
    plane = upstream_control_plane
    grant_upstream_worker(plane, NAMESPACE, ACCOUNT)
    name = f"{NAMESPACE}-patch-nodes"
    rbac = "rbac.authorization.k8s.io"
    plane.admin.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": [
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}
            ],
        }
    )
    plane.admin.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [
                {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
            ],
        }
    )
    worker = Running(plane, "wk-unfenced", tmp_path)

    assert worker.once(BOTH) == 0
    assert worker.labels() == {}
    assert worker.object() is not None

    assert worker.once(BOTH, "-trust-unfenced") == 0
    assert f"{FEATURE}/network-sriov.capable" in worker.labels()
