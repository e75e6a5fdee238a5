"""The Pod that runs another image's dry run, and what becomes of it."""

from typing import Any

import pytest

from nfd.errors import NfdError
from nfd.master.rehearsal import LABEL, exit_status, rehearsal_pod

IMAGE = "registry.example/nfd:next"
MASTER: dict[str, Any] = {
    "metadata": {
        "name": "nfd-master-x",
        "namespace": "nfd",
        "labels": {"role": "master"},
    },
    "spec": {
        "serviceAccountName": "nfd-master",
        "nodeName": "cp-1",
        "priority": 2000000000,
        "tolerations": [{"operator": "Exists"}],
        "volumes": [
            {"name": "conf", "configMap": {"name": "nfd-master-conf"}},
            {"name": "kube-api-access-abcde", "projected": {}},
        ],
        "containers": [
            {
                "name": "master",
                "image": "registry.example/nfd:now",
                "command": ["nfd-master"],
                "args": ["-instance=a"],
                "ports": [{"containerPort": 8080}],
                "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}},
                "volumeMounts": [
                    {"name": "conf", "mountPath": "/etc/kubernetes"},
                    {"name": "kube-api-access-abcde", "mountPath": "/var/run"},
                ],
            }
        ],
    },
    "status": {"phase": "Running"},
}


def ended(status: int) -> dict[str, Any]:
    return {"containerStatuses": [{"state": {"terminated": {"exitCode": status}}}]}


def waits(reason: str) -> dict[str, Any]:
    waiting = {"reason": reason, "message": "no such image"}
    return {"containerStatuses": [{"image": IMAGE, "state": {"waiting": waiting}}]}


def test_it_is_the_masters_pod_without_what_serves() -> None:
    pod = rehearsal_pod([MASTER], IMAGE)

    assert pod is not None
    spec = pod["spec"]
    (container,) = spec["containers"]
    assert container == {
        "name": "master",
        "image": IMAGE,
        "command": ["nfd-master"],
        "args": ["-instance=a", "-dry-run"],
        "volumeMounts": [{"name": "conf", "mountPath": "/etc/kubernetes"}],
    }
    assert spec["serviceAccountName"] == "nfd-master"
    assert [v["name"] for v in spec["volumes"]] == ["conf"]
    assert not {"nodeName", "priority"} & spec.keys()
    assert pod["metadata"]["labels"] == {LABEL: "true"}


@pytest.mark.parametrize(
    "pods",
    [
        [],
        [{**MASTER, "status": {"phase": "Pending"}}],
        [{**MASTER, "metadata": {**MASTER["metadata"], "labels": {LABEL: "true"}}}],
        [{**MASTER, "spec": {"containers": [{"name": "worker"}]}}],
    ],
)
def test_only_a_running_master_is_taken(pods: list[dict[str, Any]]) -> None:
    assert rehearsal_pod(pods, IMAGE) is None


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, None),
        ({"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}, None),
        (waits("ContainerCreating"), None),
        (ended(0), 0),
        (ended(3), 3),
    ],
)
def test_exit_status(status: dict[str, Any], expected: int | None) -> None:
    assert exit_status({"metadata": {"name": "p"}, "status": status}) == expected


@pytest.mark.parametrize(
    ("status", "match"),
    [
        (waits("ImagePullBackOff"), f"{IMAGE}: ImagePullBackOff: no such image"),
        ({"phase": "Failed", "reason": "DeadlineExceeded"}, "p failed: DeadlineExc"),
    ],
)
def test_a_pod_that_will_never_run(status: dict[str, Any], match: str) -> None:
    with pytest.raises(NfdError, match=match):
        exit_status({"metadata": {"name": "p"}, "status": status})
