"""Finds mistakes in rules before they run: all that upstream is silent about."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from nfd.errors import RuleError
from nfd.features import Features
from nfd.labels import MAX_NAME, split_key
from nfd.rules.catalogue import Catalogue, near
from nfd.rules.engine import evaluate_objects
from nfd.rules.expansion import parse
from nfd.rules.impossible import never
from nfd.rules.load import Loaded
from nfd.rules.model import MATCHED_FEATURE, Expression, Kind, Rule, RuleObject, Term
from nfd.rules.operators import TABLE, operand_problem
from nfd.rules.policy import Policy, taint_problem
from nfd.rules.problems import Problem, Severity

POLICY = Policy(enable_taints=True)

_ACTION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|/\*.*?\*/', re.DOTALL)
_FIELD = re.compile(r"(?<![\w.)$])\.(\w+\.\w+)")


def validate(
    loaded: Loaded,
    catalogue: Catalogue,
    policy: Policy = POLICY,
) -> tuple[Problem, ...]:
    """Check everything that was loaded; problems of loading come first."""
    found = list(loaded.problems)
    for holder in loaded.objects:
        for rule in holder.rules:
            found += _Checker(holder, rule, catalogue, policy).check()
    ordered = sorted(loaded.objects, key=lambda holder: holder.name)
    found += _across(
        [holder for holder in ordered if holder.kind != "NodeFeatureGroup"]
    )
    return tuple(dict.fromkeys(found))


def failures(loaded: Loaded, features: Features, host: str) -> tuple[Problem, ...]:
    """Run everything that was loaded over the features of a host: rules that fail."""
    results, _ = evaluate_objects(loaded.objects, features)
    places = {rule: holder.place for holder in loaded.objects for rule in holder.rules}
    return tuple(
        Problem("error", places[r.rule], f"on {host}", r.reason, r.rule.name)
        for r in results
        if r.outcome == "error"
    )


class _Checker:
    """Checks one rule."""

    def __init__(
        self, holder: RuleObject, rule: Rule, catalogue: Catalogue, policy: Policy
    ) -> None:
        self.kind: Kind = holder.kind
        self.place = holder.place
        self.rule = rule
        self.catalogue = catalogue
        self.policy = policy
        self.found: list[Problem] = []

    def check(self) -> list[Problem]:
        rule = self.rule
        for index, terms in enumerate(rule.match_any):
            self._terms(terms, f"matchAny[{index}].matchFeatures")
        self._terms(rule.match_features, "matchFeatures")
        for reason in never(rule, self.catalogue):
            self._warn("", f"can never match: {reason}")
        self._templates()
        self._outputs()
        return self.found

    def _error(self, path: str, message: str) -> None:
        self._add("error", path, message)

    def _warn(self, path: str, message: str) -> None:
        self._add("warning", path, message)

    def _add(self, severity: Severity, path: str, message: str) -> None:
        self.found.append(Problem(severity, self.place, path, message, self.rule.name))

    # Terms.

    def _terms(self, terms: Iterable[Term], path: str) -> None:
        for index, term in enumerate(terms):
            where = f"{path}[{index}]"
            self._feature(term.feature, f"{where}.feature")
            for name, expression in (term.expressions or {}).items():
                inner = f"{where}.matchExpressions.{name}"
                self._expression(expression, inner)
                self._element(term.feature, name, inner)
            if term.name is not None:
                self._expression(term.name, f"{where}.matchName")

    def _feature(self, feature: str, path: str) -> None:
        if feature.count(".") != 1:
            self._warn(path, f"feature name {feature!r} is not <domain>.<feature>")
        elif not self.catalogue.knows(feature):
            nearest = self.catalogue.nearest(feature)
            self._warn(
                path, f"no installed source has the feature {feature!r}{nearest}"
            )

    def _element(self, feature: str, element: str, path: str) -> None:
        known = self.catalogue.get(feature)
        if known is None or known.elements is None or element in known.elements:
            return
        nearest = near(element, known.elements)
        self._warn(path, f"{feature} has no element {element!r}{nearest}")

    def _expression(self, expression: Expression, path: str) -> None:
        if not expression.op and self.kind != "custom":
            self._error(f"{path}.op", "missing")
        elif problem := operand_problem(expression):
            self._error(path, problem)
        elif expression.type and not TABLE[expression.op].compares:
            self._warn(f"{path}.type", f"{expression.op} does not look at the type")

    # Outputs.

    def _templates(self) -> None:
        rule = self.rule
        for field, text in (
            ("labelsTemplate", rule.labels_template),
            ("varsTemplate", rule.vars_template),
        ):
            if not text:
                continue
            try:
                parse(text, field)
            except RuleError as error:
                self._error(field, str(error).removeprefix(f"{field}: "))
            if not rule.terms:
                self._warn(field, "is never used: the rule has no matchers")
            self._template_features(field, text)

    def _template_features(self, field: str, text: str) -> None:
        """Warn of features that a template names and a block does not look at."""
        blocks = [(f"matchAny[{i}]", b) for i, b in enumerate(self.rule.match_any)]
        if self.rule.match_features:
            blocks.append(("matchFeatures", self.rule.match_features))
        actions = " ".join(_ACTION.findall(text))
        named = set(_FIELD.findall(_QUOTED.sub("", actions)))
        for where, terms in blocks:
            features = {f for term in terms for f in (term.feature, term.key)}
            for feature in sorted(named - features):
                self._warn(
                    field, f"names {feature}, which is not in {where}; fails there"
                )

    def _outputs(self) -> None:
        rule, policy = self.rule, self.policy
        for field, outputs, check in (
            ("labels", rule.labels, policy.label_problem),
            ("annotations", rule.annotations, policy.annotation_problem),
            ("extendedResources", rule.extended_resources, policy.resource_problem),
        ):
            for key, value in outputs.items():
                checked = self._value(field, key, value)
                for full in policy.prefixed({key: value}):
                    if problem := check(full, checked):
                        self._error(f"{field}.{key}", problem)
        for index, taint in enumerate(rule.taints):
            if problem := taint_problem(taint):
                self._error(f"taints[{index}]", problem)
        for key in rule.vars:
            if len(split_key(key)[1]) > MAX_NAME:
                self._warn(f"vars.{key}", "longer than a label's name may be")

    def _value(self, field: str, key: str, value: str) -> str:
        """Check a reference and return what can stand for its value."""
        if not value.startswith("@"):
            return value
        if field == "annotations" or self.kind != "NodeFeatureRule":
            self._warn(f"{field}.{key}", f"{value!r} is not looked up here")
            return value
        self._reference(value, f"{field}.{key}")
        return "0"

    def _reference(self, value: str, path: str) -> None:
        parts = value[1:].split(".", 2)
        if len(parts) < 3:
            self._error(path, f"{value!r} is not @<domain>.<feature>.<element>")
            return
        feature, element = f"{parts[0]}.{parts[1]}", parts[2]
        if not self.catalogue.knows(feature):
            nearest = self.catalogue.nearest(feature)
            self._warn(
                path, f"no installed source has the feature {feature!r}{nearest}"
            )
            return
        known = self.catalogue.get(feature)
        if known is not None and "attribute" not in known.kinds:
            self._error(path, f"{feature!r} has no attributes, only {_kinds(known)}")
        else:
            self._element(feature, element, path)


def _kinds(known: Any) -> str:
    return " and ".join(f"{kind}s" for kind in sorted(known.kinds))


# What only several rules together show.


@attrs.define(slots=True)
class _Written:
    """What rules wrote so far."""

    keys: dict[tuple[str, str], tuple[str, str]] = attrs.field(factory=dict)
    names: dict[str, str] = attrs.field(factory=dict)
    matched: set[str] = attrs.field(factory=set)
    anything: bool = False  # a template may have written any element


def _across(holders: Iterable[RuleObject]) -> Iterator[Problem]:
    written = _Written()
    for holder in holders:
        for rule in holder.rules:
            for path, message in _rule_across(rule, written):
                yield Problem("warning", holder.place, path, message, rule.name)
            written.matched.update(rule.labels, rule.vars)
            written.anything |= bool(rule.labels_template or rule.vars_template)


def _rule_across(rule: Rule, written: _Written) -> Iterator[tuple[str, str]]:
    if rule.name in written.names:
        yield "name", f"{written.names[rule.name]} has a rule of this name too"
    written.names.setdefault(rule.name, rule.origin or "the same file")
    for field, outputs in _outputs_of(rule):
        for key, value in POLICY.prefixed(outputs).items():
            before = written.keys.get((field, key))
            if before is not None:
                values = "the same value" if before[1] == value else "another value"
                message = f"rule {before[0]!r} writes this key too, with {values}"
                yield f"{field}.{key}", message
            written.keys[field, key] = (rule.name, value)
    if written.anything:
        return
    for term in rule.terms:
        if term.key != MATCHED_FEATURE:
            continue
        for name, expression in (term.expressions or {}).items():
            if name not in written.matched and expression.op != "DoesNotExist":
                message = (
                    f"no earlier rule writes {name!r}{near(name, written.matched)}"
                )
                yield f"{MATCHED_FEATURE}.{name}", message


def _outputs_of(rule: Rule) -> tuple[tuple[str, Mapping[str, str]], ...]:
    taints = {t.ident: t.value for t in rule.taints}
    return (
        ("labels", rule.labels),
        ("annotations", rule.annotations),
        ("extendedResources", rule.extended_resources),
        ("taints", taints),
    )
