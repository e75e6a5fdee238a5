"""Each operator on missing, present and odd values (spec/worker.md 6.2, 7.3)."""

from typing import Any

import pytest

from nfd.rules.model import Expression
from nfd.rules.operators import (
    TABLE,
    OperandError,
    ValueProblem,
    bind,
    operand_problem,
)
from tests.rules.build import expr

V = "version"


@pytest.mark.parametrize(
    ("expression", "value", "expected"),
    [
        (expr(""), None, True),
        (expr(""), "x", True),
        (expr("Exists"), None, False),
        (expr("Exists"), "", True),
        (expr("DoesNotExist"), None, True),
        (expr("DoesNotExist"), "", False),
        (expr("In", "1", "2"), None, False),
        (expr("In", "1", "2"), "2", True),
        (expr("In", "1", "2"), "3", False),
        (expr("NotIn", "1"), None, False),
        (expr("NotIn", "1"), "2", True),
        (expr("NotIn", "1"), "1", False),
        (expr("InRegexp", "val-[0-9]$", "al-[1-9]"), "val-12", True),
        (expr("InRegexp", "^x"), "val", False),
        (expr("InRegexp", "^x"), None, False),
        (expr("Gt", "2"), "3", True),
        (expr("Gt", "2"), "2", False),
        (expr("Gt", "-10"), "-3", True),
        (expr("Gt", "2"), "007", True),
        (expr("Gt", "2"), "+3", True),
        (expr("Gt", "2"), None, False),
        (expr("Ge", "2"), "2", True),
        (expr("Ge", "2"), "1", False),
        (expr("Lt", "2"), "1", True),
        (expr("Lt", "2"), "2", False),
        (expr("Le", "2"), "2", True),
        (expr("Le", "2"), "3", False),
        (expr("GtLt", "1", "10"), "1", False),
        (expr("GtLt", "1", "10"), "10", False),
        (expr("GtLt", "1", "10"), "5", True),
        (expr("GeLe", "-10", "10"), "10", True),
        (expr("GeLe", "-10", "10"), "-10", True),
        (expr("GeLe", "-10", "10"), "11", False),
        (expr("GeLe", "10", "1"), "5", False),
        (expr("IsTrue"), "true", True),
        (expr("IsTrue"), "1", False),
        (expr("IsTrue"), None, False),
        (expr("IsFalse"), "false", True),
        (expr("IsFalse"), "", False),
        (expr("IsFalse"), None, False),
        (expr("Gt", "2.0", kind=V), "2.1", True),
        (expr("Gt", "2.0", kind=V), "2", False),
        (expr("Ge", "2.0.1", kind=V), "2.0.1", True),
        (expr("Ge", "2.0.1", kind=V), "2.0.0", False),
        (expr("Ge", "1.2.3", kind=V), "1.2.3-rc1", True),
        (expr("GtLt", "5.4", "6", kind=V), "5.15.0-1025-aws", True),
        (expr("GtLt", "6", "5.4", kind=V), "5.15.0-1025-aws", False),
        (expr("In", "1", kind="nonsense"), "1", True),
    ],
)
def test_verdicts(expression: Expression, value: str | None, *, expected: bool) -> None:
    assert expected is bind(expression).test(value)
    assert operand_problem(expression) == ""


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (expr("Gt", "2"), value)
        for value in ("2.0", "3a", "str", "", " 3", "1_0", "0x1", "\u0663", "9" * 19)
    ]
    + [
        (expr("Ge", "2.0.1", kind=V), "str"),
        (expr("GeLe", "1", "10", kind=V), "-11"),
        (expr("Gt", "9223372036854775807"), "9223372036854775808"),
    ],
)
def test_bad_values_of_elements(expression: Expression, value: str) -> None:
    """A value that cannot be compared is told apart from wrong operands."""
    with pytest.raises(ValueProblem):
        bind(expression).test(value)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (expr("In"), "In takes at least 1 value, got 0"),
        (expr("NotIn"), "at least 1"),
        (expr("InRegexp"), "at least 1"),
        (expr("InRegexp", "x", "("), "bad pattern"),
        (expr("InRegexp", r"(?=a)"), "bad pattern"),
        (expr("Gt"), "Gt takes 1 value, got 0"),
        (expr("Gt", "1", "2"), "got 2"),
        (expr("Lt", "str"), "not a 64-bit integer"),
        (expr("Gt", "5.15"), "not a 64-bit integer"),
        (expr("Gt", "x", kind=V), "not a version"),
        (expr("Gt", "1", kind="semver"), "unknown type"),
        (expr("GtLt", "1"), "GtLt takes 2 values, got 1"),
        (expr("GtLt", "2", "1"), "2 is not less than 1"),
        (expr("GtLt", "1", "1"), "not less"),
        (expr("IsTrue", "x"), "no values"),
        (expr("IsFalse", "x"), "no values"),
    ],
)
def test_wrong_operands_show_only_where_there_is_a_value(
    expression: Expression, text: str
) -> None:
    """Upstream checks them on a present value; a missing key is just no match."""
    assert text in operand_problem(expression)
    assert bind(expression).test(None) is False
    assert not any(map(bind(expression).flag, (True, False)))
    with pytest.raises(OperandError, match=text.replace("(", r"\(")):
        bind(expression).test("x")


@pytest.mark.parametrize(
    "expression", [expr("Exists", "x"), expr("DoesNotExist", "x"), expr("", "x")]
)
def test_operands_of_existence_operators_always_fail(expression: Expression) -> None:
    for value in (None, "x"):
        with pytest.raises(OperandError, match="no values"):
            bind(expression).test(value)
    for there in (True, False):
        with pytest.raises(OperandError):
            bind(expression).flag(there)


def test_unknown_operator_always_fails() -> None:
    with pytest.raises(OperandError, match="unknown operator 'Equals'"):
        bind(expr("Equals", "x")).test(None)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_flags_know_only_existence(name: str) -> None:
    """On flags all value operators are false, without an error."""
    expected: dict[str, Any] = {
        "": (True, True),
        "Exists": (True, False),
        "DoesNotExist": (False, True),
    }
    bound = bind(Expression(name, ("1",) * TABLE[name].least))

    assert expected.get(name, (False, False)) == tuple(map(bound.flag, (True, False)))


def test_verdicts_of_patterns_are_kept_within_bounds() -> None:
    """Many different values neither grow the memory nor change the answers."""
    test = bind(expr("InRegexp", "7$")).test

    assert all(test(str(n)) is (n % 10 == 7) for n in range(3000))
