"""From the results of rules to what a Node gets: prefixes, `@` values, policy.

Source: spec/worker.md sections 6.8 and 6.9, spec/master.md section 2.7.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from nfd.features import Features
from nfd.labels import Provenance, Refusal
from nfd.quantity import Quantity
from nfd.rules.engine import RuleResult, evaluate_all
from nfd.rules.model import MATCHED_FEATURE, Rule, Taint
from nfd.rules.policy import Policy
from nfd.rules.sets import Matched, Sets

OutputKind: TypeAlias = Literal["label", "annotation", "extendedResource", "taint"]
PUBLISHED = "NodeFeature"  # stands where a rule's name would, for published labels
_NO_OUTPUTS: Mapping[str, "Output"] = {}


@attrs.frozen(slots=True)
class Output:
    """An accepted value and where it comes from."""

    value: str
    provenance: Provenance = attrs.field(factory=Provenance)


@attrs.frozen(slots=True)
class Conflict:
    """A key for which rules (or published labels) want different values."""

    kind: OutputKind
    key: str
    wants: tuple[tuple[str, str], ...]  # (rule, value); the last one wins

    @property
    def rules(self) -> tuple[str, ...]:
        """Names of those who want the key, in order."""
        return tuple(rule for rule, _ in self.wants)


@attrs.frozen(slots=True)
class Kept:
    """An output whose value cannot be known now: the one of before is to stay."""

    kind: OutputKind
    key: str
    rule: str
    reason: str


@attrs.frozen(slots=True)
class RuleOutput:
    """All that rules and published labels give a Node, after policy.

    Rules in `results` with a `reason` and an outcome other than `error` are unknown,
    wholly or in part: whoever writes must keep the keys that they gave before.
    """

    labels: Mapping[str, Output]
    annotations: Mapping[str, Output]
    extended_resources: Mapping[str, Output]  # canonical quantities
    taints: tuple[Taint, ...]
    vars: Mapping[str, str]
    results: tuple[RuleResult, ...]
    refused: tuple[Refusal, ...]
    conflicts: tuple[Conflict, ...]
    kept: tuple[Kept, ...] = ()

    @property
    def keys(self) -> set[str]:
        """All keys that are wanted; a taint's is `key:Effect`."""
        return {
            *self.labels,
            *self.annotations,
            *self.extended_resources,
            *(t.ident for t in self.taints),
        }

    @property
    def errors(self) -> tuple[RuleResult, ...]:
        """The results of rules that failed."""
        return tuple(r for r in self.results if r.outcome == "error")

    @property
    def unknown(self) -> tuple[RuleResult, ...]:
        """The results of rules whose earlier outputs must be kept."""
        return tuple(r for r in self.results if r.reason and r.outcome != "error")

    def to_plain(self) -> dict[str, Any]:
        """Return the JSON form of `nfd rules test`; times and provenance left out."""
        plain: dict[str, Any] = {
            "labels": _values(self.labels),
            "annotations": _values(self.annotations),
            "taints": [
                {"key": t.key, "value": t.value, "effect": t.effect}
                for t in self.taints
            ],
            "extendedResources": _values(self.extended_resources),
            "vars": dict(sorted(self.vars.items())),
            "rules": [
                {"name": r.rule.name, "matched": r.matched} for r in self.results
            ],
            "errors": [{"rule": r.rule.name, "message": r.reason} for r in self.errors],
            "refused": [
                {
                    "rule": r.provenance.rule,
                    "kind": r.kind,
                    "key": r.key,
                    "reason": r.reason,
                }
                for r in self.refused
            ],
            "conflicts": [
                {"key": c.key, "rules": list(c.rules)} for c in self.conflicts
            ],
        }
        if self.unknown:
            plain["unknown"] = [
                {"rule": r.rule.name, "reason": r.reason} for r in self.unknown
            ]
        return plain


def _values(outputs: Mapping[str, Output]) -> dict[str, str]:
    return {key: output.value for key, output in sorted(outputs.items())}


def execute(
    rules: Sequence[Rule],
    features: Features | Sets,
    policy: Policy,
    spec_labels: Mapping[str, Output] | None = None,
) -> RuleOutput:
    """Run rules over features and apply the policy: what the master would write.

    `spec_labels` are the published labels of the node, which rules may override.
    """
    sets = features if isinstance(features, Sets) else Sets.of(features)
    results, matched = evaluate_all(rules, sets)
    return combine(results, sets, matched, policy, spec_labels)


def combine(
    results: Sequence[RuleResult],
    sets: Sets,
    matched: Matched,
    policy: Policy,
    spec_labels: Mapping[str, Output] | None = None,
) -> RuleOutput:
    """Merge the results of rules in their order; later ones win, conflicts are told.

    `matched` is the state after the last rule; `@` values are read from it.
    """
    return _Combining(sets, matched, policy).run(results, spec_labels or {})


class _Combining:
    def __init__(self, sets: Sets, matched: Matched, policy: Policy) -> None:
        self.sets = sets
        self.matched = matched
        self.policy = policy
        self.refused: list[Refusal] = []
        self.conflicts: list[Conflict] = []
        self.kept: list[Kept] = []

    def run(
        self, results: Sequence[RuleResult], spec_labels: Mapping[str, Output]
    ) -> RuleOutput:
        labels = _Wanted("label", self.policy.prefixed(spec_labels))
        annotations = _Wanted("annotation")
        resources = _Wanted("extendedResource")
        taints = _Wanted("taint")
        wanted_taints: dict[str, Taint] = {}
        variables: dict[str, str] = {}
        prefixed = self.policy.prefixed
        for result in results:
            if not result.matched:
                continue
            rule = result.rule
            made = Provenance(
                source=rule.origin, feature=",".join(sorted(rule.reads)), rule=rule.name
            )
            for wanted, outputs in (
                (labels, result.labels),
                (annotations, rule.annotations),
                (resources, rule.extended_resources),
            ):
                for key, value in prefixed(outputs).items():
                    wanted.add(key, Output(value, made), rule.name)
            for taint in rule.taints:
                wanted_taints[taint.ident] = taint
                taints.add(taint.ident, Output(taint.value, made), rule.name)
            variables.update(result.vars)
        policy = self.policy
        return RuleOutput(
            labels=self._granted(labels, policy.label_problem),
            annotations=self._granted(annotations, policy.annotation_problem),
            extended_resources={
                key: attrs.evolve(output, value=str(Quantity.parse(output.value)))
                for key, output in self._granted(
                    resources, policy.resource_problem
                ).items()
            },
            taints=self._granted_taints(taints, wanted_taints),
            vars=variables,
            results=tuple(results),
            refused=tuple(self.refused),
            conflicts=tuple(self.conflicts),
            kept=tuple(self.kept),
        )

    def _granted(
        self, wanted: "_Wanted", problem_of: Callable[[str, str], str]
    ) -> dict[str, Output]:
        self.conflicts.extend(wanted.conflicts())
        granted: dict[str, Output] = {}
        for key, output in sorted(wanted.outputs.items()):
            value, problem = output.value, ""
            if value.startswith("@") and wanted.kind != "annotation":
                found = resolve(value, self.sets, self.matched)
                if found.unknown:
                    rule = output.provenance.rule
                    self.kept.append(Kept(wanted.kind, key, rule, found.problem))
                    continue
                value, problem = found.value or "", found.problem
            problem = problem or problem_of(key, value)
            if problem:
                self._refuse(wanted.kind, key, output, problem)
            else:
                same = value is output.value
                granted[key] = output if same else Output(value, output.provenance)
        return granted

    def _granted_taints(
        self, wanted: "_Wanted", taints: Mapping[str, Taint]
    ) -> tuple[Taint, ...]:
        self.conflicts.extend(wanted.conflicts())
        granted = []
        for name, taint in taints.items():
            if problem := self.policy.taint_problem(taint):
                self._refuse("taint", taint.key, wanted.outputs[name], problem)
            else:
                granted.append(taint)
        return tuple(granted)

    def _refuse(self, kind: OutputKind, key: str, output: Output, reason: str) -> None:
        self.refused.append(Refusal(kind, key, output.value, reason, output.provenance))


@attrs.frozen(slots=True)
class Reference:
    """What an `@` value leads to; without a value, `problem` says why.

    `unknown` tells that the feature could not be read, so that nobody knows.
    """

    value: str | None
    problem: str = ""
    unknown: bool = False


def resolve(reference: str, sets: Sets, matched: Matched) -> Reference:
    """Look up `@domain.feature.element` among the attributes."""
    parts = reference[1:].split(".", 2)
    if len(parts) < 3:
        problem = f"{reference!r} is not @<domain>.<feature>.<element>"
        return Reference(None, problem)
    feature, element = f"{parts[0]}.{parts[1]}", parts[2]
    key = feature.lower()
    attributes = sets.attributes.get(key)
    doubt = sets.unknown.get(key, "")
    settled = element in sets.settled.get(key, ())
    if key == MATCHED_FEATURE:
        attributes = matched.elements if matched.exists else None
        doubt, settled = matched.unknown, matched.settles(element)
    if attributes is not None and element in attributes:
        return Reference(attributes[element])
    if doubt and not settled:
        return Reference(None, f"{feature}: {doubt}", unknown=True)
    if attributes is None:
        return Reference(None, f"feature {feature!r} not found for {reference!r}")
    return Reference(None, f"element {element!r} of {feature!r} not found")


class _Wanted:
    """What is wanted of one kind: the last output of each key, and all who want it."""

    def __init__(
        self, kind: OutputKind, published: Mapping[str, Output] = _NO_OUTPUTS
    ) -> None:
        self.kind: OutputKind = kind
        self.outputs = dict(published)
        self._wants: dict[str, list[tuple[str, str]]] = {}

    def add(self, key: str, output: Output, rule: str) -> None:
        before = self.outputs.get(key)
        self.outputs[key] = output
        if before is None:
            return
        wants = self._wants.setdefault(
            key, [(before.provenance.rule or PUBLISHED, before.value)]
        )
        wants.append((rule, output.value))

    def conflicts(self) -> list[Conflict]:
        return [
            Conflict(self.kind, key, tuple(wants))
            for key, wants in sorted(self._wants.items())
            if len({value for _, value in wants}) > 1
        ]
