"""Whole rules: matchAny, templates, feed-back, unknown sets (spec/worker.md 6.4-6.7)."""

from typing import Any

import pytest

from nfd.features import Features
from nfd.rules.engine import (
    after,
    evaluate,
    evaluate_all,
    evaluate_objects,
    matched_inputs,
)
from nfd.rules.model import Rule, RuleObject, Term
from nfd.rules.sets import Matched, Sets
from tests.rules.build import expr, host, load, rule, term

EX, NOT = expr("Exists"), expr("DoesNotExist")
GPUS = host(
    instances={
        "pci.device": [
            {"class": "0300", "vendor": "1234", "device": "aaaa"},
            {"class": "1200", "vendor": "9999", "device": "bbbb"},
            {"class": "0200", "vendor": "1234", "device": "cccc"},
        ]
    },
    flags={"cpu.cpuid": ["AVX", "AVX2", "SSE4"], "kernel.loadedmodule": ["a", "b"]},
    attributes={"kernel.version": {"full": "5.15.0-1025-aws"}},
)


def outcome(wanted: Rule, features: Features = GPUS) -> tuple[str, dict[str, str]]:
    result = evaluate(wanted, features)
    return result.outcome, dict(result.labels)


def test_a_rule_without_matchers_always_matches() -> None:
    """Its templates are not expanded, so a bad one does not show."""
    wanted = Rule("r", labels={"a": "b"}, labels_template="{{ fail }}")

    assert outcome(wanted, Features()) == ("matched", {"a": "b"})


def test_a_missing_feature_is_no_match() -> None:
    assert outcome(rule(term("no.such", x=EX))) == ("no", {})


@pytest.mark.parametrize(
    ("modules", "matches"), [("ab", True), ("a", False), ("b", False), ("", False)]
)
def test_match_any_and_match_features_must_both_hold(
    modules: str, *, matches: bool
) -> None:
    """Case H28."""
    wanted = Rule(
        "r",
        match_any=((term("kernel.loadedmodule", a=EX),),),
        match_features=(term("kernel.loadedmodule", b=EX),),
    )
    features = host(flags={"kernel.loadedmodule": modules})

    assert matches is evaluate(wanted, features).matched


def test_two_terms_give_the_union_of_their_instances() -> None:
    """Case H27."""
    (wanted,) = load(
        """
apiVersion: nfd.k8s-sigs.io/v1alpha1
kind: NodeFeatureRule
metadata: {name: o}
spec:
  rules:
  - name: two-terms
    labelsTemplate: |
      {{ range .pci.device }}vendor.io/dev.{{ .class }}-{{ .device }}=yes
      {{ end }}
    matchFeatures:
      - feature: pci.device
        matchExpressions: {class: {op: InRegexp, value: ["^03"]}, vendor: {op: In, value: ["1234"]}}
      - feature: pci.device
        matchExpressions: {class: {op: InRegexp, value: ["^12"]}}
"""
    )
    expected = {"vendor.io/dev.0300-aaaa": "yes", "vendor.io/dev.1200-bbbb": "yes"}
    two = GPUS.instances["pci.device"]

    assert ("matched", expected) == outcome(wanted)
    assert outcome(wanted, host(instances={"pci.device": [two[0], two[2]]})) == (
        "no",
        {},
    )


def test_templates_run_for_every_branch_that_matches() -> None:
    """Case H30: the union over matching elements of matchAny."""
    wanted = Rule(
        "r",
        labels_template="{{range .cpu.cpuid}}{{.Name}}=1\n{{end}}",
        match_any=(
            (term("cpu.cpuid", expr("InRegexp", "^AVX")),),
            (term("cpu.cpuid", expr("InRegexp", "^SSE")),),
        ),
    )

    assert ("matched", dict.fromkeys(("AVX", "AVX2", "SSE4"), "1")) == outcome(wanted)


def test_static_labels_override_templates_and_values_may_be_empty() -> None:
    wanted = rule(
        term("cpu.cpuid", AVX=EX, foo=NOT),
        labels={"label-1": "static"},
        labels_template="label-1=template\n\n  label-2=\n{{range .cpu.cpuid}}"
        "kf-{{.Name}}=a=b\n{{end}}",
        vars={"v": "static"},
        vars_template="v=t\nw=t",
    )
    result = evaluate(wanted, GPUS)

    assert result.labels == {
        "label-1": "static",
        "label-2": "",
        "kf-AVX": "a=b",
        "kf-foo": "a=b",
    }
    assert result.vars == {"v": "static", "w": "t"}


@pytest.mark.parametrize("spelling", ["Cpu.CpuId", "cpu.cpuid"])
def test_templates_know_both_spellings_of_a_feature(spelling: str) -> None:
    """Upstream's manual shows the lower case, its code wants the rule's own."""
    wanted = rule(
        term("Cpu.CpuId", AVX=EX),
        labels={},
        labels_template="{{range ." + spelling + "}}x={{.Name}}{{end}}",
    )

    assert outcome(wanted) == ("matched", {"x": "AVX"})


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("foo", "missing value in expanded template line 'foo'"),
        ("{{", "labelsTemplate"),
        ('{{env "X"}}', "env"),
        ("{{.kernel.version}}", "labelsTemplate"),
        ("{{range .cpu.cpuid}}x={{.Value}}{{end}}", "Value"),
        ("x" * 65537, "65537 bytes"),
    ],
)
def test_template_errors_fail_the_rule(template: str, text: str) -> None:
    result = evaluate(rule(term("cpu.cpuid", AVX=EX), labels_template=template), GPUS)

    assert (result.outcome, result.labels) == ("error", {})
    assert text in result.reason


def test_the_largest_template() -> None:
    line = "x=1\n"
    template = line * 10 + " " * (65536 - 10 * len(line))

    assert outcome(
        rule(term("cpu.cpuid", AVX=EX), labels={}, labels_template=template)
    ) == ("matched", {"x": "1"})


def test_version_rules() -> None:
    """Case H33: without `type: version` the operand is an error with its place."""
    features = host(attributes={"kernel.version": {"full": "5.15.0-1025-aws"}})
    for expression, matches in (
        (expr("Ge", "5.15", kind="version"), True),
        (expr("Lt", "5.9", kind="version"), False),
        (expr("GtLt", "5.4", "6", kind="version"), True),
        (expr("Lt", "5.15.0", kind="version"), False),
    ):
        wanted = rule(term("kernel.version", full=expression))
        assert matches is evaluate(wanted, features).matched
    bad = rule(term("kernel.version", full=expr("Gt", "5.15")), name="bad")
    results, _ = evaluate_all([bad, rule(name="next")], features)

    assert [r.outcome for r in results] == ["error", "matched"]
    assert "matchFeatures[0] (kernel.version): Gt: not a 64-bit" in results[0].reason


@pytest.mark.parametrize(
    ("full", "atleast"),
    [
        ("5.14.0-503.35.1.el9_5.x86_64", "5.14"),
        ("4.18.0-553.el8_10.x86_64", "4.18.0"),
        ("5.15.79.1-microsoft-standard-WSL2", "5.15.79"),
        ("6.6.31_rpt-rpi-v8", "6.6.31"),
    ],
)
def test_odd_kernel_versions_compare_by_their_leading_numbers(
    full: str, atleast: str
) -> None:
    """Case H33, where upstream loses the rule."""
    wanted = rule(
        term("kernel.version", full=expr("GeLe", atleast, atleast, kind="version"))
    )

    assert evaluate(wanted, host(attributes={"kernel.version": {"full": full}})).matched


def test_back_references() -> None:
    """Labels, then vars of every rule that did not fail are in rule.matched."""
    first = rule(
        name="first", labels={"a": "1", "b": "1"}, vars={"b": "2", "n.s/c": "@x"}
    )
    absent = rule(term("no.such"), name="absent", labels={"d": "1"})
    failed = rule(Term("cpu.cpuid", {"AVX": expr("Exists", "x")}), labels={"e": "1"})
    seen = {
        "a": expr("In", "1"),
        "b": expr("In", "2"),
        "n.s/c": expr("In", "@x"),
        "d": NOT,
        "e": NOT,
    }
    last = rule(Term("rule.matched", seen), name="last")

    results, matched = evaluate_all([first, absent, failed, last], GPUS)

    assert [r.outcome for r in results] == ["matched", "no", "error", "matched"]
    assert matched.elements == {"a": "1", "b": "2", "n.s/c": "@x", "last": "true"}


def test_the_first_rule_sees_no_earlier_outputs() -> None:
    """Until a rule has run, rule.matched does not exist; after that it may be empty."""
    wanted = rule(term("rule.matched", x=NOT))

    assert [r.outcome for r in evaluate_all([wanted, wanted], Features())[0]] == [
        "no",
        "matched",
    ]
    spoofed = host(attributes={"rule.matched": {"x": "1"}})
    assert [r.outcome for r in evaluate_all([wanted, wanted], spoofed)[0]] == [
        "no",
        "no",
    ]


def test_without_feed_back_rules_are_alone() -> None:
    wanted = rule(term("rule.matched"))

    results, _ = evaluate_all([rule(name="x"), wanted], GPUS, feed_back=False)

    assert results[1].outcome == "no"


UNREAD = host(unknown={"pci.device": "I/O error"}, flags={"d.f": ["x"]})
BLIND = rule(term("pci.device", vendor=EX), name="blind", labels={"p": "1"})


def test_a_rule_over_an_unread_set_is_unknown() -> None:
    result = evaluate(BLIND, UNREAD)

    assert (result.outcome, result.reason) == ("unknown", "pci.device: I/O error")
    assert result.labels == {}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Rule("r", match_any=((term("pci.device"),), (term("d.f"),))), "matched"),
        (Rule("r", match_any=((term("pci.device"),), (term("e.f"),))), "unknown"),
        (rule(term("pci.device"), term("e.f")), "no"),
        (rule(term("pci.device"), term("d.f")), "unknown"),
        (rule(term("d.f", x=EX)), "matched"),
    ],
)
def test_unknown_terms_in_and_and_or(wanted: Rule, expected: str) -> None:
    result = evaluate(wanted, UNREAD)

    assert expected == result.outcome
    assert (expected == "unknown") is bool(result.reason)


def test_an_error_behind_an_unknown_term_may_be_no_error() -> None:
    """With all sets read the first branch might match, and the second never run."""
    bad = Term("d.f", {"x": expr("Exists", "1")})
    result = evaluate(Rule("r", match_any=((term("pci.device"),), (bad,))), UNREAD)

    assert result.outcome == "unknown"
    assert "pci.device: I/O error" in result.reason
    assert "Exists takes no values" in result.reason


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (term("rule.matched", p=EX), "unknown"),
        (term("rule.matched", p=NOT), "unknown"),
        (term("rule.matched", q=NOT), "matched"),
        (term("rule.matched", q=EX), "no"),
        (term("rule.matched"), "matched"),
        (term("rule.matched", expr("In", "p")), "unknown"),
    ],
)
def test_unknown_rules_make_what_they_could_write_unknown(
    seen: Term, expected: str
) -> None:
    results, _ = evaluate_all([BLIND, rule(seen)], UNREAD)

    assert expected == results[1].outcome


def test_unknown_templates_could_write_anything() -> None:
    blind = rule(term("pci.device"), labels={}, labels_template="x=1")
    sure = rule(name="sure")
    seen = [rule(term("rule.matched", **{k: EX}), name=f"s-{k}") for k in ("a", "sure")]

    results, _ = evaluate_all([blind, sure, *seen], UNREAD)

    assert [r.outcome for r in results] == ["unknown", "matched", "unknown", "matched"]


def test_templates_over_a_set_that_lacks_elements_are_told() -> None:
    """It matches, yet keys of elements that could not be read are to be kept."""
    wanted = rule(
        Term("pci.device", {"vendor": expr("In", "10de")}),
        labels={},
        labels_template="{{range .pci.device}}gpu-{{.device}}=1\n{{end}}",
    )
    features = host(
        instances={"pci.device": [{"vendor": "10de", "device": "1"}]},
        unknown={"pci.device": "0000:03:00.0: I/O error"},
    )
    result = evaluate(wanted, features)

    assert (result.outcome, result.labels) == ("matched", {"gpu-1": "1"})
    assert "0000:03:00.0" in result.reason


def test_results_depend_on_what_is_read_only() -> None:
    """That is what a master keeps results by."""
    wanted = rule(term("rule.matched", a=EX), term("D.F"))
    states = [
        Matched(),
        Matched().known({"a": "1"}, {}),
        Matched().known({"b": "1"}, {}),
    ]

    assert {"rule.matched", "d.f"} == wanted.reads
    keys = [matched_inputs(wanted, state) for state in states]
    assert len(set(keys)) == 3
    assert keys[1] == matched_inputs(wanted, states[1].known({"z": "1"}, {}))
    assert matched_inputs(rule(term("d.f")), states[0]) is None


def test_the_state_after_a_failed_rule_is_the_same() -> None:
    state = Matched().known({"a": "1"}, {})
    result = evaluate(Rule("r", match_features=(term("d.f", x=expr("Nope")),)), UNREAD)

    assert after(state, result) is state


def test_partly_published_sets_can_be_settled_by_element() -> None:
    """A trimmed set: what the worker was asked for is known, present or not."""
    features = host(
        attributes={"kernel.config": {"A": "y"}},
        unknown={"kernel.config": "trimmed"},
    )
    sets = Sets.of(features, {"kernel.config": ["A", "B"]})
    wanted: dict[str, Any] = {
        "A": (EX, "matched"),
        "B": (EX, "no"),
        "C": (EX, "unknown"),
    }

    for name, (expression, expected) in wanted.items():
        one = rule(Term("kernel.config", {name: expression}))
        assert expected == evaluate(one, sets).outcome


def test_reasons_of_a_branch_that_fails_anyway_do_not_count() -> None:
    wanted = Rule(
        "r",
        labels_template="t=1",
        match_any=((term("pci.device"), term("e.f")), (term("d.f"),)),
    )
    result = evaluate(wanted, UNREAD)

    assert (result.outcome, result.reason) == ("matched", "")


def test_rules_of_a_group_see_only_each_other() -> None:
    sees = term("rule.matched", v=EX)
    first = rule(name="first", labels={}, vars={"v": "1"})
    group = (rule(sees, name="g1"), rule(name="g2", vars={"v": "1"}), rule(sees))
    objects = [
        RuleObject("NodeFeatureRule", "a", (first,)),
        RuleObject("NodeFeatureGroup", "b", group),
        RuleObject(
            "NodeFeatureRule", "c", (rule(sees), rule(term("rule.matched", g2=EX)))
        ),
    ]
    results, matched = evaluate_objects(objects[::-1], Features())

    assert [r.outcome for r in results] == [
        "matched",
        "no",
        "matched",
        "matched",
        "matched",
        "no",
    ]
    assert matched.elements == {"v": "1", "r": "true"}


def test_a_fault_of_ours_costs_one_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: Any) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("nfd.rules.engine.RuleProgram.run", explode)
    result = evaluate(rule(), GPUS)

    assert (
        result.outcome,
        result.reason,
    ) == ("error", "internal error: ZeroDivisionError: boom")


def test_incomplete_outputs_make_the_rest_unknown() -> None:
    """What the template gave is sure, what it could have given is not."""
    partial = host(instances={"d.f": [{"n": "1"}]}, unknown={"d.f": "unread"})
    first = rule(
        Term("d.f", {"n": EX}),
        labels={"l": "1"},
        labels_template="{{range .d.f}}t-{{.n}}=1\n{{end}}",
    )
    seen = [rule(Term("rule.matched", {k: EX})) for k in ("l", "t-1", "t-2")]

    results, _ = evaluate_all([first, *seen], partial)

    assert [r.outcome for r in results] == ["matched", "matched", "matched", "unknown"]


def test_what_all_names_see_is_everything() -> None:
    wanted = rule(term("rule.matched", expr("In", "a")))
    states = [Matched().known({k: "1"}, {}) for k in "ab"]

    assert len({matched_inputs(wanted, state) for state in states}) == 2


def test_settled_names_are_found_in_any_case() -> None:
    features = host(attributes={"Acme.Big": {}}, unknown={"Acme.Big": "trimmed"})
    sets = Sets.of(features, {"Acme.Big": ["x"]})

    assert evaluate(rule(term("acme.big", x=EX)), sets).outcome == "no"


WRONG = expr("In")  # takes at least one value


@pytest.mark.parametrize(
    ("terms", "branches"),
    [
        ((), ((Term("d.f", {"n": WRONG}),), ())),
        ((Term("no.such"),), ((Term("d.f", {"n": WRONG}),),)),
        ((Term("d.f", {"n": EX, "o": WRONG}),), ()),
    ],
)
def test_wrong_expression_over_what_is_unknown(
    terms: tuple[Term, ...], branches: tuple[tuple[Term, ...], ...]
) -> None:
    """With the set read, it might have failed, or not have come into play."""
    wanted = Rule("r", match_features=terms, match_any=branches)
    after_it = rule(Term("rule.matched"))
    unread = host(unknown={"d.f": "unread"})

    results, _ = evaluate_all([wanted, after_it], unread)

    assert [r.outcome for r in results] == ["unknown", "unknown"]
    assert "d.f: unread" in results[0].reason


def test_wrong_expression_after_an_unknown_one() -> None:
    """Whether it is reached depends on an output that is unknown."""
    maybe = rule(Term("d.f"), labels={"l": "1"})
    seen = rule(Term("rule.matched", {"l": EX, "m": expr("Nope")}))
    unread = host(unknown={"d.f": "unread"})

    results, _ = evaluate_all([maybe, seen], unread)

    assert [r.outcome for r in results] == ["unknown", "unknown"]
