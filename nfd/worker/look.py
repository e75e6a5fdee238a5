"""One pass of the worker: look at the host, complete from memory, make labels.

Reads the host through its HostRoot; publishes nothing.
"""

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from nfd.config.worker import WorkerConfig
from nfd.discovery import Plan, Runner, SourceResult, collect_labels
from nfd.features import Features, merge
from nfd.hostroot import HostRoot
from nfd.labels import Label, Refusal
from nfd.library import make_plan
from nfd.registry import Registry
from nfd.source import Watch
from nfd.worker.memory import Remembered, recall, retain


@attrs.frozen(slots=True)
class Seen:
    """What a pass found, and how sure it is.

    `stale` maps sources that failed to the time of their last good discovery, in
    seconds since the epoch. `unsettled` names sources that have not completed a
    discovery in this process.
    """

    features: Features
    labels: Mapping[str, Label]
    results: Mapping[str, SourceResult] = attrs.field(factory=dict)
    refused: tuple[Refusal, ...] = ()
    stale: Mapping[str, float] = attrs.field(factory=dict)
    unsettled: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()  # labels kept for want of proof

    @property
    def failed(self) -> Mapping[str, str]:
        """The sources that failed in this pass, with the error."""
        return {n: r.error for n, r in self.results.items() if r.status == "failed"}


class Looker:
    """Looks at one host again and again and remembers what it knew."""

    def __init__(
        self, host: HostRoot, registry: Registry, config: WorkerConfig
    ) -> None:
        self._host = host
        self._registry = registry
        self._runner = Runner()
        self._memory: dict[str, Remembered] = {}
        self._last: dict[str, SourceResult] = {}
        self._labels: Mapping[str, Label] = {}
        self.warnings: tuple[str, ...] = ()
        self._before: Plan | None = None
        self.configure(config)

    def configure(self, config: WorkerConfig) -> None:
        """Take in a configuration and the rule files of custom.d, read afresh.

        Raises:
            ConfigError: A rule of the configuration is wrong; the old one stays.

        """
        plan, warnings = make_plan(
            self._registry, self._host, config, before=self._before
        )
        self._plan = self._before = plan
        self.warnings = warnings
        self._stale_limit = config.core.stale_limit.seconds or None
        gone = self._last.keys() - {s.name for s in plan.sources} - plan.broken.keys()
        for name in gone:
            self._last.pop(name, None)
            self._memory.pop(name, None)

    @property
    def plan(self) -> Plan:
        """What a pass runs."""
        return self._plan

    @property
    def watches(self) -> dict[str, tuple[Watch, ...]]:
        """What each source asks to be woken by."""
        plan = self._plan
        return {s.name: s.watch(plan.settings_of(s)) for s in plan.sources}

    def remember(
        self, memory: Mapping[str, Remembered], labels: Mapping[str, Label]
    ) -> None:
        """Take in what an earlier process published; this process knows better."""
        self._memory = {**memory, **self._memory}
        self._labels = {**labels, **self._labels}

    def look(self, now: float, only: Collection[str] | None = None) -> Seen:
        """Run the sources, or only those named, and make labels of all results.

        Raises nothing that a source does.
        """
        plan = self._plan
        sources = [s for s in plan.sources if only is None or s.name in only]
        settings = {s.name: plan.settings_of(s) for s in sources}
        found = dict(self._runner.run(self._host, sources, settings))
        for name, error in plan.broken.items():
            found[name] = SourceResult(name, "failed", error=error)
        self._last |= found
        known = {s.name: tuple(f.key for f in s.feature_specs) for s in plan.sources}
        recalled = recall(
            self._last,
            self._memory,
            known_sets=known,
            now=now,
            stale_limit=self._stale_limit,
        )
        self._memory = dict(recalled.memory)
        collected = collect_labels(plan, recalled.results)
        unsettled = recalled.unsettled | collected.failed.keys()
        labels = retain(
            self._labels,
            collected.labels,
            unsettled=unsettled,
            unknown_rules=collected.unknown_rules,
            answered=collected.answered,
        )
        self._labels = labels
        return Seen(
            merge(r.features for r in recalled.results.values()),
            labels,
            recalled.results,
            collected.refused,
            recalled.stale,
            unsettled,
            frozenset(labels.keys() - collected.labels.keys()),
        )


def published(features: Features, patterns: Collection[str]) -> Features:
    """Leave out what `core.noPublishFeatures` names: exact keys, or `prefix*`."""
    if not patterns:
        return features
    return features.only(
        k
        for k in {*features, *features.unknown}
        if not any(_matches(k, p) for p in patterns)
    )


def allowed(features: Features, patterns: Collection[str]) -> Features:
    """Leave only what `core.publishFeatures` names; everything where it is empty."""
    if not patterns:
        return features
    return features.only(
        k
        for k in {*features, *features.unknown}
        if any(_matches(k, p) for p in patterns)
    )


def unmatched(features: Features, patterns: Collection[str]) -> list[str]:
    """Return the entries of `core.noPublishFeatures` that name nothing."""
    return [p for p in patterns if not any(_matches(k, p) for k in features)]


def _matches(key: str, pattern: str) -> bool:
    if pattern.endswith("*"):
        return key.startswith(pattern[:-1])
    return key == pattern


def summary(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what changed between two label maps: added, changed, removed keys."""
    changes = {
        "added": sorted(now.keys() - before.keys()),
        "changed": sorted(k for k in now.keys() & before.keys() if now[k] != before[k]),
        "removed": sorted(before.keys() - now.keys()),
    }
    return {how: keys for how, keys in changes.items() if keys}
