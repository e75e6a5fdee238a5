"""Rules from YAML and JSON: shapes, strictness, and errors that name the place."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfd.rules.load import Loaded, custom_text, load_document, load_text
from nfd.rules.model import Expression, Taint, Term

HEAD = "apiVersion: nfd.k8s-sigs.io/v1alpha1\nkind: NodeFeatureRule\n"
WHOLE = (
    HEAD
    + """
metadata: {name: obj}
spec:
  rules:
  - name: r
    labels: {l: "1"}
    labelsTemplate: lt
    annotations: {a: "2"}
    extendedResources: {e: "3"}
    taints: [{key: k/t, value: v, effect: NoSchedule}]
    vars: {v: "4"}
    varsTemplate: vt
    matchFeatures:
    - feature: f.g
      matchExpressions: {x: {op: Gt, value: ["1"], type: version}}
      matchName: {op: Exists}
    - {feature: f.h, matchExpressions: {}}
    - {feature: f.i, matchExpressions: null}
    matchAny:
    - matchFeatures: [{feature: f.j}]
"""
)

LISTED = {
    "kind": "List",
    "items": [
        {
            "kind": "NodeFeatureRule",
            "metadata": {"name": "o"},
            "spec": {"rules": [{"name": "x"}]},
        }
    ],
}


def test_every_field_is_read() -> None:
    (rule,) = load_text(WHOLE, "f", strict=True).rules

    assert (rule.name, rule.origin) == ("r", "obj")
    assert (rule.labels, rule.labels_template) == ({"l": "1"}, "lt")
    assert (rule.vars, rule.vars_template) == ({"v": "4"}, "vt")
    assert (rule.annotations, rule.extended_resources) == ({"a": "2"}, {"e": "3"})
    assert (Taint("k/t", "NoSchedule", "v"),) == rule.taints
    assert (
        Term("f.g", {"x": Expression("Gt", ("1",), "version")}, Expression("Exists")),
        Term("f.h", {}),
        Term("f.i"),
    ) == rule.match_features
    assert ((Term("f.j"),),) == rule.match_any


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("---\n---\n", []),
        (WHOLE + "---\n" + WHOLE.replace("obj", "abc"), ["abc/r", "obj/r"]),
        ("- name: a\n- name: b\n", ["f/a", "f/b"]),
        (
            json.dumps(LISTED, indent="\t"),
            ["o/x"],
        ),
        ("{kind: NodeFeatureRule, spec: {rules: [{name: flow}]}}", ["flow"]),
        (
            "kind: NodeFeatureGroup\nspec: {featureGroupRules: [{name: g}]}",
            ["g"],
        ),
    ],
)
def test_shapes_of_files(text: str, names: list[str]) -> None:
    """Several documents, lists and JSON; objects run in the order of their names."""
    loaded = load_text(text, "f")

    assert loaded.problems == ()
    assert names == [str(rule) for rule in loaded.rules]


def test_node_features_are_read() -> None:
    (found,) = load_text(
        """
kind: NodeFeature
metadata:
  name: node
  labels: {nfd.node.kubernetes.io/node-name: host1}
spec:
  labels: {a: b}
  features:
    flags: {f.f: {elements: {x: {}}}}
    attributes: {f.a: {elements: {k: v}}}
    instances: {f.i: {elements: [{attributes: {k: v}}]}}
""",
        "f",
    ).node_features

    assert (found.name, found.node, found.labels) == ("node", "host1", {"a": "b"})
    assert {"f.f": frozenset("x")} == found.features.flags
    assert found.features.attributes == {"f.a": {"k": "v"}}
    assert found.features.instances == {"f.i": ({"k": "v"},)}


BAD = [
    ("kind: Pod", "kind: unexpected kind 'Pod'"),
    ("x", "expected an object or a list of rules, got 'x'"),
    (HEAD, "spec.rules: missing"),
    (HEAD + "spec: []", "spec: expected a map, got []"),
    (HEAD + "spec: {rules: {}}", "spec.rules: expected a list, got {}"),
    (HEAD + "spec: {rules: [x]}", "spec.rules[0]: expected a map, got 'x'"),
    (HEAD + "spec: {rules: [{}]}", "spec.rules[0].name: rule name cannot be empty"),
    (HEAD + "spec: {rules: [{name: r, labels: [a]}]}", "spec.rules[0].labels: rule 'r': expected a map"),
    (HEAD + "spec: {rules: [{name: r, labels: {a: {}}}]}", "labels.a: rule 'r': expected text, got {}"),
    (HEAD + "spec: {rules: [{name: r, matchFeatures: [{}]}]}", "matchFeatures[0].feature: rule 'r': missing"),
    (HEAD + "spec: {rules: [{name: r, matchAny: [[]]}]}", "matchAny[0]: rule 'r': expected a map"),
    ("kind: [", "line 2, column 1"),
    ("kind: NodeFeature\nspec: {features: {flags: {f.f: x}}}", "features.flags.f.f: unexpected 'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD)
def test_errors_name_file_path_and_text(text: str, message: str) -> None:
    (problem,) = load_text(text, "rules.yaml").errors

    assert "error: rules.yaml: " in str(problem)
    assert message in str(problem)


def test_errors_name_the_document() -> None:
    (problem,) = load_text(WHOLE + "---\nkind: Pod", "f").errors

    assert problem.place == "f, document 2"


def test_a_wrong_rule_costs_only_itself() -> None:
    text = HEAD + "spec: {rules: [{name: a, labels: 1}, {name: b}]}"

    assert [rule.name for rule in load_text(text, "f").rules] == ["b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("labelz: {}", "unknown key 'labelz', did you mean 'labels'?"),
        ("labels: {a: true}", "labels.a: rule 'r': expected text, got True; quote it"),
        ("matchFeatures: [{feature: f.g, matchExpressions: {a: {op: In, value: [8086]}}}]", "quote it"),
        ("matchFeatures: [{feature: f.g, matchExpressions: {a: {values: []}}}]", "unknown key 'values', did you mean 'value'?"),
        ("matchFeatures: [{feature: f.g, matchName: {value: []}}]", "matchName.op: rule 'r': missing"),
        ("taints: [{key: a/b, effect: NoSchedule, val: c}]", "unknown key 'val', did you mean 'value'?"),
        ("name: again", "given twice"),
    ],
)  # fmt: skip
def test_strictness(text: str, message: str) -> None:
    """Upstream is silent about these; validation is not."""
    whole = HEAD + f"metadata: {{name: o}}\nspec:\n  rules:\n  - name: r\n    {text}\n"

    assert load_text(whole, "f").errors == ()
    assert any(message in str(p) for p in load_text(whole, "f", strict=True).errors)


def test_strictness_about_the_version_and_the_top() -> None:
    text = WHOLE.replace("v1alpha1", "v9") + "extra: 1\n"
    said = " ".join(map(str, load_text(text, "f", strict=True).errors))

    assert "expected 'nfd.k8s-sigs.io/v1alpha1', got 'nfd.k8s-sigs.io/v9'" in said
    assert "unknown key 'extra'" in said


def test_numbers_and_booleans_become_text_as_upstream() -> None:
    text = HEAD + "spec: {rules: [{name: r, labels: {a: yes, b: 0x10, c: 1.10}}]}"

    assert load_text(text, "f").rules[0].labels == {"a": "true", "b": "16", "c": "1.1"}


@pytest.mark.parametrize("depth", [96, 120])
def test_nesting_is_limited(depth: int) -> None:
    text = "- name: r\n  x: " + "[" * depth + "]" * depth

    assert (depth > 100) is ("nested" in str(custom_text(text, "f").problems))


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(["In", "Gt", "Exists", "NodeFeatureRule", "f.g"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "kind",
                    "spec",
                    "rules",
                    "name",
                    "labels",
                    "matchFeatures",
                    "matchAny",
                    "feature",
                    "taints",
                    "matchExpressions",
                    "matchName",
                    "op",
                    "value",
                    "type",
                    "items",
                    "metadata",
                    "vars",
                    "key",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(PLAIN, st.booleans())
def test_any_data_gives_rules_or_problems(plain: Any, strict: bool) -> None:  # noqa: FBT001
    """Nothing is raised, and what comes out is the same through JSON."""
    loaded = load_document(plain, "f", strict=strict)

    assert isinstance(loaded, Loaded)
    again = load_text(json.dumps(plain), "f", strict=strict)
    if isinstance(plain, dict | list):
        assert len(loaded.rules) == len(again.rules)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="kind: NodeFtuRlsp{}[]-\n'\"&*!|>0x", max_size=60))
def test_any_text_gives_rules_or_problems(text: str) -> None:
    assert isinstance(load_text(text, "f", strict=True), Loaded)
    custom_text(text, "f")
