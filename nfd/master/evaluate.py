"""From the NodeFeatures of a node to what is wanted of it; results kept and shared.

The result of a rule depends only on the sets that it reads and on what it sees of
earlier outputs; results are kept by the numbers of those sets, so that a rule is
evaluated once for all nodes that are equal in its eyes.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeAlias

import attrs

from nfd.errors import NfdError
from nfd.labels import Refusal
from nfd.master.merging import (
    Heard,
    Scope,
    hear,
    label_refusal,
    origin_of,
    set_refusals,
    trusted_part,
)
from nfd.master.state import Wanted
from nfd.master.store import FeatureStore, MergedSets, StoredFeature
from nfd.publish.demand import BULKY, trimmed_sets
from nfd.publish.ownership import Hold
from nfd.rules.engine import RuleResult, after, evaluate, matched_inputs
from nfd.rules.model import MATCHED_FEATURE, Rule
from nfd.rules.output import Output, RuleOutput, combine
from nfd.rules.policy import Policy
from nfd.rules.sets import Matched, Sets

Timed: TypeAlias = Callable[[Rule, float], None]  # seconds of one evaluation

_RECENT = 32  # whole evaluations kept
_KEPT = 50_000  # results of rules kept; a few hundred bytes each


@attrs.frozen(slots=True)
class Evaluation:
    """What the NodeFeatures of one node and the rules want, and what was refused."""

    node: str
    output: RuleOutput
    heard: Heard
    refused: tuple[Refusal, ...] = ()  # of the trust policy; others are in output

    def wanted(self, lift: frozenset[str] = frozenset()) -> Wanted:
        """Return the part that planning needs; unknown outputs keep their values."""
        return Wanted(
            labels={k: o.value for k, o in self.output.labels.items()},
            annotations={k: o.value for k, o in self.output.annotations.items()},
            resources={k: o.value for k, o in self.output.extended_resources.items()},
            taints=self.output.taints,
            hold=self._hold(),
            lift=lift,
        )

    def _hold(self) -> Hold:
        """Hold the keys that unknown rules write; all, where templates name them.

        A rule that fails proves nothing either, but as it may do so for good, it holds
        only what it names, and no value that others want.
        """
        output = self.output
        keys = {kept.key for kept in output.kept}
        everything = False
        for result in output.unknown:
            everything = everything or bool(result.rule.labels_template)
            if not result.matched:
                keys |= _named(result.rule)
        if output.errors:
            keys.update(*(_named(r.rule) - output.keys for r in output.errors))
        return Hold(everything=everything, keys=frozenset(keys))


def _named(rule: Rule) -> set[str]:
    """Return the keys that a rule names itself; a taint as `key:Effect`."""
    return {
        *_long(rule.labels),
        *_long(rule.annotations),
        *_long(rule.extended_resources),
        *(t.ident for t in rule.taints),
    }


def _long(outputs: Mapping[str, str]) -> set[str]:
    """Return both forms of unprefixed keys: which one applies is the policy's."""
    return {*outputs, *Policy().prefixed(outputs)}


class Evaluator:
    """Evaluates one set of rules under one policy over the nodes of a store."""

    def __init__(
        self,
        store: FeatureStore,
        rules: Sequence[Rule],
        policy: Policy,
        scope: Scope,
        timed: Timed | None = None,
    ) -> None:
        self.rules = tuple(rules)
        self.policy = policy
        self.scope = scope
        self._store = store
        self._timed = timed
        self._reads = [tuple(sorted(r.reads - {MATCHED_FEATURE})) for r in self.rules]
        self._kept: dict[Hashable, RuleResult] = {}
        self._recent: dict[str, Evaluation] = {}
        self.evaluations = 0  # rules really run

    def node(self, name: str) -> Evaluation:
        """Evaluate all rules for one node.

        The last few nodes are kept: each is planned again after its write.
        """
        store = self._store
        heard = hear(store.of_node(name), store.about, self.scope)
        recent = self._recent.get(name)
        if recent is not None and recent.heard == heard:
            return recent
        objects = [trusted_part(s, self.scope) for s in heard.objects]
        merged = MergedSets(store.pool, objects)
        unknown, settled = self._unknown(objects)
        sets = merged.sets(unknown, settled)
        matched = Matched.start(sets)
        results = []
        doubts = tuple(s.about for s in objects) if unknown else ()
        for index, rule in enumerate(self.rules):
            key = (
                index,
                merged.identity(self._reads[index]),
                matched_inputs(rule, matched),
                doubts if unknown.keys() & rule.reads else (),
            )
            result = self._kept.get(key)
            if result is None:
                began = perf_counter()
                result = evaluate(rule, sets, matched)
                self.evaluations += 1
                if self._timed is not None:
                    self._timed(rule, perf_counter() - began)
                if len(self._kept) >= _KEPT:
                    self._kept.clear()
                self._kept[key] = result
            results.append(result)
            matched = after(matched, result)
        labels, refused = self._labels(heard)
        for stored, trusted in zip(heard.objects, objects, strict=True):
            if trusted is not stored:
                refused += set_refusals(stored, trusted)
        output = combine(results, sets, matched, self.policy, labels)
        made = Evaluation(name, output, heard, tuple(refused))
        if len(self._recent) >= _RECENT:
            del self._recent[next(iter(self._recent))]
        self._recent[name] = made
        return made

    def sets_of(self, name: str) -> Sets | None:
        """Return the feature sets of a node; None where nobody speaks for it."""
        store = self._store
        heard = hear(store.of_node(name), store.about, self.scope)
        if not heard.objects:
            return None
        objects = [trusted_part(s, self.scope) for s in heard.objects]
        return MergedSets(store.pool, objects).sets(*self._unknown(objects))

    def _unknown(
        self, objects: Sequence[StoredFeature]
    ) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
        unknown: dict[str, str] = {}
        settled: dict[str, frozenset[str]] = {}
        for stored in objects:
            about: Mapping[str, Any] = self._store.about(stored)
            try:
                trimmed = trimmed_sets(about.get("trimmed", ""))
            except NfdError as error:
                unknown.update(dict.fromkeys(BULKY, str(error)))
                trimmed = {}
            for key, names in trimmed.items():
                unknown[key] = "trimmed by the worker to what rules asked for"
                settled[key] = names
            for key in about.get("unknown", ()):
                unknown[key] = "could not be read on the node"
                settled.pop(key, None)
        return unknown, settled

    def _labels(self, heard: Heard) -> tuple[dict[str, Output], list[Refusal]]:
        """Merge published labels: prefixed inside each object, later objects win."""
        labels: dict[str, Output] = {}
        refused: list[Refusal] = []
        own = self.scope.own_namespace
        for stored in heard.objects:
            third_party = stored.key[0] != own or stored.key[1] != stored.node
            published = self._store.labels_of(stored)
            origin = origin_of(stored)
            if self.scope.deny_labels and third_party:
                reason = "labels of other programs are denied (denyNodeFeatureLabels)"
                refused += [
                    Refusal("label", k, v, reason, origin) for k, v in published.items()
                ]
                continue
            prefixed = self.policy.prefixed(published)
            if self.scope.trusts(stored):
                labels.update({k: Output(v, origin) for k, v in prefixed.items()})
                continue
            for key, value in prefixed.items():
                if self.scope.trusts_labels(stored, key):
                    labels[key] = Output(value, origin)
                else:
                    refused.append(label_refusal(stored, key, value))
        return labels, refused
