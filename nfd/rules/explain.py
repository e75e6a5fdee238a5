"""Explains a rule on given features: which expression failed on which element."""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from nfd.errors import NfdError
from nfd.features import Attributes, Features
from nfd.rules.engine import Outcome, evaluate, program_of
from nfd.rules.model import MATCHED_FEATURE, Rule
from nfd.rules.operators import Bound
from nfd.rules.program import TermProgram, Trail, Verdict
from nfd.rules.sets import Matched, Sets

WORDS: Mapping[Verdict, str] = {True: "yes", False: "no", None: "unknown"}


@attrs.frozen(slots=True)
class Tried:
    """One expression on one value; `value` is None where there is no element."""

    name: str  # of the element; "" for matchName
    expression: str
    value: str | None
    passed: bool
    problem: str = ""

    def __str__(self) -> str:
        """Say what was asked and what was there."""
        there = "is absent" if self.value is None else f"is {self.value!r}"
        if self.problem:
            there = self.problem
        return f"{self.name or 'name'} {self.expression}: {there}"


@attrs.frozen(slots=True)
class Tested:
    """One element of a feature (or one name that was looked for) and its tests."""

    kind: str  # flag, attribute, instance
    element: str  # name, or index of an instance
    attributes: Attributes  # of an instance
    tried: tuple[Tried, ...]

    @property
    def passed(self) -> bool:
        """Whether all tests passed."""
        return all(one.passed for one in self.tried)

    @property
    def failed(self) -> tuple[Tried, ...]:
        """The tests that did not pass."""
        return tuple(one for one in self.tried if not one.passed)


@attrs.frozen(slots=True)
class TermExplanation:
    """One term: its verdict, why, and all elements that it looked at."""

    path: str
    feature: str
    verdict: Verdict
    note: str
    elements: tuple[Tested, ...]


@attrs.frozen(slots=True)
class RuleExplanation:
    """A rule on one host: outcome, reason, terms, and what the rule gives."""

    rule: Rule
    outcome: Outcome
    reason: str
    terms: tuple[TermExplanation, ...]
    labels: Mapping[str, str]
    vars: Mapping[str, str]

    def to_plain(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "rule": self.rule.name,
            "origin": self.rule.origin,
            "outcome": self.outcome,
            "reason": self.reason,
            "terms": [
                {
                    "path": term.path,
                    "feature": term.feature,
                    "matched": term.verdict,
                    "note": term.note,
                    "elements": [_element_plain(tested) for tested in term.elements],
                }
                for term in self.terms
            ],
            "labels": dict(sorted(self.labels.items())),
            "vars": dict(sorted(self.vars.items())),
        }


def _element_plain(tested: Tested) -> dict[str, Any]:
    plain: dict[str, Any] = {"kind": tested.kind, "element": tested.element}
    if tested.kind == "instance":
        plain["attributes"] = dict(sorted(tested.attributes.items()))
    plain["matched"] = tested.passed
    plain["tests"] = [
        {
            "name": one.name,
            "expression": one.expression,
            "value": one.value,
            "passed": one.passed,
            **({"problem": one.problem} if one.problem else {}),
        }
        for one in tested.tried
    ]
    return plain


def explain_rule(
    rule: Rule, features: Features | Sets, matched: Matched | None = None
) -> RuleExplanation:
    """Evaluate a rule and tell of each term what it found; raises nothing."""
    sets = features if isinstance(features, Sets) else Sets.of(features)
    before = matched if matched is not None else Matched.start(sets)
    result = evaluate(rule, sets, before)
    program = program_of(rule)
    terms = [term for branch in program.branches for term in branch]
    return RuleExplanation(
        rule,
        result.outcome,
        result.reason,
        tuple(_term(term, sets, before) for term in (*terms, *program.main)),
        result.labels,
        result.vars,
    )


def _term(program: TermProgram, sets: Sets, matched: Matched) -> TermExplanation:
    trail = Trail()
    verdict: Verdict = False
    note = ""
    try:
        verdict = program.run(sets, matched, trail, None)
    except NfdError as error:
        note = f"error: {error}"
    key = program.key
    flags, instances = sets.flags.get(key), sets.instances.get(key)
    attributes = sets.attributes.get(key)
    if key == MATCHED_FEATURE:
        attributes = matched.elements if matched.exists else None
    if flags is None and attributes is None and instances is None and not note:
        note = "; ".join(trail.unknown) or "feature not available"
    elements = [
        *_named(program, "flag", flags),
        *_named(program, "attribute", attributes),
        *_instances(program, instances or ()),
    ]
    return TermExplanation(
        program.path, program.term.feature, verdict, note, tuple(elements)
    )


def _named(
    program: TermProgram, kind: str, there: frozenset[str] | Attributes | None
) -> Iterable[Tested]:
    if there is None:
        return
    expressions = program.term.expressions or {}
    for name, bound in program.tests or ():
        value = _value(there, name)
        asked = str(expressions[name])
        if kind == "flag":
            tried = _try_flag(name, asked, bound, there=value is not None)
        else:
            tried = _try(name, asked, bound, value)
        yield Tested(kind, name, {}, (tried,))
    if program.name_test is not None:
        for name in sorted(there):
            tried = _try("", str(program.term.name), program.name_test, name)
            yield Tested(kind, name, {}, (tried,))


def _value(there: frozenset[str] | Attributes, name: str) -> str | None:
    if isinstance(there, frozenset):
        return "" if name in there else None
    return there.get(name)


def _instances(
    program: TermProgram, instances: Iterable[Attributes]
) -> Iterable[Tested]:
    expressions = program.term.expressions or {}
    for index, instance in enumerate(instances):
        tried = [
            _try(name, str(expressions[name]), bound, instance.get(name))
            for name, bound in program.tests or ()
        ]
        if program.name_test is not None:
            names = [
                _try("", str(program.term.name), program.name_test, name)
                for name in instance
            ]
            tried += [one for one in names if one.passed][:1] or names[:1]
        yield Tested("instance", str(index), instance, tuple(tried))


def _try(name: str, asked: str, bound: Bound, value: str | None) -> Tried:
    try:
        return Tried(name, asked, value, bound.test(value))
    except NfdError as error:
        return Tried(name, asked, value, passed=False, problem=str(error))


def _try_flag(name: str, asked: str, bound: Bound, *, there: bool) -> Tried:
    value = "" if there else None
    try:
        passed = bound.flag(there)
    except NfdError as error:
        return Tried(name, asked, value, passed=False, problem=str(error))
    if passed or not there or bound.wants_absence:
        return Tried(name, asked, value, passed)
    return Tried(name, asked, value, passed, problem="is a flag, which has no value")


def lines(explained: RuleExplanation, most: int = 10) -> list[str]:
    """Write an explanation for people; at most so many elements of each term.

    The elements nearest to matching come first.
    """
    reason = f": {explained.reason}" if explained.reason else ""
    told = {
        "matched": "matches",
        "no": "does not match",
        "unknown": "is unknown",
        "error": "fails",
    }
    written = [f"rule {str(explained.rule)!r} {told[explained.outcome]}{reason}"]
    for term in explained.terms:
        note = f" ({term.note})" if term.note else ""
        written.append(f"  {term.path}: {WORDS[term.verdict]}{note}")
        nearest = sorted(term.elements, key=lambda tested: len(tested.failed))
        written += [f"    {_line(tested)}" for tested in nearest[:most]]
        if len(nearest) > most:
            written.append(f"    and {len(nearest) - most} more")
    for title, outputs in (("label", explained.labels), ("var", explained.vars)):
        written += [f"  {title} {k}={v}" for k, v in sorted(outputs.items())]
    return written


def _line(tested: Tested) -> str:
    mark = "+" if tested.passed else "-"
    what = f"{tested.kind} {tested.element}"
    if tested.kind == "instance":
        shown = " ".join(f"{k}={v}" for k, v in sorted(tested.attributes.items()))
        what = f"{what} ({shown})"
    tests = tested.tried if tested.passed else tested.failed
    return f"{mark} {what}: {'; '.join(map(str, tests))}".removesuffix(": ")
