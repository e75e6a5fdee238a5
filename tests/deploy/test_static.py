"""What holds for all manifests, of the chart and of the overlays (spec/cases.md)."""

import json

import kubernetes_validate
import pytest

from tests.deploy.chart import Manifest, containers
from tests.deploy.matrix import CUSTOM, RENDERED, rendered

pytestmark = pytest.mark.usefixtures("helm")

VERSIONS = [f"1.{minor}" for minor in range(30, 38)]
HOST_PATHS = {  # those of upstream's manifests, which Talos and Bottlerocket have
    "/boot",
    "/etc/os-release",
    "/etc/kubernetes/node-feature-discovery/features.d",
    "/lib",
    "/proc/swaps",
    "/sys",
    "/usr/lib",
}


@pytest.fixture(params=RENDERED, scope="module")
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    """The chart with one set of values, or one overlay."""
    return rendered(request.param)


def test_no_wildcards_and_no_proxy(manifests: list[Manifest]) -> None:
    for manifest in manifests:
        for rule in manifest.get("rules", []):
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
            assert not [name for name in rule["resources"] if "proxy" in name]


def test_pods_are_read_in_the_own_namespace_only(manifests: list[Manifest]) -> None:
    for manifest in manifests:
        for rule in manifest.get("rules", []):
            if "pods" in rule["resources"]:
                assert manifest["kind"] == "Role"
                assert rule["verbs"] == ["get"]


def test_workers_write_nodes_only_where_they_publish_to_them(
    manifests: list[Manifest],
) -> None:
    """Never in mode nodefeature; else by patch, and never without the fence."""
    publishing = {
        argument.removeprefix("-publish=")
        for _, _, container in containers(manifests)
        for argument in container["args"]
        if argument.startswith("-publish=")
    }
    kinds = {manifest["kind"] for manifest in manifests}
    for manifest in manifests:
        name = manifest["metadata"]["name"]
        if manifest["kind"] == "ClusterRole" and name.endswith("-worker"):
            (rule,) = manifest["rules"]
            assert rule["resources"] == ["nodes"]
            assert set(rule["verbs"]) <= {"get", "patch"}
            if "patch" in rule["verbs"]:
                assert any("node" in modes.split(",") for modes in publishing)
                assert "ValidatingAdmissionPolicyBinding" in kinds


def test_nodes_are_never_replaced(manifests: list[Manifest]) -> None:
    """All writes of Nodes are patches, so that none undoes what another wrote."""
    for manifest in manifests:
        for rule in manifest.get("rules", []):
            if {"nodes", "nodes/status"} & set(rule.get("resources", [])):
                assert not {"create", "update", "delete"} & set(rule["verbs"])


def test_containers_are_locked_down(manifests: list[Manifest]) -> None:
    for name, pod, container in containers(manifests):
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["readOnlyRootFilesystem"] is True
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        if name.endswith("-gpu"):
            assert security["runAsUser"] == 0  # writes a folder of the host's root
        else:
            assert security["runAsNonRoot"] is True
        assert "privileged" not in security
        assert not pod.get("hostPID")
        assert not pod.get("hostIPC")
        assert not pod.get("hostNetwork")
        assert pod["enableServiceLinks"] is False


def test_every_container_has_a_memory_limit_and_requests(
    manifests: list[Manifest],
) -> None:
    for _, _, container in containers(manifests):
        assert {"memory"} == set(container["resources"]["limits"])
        assert {"cpu", "memory"} == set(container["resources"]["requests"])


def test_host_paths_need_not_exist(manifests: list[Manifest]) -> None:
    """Talos and Bottlerocket lack some; a `type` would keep the pod from starting."""
    for name, pod, container in containers(manifests):
        writable = {
            mount["name"]
            for mount in container.get("volumeMounts", [])
            if not mount.get("readOnly")
        }
        for volume in pod.get("volumes", []):
            if "hostPath" in volume:
                path = volume["hostPath"]["path"].rstrip("/")
                assert "type" not in volume["hostPath"]
                assert path in HOST_PATHS or path == "/usr/src"  # where asked for
                assert volume["name"] not in writable or name.endswith("-gpu")


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_are_valid(version: str) -> None:
    """Each object fits the published schema of that Kubernetes version, strictly."""
    distinct = {
        json.dumps(manifest, sort_keys=True): manifest
        for name in RENDERED
        for manifest in rendered(name)
        if manifest["kind"] not in CUSTOM
    }
    for manifest in distinct.values():
        kubernetes_validate.validate(manifest, version, strict=True)
