"""What all nodes together say about rules and NodeFeatures: counts, errors, refusals.

Pure. Fields of the status: deploy/crds/nodefeaturerules.yaml; conditions: DESIGN
section 6.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from nfd.labels import Refusal
from nfd.master.evaluate import Evaluation
from nfd.master.guard import ObjectKey
from nfd.master.merging import ORIGIN
from nfd.rules.load import Loaded
from nfd.rules.output import PUBLISHED

Truth: TypeAlias = Literal["True", "False", "Unknown"]

MOST = 50  # entries of a list in a status, and of a note on a NodeFeature
_MOST_TEXT = 1024


@attrs.frozen(slots=True)
class _Refused:
    origin: str  # name of the rule object
    kind: str
    key: str
    reason: str


@attrs.frozen(slots=True)
class _Note:
    """What one node says; most nodes say only which objects match."""

    matched: frozenset[str]
    refused: tuple[_Refused, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()  # rule object, text
    conflicts: tuple[tuple[str, tuple[str, ...], frozenset[str]], ...] = ()
    objects: tuple[tuple[ObjectKey, str], ...] = ()  # NodeFeature, its note
    ignored: tuple[tuple[ObjectKey, str], ...] = ()  # NodeFeature, why


@attrs.frozen(slots=True)
class Condition:
    """One condition of an object."""

    type: str
    status: Truth
    reason: str
    message: str


class Tally:
    """Remembers what the evaluation of each node said."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Note] = {}
        self._same: dict[frozenset[str], frozenset[str]] = {}

    def note(self, evaluation: Evaluation) -> bool:
        """Take in the evaluation of a node; tell whether it says something new."""
        output = evaluation.output
        matched = frozenset(r.rule.origin for r in output.results if r.matched)
        matched = self._same.setdefault(matched, matched)
        refused = (*output.refused, *evaluation.refused)
        note = _Note(matched)
        passed_over = evaluation.heard.passed_over
        if refused or output.errors or output.conflicts or passed_over:
            note = _Note(
                matched,
                tuple(_of_rules(refused)),
                tuple(
                    (r.rule.origin, f"{r.rule.name}: {r.reason}") for r in output.errors
                ),
                _conflicts(evaluation),
                tuple(sorted(_of_objects(refused).items())),
                tuple((s.key, reason) for s, reason in passed_over),
            )
        before = self._nodes.get(evaluation.node)
        self._nodes[evaluation.node] = note
        return before != note

    def keep(self, nodes: Iterable[str]) -> None:
        """Forget all nodes but these."""
        gone = self._nodes.keys() - set(nodes)
        for name in gone:
            del self._nodes[name]

    def matched(self) -> Counter[str]:
        """Count the nodes that each rule object matches."""
        return Counter(name for note in self._nodes.values() for name in note.matched)

    def object_notes(self) -> dict[ObjectKey, str]:
        """Return what is to stand on NodeFeatures: key → text of the annotation."""
        return dict(pair for note in self._nodes.values() for pair in note.objects)

    def ignored(self) -> dict[ObjectKey, str]:
        """Return the NodeFeatures that do not count, and why."""
        return dict(pair for note in self._nodes.values() for pair in note.ignored)

    def statuses(self, loaded: Mapping[str, Loaded]) -> dict[str, dict[str, Any]]:
        """Return the status of every rule object, conditions as `Condition`s."""
        matched = self.matched()
        refused: dict[str, Counter[_Refused]] = {}
        errors: dict[str, Counter[str]] = {}
        conflicts: dict[str, dict[str, tuple[str, ...]]] = {}
        for note in self._nodes.values():
            for item in note.refused:
                refused.setdefault(item.origin, Counter())[item] += 1
            for origin, text in note.errors:
                errors.setdefault(origin, Counter())[text] += 1
            for key, rules, origins in note.conflicts:
                for origin in origins:
                    conflicts.setdefault(origin, {})[key] = rules
        return {
            name: _status(
                found,
                matched[name],
                refused.get(name, Counter()),
                errors.get(name, Counter()),
                conflicts.get(name, {}),
            )
            for name, found in loaded.items()
        }


def _of_rules(refused: Iterable[Refusal]) -> Iterable[_Refused]:
    for r in refused:
        if r.provenance.rule:
            yield _Refused(r.provenance.source, r.kind, r.key, r.reason)


def _of_objects(refused: Iterable[Refusal]) -> dict[ObjectKey, str]:
    found: dict[ObjectKey, dict[str, str]] = {}
    for r in refused:
        if r.provenance.source.startswith(f"{ORIGIN} "):
            namespace, _, name = r.provenance.source[len(ORIGIN) + 1 :].partition("/")
            found.setdefault((namespace, name), {})[r.key] = r.reason
    return {key: refusals_text(reasons) for key, reasons in found.items()}


def refusals_text(reasons: Mapping[str, str]) -> str:
    """Write the annotation `refused`: JSON, key → reason; the first ones of many."""
    listed = dict(sorted(reasons.items())[:MOST])
    if len(reasons) > MOST:
        listed["..."] = f"and {len(reasons) - MOST} more"
    return json.dumps(listed, ensure_ascii=False, separators=(",", ":"))


def _conflicts(
    evaluation: Evaluation,
) -> tuple[tuple[str, tuple[str, ...], frozenset[str]], ...]:
    output = evaluation.output
    if not output.conflicts:
        return ()
    origins: dict[str, set[str]] = {}
    for result in output.results:
        if result.matched:
            origins.setdefault(result.rule.name, set()).add(result.rule.origin)
    return tuple(
        (
            conflict.key,
            tuple(dict.fromkeys(conflict.rules)),
            frozenset(o for r in conflict.rules for o in origins.get(r, ())),
        )
        for conflict in output.conflicts
        if set(conflict.rules) != {PUBLISHED}
    )


def _status(
    found: Loaded,
    matched: int,
    refused: Counter[_Refused],
    errors: Counter[str],
    conflicts: Mapping[str, tuple[str, ...]],
) -> dict[str, Any]:
    status: dict[str, Any] = {
        "conditions": [
            valid_condition(found),
            _applied(refused, errors),
            _conflict(conflicts),
        ],
        "matchedNodes": matched,
    }
    if errors:
        status["lastError"] = _cut(min(errors))
    if refused:
        status["refused"] = [
            {"kind": r.kind, "key": r.key, "reason": r.reason, "count": refused[r]}
            for r in sorted(refused, key=lambda r: (r.kind, r.key, r.reason))[:MOST]
        ]
    if conflicts:
        status["conflicts"] = [
            {"key": key, "rules": list(rules)}
            for key, rules in sorted(conflicts.items())[:MOST]
        ]
    return status


def valid_condition(found: Loaded) -> Condition:
    """Say whether all rules of an object could be read."""
    errors = found.errors
    if not errors:
        return Condition("Valid", "True", "Valid", "all rules could be read")
    text = "; ".join(
        f"{p.path}: {p.message}" if p.path else p.message for p in errors[:5]
    )
    return Condition("Valid", "False", "Invalid", _cut(text))


def _applied(refused: Counter[_Refused], errors: Counter[str]) -> Condition:
    if errors:
        text, count = min(errors.items())
        said = f"failed on {count} nodes: {text}" if count > 1 else text
        return Condition("Applied", "False", "RuleFailed", _cut(said))
    if refused:
        first = min(refused, key=lambda r: (r.kind, r.key))
        said = f"{len(refused)} outputs are refused, as {first.kind} {first.key}: "
        return Condition("Applied", "False", "OutputRefused", _cut(said + first.reason))
    return Condition("Applied", "True", "Applied", "all outputs reach their nodes")


def _conflict(conflicts: Mapping[str, Sequence[str]]) -> Condition:
    if not conflicts:
        return Condition("Conflict", "False", "NoConflict", "nobody wants other values")
    key, rules = min(conflicts.items())
    said = f"{', '.join(rules)} want different values of {key}; the last one wins"
    return Condition("Conflict", "True", "Conflict", _cut(said))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "..."


def with_times(
    status: Mapping[str, Any], before: Mapping[str, Any], generation: int, now: str
) -> dict[str, Any]:
    """Return a status in the API's form; conditions that stay keep their time."""
    times = {
        c.get("type"): (c.get("status"), c.get("lastTransitionTime"))
        for c in before.get("conditions") or ()
    }
    plain = []
    for condition in status["conditions"]:
        found, since = times.get(condition.type, (None, None))
        plain.append(
            {
                **attrs.asdict(condition),
                "observedGeneration": generation,
                "lastTransitionTime": since if found == condition.status else now,
            }
        )
    return {**status, "conditions": plain}
