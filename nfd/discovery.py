"""Runs sources on a host, isolated and timed, and collects the labels they make.

`discover` is the whole: results per source, labels, refusals. The worker keeps a
`Runner`, replaces failed results by their last good ones and calls `collect_labels`,
which is pure, itself. Source: spec/worker.md sections 0.2 and 0.3.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import attrs

from nfd.features import Features, merge
from nfd.hostroot import HostRoot
from nfd.labels import (
    FEATURE_NS,
    Label,
    Provenance,
    Refusal,
    RuleLabels,
    key_problem,
    split_key,
    value_problem,
)
from nfd.runner import (
    DEFAULT_TIMEOUT,
    Runner,
    SourceResult,
    Status,
    describe,
    failure,
    run_source,
)
from nfd.source import LabelValue, Source

__all__ = [  # the runner's names belong to this module's interface
    "DEFAULT_TIMEOUT",
    "Collected",
    "Discovery",
    "LabelRules",
    "Plan",
    "Runner",
    "SourceResult",
    "Status",
    "assemble",
    "collect_labels",
    "describe",
    "discover",
    "failure",
    "run_source",
]


class LabelRules(Protocol):
    """The label source over all features: `nfd.custom.CustomSource`."""

    @property
    def name(self) -> str:
        """The word for it in `core.labelSources`."""
        ...

    @property
    def label_priority(self) -> int:
        """As `Source.label_priority`."""
        ...

    def labels(self, features: Features) -> RuleLabels:
        """Return the wanted labels, keys as they are, and what came of the rules."""
        ...


class Plan(NamedTuple):
    """What a discovery runs: loaded sources, whose labels count, and settings.

    `broken` holds selected sources that could not be loaded, with the reason.
    """

    sources: tuple[Source[Any], ...]
    label_sources: frozenset[str]
    settings: Mapping[str, Any] = MappingProxyType({})
    label_whitelist: str = ""  # RE2, searched in the name part of each key
    rules: LabelRules | None = None
    broken: Mapping[str, str] = MappingProxyType({})

    def settings_of(self, source: Source[Any]) -> Any:
        """Return the settings of a source, its defaults when none were given."""
        if source.name in self.settings:
            return self.settings[source.name]
        return source.settings_class()


class Collected(NamedTuple):
    """Labels by key; what was refused; label sources that raised, with the error.

    `unknown_rules` and `answered` are as in `RuleLabels`.
    """

    labels: Mapping[str, Label]
    refused: tuple[Refusal, ...] = ()
    failed: Mapping[str, str] = MappingProxyType({})
    unknown_rules: frozenset[str] = frozenset()
    answered: frozenset[str] | None = None


@attrs.frozen(slots=True)
class Discovery:
    """All that one discovery found out about a host.

    `refused` tells which labels and rules came to nothing and why, `warnings` what
    is odd about the configuration and the plug-ins.
    """

    results: Mapping[str, SourceResult]
    labels: Mapping[str, Label]
    refused: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def features(self) -> Features:
        """The features of all sources together."""
        return merge(r.features for r in self.results.values())

    @property
    def failed(self) -> tuple[SourceResult, ...]:
        """The sources that failed, by name."""
        return tuple(r for r in self.results.values() if r.status == "failed")

    def to_plain(self, *, features: bool = False) -> dict[str, Any]:
        """Return sorted plain maps: `labels`, `sources` and, if asked, `features`."""
        plain: dict[str, Any] = {
            "labels": {key: label.value for key, label in sorted(self.labels.items())},
            "sources": {n: r.to_plain() for n, r in sorted(self.results.items())},
        }
        if features:
            plain["features"] = self.features.to_plain()
        return plain


def collect_labels(plan: Plan, results: Mapping[str, SourceResult]) -> Collected:
    """Ask the label sources for labels of `results` and check each one.

    Sources come in the order of (priority, name) and later ones overwrite. A source
    without a result, or with neither success nor features, makes no labels.
    """
    labels: dict[str, Label] = {}
    refused: list[Refusal] = []
    failed: dict[str, str] = {}
    of_rules = RuleLabels([])
    allowed = _whitelist(plan.label_whitelist)
    makers: list[Source[Any] | LabelRules] = [
        s for s in plan.sources if s.name in plan.label_sources
    ]
    if plan.rules is not None and plan.rules.name in plan.label_sources:
        makers.append(plan.rules)
    for maker in sorted(makers, key=lambda m: (m.label_priority, m.name)):
        try:
            if isinstance(maker, Source):
                wanted = _source_labels(maker, results.get(maker.name), plan)
            else:
                everything = merge(r.features for r in results.values())
                of_rules = maker.labels(everything)
                wanted = of_rules.labels
                refused += of_rules.refused
        except Exception as error:  # noqa: BLE001 - a plug-in costs only itself
            failed[maker.name] = f"labels: {describe(error)}"
            continue
        for label in wanted:
            problem = _label_problem(label, allowed)
            if problem:
                refused.append(_refusal(label, problem))
                continue
            before = labels.get(label.key)
            if before is not None:
                refused.append(
                    _refusal(before, f"overwritten by source {maker.name!r}")
                )
            labels[label.key] = label
    return Collected(
        dict(sorted(labels.items())),
        tuple(refused),
        failed,
        of_rules.unknown_rules,
        of_rules.answered,
    )


def _source_labels(
    source: Source[Any], result: SourceResult | None, plan: Plan
) -> list[Label]:
    if result is None or (result.status != "ok" and not result.features.keys()):
        return []
    made = source.labels(result.features, plan.settings_of(source))
    labels = []
    for key, value in sorted(made.items()):
        full = key
        if source.prefix_labels and "/" not in key:
            full = f"{FEATURE_NS}/{source.name}-{key}"
        if isinstance(value, LabelValue):
            provenance = Provenance(
                source.name, value.feature, value.element, because=value.because
            )
            value = value.value  # noqa: PLW2901 - unwrapped
        else:
            provenance = Provenance(source.name)
        labels.append(Label(full, value, provenance))
    return labels


class _Pattern(Protocol):
    def search(self, text: str, /) -> bool: ...


def _whitelist(pattern: str) -> _Pattern | None:
    if not pattern:
        return None
    from nfd import regex  # noqa: PLC0415 - RE2 is loaded only for a whitelist

    return regex.compile(pattern)


def _label_problem(label: Label, allowed: _Pattern | None) -> str:
    problem = key_problem(label.key)
    if problem:
        return problem
    if not isinstance(label.value, str):
        return f"the value is {type(label.value).__name__}, not text"
    problem = value_problem(label.value)
    if problem:
        return problem
    if allowed is not None and not allowed.search(split_key(label.key)[1]):
        return "the name does not match core.labelWhiteList"
    return ""


def _refusal(label: Label, reason: str) -> Refusal:
    return Refusal("label", label.key, label.value, reason, label.provenance)


def discover(host: HostRoot, plan: Plan, runner: Runner | None = None) -> Discovery:
    """Run the sources of `plan` on `host` and collect their labels. Raises nothing.

    A source whose labels raise is *failed* too, and keeps its features.
    """
    results = (runner or Runner()).run(
        host, plan.sources, {s.name: plan.settings_of(s) for s in plan.sources}
    )
    for name, error in plan.broken.items():
        results[name] = SourceResult(name, "failed", error=error)
    return assemble(results, collect_labels(plan, results))


def assemble(results: Mapping[str, SourceResult], collected: Collected) -> Discovery:
    """Put results and labels together; sources whose labels raised become failed."""
    marked = {
        name: attrs.evolve(result, status="failed", error=collected.failed[name])
        if name in collected.failed
        else result
        for name, result in sorted(results.items())
    }
    return Discovery(marked, collected.labels, collected.refused)
