"""All operators of the rule language, in one table (spec/worker.md section 6.2)."""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs

from nfd import regex, version
from nfd.errors import NfdError, RuleError
from nfd.rules.model import FORMATS_OF_TYPE, Expression

Test: TypeAlias = Callable[[str | None], bool]  # None: there is no such element

MAX_VERDICTS = 1000  # of one expression, kept

_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}", re.ASCII)
_INT64 = range(-(2**63), 2**63)


class OperandError(RuleError):
    """An expression's operator, operands or type are wrong; its rule fails."""


class ValueProblem(NfdError):  # noqa: N818 - recorded and read by people, not fatal
    """One element's value cannot be compared; that element does not match."""


@attrs.frozen(slots=True)
class Bound:
    """An expression made ready: its test of values and its answers on flags."""

    test: Test
    flag: Callable[[bool], bool]  # argument: the flag is there
    wants_absence: bool = False  # DoesNotExist: absence makes it true
    anything: bool = False  # true whether the element is there or not
    may_fail: bool = False  # on values that it cannot compare


@attrs.frozen(slots=True)
class Operator:
    """One operator: how many operands it takes, its meaning, how to bind it."""

    name: str
    least: int
    most: int | None
    meaning: str
    bind: Callable[[Expression], Test]
    compares: bool = False  # numbers, or versions with `type: version`
    existence: bool = False  # decides by presence alone; operands always checked


def integer(text: str) -> int:
    """Parse a 64-bit decimal integer as strictly as Go's Atoi.

    Raises:
        ValueProblem: Not ASCII digits with an optional sign, or out of range.

    """
    if _INTEGER.fullmatch(text) is None or (number := int(text)) not in _INT64:
        raise ValueProblem(f"not a 64-bit integer: {text[:80]!r}")
    return number


def _number(text: str, kind: str) -> Any:
    if kind != "version":
        return integer(text)
    try:
        return version.parse(text)
    except version.VersionError as error:
        raise ValueProblem(str(error)) from None


def _kept(test: Callable[[str], bool]) -> Test:
    """Keep the verdicts of a test that costs more than a look-up."""
    verdicts: dict[str, bool] = {}

    def kept(value: str | None) -> bool:
        if value is None:
            return False
        verdict = verdicts.get(value)
        if verdict is None:
            verdict = test(value)
            if len(verdicts) > MAX_VERDICTS:
                verdicts.clear()
            verdicts[value] = verdict
        return verdict

    return kept


def _compare(holds: Callable[[Any, Any], bool]) -> Callable[[Expression], Test]:
    def bind(expression: Expression) -> Test:
        kind = expression.type
        bound = _number(expression.value[0], kind)
        return _kept(lambda value: holds(_number(value, kind), bound))

    return bind


def _between(holds: Callable[[Any, Any], bool]) -> Callable[[Expression], Test]:
    def bind(expression: Expression) -> Test:
        kind = expression.type
        low, high = (_number(operand, kind) for operand in expression.value)
        return _kept(
            lambda value: (
                holds(low, number := _number(value, kind)) and holds(number, high)
            )
        )

    return bind


def _in(expression: Expression) -> Test:
    values: frozenset[str | None] = frozenset(expression.value)
    return lambda value: value in values


def _not_in(expression: Expression) -> Test:
    values = frozenset(expression.value)
    return lambda value: value is not None and value not in values


def _in_regexp(expression: Expression) -> Test:
    searches: list[Callable[[str], bool]] = []

    def test(value: str) -> bool:
        if not searches:  # compiled when first needed: most rules never get here
            searches.extend([_pattern(p).search for p in expression.value])
        return any(search(value) for search in searches)

    return _kept(test)


def _pattern(text: str) -> Any:
    try:
        return regex.compile(text)
    except regex.PatternError as error:
        raise OperandError(f"bad pattern {text[:80]!r}: {error.reason}") from None


def _is(word: str) -> Callable[[Expression], Test]:
    return lambda _: lambda value: value == word


TABLE: Mapping[str, Operator] = {
    entry.name: entry
    for entry in (
        Operator(
            "",
            0,
            0,
            "always true (not allowed in cluster objects)",
            lambda _: lambda _: True,
            existence=True,
        ),
        Operator(
            "Exists",
            0,
            0,
            "the element is there",
            lambda _: lambda value: value is not None,
            existence=True,
        ),
        Operator(
            "DoesNotExist",
            0,
            0,
            "the element is not there",
            lambda _: lambda value: value is None,
            existence=True,
        ),
        Operator("In", 1, None, "equals one of the values", _in),
        Operator("NotIn", 1, None, "is there and equals none of them", _not_in),
        Operator("InRegexp", 1, None, "one of the RE2 patterns is found", _in_regexp),
        Operator("Gt", 1, 1, "greater", _compare(operator.gt), compares=True),
        Operator("Ge", 1, 1, "greater or equal", _compare(operator.ge), compares=True),
        Operator("Lt", 1, 1, "less", _compare(operator.lt), compares=True),
        Operator("Le", 1, 1, "less or equal", _compare(operator.le), compares=True),
        Operator(
            "GtLt", 2, 2, "between, excluded", _between(operator.lt), compares=True
        ),
        Operator(
            "GeLe", 2, 2, "between, included", _between(operator.le), compares=True
        ),
        Operator("IsTrue", 0, 0, "is exactly `true`", _is("true")),
        Operator("IsFalse", 0, 0, "is exactly `false`", _is("false")),
    )
}
CLUSTER_OPERATORS = tuple(name for name in TABLE if name)


def operand_problem(expression: Expression) -> str:
    """Say what is wrong with operator, operands or type, or ""; compiles patterns."""
    problem = _shape_problem(expression)
    if not problem and expression.op == "InRegexp":
        try:
            for pattern in expression.value:
                _pattern(pattern)
        except OperandError as error:
            return str(error)
    return problem


def _shape_problem(expression: Expression) -> str:
    entry = TABLE.get(expression.op)
    if entry is None:
        return f"unknown operator {expression.op!r}"
    count = len(expression.value)
    if count < entry.least or (entry.most is not None and count > entry.most):
        return f"{_title(entry)} takes {_arity(entry)}, got {count}"
    if not entry.compares:
        return ""
    if expression.type not in FORMATS_OF_TYPE:
        return f"unknown type {expression.type!r}, known is 'version'"
    try:
        numbers = [_number(operand, expression.type) for operand in expression.value]
    except ValueProblem as error:
        return f"{_title(entry)}: {error}"
    if expression.op == "GtLt" and not expression.type and numbers[0] >= numbers[1]:
        return f"GtLt: {numbers[0]} is not less than {numbers[1]}"
    return ""


def bind(expression: Expression) -> Bound:
    """Make an expression ready to run.

    Wrong operands of an existence operator and unknown operators fail whenever the
    expression is reached; those of other operators only where there is a value.
    """
    entry = TABLE.get(expression.op)
    problem = _shape_problem(expression)
    if entry is None or (problem and entry.existence):
        return Bound(lambda _: _fail(problem), lambda _: _fail(problem))
    if problem:
        return Bound(
            lambda value: value is not None and _fail(problem), lambda _there: False
        )
    test = entry.bind(expression)
    if not entry.existence:
        return Bound(test, lambda _there: False, may_fail=entry.compares)
    return Bound(
        test,
        lambda there: test("" if there else None),
        wants_absence=expression.op == "DoesNotExist",
        anything=not expression.op,
    )


def _fail(problem: str) -> bool:
    raise OperandError(problem)


def _title(entry: Operator) -> str:
    return entry.name or "an expression without operator"


def _arity(entry: Operator) -> str:
    if entry.most is None:
        return f"at least {entry.least} value"
    return {0: "no values", 1: "1 value"}.get(entry.least, f"{entry.least} values")
