"""Finds rules that no host can match."""

from collections.abc import Iterable, Iterator

from nfd.rules.catalogue import Catalogue
from nfd.rules.model import Expression, Rule, Term
from nfd.rules.operators import TABLE, ValueProblem, bind, integer, operand_problem

_NEEDS_VALUE = frozenset(name for name, entry in TABLE.items() if not entry.existence)


def never(rule: Rule, catalogue: Catalogue) -> Iterator[str]:
    """Yield reasons why a rule can never match; expressions with errors are left out.

    One impossible branch of matchAny is told even where another branch can match.
    """
    for index, terms in enumerate(rule.match_any):
        for reason in _block(terms, catalogue):
            yield f"matchAny[{index}]: {reason}"
    yield from _block(rule.match_features, catalogue)


def _block(terms: Iterable[Term], catalogue: Catalogue) -> Iterator[str]:
    named: dict[tuple[str, str], list[Expression]] = {}
    for term in terms:
        known = catalogue.get(term.feature)
        kinds = frozenset[str]() if known is None else known.kinds
        for name, expression in sorted((term.expressions or {}).items()):
            if operand_problem(expression):
                continue
            if reason := _alone(expression, kinds):
                yield f"{term.feature} {name!r} {expression}: {reason}"
            elif kinds and "instance" not in kinds:
                named.setdefault((term.key, name), []).append(expression)
        if term.name is not None and term.name.op == "DoesNotExist":
            yield f"{term.feature}: matchName DoesNotExist matches no name"
    for (feature, name), expressions in named.items():
        if _contradict(expressions):
            texts = " and ".join(str(e) for e in expressions)
            yield f"{feature} {name!r} cannot be {texts}"


def _alone(expression: Expression, kinds: frozenset[str]) -> str:
    if kinds == {"flag"} and expression.op in _NEEDS_VALUE:
        return "the feature has only flags, which have no value"
    return _empty(expression)


def _empty(expression: Expression) -> str:
    if expression.op not in ("GtLt", "GeLe") or expression.type:
        return ""
    low, high = map(integer, expression.value)
    if expression.op == "GtLt":
        return "" if high - low > 1 else "no integer lies between"
    return "" if low <= high else "the range is empty"


def _contradict(expressions: list[Expression]) -> bool:
    absent = [e for e in expressions if e.op == "DoesNotExist"]
    present = [e for e in expressions if e.op not in ("", "DoesNotExist")]
    if absent and present:
        return True
    candidates: set[str] | None = None
    for expression in present:
        values = _values(expression)
        if values is not None:
            candidates = values if candidates is None else candidates & values
    if candidates is None:
        return False
    return not any(_passes(value, present) for value in candidates)


def _values(expression: Expression) -> set[str] | None:
    if expression.op == "In":
        return set(expression.value)
    if expression.op in ("IsTrue", "IsFalse"):
        return {"true" if expression.op == "IsTrue" else "false"}
    return None


def _passes(value: str, expressions: Iterable[Expression]) -> bool:
    try:
        return all(bind(expression).test(value) for expression in expressions)
    except ValueProblem:
        return False
