"""The CRDs on a real API server: ours and those of upstream's shape, side by side."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.api import Api, RefusedError
from tests.cluster.conftest import DEFINITIONS, UPSTREAM_DEFINITIONS
from tests.cluster.controlplane import ControlPlane

API_VERSION = "nfd.k8s-sigs.io/v1alpha1"
GROUP = f"/apis/{API_VERSION}"
FEATURES = {
    "flags": {"cpu.cpuid": {"elements": {"AVX2": {}, "SSE4": {}}}},
    "attributes": {"kernel.version": {"elements": {"full": "6.1.0", "major": "6"}}},
    "instances": {"pci.device": {"elements": [{"attributes": {"vendor": "10de"}}]}},
}
TERM = {
    "feature": "pci.device",
    "matchExpressions": {
        "vendor": {"op": "In", "value": ["10de"]},
        "class": {"op": "Exists"},
    },
    "matchName": {"op": "InRegexp", "value": ["^v"], "type": "version"},
}
FULL_RULE = {
    "name": "all of it",
    "labels": {"a": "b", "c": "@kernel.version.full"},
    "labelsTemplate": "x={{ .y }}",
    "annotations": {"n": "t"},
    "vars": {"v": "w"},
    "varsTemplate": "v=w",
    "taints": [
        {
            "key": "k.io/t",
            "value": "v",
            "effect": "Whatever",
            "timeAdded": "2026-01-01T00:00:00Z",
        }
    ],
    "extendedResources": {"r": "3"},
    "matchFeatures": [TERM],
    "matchAny": [{"matchFeatures": [TERM]}],
}


@pytest.fixture(params=["control_plane", "upstream_control_plane"])
def api(request: pytest.FixtureRequest) -> Api:
    """An administrator of a server with our CRDs, and of one with upstream's."""
    control_plane: ControlPlane = request.getfixturevalue(request.param)
    return control_plane.admin


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"labels": {}},
        {"features": {}},
        {"features": FEATURES, "labels": {"a": "", "vendor.io/b": "x"}},
        {"features": {"flags": {"Acme.Config": {"elements": {}}}}},
        {"features": {"instances": {"a.b": {"elements": []}}}},
        {"labels": {"any key at all": "any value " * 20}},
    ],
)
def test_valid_node_feature(api: Api, spec: dict[str, Any]) -> None:
    made = _try(api, "NodeFeature", spec)

    assert spec == made["spec"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (None, "spec"),
        ({"labels": {"a": 1}}, "spec.labels.a"),
        ({"labels": ["a"]}, "spec.labels"),
        ({"features": {"flags": {"x": {}}}}, "spec.features.flags.x.elements"),
        (
            {"features": {"attributes": {"x": {"elements": {"y": True}}}}},
            "spec.features.attributes.x.elements.y",
        ),
        (
            {"features": {"instances": {"x": {"elements": [{}]}}}},
            "spec.features.instances.x.elements[0].attributes",
        ),
    ],
)
def test_invalid_node_feature(
    api: Api, spec: dict[str, Any] | None, field: str
) -> None:
    _assert_invalid(api, "NodeFeature", spec, field)


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [{"name": ""}],
        [{"name": "same"}, {"name": "same"}],
        [FULL_RULE],
        [{"name": "r", "matchFeatures": [{"feature": "nodot"}]}],
    ],
)
def test_valid_rule(api: Api, rules: list[Any]) -> None:
    made = _try(api, "NodeFeatureRule", {"rules": rules})

    assert {"rules": rules} == made["spec"]


def test_null_matchers_are_dropped(api: Api) -> None:
    made = _try(
        api, "NodeFeatureRule", {"rules": [{"name": "r", "matchFeatures": None}]}
    )

    assert made["spec"] == {"rules": [{"name": "r"}]}


def test_unknown_fields_are_dropped(api: Api) -> None:
    made = _try(api, "NodeFeatureRule", {"rules": [{"name": "r", "unheard": "of"}]})

    assert made["spec"] == {"rules": [{"name": "r"}]}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.rules"),
        ({"rules": [{}]}, "spec.rules[0].name"),
        ({"rules": [{"name": "r", "labels": {"a": 1}}]}, "spec.rules[0].labels.a"),
        (
            {"rules": [{"name": "r", "taints": [{"key": "k"}]}]},
            "spec.rules[0].taints[0].effect",
        ),
        (
            {"rules": [{"name": "r", "matchAny": [{}]}]},
            "spec.rules[0].matchAny[0].matchFeatures",
        ),
        (
            {"rules": [{"name": "r", "matchFeatures": [{}]}]},
            "spec.rules[0].matchFeatures[0].feature",
        ),
        (
            {
                "rules": [
                    {
                        "name": "r",
                        "matchFeatures": [{"feature": "a.b", "matchName": {"op": ""}}],
                    }
                ]
            },
            "spec.rules[0].matchFeatures[0].matchName.op",
        ),
    ],
)
def test_invalid_rule(api: Api, spec: dict[str, Any], field: str) -> None:
    _assert_invalid(api, "NodeFeatureRule", spec, field)


def test_valid_group(api: Api) -> None:
    rule = {
        key: FULL_RULE[key]
        for key in ("name", "vars", "varsTemplate", "matchFeatures", "matchAny")
    }
    made = _try(api, "NodeFeatureGroup", {"featureGroupRules": [rule]})

    assert {"featureGroupRules": [rule]} == made["spec"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.featureGroupRules"),
        ({"featureGroupRules": [{}]}, "spec.featureGroupRules[0].name"),
    ],
)
def test_invalid_group(api: Api, spec: dict[str, Any], field: str) -> None:
    _assert_invalid(api, "NodeFeatureGroup", spec, field)


def test_group_status_holds_nodes(api: Api) -> None:
    path, made = _make(api, "NodeFeatureGroup", "group", {"featureGroupRules": []})
    nodes = [{"name": "n2"}, {"name": "n1"}]

    written = api.replace(f"{path}/status", made | {"status": {"nodes": nodes}})

    assert nodes == written["status"]["nodes"]
    assert written["metadata"]["generation"] == 1


def test_rule_status_is_a_subresource(control_plane: ControlPlane) -> None:
    """Status travels alone: spec writes cannot touch it, nor it the generation."""
    api = control_plane.admin
    path, made = _make(api, "NodeFeatureRule", "with-status", {"rules": []})
    status = {
        "conditions": [
            {
                "type": "Valid",
                "status": "True",
                "reason": "Parsed",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "observedGeneration": 1,
            }
        ],
        "matchedNodes": 3,
        "lastError": "rule x: bad",
        "refused": [
            {"kind": "label", "key": "kubernetes.io/x", "reason": "no", "count": 2}
        ],
        "conflicts": [{"key": "a", "rules": ["r1", "r2"]}],
    }

    written = api.replace(f"{path}/status", made | {"status": status})
    ignored = api.replace(path, written | {"status": {"matchedNodes": 99}})

    assert status == written["status"]
    assert status == ignored["status"]
    assert ignored["metadata"]["generation"] == 1


def test_upstream_rules_have_no_status(upstream_control_plane: ControlPlane) -> None:
    """What an agent of ours finds on a server with upstream's CRDs."""
    api = upstream_control_plane.admin
    path, made = _make(api, "NodeFeatureRule", "without-status", {"rules": []})

    with pytest.raises(RefusedError) as caught:
        api.replace(f"{path}/status", made)

    assert caught.value.status == 404
    assert "status" not in api.replace(path, made | {"status": {"matchedNodes": 1}})


@pytest.mark.parametrize(
    "status", [{"conditions": [{"type": "Valid"}]}, {"refused": 1}]
)
def test_bad_rule_status_is_refused(
    control_plane: ControlPlane, status: dict[str, Any]
) -> None:
    api = control_plane.admin
    path, made = _make(api, "NodeFeatureRule", "bad-status", {"rules": []})

    with pytest.raises(RefusedError) as caught:
        api.replace(f"{path}/status", made | {"status": status})

    assert caught.value.status == 422


def test_managed_fields_stay_small(
    control_plane: ControlPlane, upstream_control_plane: ControlPlane
) -> None:
    """9,000 kernel options and 200 labels cost hundreds of bytes, not megabytes."""
    options = {f"OPTION_{number}": "y" for number in range(9000)}
    labels = {f"example.com/label-{number}": "true" for number in range(200)}
    spec = {
        "features": {
            "attributes": {"kernel.config": {"elements": options}},
            "flags": {"cpu.cpuid": {"elements": {name: {} for name in options}}},
        },
        "labels": labels,
    }

    ours, upstream = (
        len(json.dumps(made["metadata"]["managedFields"]))
        for made in (
            _try(plane.admin, "NodeFeature", spec)
            for plane in (control_plane, upstream_control_plane)
        )
    )

    assert ours < 1000
    assert upstream > 100_000


def test_columns(control_plane: ControlPlane) -> None:
    """`kubectl get` shows what a person asks first."""
    table = control_plane.admin.request(
        "GET",
        f"{GROUP}/nodefeaturerules",
        accept="application/json;as=Table;v=v1;g=meta.k8s.io",
    )

    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "Valid",
        "Applied",
        "Conflict",
        "Nodes",
        "Age",
    ]


def test_upstreams_crds_are_upgraded_in_place(tmp_path: Path) -> None:
    """Objects made under upstream's CRDs survive ours, and the way back."""
    ours, upstream = (
        sorted(folder.glob("*.yaml")) for folder in (DEFINITIONS, UPSTREAM_DEFINITIONS)
    )
    with ControlPlane(tmp_path) as plane:
        plane.apply_files(*upstream)
        api = plane.admin
        path, made = _make(api, "NodeFeatureRule", "old", {"rules": [FULL_RULE]})
        plane.apply_files(*ours)
        upgraded = api.get(path)
        plane.apply_files(*upstream)
        back = api.get(path)

    assert made["metadata"]["uid"] == upgraded["metadata"]["uid"]
    assert made["spec"] == upgraded["spec"] == back["spec"]


_COLLECTIONS = {
    "NodeFeature": f"{GROUP}/namespaces/default/nodefeatures",
    "NodeFeatureGroup": f"{GROUP}/namespaces/default/nodefeaturegroups",
    "NodeFeatureRule": f"{GROUP}/nodefeaturerules",
}


def _manifest(kind: str, name: str, spec: dict[str, Any] | None) -> dict[str, Any]:
    manifest = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}}
    return manifest | ({} if spec is None else {"spec": spec})


def _try(api: Api, kind: str, spec: dict[str, Any] | None) -> Any:
    """Create without keeping: the answer is what would be stored."""
    return api.create(_COLLECTIONS[kind], _manifest(kind, "tried", spec), dryRun="All")


def _make(api: Api, kind: str, name: str, spec: dict[str, Any]) -> tuple[str, Any]:
    path = f"{_COLLECTIONS[kind]}/{name}"
    with suppress(RefusedError):  # not found
        api.delete(path)
    return path, api.create(_COLLECTIONS[kind], _manifest(kind, name, spec))


def _assert_invalid(
    api: Api, kind: str, spec: dict[str, Any] | None, field: str
) -> None:
    with pytest.raises(RefusedError) as caught:
        _try(api, kind, spec)

    assert caught.value.status == 422
    assert field in caught.value.message
