"""Prefixes, `@` values, quantities, policy, conflicts (spec/worker.md 6.8, 6.9)."""

from typing import Any

import pytest

from nfd.labels import FEATURE_NS, Provenance
from nfd.rules.model import Rule, Taint
from nfd.rules.output import PUBLISHED, Output, RuleOutput, execute
from nfd.rules.policy import Policy
from tests.rules.build import expr, host, rule, term

FNS = FEATURE_NS
FEATURES = host(
    attributes={
        "test.feature": {"LSM": "123", "a.b/c": "dotted", "bad": "no label!"},
        "Acme.Config": {"x": "1"},
    },
    flags={"f.f": ["x"]},
    unknown={"u.f": "I/O error"},
)


def run(*rules: Rule, policy: Policy | None = None, **labels: str) -> RuleOutput:
    published = {key: Output(value) for key, value in labels.items()}
    return execute(rules, FEATURES, policy or Policy(), published)


def label(key: str, value: str = "1", **policy: Any) -> tuple[bool, str]:
    """Give the value that one label ends with, or the reason of its refusal."""
    out = run(rule(labels={key: value}), policy=Policy(**policy))
    if out.labels:
        (granted,) = out.labels.values()
        return True, granted.value
    return False, out.refused[0].reason


@pytest.mark.parametrize(
    ("key", "policy"),
    [
        ("vendor.io/a", {}),
        ("a", {}),
        (f"{FNS}/a", {}),
        (f"x.{FNS}/a", {}),
        ("profile.node.kubernetes.io/a", {}),
        ("x.profile.node.kubernetes.io/a", {}),
        ("notkubernetes.io/a", {}),
        ("custom.kubernetes.io/a", {"extra_label_ns": ("custom.kubernetes.io",)}),
        ("den.ied/a", {"deny_label_ns": ("den.ied",), "extra_label_ns": ("den.ied",)}),
        ("a.vendor.io/a", {"deny_label_ns": ("vendor.io",)}),
        ("vendor.io/a", {"deny_label_ns": ("*.vendor.io",)}),
        ("a", {"disable_auto_prefix": True}),
        ("vendor.io/rdt-x", {"label_whitelist": "^rdt"}),
    ],
)
def test_labels_that_are_granted(key: str, policy: dict[str, Any]) -> None:
    assert label(key, **policy) == (True, "1")


@pytest.mark.parametrize(
    ("key", "value", "policy", "reason"),
    [
        ("kubernetes.io/a", "1", {}, "namespace is not allowed"),
        ("sub.ns.kubernetes.io/a", "1", {}, "namespace is not allowed"),
        ("evilfeature.node.kubernetes.io/a", "1", {}, "namespace is not allowed"),
        ("nfd.node.kubernetes.io/a", "1", {}, "namespace is not allowed"),
        ("x.custom.kubernetes.io/a", "1", {"extra_label_ns": ("custom.kubernetes.io",)}, "namespace is not allowed"),
        ("denied.ns/a", "1", {"deny_label_ns": ("denied.ns",)}, 'namespace "denied.ns" is not allowed'),
        ("a.vendor.io/a", "1", {"deny_label_ns": ("*.vendor.io",)}, 'namespace "a.vendor.io" is not allowed'),
        (f"{FNS}/a", "1", {"deny_label_ns": ("*",)}, f'namespace "{FNS}" is not allowed'),
        ("a b", "1", {}, "the name part"),
        ("/a", "1", {}, "the prefix before '/' is empty"),
        ("a/b/c", "1", {}, "the name part"),
        ("v.io/a", "bad value!", {}, "the value may hold"),
        ("v.io/a", "x" * 64, {}, "64 characters"),
        ("custom.kubernetes.io/a", "bad value!", {"extra_label_ns": ("custom.kubernetes.io",)}, "the value may hold"),
        ("a", "bad value!", {"disable_auto_prefix": True}, "the value may hold"),
        ("v.io/foo", "1", {"label_whitelist": "^rdt"}, "whitelist '^rdt'"),
        ("v.io/a", "1", {"disable_labels": True}, "restrictions.disableLabels"),
    ],
)  # fmt: skip
def test_labels_that_are_refused(
    key: str, value: str, policy: dict[str, Any], reason: str
) -> None:
    granted, said = label(key, value, **policy)

    assert not granted
    assert reason in said


def test_each_bad_item_is_dropped_alone() -> None:
    """Case H24, with its value check."""
    out = run(
        rule(labels={"custom.kubernetes.io/a": "bad value!", f"{FNS}/ok": "1"}),
        policy=Policy(extra_label_ns=("custom.kubernetes.io",)),
    )

    assert [f"{FNS}/ok"] == list(out.labels)
    (refusal,) = out.refused
    assert (
        refusal.kind,
        refusal.key,
        refusal.provenance.rule,
    ) == ("label", "custom.kubernetes.io/a", "r")


@pytest.mark.parametrize(
    ("key", "value", "result"),
    [
        ("foo", "4", (f"{FNS}/foo", "4")),
        ("sub.feature.node.kubernetes.io/x", "1", ("sub.feature.node.kubernetes.io/x", "1")),
        ("vendor.io/mem", "2Gi", ("vendor.io/mem", "2Gi")),
        ("vendor.io/mem", "2048Mi", ("vendor.io/mem", "2Gi")),
        ("vendor.io/mem", "1.0", ("vendor.io/mem", "1")),
        ("vendor.io/mem", "0", ("vendor.io/mem", "0")),
        ("vendor.io/x", "@test.feature.LSM", ("vendor.io/x", "123")),
        ("evilfeature.node.kubernetes.io/x", "1", "namespace is not allowed"),
        ("profile.node.kubernetes.io/x", "1", "namespace is not allowed"),
        ("vendor.io/x", "1.5", "whole number"),
        ("vendor.io/x", "-1", "negative"),
        ("vendor.io/x", "abc", "not a quantity"),
        ("vendor.io/x", "invalid value", "not a quantity"),
        ("vendor.io/x", "", "not a quantity"),
        ("vendor.io/x", "@cpu.security.tdx.total_keys", "not found"),
    ],
)  # fmt: skip
def test_extended_resources(key: str, value: str, result: Any) -> None:
    """Case H26; a bad one is dropped, the others stay."""
    out = run(rule(extended_resources={key: value, "v.io/ok": "7"}))
    granted = {k: output.value for k, output in out.extended_resources.items()}

    assert granted.pop("v.io/ok") == "7"
    if isinstance(result, str):
        assert granted == {}
        assert result in out.refused[0].reason
    else:
        assert dict([result]) == granted


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("a", "any text, @even.this.one", ""),
        ("vendor.io/a", "x" * 1024, ""),
        ("vendor.io/a", "x" * 1100, "1100 bytes"),
        ("vendor.io/a", "é" * 513, "1026 bytes"),
        ("nfd.node.kubernetes.io/a", "x", "namespace is not allowed"),
        ("profile.node.kubernetes.io/a", "x", "namespace is not allowed"),
    ],
)
def test_annotations(key: str, value: str, reason: str) -> None:
    out = run(rule(annotations={key: value}))

    assert [value] * (not reason) == [o.value for o in out.annotations.values()]
    assert all(reason in refusal.reason for refusal in out.refused)
    assert bool(reason) is bool(out.refused)


@pytest.mark.parametrize(
    ("taint", "reason"),
    [
        (Taint("vendor.io/t", "NoSchedule", "v"), ""),
        (Taint(f"{FNS}/t", "NoExecute"), ""),
        (Taint("t", "NoSchedule"), "unprefixed keys are not allowed"),
        (Taint("invalid.kubernetes.io/t", "NoSchedule"), "namespace is not allowed"),
        (Taint("vendor.io/t", ""), "empty taint effect"),
        (Taint("vendor.io/t", "Never"), "invalid taint effect"),
        (Taint("vendor.io/t t", "NoSchedule"), "the name part"),
        (Taint("vendor.io/t", "NoSchedule", "bad value!"), "the value may hold"),
    ],
)
def test_taints(taint: Taint, reason: str) -> None:
    out = run(rule(taints=(taint,)), policy=Policy(enable_taints=True))

    assert (() if reason else (taint,)) == out.taints
    assert bool(reason) is bool(out.refused)
    assert all(reason in refusal.reason for refusal in out.refused)


def test_taints_need_to_be_enabled() -> None:
    out = run(rule(taints=(Taint("vendor.io/t", "NoSchedule"),)))

    assert (
        out.taints,
        out.refused[0].reason,
    ) == ((), "taints are disabled (enableTaints)")


def test_a_taint_wanted_twice_is_one() -> None:
    """The last value wins at the first place; upstream breaks its own annotation."""
    first = rule(
        name="first",
        taints=(Taint("v.io/a", "NoSchedule", "1"), Taint("v.io/b", "NoExecute")),
    )
    second = rule(name="second", taints=(Taint("v.io/a", "NoSchedule", "2"),))
    out = run(first, second, policy=Policy(enable_taints=True))

    assert [str(t) for t in out.taints] == ["v.io/a=2:NoSchedule", "v.io/b:NoExecute"]
    (conflict,) = [c for c in out.conflicts if c.kind == "taint"]
    assert conflict.wants == (("first", "1"), ("second", "2"))


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("@test.feature.LSM", "123"),
        ("@test.feature.a.b/c", "dotted"),
        ("@Acme.Config.x", "1"),
        ("@acme.config.x", "1"),
        ("@rule.matched.later", "yes"),
    ],
)
def test_dynamic_values(reference: str, value: str) -> None:
    """Resolved after all rules ran, so later outputs are seen."""
    out = run(
        rule(labels={"a": reference}), rule(name="z", labels={}, vars={"later": "yes"})
    )

    assert value == out.labels[f"{FNS}/a"].value


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("@invalid", "is not @<domain>.<feature>.<element>"),
        ("@a.b", "is not @"),
        ("@no.such.x", "feature 'no.such' not found"),
        ("@f.f.x", "feature 'f.f' not found"),
        ("@test.feature.nope", "element 'nope' of 'test.feature' not found"),
        ("@test.feature.bad", "the value may hold"),
    ],
)
def test_dynamic_values_that_do_not_resolve(reference: str, reason: str) -> None:
    out = run(rule(labels={"a": reference, "b": "1"}))

    assert [f"{FNS}/b"] == list(out.labels)
    assert reason in out.refused[0].reason


def test_dynamic_values_of_unread_sets_stay_as_they_were() -> None:
    out = run(rule(labels={"a": "@u.f.x"}))

    assert (out.labels, out.refused) == ({}, ())
    (kept,) = out.kept
    assert ("label", f"{FNS}/a", "r") == (kept.kind, kept.key, kept.rule)
    assert "I/O error" in kept.reason


def test_published_labels_may_be_dynamic_too() -> None:
    assert run(a="@test.feature.LSM").labels[f"{FNS}/a"].value == "123"


def test_a_prefixed_twin_wins_inside_one_rule() -> None:
    out = run(rule(labels={f"{FNS}/a": "prefixed", "a": "bare"}))

    assert {"prefixed"} == {output.value for output in out.labels.values()}
    assert out.conflicts == ()


def test_rules_override_published_labels_and_that_is_told_once() -> None:
    """Case H32."""
    out = run(rule(labels={f"{FNS}/foo": "baz"}), foo="bar")

    assert {f"{FNS}/foo": "baz"} == {k: o.value for k, o in out.labels.items()}
    (conflict,) = out.conflicts
    assert conflict.wants == ((PUBLISHED, "bar"), ("r", "baz"))


def test_conflicts_name_all_who_want_the_key() -> None:
    one, two, three = (rule(name=n, labels={"k": n[0]}) for n in ("a1", "b1", "a2"))
    same = run(rule(name="x", labels={"k": "v"}), rule(name="y", labels={"k": "v"}))
    out = run(one, two, three)

    assert same.conflicts == ()
    assert out.conflicts[0].rules == ("a1", "b1", "a2")
    assert out.labels[f"{FNS}/k"].value == "a"


def test_outputs_know_their_rule() -> None:
    made = Rule(
        "n",
        labels={"k": "v"},
        match_features=(term("f.f", x=expr("Exists")),),
        origin="obj",
    )
    out = run(made)

    assert Provenance("obj", "f.f", rule="n") == out.labels[f"{FNS}/k"].provenance


def test_restrictions_empty_their_kind() -> None:
    policy = Policy(disable_annotations=True, disable_extended_resources=True)
    out = run(
        rule(annotations={"a": "1"}, extended_resources={"b": "1"}), policy=policy
    )

    assert (out.annotations, out.extended_resources) == ({}, {})
    assert [r.kind for r in out.refused] == ["annotation", "extendedResource"]
    assert [f"{FNS}/r"] == list(out.labels)


def test_plain_form() -> None:
    """The JSON of `nfd rules test`."""
    bad = rule(term("f.f", x=expr("Exists", "x")), name="bad")
    out = run(rule(labels={"k": "v"}, vars={"z": "1"}), bad, k="other").to_plain()

    assert {
        "labels": {f"{FNS}/k": "v"},
        "annotations": {},
        "taints": [],
        "extendedResources": {},
        "vars": {"z": "1"},
        "rules": [{"name": "r", "matched": True}, {"name": "bad", "matched": False}],
        "errors": [
            {
                "rule": "bad",
                "message": "matchFeatures[0] (f.f): Exists takes no values, got 1",
            }
        ],
        "refused": [],
        "conflicts": [{"key": f"{FNS}/k", "rules": [PUBLISHED, "r"]}],
    } == out
