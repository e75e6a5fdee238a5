"""The CRDs as files: ours and those of upstream's shape accept the same objects."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "deploy" / "crds"
UPSTREAM = ROOT / "fixtures" / "crds-upstream-shape"
FILES = ["nodefeatures.yaml", "nodefeaturerules.yaml", "nodefeaturegroups.yaml"]
# What may differ without changing which objects are valid.
NEUTRAL = {"description", "x-kubernetes-map-type"}
CONSTRAINTS = {"type", "required", "enum", "format"}


def test_both_folders_hold_the_same_kinds() -> None:
    assert set(FILES) == {path.name for path in OURS.glob("*.yaml")}
    assert set(FILES) == {path.name for path in UPSTREAM.iterdir()}


@pytest.mark.parametrize("file", FILES)
def test_names_and_scope_are_upstreams(file: str) -> None:
    ours, upstream = _load(OURS / file), _load(UPSTREAM / file)

    assert upstream["metadata"] == ours["metadata"]
    for key in ("group", "names", "scope"):
        assert upstream["spec"][key] == ours["spec"][key]


@pytest.mark.parametrize("file", FILES)
def test_spec_accepts_what_upstream_accepts(file: str) -> None:
    ours, upstream = _schema(OURS / file), _schema(UPSTREAM / file)

    assert ["spec"] == ours["required"] == upstream["required"]
    assert _bare(upstream["properties"]["spec"]) == _bare(ours["properties"]["spec"])


@pytest.mark.parametrize("file", FILES)
def test_every_field_of_ours_is_described(file: str) -> None:
    spec = _schema(OURS / file)["properties"]["spec"]

    missing = [path for path, field in _fields(spec) if "description" not in field]

    assert missing == []


def test_terms_are_the_same_everywhere() -> None:
    """The rule language is spelled out four times; the four agree."""
    rule = _items(OURS / FILES[1], "rules")
    group_rule = _items(OURS / FILES[2], "featureGroupRules")
    terms = [
        holder["properties"]["matchFeatures"]
        for kind in (rule, group_rule)
        for holder in (kind, kind["properties"]["matchAny"]["items"])
    ]

    assert len(terms) == 4
    assert all(term == terms[0] for term in terms)


def test_only_ours_has_a_status_on_rules() -> None:
    assert "subresources" in _version(OURS / FILES[1])
    assert "subresources" not in _version(UPSTREAM / FILES[1])


@pytest.mark.parametrize("file", FILES)
def test_nothing_narrows_what_upstream_leaves_open(file: str) -> None:
    """No CEL, patterns, lengths or defaults in the spec, as upstream has none."""
    spec = _schema(OURS / file)["properties"]["spec"]
    known = NEUTRAL | CONSTRAINTS | {"properties", "additionalProperties", "items"}

    used = {key for schema in _schemas(spec) for key in schema}

    assert set() == used - known


def _load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text())
    return loaded


def _version(path: Path) -> dict[str, Any]:
    (version,) = _load(path)["spec"]["versions"]
    assert (
        version["name"],
        version["served"],
        version["storage"],
    ) == ("v1alpha1", True, True)
    return dict(version)


def _schema(path: Path) -> dict[str, Any]:
    return dict(_version(path)["schema"]["openAPIV3Schema"])


def _items(path: Path, name: str) -> dict[str, Any]:
    spec = _schema(path)["properties"]["spec"]
    return dict(spec["properties"][name]["items"])


def _schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from _schemas(inner)
    for key in ("additionalProperties", "items"):
        if key in schema:
            yield from _schemas(schema[key])


def _fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}.{name}", inner
        yield from _fields(inner, f"{path}.{name}")
    for key in ("additionalProperties", "items"):
        if key in schema:
            yield from _fields(schema[key], f"{path}[]")


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop what is neutral, at every depth."""
    bare: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            bare[key] = {name: _bare(inner) for name, inner in value.items()}
        elif key in ("additionalProperties", "items"):
            bare[key] = _bare(value)
        elif key not in NEUTRAL:
            bare[key] = value
    return bare
