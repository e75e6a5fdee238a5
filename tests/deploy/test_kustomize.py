"""The overlays, built by the real kubectl."""

from typing import Any

import pytest
import yaml

from tests.deploy.chart import Manifest, containers, only, render, rules
from tests.deploy.kustomize import FOLDER, HEAD, NAMESPACE, build, derive
from tests.deploy.matrix import OVERLAYS, rendered

pytestmark = pytest.mark.usefixtures("helm")


@pytest.fixture(params=OVERLAYS, scope="module")
def overlay(request: pytest.FixtureRequest) -> list[Manifest]:
    return rendered(f"overlay {request.param}")


def test_the_base_is_what_the_chart_says() -> None:
    """Else run `python -m tests.deploy.kustomize`."""
    written = {
        str(path.relative_to(FOLDER)): path.read_text()
        for path in FOLDER.rglob("*.yaml")
        if path.read_text().startswith(HEAD)
    }

    assert written == derive()


@pytest.mark.parametrize("component", ["master", "worker"])
def test_configurations_are_the_charts(component: str) -> None:
    rendered = only(render(), "ConfigMap", f"-{component}-conf")
    file = f"nfd-{component}.conf"
    text = (FOLDER / "base" / component / file).read_text()

    assert yaml.safe_load(text) == yaml.safe_load(rendered["data"][file])


def test_overlays_are_all_there() -> None:
    assert OVERLAYS == [
        "default",
        "default-job",
        "high-availability",
        "masterless",
        "openshift",
        "prometheus",
        "prune",
    ]


def test_everything_is_in_one_namespace(overlay: list[Manifest]) -> None:
    namespaces = {
        where.get("namespace", NAMESPACE)
        for manifest in overlay
        for where in (manifest["metadata"], *manifest.get("subjects", []))
    }

    assert namespaces == {NAMESPACE}


def test_configuration_of_the_pods_exists(overlay: list[Manifest]) -> None:
    """Generated ConfigMaps get a hash in their name; the pods follow."""
    maps = {m["metadata"]["name"] for m in overlay if m["kind"] == "ConfigMap"}
    used = {
        volume["configMap"]["name"]
        for _, pod, _ in containers(overlay)
        for volume in pod.get("volumes", [])
        if "configMap" in volume
    }

    assert used <= maps


def test_service_accounts_of_the_pods_exist(overlay: list[Manifest]) -> None:
    accounts = {m["metadata"]["name"] for m in overlay if m["kind"] == "ServiceAccount"}

    assert {pod["serviceAccountName"] for _, pod, _ in containers(overlay)} <= accounts


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (
            "default",
            {
                "nfd-master": ["-port=8080"],
                "nfd-worker": [
                    "-publish=nodefeature,node",
                    "-owner-refs=node",
                    "-port=8080",
                ],
            },
        ),
        (
            "masterless",
            {"nfd-worker": ["-publish=node", "-owner-refs=node", "-port=8080"]},
        ),
        (
            "default-job",
            {
                "nfd-master": ["-port=8080"],
                "nfd-worker": [
                    "-oneshot",
                    "-publish=nodefeature",
                    "-owner-refs=node",
                ],
            },
        ),
        (
            "high-availability",
            {
                "nfd-master": ["-enable-leader-election", "-port=8080"],
                "nfd-worker": [
                    "-publish=nodefeature,node",
                    "-owner-refs=node",
                    "-port=8080",
                ],
            },
        ),
        (
            "openshift",
            {
                "nfd-master": ["-instance=nfd", "-port=8080"],
                "nfd-worker": [
                    "-publish=nodefeature",
                    "-owner-refs=node",
                    "-port=8080",
                ],
            },
        ),
        ("prune", {"nfd-prune": ["-prune"]}),
    ],
)
def test_arguments(name: str, arguments: dict[str, list[str]]) -> None:
    found = {
        container["name"]: container["args"]
        for _, _, container in containers(build(f"overlays/{name}"))
    }

    assert found == arguments


@pytest.mark.parametrize("name", ["default", "default-job", "masterless", "openshift"])
def test_workers_may_patch_nodes_only_where_they_publish_to_them(name: str) -> None:
    manifests = build(f"overlays/{name}")
    (worker,) = (c for _, _, c in containers(manifests) if c["name"] == "nfd-worker")
    (publish,) = (
        argument.removeprefix("-publish=").split(",")
        for argument in worker["args"]
        if argument.startswith("-publish=")
    )
    verbs = {
        verb
        for _, allowed, rule in rules(manifests, "nfd-worker")
        if rule["resources"] == ["nodes"]
        for verb in allowed
    }

    assert verbs == ({"get", "patch"} if "node" in publish else {"get"})
    assert only(manifests, "ValidatingAdmissionPolicyBinding", "worker-node")


def test_high_availability_has_two_masters_apart() -> None:
    manifests = build("overlays/high-availability")
    spec = only(manifests, "Deployment", "nfd-master")["spec"]
    apart: Any = spec["template"]["spec"]["affinity"]["podAntiAffinity"]

    assert spec["replicas"] == 2
    assert apart["requiredDuringSchedulingIgnoredDuringExecution"][0][
        "labelSelector"
    ] == {"matchLabels": {"app": "nfd-master"}}
    assert only(manifests, "PodDisruptionBudget")["spec"]["minAvailable"] == 1


def test_all_agents_are_scraped() -> None:
    """By the label and the port that the pods have."""
    monitor = only(build("overlays/prometheus"), "PodMonitor")
    (expression,) = monitor["spec"]["selector"]["matchExpressions"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    manifests = [*build("overlays/default"), *build("base/gc")]
    templates = [
        manifest["spec"]["template"]
        for manifest in manifests
        if manifest["kind"] in {"Deployment", "DaemonSet"}
    ]

    assert {t["metadata"]["labels"]["app"] for t in templates} == {
        *expression["values"]
    }
    for template in templates:
        (container,) = template["spec"]["containers"]
        assert endpoint["port"] in [port["name"] for port in container["ports"]]
