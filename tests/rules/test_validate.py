"""Each mistake is found, named and placed; good rules stay silent."""

import pytest

from nfd.rules.catalogue import Catalogue
from nfd.rules.load import load_text
from nfd.rules.policy import Policy
from nfd.rules.validate import POLICY, failures, validate
from nfd.source import FeatureSpec
from tests.rules.build import host

CATALOGUE = Catalogue.of(
    [
        FeatureSpec("kernel.version", ("attribute",), ("full", "major", "minor"), ""),
        FeatureSpec("kernel.loadedmodule", ("flag",), None, ""),
        FeatureSpec("pci.device", ("instance",), ("class", "vendor"), ""),
        FeatureSpec("cpu.cpuid", ("flag",), None, ""),
        FeatureSpec("cpu.cpuid", ("attribute",), ("AVX10_VERSION",), ""),
    ],
    ["acme."],
)
HEAD = """
apiVersion: nfd.k8s-sigs.io/v1alpha1
kind: NodeFeatureRule
metadata: {name: o}
spec:
  rules:
"""


def check(rule: str, policy: Policy = POLICY) -> list[str]:
    text = HEAD + "\n".join(f"  {line}" for line in rule.strip().splitlines())
    found = validate(load_text(text, "f", strict=True), CATALOGUE, policy)
    return [str(problem) for problem in found]


def terms(*feature_and_expressions: str) -> str:
    listed = "\n".join(f"  - {{feature: {text}}}" for text in feature_and_expressions)
    return f"- name: r\n  labels: {{v.io/a: x}}\n  matchFeatures:\n{listed}"


@pytest.mark.parametrize(
    "rule",
    [
        "- name: r",
        terms("kernel.version, matchExpressions: {major: {op: Gt, value: ['5']}}"),
        terms("Kernel.Version, matchExpressions: {major: {op: Exists}}"),
        terms("acme.gpu, matchExpressions: {any: {op: IsTrue}}"),
        terms("cpu.cpuid, matchExpressions: {AVX: {op: Exists}}"),
        terms("pci.device, matchExpressions: {class: {op: InRegexp, value: ['^03']}}"),
        terms(
            "pci.device, matchExpressions: {class: {op: In, value: ['03']}}",
            "pci.device, matchExpressions: {class: {op: In, value: ['04']}}",
        ),
        terms(
            "kernel.version, matchExpressions: {major: {op: In, value: ['5', '6']}}",
            "kernel.version, matchExpressions: {major: {op: Gt, value: ['5']}}",
        ),
        "- name: r\n  labels: {a: '1', v.io/b: '@kernel.version.full'}",
        "- name: r\n  extendedResources: {v.io/b: '@acme.x.y', c: '1Ki'}",
        """- name: r
  labelsTemplate: '{{ range .Pci.Device }}{{ .class }}.x{{ print ".cpu.cpuid" }}={{ len $.pci.device }}{{ end }}'
  matchFeatures: [{feature: Pci.Device}]""",
        "- name: r\n  taints: [{key: v.io/t, effect: NoSchedule}]",
        "- name: q\n  vars: {v: x}\n" + terms("rule.matched, matchExpressions: {v: {op: Exists}}"),
        terms("rule.matched, matchExpressions: {v: {op: DoesNotExist}}"),
    ],
)  # fmt: skip
def test_good_rules(rule: str) -> None:
    assert check(rule) == []


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("- {name: r, labelz: {}}", "error: f: spec.rules[0].labelz: unknown key 'labelz', did you mean 'labels'?"),
        (terms("kernel.version, matchExpressions: {major: {op: Equals}}"), "matchFeatures[0].matchExpressions.major: rule 'r': unknown operator 'Equals'"),
        (terms("kernel.version, matchExpressions: {major: {}}"), "matchExpressions.major.op: rule 'r': missing"),
        (terms("kernel.version, matchExpressions: {major: {op: Gt, value: ['x']}}"), "error: f: matchFeatures[0].matchExpressions.major: rule 'r': Gt: not a 64-bit integer: 'x'"),
        (terms("kernel.version, matchName: {op: InRegexp, value: ['(']}"), "matchName: rule 'r': bad pattern"),
        (terms("kernel.version, matchExpressions: {major: {op: In, value: ['5'], type: version}}"), "warning: f: matchFeatures[0].matchExpressions.major.type: rule 'r': In does not look at the type"),
        ("- {name: r, labelsTemplate: '{{', matchFeatures: [{feature: pci.device}]}", "error: f: labelsTemplate: rule 'r': line 1"),
        ("- {name: r, varsTemplate: 'x={{ nope }}', matchFeatures: [{feature: pci.device}]}", "nope"),
        ("- {name: r, labelsTemplate: 'a=b'}", "warning: f: labelsTemplate: rule 'r': is never used"),
        ("- {name: r, labelsTemplate: 'a={{ len .pci.device }}', matchAny: [{matchFeatures: [{feature: pci.device}]}, {matchFeatures: [{feature: cpu.cpuid}]}]}", "warning: f: labelsTemplate: rule 'r': names pci.device, which is not in matchAny[1]; fails there"),
        ("- {name: r, labels: {kubernetes.io/x: '1'}}", "error: f: labels.kubernetes.io/x: rule 'r': namespace is not allowed"),
        ("- {name: r, labels: {x: 'a b'}}", "error: f: labels.x: rule 'r': the value may hold"),
        ("- {name: r, labels: {'x y': '1'}}", "the name part may hold"),
        ("- {name: r, annotations: {kubernetes.io/x: '1'}}", "annotations.kubernetes.io/x: rule 'r': namespace is not allowed"),
        ("- {name: r, annotations: {x: '@kernel.version.full'}}", "warning: f: annotations.x: rule 'r': '@kernel.version.full' is not looked up here"),
        ("- {name: r, extendedResources: {x: half}}", "error: f: extendedResources.x: rule 'r': not a quantity: 'half'"),
        ("- {name: r, taints: [{key: t, effect: NoSchedule}]}", "error: f: taints[0]: rule 'r': unprefixed keys are not allowed"),
        ("- {name: r, labels: {x: '@kernel.version'}}", "error: f: labels.x: rule 'r': '@kernel.version' is not @"),
        ("- {name: r, labels: {x: '@kernel.versions.full'}}", "warning: f: labels.x: rule 'r': no installed source has the feature 'kernel.versions'; nearest: kernel.version"),
        ("- {name: r, labels: {x: '@kernel.version.ful'}}", "warning: f: labels.x: rule 'r': kernel.version has no element 'ful'; nearest: full"),
        ("- {name: r, labels: {x: '@pci.device.class'}}", "error: f: labels.x: rule 'r': 'pci.device' has no attributes, only instances"),
        (terms("kubernetes.label"), "warning: f: matchFeatures[0].feature: rule 'r': no installed source has the feature 'kubernetes.label'"),
        (terms("pci.devices"), "nearest: pci.device"),
        (terms("pci"), "feature name 'pci' is not <domain>.<feature>"),
        (terms("a.b.c"), "warning: f: matchFeatures[0].feature: rule 'r': feature name 'a.b.c' is not <domain>.<feature>"),
        (terms("pci.device, matchExpressions: {vender: {op: Exists}}"), "pci.device has no element 'vender'; nearest: vendor"),
        (terms("kernel.loadedmodule, matchExpressions: {a: {op: IsTrue}}"), "can never match: kernel.loadedmodule 'a' IsTrue: the feature has only flags"),
        (terms("kernel.loadedmodule, matchName: {op: DoesNotExist}"), "can never match: kernel.loadedmodule: matchName DoesNotExist"),
        (terms("kernel.version, matchExpressions: {major: {op: GtLt, value: ['5', '6']}}"), "no integer lies between"),
        (terms("kernel.version, matchExpressions: {major: {op: GeLe, value: ['7', '6']}}"), "the range is empty"),
        (terms("kernel.version, matchExpressions: {major: {op: Exists}}", "kernel.version, matchExpressions: {major: {op: DoesNotExist}}"), "can never match: kernel.version 'major' cannot be Exists and DoesNotExist"),
        (terms("kernel.version, matchExpressions: {major: {op: In, value: ['5']}}", "kernel.version, matchExpressions: {major: {op: In, value: ['6']}}"), "cannot be In 5 and In 6"),
        (terms("kernel.version, matchExpressions: {major: {op: In, value: ['x']}}", "kernel.version, matchExpressions: {major: {op: Gt, value: ['6']}}"), "cannot be In x and Gt 6"),
        ("- name: r\n  matchAny:\n  - matchFeatures: [{feature: kernel.loadedmodule, matchExpressions: {a: {op: IsTrue}}}]", "can never match: matchAny[0]: kernel.loadedmodule"),
        ("- {name: q, labels: {x: '1'}}\n- {name: r, labels: {feature.node.kubernetes.io/x: '2'}}", "rule 'q' writes this key too, with another value"),
        ("- {name: q, labels: {x: '1'}}\n- {name: r, labels: {x: '1'}}", "rule 'q' writes this key too, with the same value"),
        ("- {name: r}\n- {name: r}", "warning: f: name: rule 'r': o has a rule of this name too"),
        (terms("rule.matched, matchExpressions: {v: {op: Exists}}"), "rule.matched.v: rule 'r': no earlier rule writes 'v'"),
    ],
)  # fmt: skip
def test_mistakes(rule: str, expected: str) -> None:
    assert any(expected in problem for problem in check(rule)), check(rule)


def test_worker_rules_know_no_references() -> None:
    loaded = load_text("- {name: r, labels: {x: '@kernel.version.full'}}", "f")
    found = [str(problem) for problem in validate(loaded, CATALOGUE)]

    assert any("is not looked up here" in problem for problem in found)
    assert any(problem.startswith("error: f: labels.x") for problem in found)


def test_the_policy_counts() -> None:
    rule = "- {name: r, labels: {x.kubernetes.io/x: '1'}}"

    assert check(rule, policy=Policy(extra_label_ns=("x.kubernetes.io",))) == []


def test_rules_can_be_tried_on_features() -> None:
    loaded = load_text(
        "- {name: r, labelsTemplate: 'x={{ (index .pci.device 0).vendor }}',"
        " matchFeatures: [{feature: pci.device}]}",
        "f",
    )
    (problem,) = failures(loaded, host(instances={"pci.device": []}), "node-1")

    assert validate(loaded, CATALOGUE) == ()
    assert "error: f: on node-1: rule 'r': labelsTemplate" in str(problem)
    assert failures(loaded, host(), "node-2") == ()


def test_open_and_closed_sets_of_one_key_are_open() -> None:
    known = CATALOGUE.get("cpu.cpuid")

    assert known is not None
    assert (frozenset({"flag", "attribute"}), None) == (known.kinds, known.elements)
