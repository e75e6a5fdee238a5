"""What a worker remembers, so that no label goes out of ignorance (DESIGN section 2).

Pure. A source that fails keeps its last good features; a set of which only a part
could be read is completed from the last good one; a label goes only when all that
its maker reads has been discovered in this process.
"""

import math
from collections.abc import Collection, Iterable, Mapping

import attrs

from nfd.discovery import SourceResult
from nfd.features import Attributes, Features, merge
from nfd.labels import FEATURE_NS, Label, Provenance

# What identifies an instance among its kind, in the order of preference.
_IDENTITIES = ("address", "name", "uuid")


@attrs.frozen(slots=True)
class Remembered:
    """The last good features of one source.

    `when` is the time of that discovery in seconds since the epoch; `here` says that
    it took place in this process, and was not read back from what was published.
    """

    features: Features
    when: float
    here: bool = True


@attrs.frozen(slots=True)
class Recalled:
    """The results of one pass, completed from memory."""

    results: Mapping[str, SourceResult]
    memory: Mapping[str, Remembered]
    stale: Mapping[str, float]  # source → time of its last good discovery
    unsettled: frozenset[str]  # sources whose labels may not be taken away


def recall(
    results: Mapping[str, SourceResult],
    memory: Mapping[str, Remembered],
    *,
    known_sets: Mapping[str, Collection[str]],
    now: float,
    stale_limit: float | None = None,
) -> Recalled:
    """Complete the results of a pass from `memory` and remember what is good.

    Args:
        results: What each source found in this pass.
        memory: What the pass before returned; after a start, what was read back.
        known_sets: Source → keys of the feature sets that it can make; all of them
            are unknown while the source fails and nothing is remembered of it.
        now: Seconds since the epoch.
        stale_limit: Seconds after which a last good result no longer counts: what it
            told is then taken for gone.

    """
    limit = math.inf if stale_limit is None else stale_limit
    completed: dict[str, SourceResult] = {}
    kept: dict[str, Remembered] = {
        name: m for name, m in memory.items() if name not in results
    }
    stale: dict[str, float] = {}
    unsettled: set[str] = set()
    for name, result in results.items():
        last = memory.get(name)
        if result.not_ready and last is not None:
            result = attrs.evolve(result, status="failed")  # noqa: PLW2901
        if result.status == "absent":
            completed[name] = result
            if result.not_ready:  # labels that were read back may be of its facts
                unsettled.add(name)
            continue
        if result.status == "ok" and not result.features.unknown:
            completed[name] = result
            kept[name] = Remembered(result.features, now)
            continue
        unknown = _unknown(result, known_sets.get(name, ()))
        if last is None:
            features = attrs.evolve(result.features, unknown=unknown)
            completed[name] = attrs.evolve(result, features=features)
            unsettled.add(name)
            continue
        stale[name] = last.when
        if now - last.when > limit:  # on purpose: its facts and labels go
            features = attrs.evolve(result.features, unknown={})
            completed[name] = attrs.evolve(result, features=features)
            kept[name] = last
            continue
        features = _complete(result, last.features, unknown)
        completed[name] = attrs.evolve(result, features=features)
        kept[name] = Remembered(
            attrs.evolve(features, unknown={}), last.when, here=last.here
        )
        if features.unknown or not last.here:
            unsettled.add(name)
    return Recalled(completed, kept, stale, frozenset(unsettled))


def _unknown(result: SourceResult, known: Collection[str]) -> Mapping[str, str]:
    """Return the sets that could not be read: all that are known, after a failure."""
    if result.status == "failed":
        return dict.fromkeys(known, result.error)
    return result.features.unknown


def _complete(
    result: SourceResult, last: Features, unknown: Mapping[str, str]
) -> Features:
    """Fill what is unknown from the last good features; the rest stays unknown."""
    if result.status == "failed":
        left = {k: why for k, why in unknown.items() if k not in last}
        return attrs.evolve(last, unknown=left)
    found = result.features
    missing = last.only(unknown)
    flags = merge([missing, attrs.evolve(found, instances={}, unknown={})])
    instances = dict(found.instances)
    for key, listed in missing.instances.items():
        instances[key] = _united(found.instances.get(key, ()), listed)
    left = {k: why for k, why in unknown.items() if k not in missing}
    return Features(flags.flags, flags.attributes, instances, left)


def _united(
    found: tuple[Attributes, ...], last: tuple[Attributes, ...]
) -> tuple[Attributes, ...]:
    """Add the last good instances that were not found, in the order of identity."""
    there = {_identity(i) for i in found}
    added = tuple(i for i in last if _identity(i) not in there)
    return tuple(sorted((*found, *added), key=_identity)) if added else found


def _identity(instance: Attributes) -> tuple[str, ...]:
    for name in _IDENTITIES:
        if name in instance:
            return (name, instance[name])
    return tuple(text for item in sorted(instance.items()) for text in item)


def retain(
    before: Mapping[str, Label],
    now: Mapping[str, Label],
    *,
    unsettled: Collection[str],
    unknown_rules: Collection[str] = (),
    answered: Collection[str] | None = None,
) -> dict[str, Label]:
    """Return `now` and those labels of `before` whose loss is not proven.

    A label of a source goes only when that source is settled; one of a rule when
    the rule could be evaluated, or is gone from the rules and these could all be read
    (`answered` is None, else it names those that could); one whose maker is not known
    when all this holds for every source and rule.
    """
    kept = dict(now)
    for key, label in before.items():
        if key in kept:
            continue
        maker = label.provenance
        if maker.source in unsettled:
            lost = False
        elif maker.rule:
            known = answered is None or maker.rule in answered
            lost = known and maker.rule not in unknown_rules
        elif maker.source:
            lost = True
        else:
            lost = not unsettled and not unknown_rules and answered is None
        if not lost:
            kept[key] = label
    return dict(sorted(kept.items()))


def read_back_labels(
    labels: Mapping[str, str],
    makers: Mapping[str, str],
    sources: Iterable[str],
) -> dict[str, Label]:
    """Turn published labels into remembered ones; the maker is found where possible.

    Args:
        labels: What was published.
        makers: The annotation `nfd.node.kubernetes.io/label-sources`: label → source,
            or `rule:<name>`.
        sources: Names of sources, whose labels begin with `<FEATURE_NS>/<name>-`.

    """
    prefixes = {f"{FEATURE_NS}/{name}-": name for name in sources}
    found = {}
    for key, value in labels.items():
        maker = makers.get(key, "")
        if maker.startswith("rule:"):
            provenance = Provenance("custom", rule=maker.removeprefix("rule:"))
        elif maker:
            provenance = Provenance(maker)
        else:
            owner = next((n for p, n in prefixes.items() if key.startswith(p)), "")
            provenance = Provenance(owner)
        found[key] = Label(key, value, provenance)
    return found


def read_back_features(
    features: Features, stale: Mapping[str, float], when: float
) -> dict[str, Remembered]:
    """Turn the features of an own NodeFeature into memory, source by source."""
    names = {key.partition(".")[0] for key in features}
    return {
        name: Remembered(
            features.only(k for k in features if k.partition(".")[0] == name),
            stale.get(name, when),
            here=False,
        )
        for name in sorted(names)
    }
