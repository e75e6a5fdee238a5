"""The chart, rendered: names that upgrades rely on, rights, security, values."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from nfd import __version__
from tests.deploy.chart import (
    CHART,
    NAMESPACE,
    ROOT,
    Manifest,
    RenderError,
    containers,
    only,
    render,
    rules,
)
from tests.deploy.matrix import EVERYTHING, MATRIX, rendered
from tests.deploy.upstream import upstreams_values

pytestmark = pytest.mark.usefixtures("helm")

NAME = "nfd-node-feature-discovery"


@pytest.fixture(params=MATRIX, scope="module")
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    """The chart with one set of values."""
    return rendered(request.param)


@pytest.fixture(scope="module")
def default() -> list[Manifest]:
    return render()


@pytest.fixture(scope="module")
def everything() -> list[Manifest]:
    return render(EVERYTHING)


# ---- what upgrades from upstream rely on ------------------------------------


def test_objects_have_upstreams_names(everything: list[Manifest]) -> None:
    names = {
        (manifest["kind"], manifest["metadata"]["name"].removeprefix(NAME))
        for manifest in everything
    }

    assert names >= {
        ("Deployment", "-master"),
        ("Deployment", "-gc"),
        ("DaemonSet", "-worker"),
        ("ServiceAccount", ""),
        ("ServiceAccount", "-worker"),
        ("ServiceAccount", "-gc"),
        ("ClusterRole", ""),
        ("ClusterRoleBinding", ""),
        ("ClusterRole", "-worker"),
        ("ClusterRoleBinding", "-worker"),
        ("ClusterRole", "-gc"),
        ("ClusterRoleBinding", "-gc"),
        ("Role", "-worker"),
        ("RoleBinding", "-worker"),
        ("ConfigMap", "-master-conf"),
        ("ConfigMap", "-worker-conf"),
        ("NetworkPolicy", "-master-network-policy"),
        ("NetworkPolicy", "-worker-network-policy"),
        ("NetworkPolicy", "-gc-network-policy"),
        ("PodDisruptionBudget", "-master"),
        ("PodDisruptionBudget", "-gc"),
        ("Job", "-prune"),
    }


@pytest.mark.parametrize(
    ("kind", "suffix", "role"),
    [
        ("Deployment", "-master", "master"),
        ("DaemonSet", "-worker", "worker"),
        ("Deployment", "-gc", "gc"),
    ],
)
def test_selectors_are_upstreams(
    everything: list[Manifest], kind: str, suffix: str, role: str
) -> None:
    """A selector cannot change in an upgrade."""
    spec = only(everything, kind, suffix)["spec"]
    selector = {
        "app.kubernetes.io/name": "node-feature-discovery",
        "app.kubernetes.io/instance": "nfd",
        "role": role,
    }

    assert spec["selector"] == {"matchLabels": selector}
    assert selector.items() <= spec["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "rel-node-feature-discovery-master"),
        ({"nameOverride": "features"}, "rel-features-master"),
        ({"fullnameOverride": "all-mine"}, "all-mine-master"),
    ],
)
def test_full_name(values: dict[str, Any], name: str) -> None:
    rendered = render(values, release="rel")

    assert only(rendered, "Deployment")["metadata"]["name"] == name


def test_release_named_as_the_chart_is_not_doubled() -> None:
    rendered = render(release="my-node-feature-discovery")

    name = only(rendered, "Deployment")["metadata"]["name"]
    assert name == "my-node-feature-discovery-master"


def test_releases_share_no_object() -> None:
    """Two installations, each with an instance name, live side by side."""
    one, two = (
        {
            (manifest["kind"], manifest["metadata"]["name"])
            for manifest in render(EVERYTHING, release=release, namespace=release)
        }
        for release in ("one", "two")
    )

    assert one.isdisjoint(two)


def test_namespace_override_moves_everything() -> None:
    rendered = render({"namespaceOverride": "elsewhere"})

    namespaces = {
        manifest["metadata"]["namespace"]
        for manifest in rendered
        if "namespace" in manifest["metadata"]
    }
    subjects = {
        subject["namespace"]
        for manifest in rendered
        for subject in manifest.get("subjects", [])
    }
    assert namespaces == subjects == {"elsewhere"}


def test_crds_are_the_ones_of_this_version() -> None:
    chart, ours = (
        {path.name: path.read_text() for path in folder.glob("*.yaml")}
        for folder in (CHART / "crds", ROOT / "deploy" / "crds")
    )

    assert chart == ours


def test_app_version_is_the_packages() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert chart["appVersion"] == __version__


# ---- arguments --------------------------------------------------------------


def test_master_arguments(everything: list[Manifest]) -> None:
    (container,) = _pod(everything, "Deployment", "-master")["containers"]

    assert container["command"] == ["nfd-master"]
    assert container["args"] == [
        "-instance=second",
        "-enable-leader-election",
        "-extra-label-ns=a.example,b.example",
        "-deny-label-ns=*.c.example",
        "-enable-taints",
        "-resync-period=2h",
        "-nfd-api-parallelism=5",
        "-feature-gates=NodeFeatureGroupAPI=true",
        "-port=8080",
        "-v=2",
    ]


def test_master_arguments_by_default(default: list[Manifest]) -> None:
    (container,) = _pod(default, "Deployment", "-master")["containers"]

    assert container["args"] == ["-port=8080"]


def test_worker_arguments(everything: list[Manifest]) -> None:
    (container,) = _pod(everything, "DaemonSet", "-worker")["containers"]

    assert container["command"] == ["nfd-worker"]
    assert container["args"] == [
        "-feature-gates=NodeFeatureGroupAPI=true",
        "-publish=nodefeature,node",
        "-owner-refs=node,pod,ds",
        "-port=8080",
    ]


def test_gc_arguments_hold_the_port() -> None:
    rendered = render({"gc": {"enable": True, "port": 9090}})
    (container,) = _pod(rendered, "Deployment", "-gc")["containers"]

    assert container["args"] == ["-gc-interval=1h", "-port=9090"]
    assert container["ports"] == [{"name": "http", "containerPort": 9090}]


def test_several_feature_gates() -> None:
    gates = {"DisableAutoPrefix": False, "NodeFeatureGroupAPI": True}
    (container,) = _pod(render({"featureGates": gates}), "DaemonSet", "-worker")[
        "containers"
    ]

    assert container["args"][:2] == [
        "-feature-gates=DisableAutoPrefix=false",
        "-feature-gates=NodeFeatureGroupAPI=true",
    ]


@pytest.mark.parametrize(
    ("values", "kubernetes", "publish"),
    [
        ({}, "1.36.3", "nodefeature,node"),
        ({}, "1.30.0", "nodefeature,node"),
        ({}, "v1.30.5-gke.1014001", "nodefeature,node"),
        ({}, "v1.29.10-eks-7f9249a", "nodefeature"),
        ({}, "1.29.9", "nodefeature"),
        ({"admissionPolicy": {"enable": False}}, "1.36.3", "nodefeature"),
        ({"publish": "nodefeature"}, "1.36.3", "nodefeature"),
        ({"publish": "node"}, "1.36.3", "node"),
    ],
)
def test_publish_mode(values: dict[str, Any], kubernetes: str, publish: str) -> None:
    rendered = render(values, kubernetes=kubernetes)
    (container,) = _pod(rendered, "DaemonSet", "-worker")["containers"]

    assert f"-publish={publish}" in container["args"]


@pytest.mark.parametrize(
    ("values", "kubernetes"),
    [
        ({"publish": "node", "admissionPolicy": {"enable": False}}, "1.36.3"),
        ({"publish": "nodefeature,node"}, "1.29.0"),
    ],
)
def test_node_writing_without_a_fence_is_refused(
    values: dict[str, Any], kubernetes: str
) -> None:
    with pytest.raises(RenderError, match="lets workers write nodes"):
        render(values, kubernetes=kubernetes)


def test_environment(everything: list[Manifest]) -> None:
    names = {
        name.removeprefix(NAME): [variable["name"] for variable in container["env"]]
        for name, _, container in containers(everything)
        if "env" in container
    }

    assert names == {
        "-master": ["NODE_NAME"],
        "-worker": ["NODE_NAME", "POD_NAME", "POD_UID"],
        "-gc": ["NODE_NAME"],
        "-gpu": [
            "NODE_NAME",
            "NFD_HOST_ROOT",
            "NVIDIA_VISIBLE_DEVICES",
            "NVIDIA_DRIVER_CAPABILITIES",
        ],
    }


def test_configuration_holds_what_policies_and_tolerations_hold() -> None:
    rendered = render(
        {
            "labelNamespaces": ["a.example"],
            "startupTaints": ["b.example/new"],
            "worker": {"config": {"core": {"sleepInterval": "5s"}}},
            "master": {"config": {"enableTaints": True}},
        }
    )
    worker = only(rendered, "ConfigMap", "-worker-conf")["data"]["nfd-worker.conf"]
    master = only(rendered, "ConfigMap", "-master-conf")["data"]["nfd-master.conf"]

    assert yaml.safe_load(worker) == {
        "core": {"labelNamespaces": ["a.example"], "sleepInterval": "5s"}
    }
    assert yaml.safe_load(master) == {
        "enableTaints": True,
        "startupTaints": ["b.example/new"],
    }
    tolerated = _pod(rendered, "DaemonSet", "-worker")["tolerations"]
    assert {"key": "b.example/new", "operator": "Exists"} in tolerated


def test_master_and_policy_get_the_same_grants() -> None:
    allow = [{"namespaces": ["a-*"], "labels": ["b.example/*"]}]
    rendered = render({"trust": {"enforce": True, "allow": allow}})
    master = only(rendered, "ConfigMap", "-master-conf")["data"]["nfd-master.conf"]
    policy = only(rendered, "ValidatingAdmissionPolicy", "-authors")

    assert yaml.safe_load(master)["trust"] == {"enforce": True, "allow": allow}
    variables = {v["name"]: v["expression"] for v in policy["spec"]["variables"]}
    assert r"'labels': r'^(b\.example/.*)$'" in variables["rules"]


def test_every_pod_of_ours_tolerates_the_startup_taints(
    everything: list[Manifest],
) -> None:
    """Else a new node waits for labels that nobody can put there."""
    for name, pod, _ in containers(everything):
        if name.endswith(("-worker", "-gpu", "-master")):
            keys = {toleration.get("key") for toleration in pod["tolerations"]}
            assert "startup-taint.cluster-autoscaler.kubernetes.io/nfd" in keys
            assert "nfd.node.kubernetes.io/startup" in keys


def test_worker_mounts_are_upstreams(default: list[Manifest]) -> None:
    pod = _pod(default, "DaemonSet", "-worker")
    paths = {
        volume["name"]: volume["hostPath"]["path"]
        for volume in pod["volumes"]
        if "hostPath" in volume
    }
    mounts = {
        mount["mountPath"].rstrip("/"): (
            paths.get(mount["name"], "").rstrip("/"),
            mount["readOnly"],
        )
        for mount in pod["containers"][0]["volumeMounts"]
    }

    folder = "/etc/kubernetes/node-feature-discovery"
    assert mounts == {
        "/host-boot": ("/boot", True),
        "/host-etc/os-release": ("/etc/os-release", True),
        "/host-sys": ("/sys", True),
        "/host-usr/lib": ("/usr/lib", True),
        "/host-lib": ("/lib", True),
        "/host-proc/swaps": ("/proc/swaps", True),
        f"{folder}/features.d": (f"{folder}/features.d", True),
        folder: ("", True),
    }


def test_a_changed_configuration_restarts_pods() -> None:
    first, second = (
        only(render({"master": {"config": config}}), "Deployment", "-master")
        for config in ({"enableTaints": True}, {"enableTaints": False})
    )

    assert _checksum(first) != _checksum(second)


# ---- rights -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "verbs"),
    [
        ({"publish": "nodefeature"}, {"get"}),
        ({"publish": "nodefeature", "worker": {"ownerRefs": ["pod", "ds"]}}, set()),
        ({"publish": "node"}, {"get", "patch"}),
        ({"publish": "nodefeature,node"}, {"get", "patch"}),
    ],
)
def test_rights_of_workers_on_nodes(values: dict[str, Any], verbs: set[str]) -> None:
    given = rules(render(values), f"{NAME}-worker")

    assert verbs == {
        verb
        for _, allowed, rule in given
        if any(name.startswith("nodes") for name in rule["resources"])
        for verb in allowed
    }
    assert not [rule for _, _, rule in given if "nodes/status" in rule["resources"]]


def test_masterless_workers_have_no_right_on_node_features() -> None:
    given = rules(render(MATRIX["masterless"]), f"{NAME}-worker")

    assert [rule["resources"] for _, _, rule in given] == [["nodes"]]


def test_upstreams_rights_are_kept(everything: list[Manifest]) -> None:
    """What upstream grants workers; of the master's, what is ever used here."""
    worker = _granted(everything, f"{NAME}-worker")
    master = _granted(everything, NAME)

    assert worker >= {
        ("Role", "nodefeatures", verb) for verb in ("create", "get", "update", "delete")
    } | {("Role", "pods", "get"), ("ClusterRole", "nodes", "get")}
    assert master >= {
        ("ClusterRole", "namespaces", "list"),
        ("ClusterRole", "namespaces", "watch"),
        ("ClusterRole", "nodes", "get"),
        ("ClusterRole", "nodes", "list"),
        ("ClusterRole", "nodes", "patch"),
        ("ClusterRole", "nodes/status", "patch"),
        ("Role", "nodefeaturegroups/status", "patch"),
        ("Role", "leases", "create"),
        ("Role", "leases", "get"),
        ("Role", "leases", "update"),
    }


def test_policies_come_with_the_right_to_write_nodes(manifests: list[Manifest]) -> None:
    """A role that lets workers patch nodes never comes without the fence."""
    can_patch = ("ClusterRole", "nodes", "patch") in _granted(
        manifests, f"{NAME}-worker"
    )
    policies = {
        manifest["spec"]["policyName"]
        for manifest in manifests
        if manifest["kind"] == "ValidatingAdmissionPolicyBinding"
    }

    assert not can_patch or f"{NAME}-worker-node" in policies


def test_policies_deny_and_fail_closed(everything: list[Manifest]) -> None:
    bindings = [m for m in everything if m["kind"].endswith("PolicyBinding")]
    policies = [m for m in everything if m["kind"] == "ValidatingAdmissionPolicy"]

    assert len(policies) == len(bindings) == 3
    assert all(m["spec"]["failurePolicy"] == "Fail" for m in policies)
    assert all(m["spec"]["validationActions"] == ["Deny"] for m in bindings)
    assert {m["metadata"]["name"] for m in policies} == {
        m["spec"]["policyName"] for m in bindings
    }


def test_policies_never_read_the_features(everything: list[Manifest]) -> None:
    """They may be megabytes; `has` looks at the key alone."""
    for manifest in everything:
        if manifest["kind"] == "ValidatingAdmissionPolicy":
            text = json.dumps(manifest["spec"]).replace("has(object.spec.features)", "")
            assert "features." not in text.replace("features.nfd", "")


def test_editing_node_features_is_not_for_every_editor(default: list[Manifest]) -> None:
    names = {manifest["metadata"]["name"] for manifest in default}

    assert f"{NAME}-view" in names
    assert f"{NAME}-edit" not in names


# ---- security of the pods ---------------------------------------------------


def test_usr_src_is_not_mounted_by_default(default: list[Manifest]) -> None:
    assert "/usr/src" not in json.dumps(default)


def test_gpu_pods_have_no_token(everything: list[Manifest]) -> None:
    pod = _pod(everything, "DaemonSet", "-gpu")

    assert pod["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod
    assert pod["nodeSelector"] == {
        "feature.node.kubernetes.io/pci-10de.present": "true"
    }


def test_alerts_come_through_unchanged() -> None:
    """Their own `{{ }}` are Prometheus', not helm's."""
    rendered = only(
        render({"prometheus": {"rules": {"enable": True}}}), "PrometheusRule"
    )
    file = ROOT / "deploy" / "monitoring" / "alerts.yaml"

    assert rendered["spec"] == yaml.safe_load(file.read_text())["spec"]


def test_prune_job_is_a_post_delete_hook(default: list[Manifest]) -> None:
    hooks = [m for m in default if m["metadata"]["name"] == f"{NAME}-prune"]

    assert {m["kind"] for m in hooks} == {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Job",
    }
    for manifest in hooks:
        assert manifest["metadata"]["annotations"] == {
            "helm.sh/hook": "post-delete",
            "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
        }
    assert not [
        m
        for m in render({"postDeleteCleanup": False})
        if m["metadata"]["name"].endswith("-prune")
    ]


# ---- values -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"unheardOf": 1}, "unheardOf"),
        ({"master": {"unheardOf": 1}}, "unheardOf"),
        ({"worker": {"ownerRefs": ["job"]}}, "ownerRefs"),
        ({"master": {"port": "http"}}, "port"),
        ({"publish": "everywhere"}, "publish"),
        ({"tls": {"enable": True}}, "tls is retired"),
        ({"master": {"metricsPort": 8081}}, "master.metricsPort is retired"),
        ({"master": {"extraArgs": ["-port=1"]}}, "set master.port"),
        ({"topologyUpdater": {"enable": True}}, "no topology updater yet"),
        (
            {"worker": {"config": {"core": {"labelNamespaces": []}}}},
            "set the value labelNamespaces",
        ),
        (
            {"worker": {"config": {"core": {"profiles": ["amd"]}}}},
            "set the value profiles",
        ),
        ({"profiles": ["unheard-of"]}, "profiles"),
        ({"master": {"config": {"startupTaints": []}}}, "set the value startupTaints"),
        ({"master": {"config": {"trust": {}}}}, "set the value trust"),
        ({"trust": {"allow": [{"namespaces": ["[ab]"]}]}}, "does not match pattern"),
    ],
)
def test_values_that_do_nothing_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(RenderError, match=re.escape(message)):
        render(values)


def test_upstreams_default_values_are_accepted() -> None:
    render(upstreams_values())


def test_schema_knows_every_value() -> None:
    """helm checks the defaults against it; here, that none is left out."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    assert [path for path, _ in _leaves(values) if not _known(schema, path)] == []


def test_every_value_is_documented() -> None:
    """docs/helm.md has a row with path and default for each, and none for others."""
    _, _, text = (ROOT / "docs" / "helm.md").read_text().partition("## Values")
    rows = dict(re.findall(r"^\| `([\w.]+)` \| `(.*?)` \|", text, re.MULTILINE))
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    assert rows == {path: json.dumps(value) for path, value in _leaves(values)}


# ---- validity ---------------------------------------------------------------


def test_same_values_same_text() -> None:
    assert render(EVERYTHING) == render(EVERYTHING)


def test_namespaced_objects_name_their_namespace(manifests: list[Manifest]) -> None:
    cluster_wide = ("ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy")
    for manifest in manifests:
        if not manifest["kind"].startswith(cluster_wide):
            assert manifest["metadata"]["namespace"] == NAMESPACE


def _pod(manifests: list[Manifest], kind: str, suffix: str) -> Manifest:
    return dict(only(manifests, kind, suffix)["spec"]["template"]["spec"])


def _checksum(manifest: Manifest) -> str:
    annotations = manifest["spec"]["template"]["metadata"]["annotations"]
    return str(annotations["checksum/config"])


def _granted(manifests: list[Manifest], account: str) -> set[tuple[str, str, str]]:
    return {
        (kind, resource, verb)
        for kind, verbs, rule in rules(manifests, account)
        for resource in rule["resources"]
        for verb in verbs
    }


# Objects that are values as a whole: their content is Kubernetes' own.
WHOLE = {
    "affinity",
    "annotations",
    "labels",
    "podSecurityContext",
    "resources",
    "securityContext",
    "updateStrategy",
}


def _leaves(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict) and value and key not in WHOLE:
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _known(schema: Mapping[str, Any], path: str) -> bool:
    for part in path.split("."):
        schema = schema.get("properties", {}).get(part)
        if schema is None:
            return False
    return True
