"""Explanations name the expression that failed, and on what."""

from nfd.rules.explain import RuleExplanation, explain_rule, lines
from nfd.rules.model import Rule, Term
from nfd.rules.sets import Matched
from tests.rules.build import expr, host, rule, term

FEATURES = host(
    flags={"cpu.cpuid": ["AVX"]},
    attributes={"kernel.version": {"full": "6.1.0", "major": "6"}, "x.y": {"n": "3a"}},
    instances={
        "pci.device": [
            {"class": "0200", "vendor": "15b3"},
            {"class": "0302", "vendor": "10de"},
            {"class": "0302", "vendor": "8086"},
        ]
    },
    unknown={"usb.device": "I/O error"},
)
GPU = rule(
    Term("pci.device", {"class": expr("In", "0302"), "vendor": expr("In", "1002")}),
    name="gpu",
)


def text(explained: RuleExplanation, most: int = 10) -> str:
    return "\n".join(lines(explained, most))


def test_instances_are_told_one_by_one_nearest_first() -> None:
    assert (
        text(explain_rule(GPU, FEATURES))
        == """\
rule 'gpu' does not match
  matchFeatures[0] (pci.device): no
    - instance 1 (class=0302 vendor=10de): vendor In 1002: is '10de'
    - instance 2 (class=0302 vendor=8086): vendor In 1002: is '8086'
    - instance 0 (class=0200 vendor=15b3): class In 0302: is '0200'; vendor In 1002: is '15b3'"""
    )


def test_only_the_nearest_are_shown() -> None:
    shown = text(explain_rule(GPU, FEATURES), 1)

    assert "instance 1" in shown
    assert "instance 0" not in shown
    assert "and 2 more" in shown


def test_flags_attributes_names_and_absence() -> None:
    wanted = Rule(
        "r",
        labels={"l": "v"},
        match_features=(
            term("cpu.cpuid", expr("InRegexp", "^AV"), AVX=expr("Exists")),
            term("kernel.version", major=expr("Gt", "5"), minor=expr("DoesNotExist")),
        ),
    )

    assert text(explain_rule(wanted, FEATURES)) == (
        """\
rule 'r' matches
  matchFeatures[0] (cpu.cpuid): yes
    + flag AVX: AVX Exists: is ''
    + flag AVX: name InRegexp ^AV: is 'AVX'
  matchFeatures[1] (kernel.version): yes
    + attribute major: major Gt 5: is '6'
    + attribute minor: minor DoesNotExist: is absent
  label l=v"""
    )


def test_a_feature_that_is_not_there() -> None:
    """Case H36."""
    shown = text(explain_rule(rule(term("kubernetes.label")), FEATURES))

    assert "matchFeatures[0] (kubernetes.label): no (feature not available)" in shown


def test_a_feature_that_could_not_be_read() -> None:
    shown = text(explain_rule(rule(term("usb.device")), FEATURES))

    assert "rule 'r' is unknown: usb.device: I/O error" in shown
    assert "unknown (usb.device: I/O error)" in shown


def test_values_of_flags_bad_values_and_wrong_operands() -> None:
    flags = text(explain_rule(rule(term("cpu.cpuid", AVX=expr("IsTrue"))), FEATURES))
    bad = text(explain_rule(rule(term("x.y", n=expr("Gt", "1"))), FEATURES))
    wrong = text(explain_rule(rule(term("x.y", n=expr("Gt"))), FEATURES))

    assert "- flag AVX: AVX IsTrue: is a flag, which has no value" in flags
    assert "- attribute n: n Gt 1: not a 64-bit integer: '3a'" in bad
    assert "rule 'r' fails" in wrong
    assert "(error: matchFeatures[0] (x.y): Gt takes 1 value, got 0)" in wrong


def test_earlier_outputs_count() -> None:
    wanted = rule(term("rule.matched", a=expr("Exists")))
    state = Matched().known({"a": "1"}, {})

    assert explain_rule(wanted, FEATURES).outcome == "no"
    assert explain_rule(wanted, FEATURES, state).outcome == "matched"


def test_plain_form() -> None:
    plain = explain_rule(GPU, FEATURES).to_plain()

    (only,) = plain["terms"]
    assert (plain["rule"], plain["outcome"]) == ("gpu", "no")
    assert only["elements"][1] == {
        "kind": "instance",
        "element": "1",
        "attributes": {"class": "0302", "vendor": "10de"},
        "matched": False,
        "tests": [
            {
                "name": "class",
                "expression": "In 0302",
                "value": "0302",
                "passed": True,
            },
            {
                "name": "vendor",
                "expression": "In 1002",
                "value": "10de",
                "passed": False,
            },
        ],
    }


def test_names_of_instances() -> None:
    wanted = rule(term("pci.device", expr("In", "vendor"), vendor=expr("In", "10de")))
    shown = text(explain_rule(wanted, FEATURES))

    assert (
        "+ instance 1 (class=0302 vendor=10de): "
        "vendor In 10de: is '10de'; name In vendor: is 'vendor'" in shown
    )


def test_wrong_operands_on_flags() -> None:
    shown = text(
        explain_rule(rule(term("cpu.cpuid", AVX=expr("Exists", "x"))), FEATURES)
    )

    assert "- flag AVX: AVX Exists x: Exists takes no values, got 1" in shown
