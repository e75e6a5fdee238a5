"""Any features and any rules: no exception, the same answer, monotone ignorance."""

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nfd.features import Features
from nfd.rules.engine import evaluate, evaluate_all
from nfd.rules.model import Expression, Rule, Taint, Term
from nfd.rules.operators import TABLE, operand_problem
from nfd.rules.output import execute
from nfd.rules.policy import Policy

T = TypeVar("T")

FEATURES = ("a.b", "c.d", "rule.matched", "E.f")
NAMES = ("x", "y", "z", "rule-1")
VALUES = ("", "1", "2", "10", "true", "false", "v1.2.3", "3a", "-1", "@a.b.x")

names = st.sampled_from(NAMES)
values = st.sampled_from(VALUES)
elements = st.dictionaries(names, values, max_size=3)
keys = st.sampled_from(("a.b", "c.d", "e.f", "E.f"))
feature_sets = st.builds(
    Features.of,
    flags=st.dictionaries(keys, st.sets(names), max_size=2),
    attributes=st.dictionaries(keys, elements, max_size=2),
    instances=st.dictionaries(keys, st.lists(elements, max_size=3), max_size=2),
    unknown=st.dictionaries(keys, st.just("unread"), max_size=1),
)
expressions = st.builds(
    Expression,
    st.sampled_from((*TABLE, "Nope")),
    st.lists(values | st.just("("), max_size=3).map(tuple),
    st.sampled_from(("", "", "version", "odd")),
)
terms = st.builds(
    Term,
    st.sampled_from(FEATURES),
    st.none() | st.dictionaries(names, expressions, max_size=3),
    st.none() | expressions,
)
term_lists = st.lists(terms, max_size=2).map(tuple)
templates = st.sampled_from(
    ("", "", "t=1", "{{range .a.b}}{{.Name}}={{len .}}\n{{end}}", "bad", "{{", "@=@x")
)
outputs = st.dictionaries(names | st.just("kubernetes.io/q"), values, max_size=2)
rules = st.builds(
    Rule,
    st.sampled_from(("rule-1", "rule-2")),
    labels=outputs,
    labels_template=templates,
    annotations=outputs,
    taints=st.lists(st.builds(Taint, names, st.just("NoSchedule"))).map(tuple),
    extended_resources=outputs,
    vars=outputs,
    vars_template=templates,
    match_features=term_lists,
    match_any=st.lists(term_lists, max_size=2).map(tuple),
)
rule_lists = st.lists(rules, max_size=4)


def plain(wanted: list[Rule], features: Features) -> dict[str, Any]:
    return execute(wanted, features, Policy(enable_taints=True)).to_plain()


def turned(mapping: Mapping[str, T]) -> dict[str, T]:
    return dict(reversed(list(mapping.items())))


def shuffled(features: Features) -> Features:
    """Return the same content in another order of keys."""
    again = Features.from_plain(features.to_plain())
    return Features.of(
        flags=turned(again.flags),
        attributes={k: turned(v) for k, v in turned(again.attributes).items()},
        instances={
            k: tuple(turned(i) for i in v) for k, v in turned(again.instances).items()
        },
        unknown=again.unknown,
    )


@settings(max_examples=100, deadline=None)
@given(rule_lists, feature_sets)
def test_nothing_is_raised_and_order_of_keys_does_not_matter(
    wanted: list[Rule], features: Features
) -> None:
    first = plain(wanted, features)

    assert first == plain(wanted, features)
    assert first == plain(wanted, shuffled(features))
    assert all("internal error" not in e["message"] for e in first["errors"])


@settings(max_examples=100, deadline=None)
@given(rules, feature_sets)
def test_terms_may_stand_in_any_order(rule: Rule, features: Features) -> None:
    """Where no error decides, the order of terms and branches does not.

    Evaluation stops at the first miss, so an error may be reached or not; so may a
    wrong expression over what is unknown.
    """
    wrong = any(map(operand_problem, rule.expressions))
    assume(not (wrong and features.unknown))
    read = attrs.evolve(features, unknown={})
    alone = [evaluate(Rule("t", match_features=(t,)), read) for t in rule.terms]
    assume(all(result.outcome != "error" for result in alone))
    backwards = Rule(
        rule.name,
        match_features=rule.match_features[::-1],
        match_any=rule.match_any[::-1],
    )
    straight = Rule(
        rule.name, match_features=rule.match_features, match_any=rule.match_any
    )
    outcomes = {evaluate(one, features).outcome for one in (straight, backwards)}

    assert len(outcomes) == 1


@settings(max_examples=100, deadline=None)
@given(rule_lists, feature_sets, st.sampled_from(("a.b", "c.d", "e.f")))
def test_ignorance_never_turns_into_another_answer(
    wanted: list[Rule], features: Features, lost: str
) -> None:
    """Without one set, each rule answers as with it, or says that it is unknown.

    Later rules see what earlier ones put out, so this holds for whole lists.
    """
    whole, _ = evaluate_all(wanted, features)
    gone = [k for k in (*features, *features.unknown) if k.lower() == lost]
    rest = Features(
        {k: v for k, v in features.flags.items() if k not in gone},
        {k: v for k, v in features.attributes.items() if k not in gone},
        {k: v for k, v in features.instances.items() if k not in gone},
        {**features.unknown, lost: "unread"},
    )
    blind, _ = evaluate_all(wanted, rest)

    for sure, less in zip(whole, blind, strict=True):
        if sure.outcome != "error":  # a rule that is wrong anyway
            assert less.outcome in (sure.outcome, "unknown")
        if sure.outcome == "matched" == less.outcome and not sure.reason:
            assert less.labels.items() <= sure.labels.items()
            assert less.reason or less.labels == sure.labels
