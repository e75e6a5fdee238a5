"""One matcher term over flags, attributes and instances (spec/worker.md 6.3)."""

import pytest

from nfd.features import Attributes, Features
from nfd.rules.model import Term
from nfd.rules.operators import OperandError
from nfd.rules.program import TermProgram, Trail
from nfd.rules.sets import Matched, Sets
from tests.rules.build import expr, host, term

EX, NOT = expr("Exists"), expr("DoesNotExist")
MULTI = host(
    flags={"d.f": ["bar", "baz", "qux"]},
    attributes={"d.f": {"foo": "1", "bar": "2", "quux": "3"}},
)
TWO = host(instances={"d.f": [{"foo": "1"}, {"foo": "2", "bar": "1"}]})


def run(wanted: Term, features: Features) -> tuple[bool | None, list[Attributes]]:
    sets = Sets.of(features)
    program = TermProgram(wanted, "matchFeatures[0]")
    elements: list[Attributes] = []
    verdict = program.run(sets, Matched.start(sets), Trail(), elements)
    bare = program.run(sets, Matched.start(sets), Trail(), None)
    assert verdict is bare, "collecting elements must not change the verdict"
    return verdict, elements if verdict else []


@pytest.mark.parametrize(
    ("wanted", "elements"),
    [
        (
            term("d.f", foo=expr("In", "1"), bar=EX),
            [
                {"Name": "bar"},
                {"Name": "bar", "Value": "2"},
                {"Name": "foo", "Value": "1"},
            ],
        ),
        (term("d.f", xyzzy=NOT), [{"Name": "xyzzy"}, {"Name": "xyzzy", "Value": ""}]),
        (term("d.f", quux=NOT), None),
        (term("d.f", bar=expr("NotIn", "2")), None),
        (term("d.f", bar=expr("NotIn", "3")), [{"Name": "bar", "Value": "2"}]),
        (term("D.F", baz=EX), [{"Name": "baz"}]),
        (term("d.f", nope=EX), None),
        (
            term("d.f", expr("InRegexp", "^ba")),
            [{"Name": "bar"}, {"Name": "bar", "Value": "2"}, {"Name": "baz"}],
        ),
        (term("d.f", expr("In", "nope")), None),
        (term("d.f", NOT), None),
        (
            term("d.f", expr("NotIn", "bar", "baz", "qux", "foo")),
            [{"Name": "quux", "Value": "3"}],
        ),
        (
            term("d.f", expr("In", "baz"), foo=EX),
            [{"Name": "foo", "Value": "1"}, {"Name": "baz"}],
        ),
        (term("d.f"), []),
    ],
)
def test_flags_and_attributes(wanted: Term, elements: list[Attributes] | None) -> None:
    """One key may be both; every expression must pass in one of them."""
    assert (elements is not None, elements or []) == run(wanted, MULTI)


@pytest.mark.parametrize(
    ("wanted", "elements"),
    [
        (term("d.f", foo=EX, bar=expr("Lt", "10")), [{"foo": "2", "bar": "1"}]),
        (term("d.f", foo=expr("In", "1"), bar=EX), []),
        (term("d.f", bar=NOT), [{"foo": "1"}]),
        (term("d.f", expr("In", "bar")), [{"foo": "2", "bar": "1"}]),
        (term("d.f", foo=EX), [{"foo": "1"}, {"foo": "2", "bar": "1"}]),
    ],
)
def test_instances(wanted: Term, elements: list[Attributes]) -> None:
    """A single instance must satisfy all expressions."""
    assert (bool(elements), elements) == run(wanted, TWO)


def test_all_three_kinds_give_their_elements_in_order() -> None:
    instances = [{"foo": "1", "bar": "2"}, {"foo": "10", "bar": "20"}]
    features = host(
        flags=MULTI.flags, attributes=MULTI.attributes, instances={"d.f": instances}
    )

    assert run(term("d.f", foo=expr("In", "1"), bar=EX), features) == (
        True,
        [
            {"Name": "bar"},
            {"Name": "bar", "Value": "2"},
            {"Name": "foo", "Value": "1"},
            {"foo": "1", "bar": "2"},
        ],
    )


def test_elements_of_a_failed_part_are_dropped() -> None:
    features = host(
        flags={"d.f": ["foo"]}, instances={"d.f": [{"foo": "1", "bar": "2"}]}
    )

    assert run(term("d.f", foo=EX, bar=EX), features) == (
        True,
        [{"foo": "1", "bar": "2"}],
    )


@pytest.mark.parametrize(
    ("features", "verdict"),
    [
        (host(), False),
        (host(flags={"d.f": []}), True),
        (host(attributes={"d.f": {}}), True),
        (host(instances={"d.f": []}), False),
        (host(instances={"d.f": [{}]}), True),
        (host(attributes={"d.f": {}}, instances={"d.f": []}), True),
    ],
)
def test_an_empty_set_of_expressions(features: Features, *, verdict: bool) -> None:
    """It matches an existing flag or attribute set, or at least one instance."""
    assert verdict is run(Term("d.f", {}), features)[0]


@pytest.mark.parametrize(
    ("features", "verdict"),
    [
        (host(), False),
        (host(flags={"d.f": []}), True),
        (host(instances={"d.f": []}), True),
    ],
)
def test_a_bare_term_asks_for_existence(features: Features, *, verdict: bool) -> None:
    assert verdict is run(Term("d.f"), features)[0]


def test_names_against_nothing() -> None:
    assert run(term("d.f", EX), host(flags={"d.f": []})) == (False, [])


def test_a_bad_value_costs_only_its_element() -> None:
    """Upstream loses the rule; here that element does not match and is recorded."""
    features = host(instances={"d.f": [{"n": "0x1"}, {"n": ""}, {"n": "5"}]})
    sets, trail = Sets.of(features), Trail()
    program = TermProgram(term("d.f", n=expr("Lt", "10")), "matchFeatures[0]")

    assert program.run(sets, Matched(), trail, None) is True
    assert [bad.value for bad in trail.bad_values] == ["0x1", ""]
    assert "not a 64-bit integer" in trail.bad_values[0].reason


def test_a_wrong_operand_names_its_place() -> None:
    with pytest.raises(OperandError, match=r"matchFeatures\[0\]: Gt takes 1 value"):
        run(term("d.f", foo=expr("Gt")), TWO)


def test_expressions_run_in_sorted_order() -> None:
    """A failing expression hides the error of a later one, in every run alike."""
    features = host(attributes={"d.f": {"a": "1", "b": "1"}})

    assert run(term("d.f", a=expr("In", "2"), b=expr("Gt")), features) == (False, [])


def test_sets_with_capitals_are_found() -> None:
    """Upstream lowers only the rule's side (case H35)."""
    features = host(attributes={"Acme.Config": {"x": "1"}})

    for spelling in ("Acme.Config", "acme.config"):
        assert run(term(spelling, x=EX), features)[0] is True


@pytest.mark.parametrize(
    ("wanted", "verdict"),
    [
        (term("d.f", bar=EX), True),
        (term("d.f", nope=EX), None),
        (term("d.f", nope=NOT), None),
        (term("d.f", bar=NOT), False),
        (term("d.f", foo=expr("In", "1")), True),
        (term("d.f", foo=expr("In", "2")), False),
        (term("d.f", nope=expr("In", "2")), None),
        (term("d.f", nope=expr("In", "2"), bar=NOT), False),
        (term("d.f", nope=expr("")), True),
        (term("d.f", expr("InRegexp", "^ba")), True),
        (term("d.f", expr("In", "nope")), None),
        (term("d.f"), True),
        (term("e.f", x=EX), False),
        (term("u.f", x=EX), None),
        (term("u.f"), None),
        (term("i.f", foo=expr("In", "1")), True),
        (term("i.f", foo=expr("In", "3")), None),
        (term("i.f", bar=NOT), None),
        (term("t.f", known=EX), False),
        (term("t.f", known=NOT), True),
        (term("t.f", other=EX), None),
        (term("t.f", there=EX), True),
        (term("t.f", there=EX, known=NOT), True),
        (term("t.f", there=EX, other=NOT), None),
    ],
)
def test_unknown_sets(wanted: Term, *, verdict: bool | None) -> None:
    """Ignorance gives an unknown verdict, unless the data that is there decides."""
    features = host(
        flags={**MULTI.flags, "t.f": ["there"]},
        attributes=MULTI.attributes,
        instances={"i.f": [{"foo": "1"}]},
        unknown=dict.fromkeys(("d.f", "u.f", "i.f", "t.f"), "unreadable"),
    )
    sets = Sets.of(features, {"t.f": {"known"}})
    trail = Trail()

    got = TermProgram(wanted, "t").run(sets, Matched(), trail, None)

    assert verdict is got
    assert (verdict is None) is bool(trail.unknown)


def test_bad_names_are_recorded_in_order() -> None:
    """Flags are a set, and what is told must not depend on its order."""
    names = [f"n{number:02}" for number in range(30)]
    sets, trail = Sets.of(host(flags={"d.f": names})), Trail()
    program = TermProgram(term("d.f", expr("Gt", "1")), "matchFeatures[0]")

    assert program.run(sets, Matched(), trail, None) is False
    assert names[:10] == [bad.element for bad in trail.bad_values]
