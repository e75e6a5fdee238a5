"""Evaluates rules over features; pure (spec/worker.md sections 6.3 to 6.7)."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias
from weakref import WeakKeyDictionary

import attrs

from nfd.errors import RuleError
from nfd.features import Features
from nfd.rules.model import MATCHED_FEATURE, Rule, RuleObject
from nfd.rules.operators import operand_problem
from nfd.rules.program import BadValue, RuleProgram, Trail
from nfd.rules.sets import Matched, Sets

Outcome: TypeAlias = Literal["matched", "no", "unknown", "error"]

_NOTHING: Mapping[str, str] = {}
_programs: WeakKeyDictionary[Rule, RuleProgram] = WeakKeyDictionary()


@attrs.frozen(slots=True)
class RuleResult:
    """What one rule gives on one node; keys are as its author wrote them.

    `reason` is the error, or why the outcome is unknown. With the outcome `matched`
    it says why template outputs may lack keys: a set that they range over was not
    read completely. Keys that such a rule gave before are to be kept.
    """

    rule: Rule
    outcome: Outcome
    reason: str = ""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    vars: Mapping[str, str] = attrs.field(factory=dict)
    bad_values: tuple[BadValue, ...] = ()

    @property
    def matched(self) -> bool:
        """Whether the rule matched; then all its outputs apply."""
        return self.outcome == "matched"


def program_of(rule: Rule) -> RuleProgram:
    """Return the rule made ready to run; made once for each rule."""
    program = _programs.get(rule)
    if program is None:
        program = _programs[rule] = RuleProgram(rule)
    return program


def evaluate(
    rule: Rule, features: Features | Sets, matched: Matched | None = None
) -> RuleResult:
    """Evaluate one rule; wrong rules give the outcome `error`, nothing is raised.

    Equal results come of equal sets under `rule.reads` and of an equal
    `matched_inputs(rule, matched)`, so that results can be kept by those.
    """
    sets = features if isinstance(features, Sets) else Sets.of(features)
    before = matched if matched is not None else Matched.start(sets)
    trail = Trail()
    outputs: tuple[dict[str, str], dict[str, str]] = ({}, {})
    try:
        verdict = program_of(rule).run(sets, before, trail, outputs)
    except RuleError as error:
        if not trail.doubts:
            return _result(rule, "error", trail, str(error))
        # With all sets read, evaluation might have ended before it came here.
        return _result(rule, "unknown", trail, _joined((*trail.doubts, str(error))))
    except Exception as error:  # noqa: BLE001 - a fault here costs only this rule
        told = f"internal error: {type(error).__name__}: {error}"
        return _result(rule, "error", trail, told)
    if verdict is False:
        return _result(rule, "no", trail)
    reason = _joined(trail.unknown)
    if verdict is None:
        return _result(rule, "unknown", trail, reason)
    labels, variables = outputs
    return RuleResult(
        rule,
        "matched",
        reason,
        {**labels, **rule.labels} if labels else rule.labels,
        {**variables, **rule.vars} if variables else rule.vars,
        tuple(trail.bad_values),
    )


def _result(rule: Rule, outcome: Outcome, trail: Trail, reason: str = "") -> RuleResult:
    bad = tuple(trail.bad_values)
    return RuleResult(rule, outcome, reason, _NOTHING, _NOTHING, bad)


def _joined(reasons: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(reasons))


def evaluate_all(
    rules: Iterable[Rule],
    features: Features | Sets,
    *,
    feed_back: bool = True,
) -> tuple[tuple[RuleResult, ...], Matched]:
    """Evaluate rules in order; later ones see the outputs of earlier ones.

    Without `feed_back` no rule sees another (spec section 3.5, kubectl-nfd).
    """
    sets = features if isinstance(features, Sets) else Sets.of(features)
    matched = Matched.start(sets)
    results = []
    for rule in rules:
        result = evaluate(rule, sets, matched)
        results.append(result)
        if feed_back:
            matched = after(matched, result)
    return tuple(results), matched


def evaluate_objects(
    objects: Iterable[RuleObject], features: Features | Sets
) -> tuple[tuple[RuleResult, ...], Matched]:
    """Evaluate the rules of objects in the order of their names, as a master does.

    The rules of a NodeFeatureGroup see only each other.
    """
    sets = features if isinstance(features, Sets) else Sets.of(features)
    matched = Matched.start(sets)
    results: list[RuleResult] = []
    for holder in sorted(objects, key=lambda found: found.name):
        if holder.kind == "NodeFeatureGroup":
            results += evaluate_all(holder.rules, sets)[0]
            continue
        for rule in holder.rules:
            results.append(evaluate(rule, sets, matched))
            matched = after(matched, results[-1])
    return tuple(results), matched


def after(matched: Matched, result: RuleResult) -> Matched:
    """Return what later rules see of earlier outputs once this rule has run."""
    if result.outcome == "error":
        return matched
    if not result.reason:
        return matched.known(result.labels, result.vars)
    rule = result.rule
    if rule.labels_template or rule.vars_template:
        doubted = matched.doubted(None)
    else:
        doubted = matched.doubted((*rule.labels, *rule.vars))
    if not _may_fail(rule):
        doubted = doubted.known({}, {})  # it exists, whatever the rule would say
    return doubted.known(result.labels, result.vars) if result.matched else doubted


def _may_fail(rule: Rule) -> bool:
    """Tell whether a rule may end in an error, which feeds nothing back."""
    if rule.labels_template or rule.vars_template:
        return True
    return any(map(operand_problem, rule.expressions))


def matched_inputs(rule: Rule, matched: Matched) -> Hashable:
    """Return what the rule can see of earlier outputs, to keep results by."""
    if MATCHED_FEATURE not in rule.reads:
        return None
    names = _names_read(rule)
    if names is None:
        elements: Hashable = tuple(sorted(matched.elements.items()))
        return matched.exists, matched.perhaps, elements, matched.uncertain
    return (
        matched.exists,
        matched.perhaps,
        tuple((matched.elements.get(name), matched.settles(name)) for name in names),
    )


def _names_read(rule: Rule) -> Sequence[str] | None:
    names: set[str] = set()
    for term in rule.terms:
        if term.key == MATCHED_FEATURE:
            if term.name is not None:
                return None
            names.update(term.expressions or ())
    return sorted(names)
