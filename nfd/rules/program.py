"""Rules made ready to run: operators bound, lookups prepared, three-valued terms.

A verdict is True (matches), False (does not) or None (unknown: a set that it depends
on could not be read, or not completely). Source: spec/worker.md sections 6.3 and 6.4.
"""

from collections.abc import Callable, Container, Iterable
from typing import TypeAlias

import attrs

from nfd.features import Attributes
from nfd.rules.expansion import Elements, Expansion, put
from nfd.rules.model import MATCHED_FEATURE, Rule, Term
from nfd.rules.operators import (
    Bound,
    OperandError,
    ValueProblem,
    bind,
    operand_problem,
)
from nfd.rules.sets import Matched, Sets

MAX_BAD_VALUES = 10  # recorded per rule; more of them say nothing new

Verdict: TypeAlias = bool | None
_EMPTY: frozenset[str] = frozenset()


@attrs.frozen(slots=True)
class BadValue:
    """A value of an element that an expression could not compare."""

    feature: str
    element: str
    value: str
    reason: str


@attrs.define(slots=True)
class Trail:
    """What is learnt while one rule runs."""

    bad_values: list[BadValue] = attrs.field(factory=list)
    doubts: list[str] = attrs.field(factory=list)  # which sets are unknown, and why
    unknown: list[str] = attrs.field(factory=list)  # those that the verdict rests on

    def bad(self, feature: str, element: str, value: str, reason: str) -> None:
        """Record a value that could not be compared."""
        if len(self.bad_values) < MAX_BAD_VALUES:
            self.bad_values.append(BadValue(feature, element, value, reason))

    def doubt(self, feature: str, reason: str) -> None:
        """Record that a feature set is unknown."""
        self.doubts.append(f"{feature}: {reason}")
        self.unknown.append(self.doubts[-1])


class TermProgram:
    """One term, ready to run."""

    __slots__ = ("key", "name_test", "path", "term", "tests")

    def __init__(self, term: Term, path: str) -> None:
        self.term = term
        self.path = path
        self.key = term.key
        # Sorted, since upstream's order is random: which of two expressions fails
        # first decides whether an error in the other shows.
        self.tests: tuple[tuple[str, Bound], ...] | None = None
        if term.expressions is not None:
            self.tests = tuple(
                (name, bind(term.expressions[name]))
                for name in sorted(term.expressions)
            )
        self.name_test = None if term.name is None else bind(term.name)

    def run(
        self, sets: Sets, matched: Matched, trail: Trail, elements: Elements | None
    ) -> Verdict:
        """Evaluate; collect the matching elements when `elements` is a list.

        Raises:
            OperandError: An expression's operands are wrong.

        """
        key = self.key
        flags = sets.flags.get(key)
        instances = sets.instances.get(key)
        doubt = sets.unknown.get(key, "")
        if key == MATCHED_FEATURE:
            attributes = matched.elements if matched.exists else None
            doubt = doubt or matched.unknown
        else:
            attributes = sets.attributes.get(key)
        if flags is None and attributes is None and instances is None:
            if not doubt:
                return False
            trail.doubt(key, doubt)
            return None
        kinds = _Kinds(flags, attributes, instances)
        try:
            if not doubt:
                return self._run_known(kinds, trail, elements)
            settled: Container[str] = sets.settled.get(key, _EMPTY)
            if key == MATCHED_FEATURE and matched.unknown:
                settled = matched
            verdict = self._run_doubted(kinds, settled, trail, elements)
        except OperandError as error:
            if doubt:
                trail.doubt(key, doubt)
            raise OperandError(f"{self.path}: {error}") from None
        if verdict is None:
            trail.doubt(key, doubt)
        return verdict

    def may_miss_elements(self, sets: Sets, matched: Matched) -> str:
        """Say why the elements that were collected may not be all, or ""."""
        doubt = sets.unknown.get(self.key, "")
        if self.key == MATCHED_FEATURE:
            doubt = doubt or matched.unknown
        if doubt and (self.name_test or self.key in sets.instances):
            return f"{self.key}: {doubt}"
        return ""

    def _run_known(
        self, kinds: "_Kinds", trail: Trail, elements: Elements | None
    ) -> bool:
        if self.tests is not None:
            named = kinds.flags is not None or kinds.attributes is not None
            hit = named and self._named(kinds, trail, elements)
            if (elements is not None or not hit) and kinds.instances:
                hit = self._whole_instances(kinds.instances, trail, elements) or hit
            if not hit:
                return False
        return self.name_test is None or self._names(kinds, trail, elements)

    def _named(self, kinds: "_Kinds", trail: Trail, elements: Elements | None) -> bool:
        found: Elements = []
        flags, attributes = kinds.flags, kinds.attributes
        for name, bound in self.tests or ():
            in_flags = None if flags is None else bound.flag(name in flags)
            in_attributes = None
            if attributes is not None:
                in_attributes = self._value(attributes.get(name), name, bound, trail)
            if bound.wants_absence:
                if in_flags is False or in_attributes is False:
                    return False
            elif not (in_flags or in_attributes):
                return False
            if in_flags:
                found.append({"Name": name})
            if in_attributes and attributes is not None:
                found.append({"Name": name, "Value": attributes.get(name, "")})
        if elements is not None:
            elements.extend(found)
        return True

    def _value(self, value: str | None, name: str, bound: Bound, trail: Trail) -> bool:
        try:
            return bound.test(value)
        except ValueProblem as problem:
            trail.bad(self.key, name, value or "", str(problem))
            return False

    def _whole_instances(
        self,
        instances: Iterable[Attributes],
        trail: Trail,
        elements: Elements | None,
    ) -> bool:
        tests = [(name, bound.test) for name, bound in self.tests or ()]
        hit = False
        name = ""
        for instance in instances:
            try:
                for name, test in tests:
                    if not test(instance.get(name)):
                        break
                else:
                    hit = True
                    if elements is None:
                        return True
                    elements.append(instance)
            except ValueProblem as problem:
                trail.bad(self.key, name, instance[name], str(problem))
        return hit

    def _names(self, kinds: "_Kinds", trail: Trail, elements: Elements | None) -> bool:
        assert self.name_test is not None
        passes = _recording(self.name_test.test, self.key, trail)
        flags: Iterable[str] = kinds.flags or ()
        if self.name_test.may_fail:
            flags = sorted(flags)  # what is recorded must not depend on hash seeds
        attributes, instances = kinds.attributes or {}, kinds.instances or ()
        if elements is None:
            return (
                any(map(passes, flags))
                or any(map(passes, attributes))
                or any(any(map(passes, instance)) for instance in instances)
            )
        found = [{"Name": name} for name in flags if passes(name)]
        found += [
            {"Name": name, "Value": value}
            for name, value in attributes.items()
            if passes(name)
        ]
        found.sort(key=lambda element: (element["Name"], len(element)))
        whole = [i for i in instances if any(map(passes, i))]
        elements += found
        elements += whole
        return bool(found or whole)

    def _run_doubted(
        self,
        kinds: "_Kinds",
        settled: Container[str],
        trail: Trail,
        elements: Elements | None,
    ) -> Verdict:
        if self.tests is not None:
            named = self._named_doubted(kinds, settled, trail)
            verdict = named
            if named is not True or elements is not None:
                whole = self._instances_doubted(kinds, trail)
                verdict = either(named, whole)
            if verdict is not True:
                return verdict
            if elements is not None:
                if named is True:
                    self._named(kinds, trail, elements)
                self._whole_instances(kinds.instances or (), trail, elements)
        if self.name_test is None or self._names(kinds, trail, elements):
            return True
        return False if self.name_test.wants_absence else None

    def _named_doubted(
        self, kinds: "_Kinds", settled: Container[str], trail: Trail
    ) -> Verdict:
        if kinds.flags is None and kinds.attributes is None:
            return False
        verdict: Verdict = True
        for name, bound in self.tests or ():
            one = self._one_doubted(name, bound, kinds, settled, trail)
            verdict = both(verdict, one)
            if verdict is False:
                return False
        return verdict

    def _one_doubted(
        self,
        name: str,
        bound: Bound,
        kinds: "_Kinds",
        settled: Container[str],
        trail: Trail,
    ) -> Verdict:
        flags, attributes = kinds.flags, kinds.attributes
        sure = name in settled
        there = (flags is not None and name in flags) or (
            attributes is not None and name in attributes
        )
        if bound.wants_absence:
            return False if there else (True if sure else None)
        verdict: Verdict = flags is not None and bound.flag(name in flags)
        if attributes is not None and verdict is not True:
            verdict = self._value(attributes.get(name), name, bound, trail)
        if verdict is True or there or sure:
            return verdict
        return None

    def _instances_doubted(self, kinds: "_Kinds", trail: Trail) -> Verdict:
        if kinds.instances is None:
            return False
        if any(bound.wants_absence for _, bound in self.tests or ()):
            return None
        return self._whole_instances(kinds.instances, trail, None) or None


class RuleProgram:
    """One rule, ready to run."""

    __slots__ = ("branches", "expansion", "main", "rule")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.branches = tuple(
            _programs(terms, f"matchAny[{index}].matchFeatures")
            for index, terms in enumerate(rule.match_any)
        )
        self.main = _programs(rule.match_features, "matchFeatures")
        self.expansion: Expansion | None = None
        if rule.labels_template or rule.vars_template:
            self.expansion = Expansion(rule.labels_template, rule.vars_template)

    def run(
        self,
        sets: Sets,
        matched: Matched,
        trail: Trail,
        outputs: tuple[dict[str, str], dict[str, str]],
    ) -> Verdict:
        """Decide whether the rule matches; template outputs go into `outputs`.

        Raises:
            RuleError: An expression or template is wrong.

        """
        verdict: Verdict = True
        if self.branches:
            verdict = False
            for branch in self.branches:
                verdict = either(
                    verdict, self._block(branch, sets, matched, trail, outputs)
                )
                if verdict is True and self.expansion is None:
                    break
        if self.main and verdict is not False:
            verdict = both(
                verdict, self._block(self.main, sets, matched, trail, outputs)
            )
        if trail.doubts and any(map(operand_problem, self.rule.expressions)):
            # With all sets read, evaluation might have come to the wrong expression.
            trail.unknown[:] = trail.doubts
            return None
        if verdict is True and self.expansion is None:
            trail.unknown.clear()  # another branch of matchAny settled it
        return verdict

    def _block(
        self,
        terms: tuple[TermProgram, ...],
        sets: Sets,
        matched: Matched,
        trail: Trail,
        outputs: tuple[dict[str, str], dict[str, str]],
    ) -> Verdict:
        verdict: Verdict = True
        data: dict[str, dict[str, Elements]] = {}
        doubts = len(trail.unknown)
        for term in terms:
            elements: Elements | None = None if self.expansion is None else []
            verdict = both(verdict, term.run(sets, matched, trail, elements))
            if verdict is False:
                del trail.unknown[doubts:]  # whatever they are, it does not match
                return False
            if elements is not None:
                put(data, term.term.feature, elements)
        if verdict is True and self.expansion is not None:
            for term in terms:
                if reason := term.may_miss_elements(sets, matched):
                    trail.unknown.append(reason)
            self.expansion.run(data, outputs)
        return verdict


@attrs.frozen(slots=True)
class _Kinds:
    """The three kinds that one feature key may be."""

    flags: frozenset[str] | None
    attributes: Attributes | None
    instances: tuple[Attributes, ...] | None


def both(left: Verdict, right: Verdict) -> Verdict:
    """Kleene's and."""
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: Verdict, right: Verdict) -> Verdict:
    """Kleene's or."""
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _programs(terms: Iterable[Term], path: str) -> tuple[TermProgram, ...]:
    return tuple(
        TermProgram(term, f"{path}[{index}] ({term.feature})")
        for index, term in enumerate(terms)
    )


def _recording(
    test: Callable[[str | None], bool], feature: str, trail: Trail
) -> Callable[[str], bool]:
    def passes(name: str) -> bool:
        try:
            return test(name)
        except ValueProblem as problem:
            trail.bad(feature, name, name, str(problem))
            return False

    return passes
