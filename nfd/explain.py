"""Explains a label or a feature: what made it, or what is missing for it.

Pure: a discovery, its plan, and what the host root recorded go in.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import attrs

from nfd import evidence
from nfd.custom import CustomSource
from nfd.discovery import Discovery, Plan, describe
from nfd.features import Features
from nfd.hostroot import Recorder
from nfd.labels import FEATURE_NS, Label, key_problem
from nfd.source import Source

NEAREST = 5
CUTOFF = 0.6  # likeness, 1 is equal


@attrs.frozen(slots=True, kw_only=True)
class Explanation:
    """The answer about one key; `found` tells whether it is there.

    `facts` are (name, text) pairs in the order in which to tell them.
    """

    key: str
    kind: str  # "label" or "feature"
    found: bool
    facts: tuple[tuple[str, str], ...] = ()
    elements: tuple[str, ...] = ()
    files: tuple[evidence.FileRead, ...] = ()
    more_files: int = 0  # read too and not listed
    nearest: tuple[str, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return plain data for JSON; facts of one name become a list."""
        facts: dict[str, list[str]] = {}
        for name, text in self.facts:
            facts.setdefault(name, []).append(text)
        return {
            "key": self.key,
            "kind": self.kind,
            "found": self.found,
            "facts": facts,
            "elements": list(self.elements),
            "files": [
                {"path": f.path, "content": f.content, "error": f.error}
                for f in self.files
            ],
            "nearest": list(self.nearest),
        }


def explain(
    key: str, found: Discovery, plan: Plan, recorded: Recorder, available: Iterable[str]
) -> Explanation:
    """Explain `key`, a label with or without its prefix, or a feature.

    A feature is `pci.device`, an element of it `kernel.version.full`. `available` are
    the names of all registered sources.
    """
    label = found.labels.get(key) or found.labels.get(f"{FEATURE_NS}/{key}")
    if label is not None:
        return _label_there(label, found, plan, recorded)
    features = found.features
    feature, element = _split_feature(key, features, plan)
    if feature in features.keys():  # noqa: SIM118 - a method of ours
        return _feature_there(feature, element, features, recorded)
    if feature and not _writers(key, plan):
        return _feature_absent(feature, found, plan, recorded, available)
    return _label_absent(key, found, plan, recorded, tuple(available))


def _label_there(
    label: Label, found: Discovery, plan: Plan, recorded: Recorder
) -> Explanation:
    made = label.provenance
    facts = [("value", label.value), ("source", made.source)]
    facts += [
        (name, text)
        for name, text in (
            ("rule", made.rule),
            ("because", made.because),
            ("feature", made.feature),
            ("element", made.element),
        )
        if text
    ]
    facts += _unwanted(label.key, found)
    features = found.features
    tried = _tried(plan, features, made.rule)
    facts += tried
    elements: tuple[str, ...] = ()
    if made.feature and not tried:
        elements = tuple(_elements(features, made.feature, made.element))
    origin = made.feature.partition(".")[0] if made.feature else made.source
    files, more = evidence.files(recorded, origin, (made.element, label.value))
    return Explanation(
        key=label.key,
        kind="label",
        found=True,
        facts=tuple(facts),
        elements=elements,
        files=files,
        more_files=more,
    )


def _writers(key: str, plan: Plan) -> list[str]:
    """Name the worker rules that would make a label."""
    if not isinstance(plan.rules, CustomSource):
        return []
    return [rule.name for rule in plan.rules.rules if key in rule.labels]


def _tried(plan: Plan, features: Features, rule: str) -> list[tuple[str, str]]:
    """Tell what a worker rule found, term by term."""
    if not rule or not isinstance(plan.rules, CustomSource):
        return []
    return [("tried", line) for line in plan.rules.explain(rule, features)]


def _unwanted(key: str, found: Discovery) -> list[tuple[str, str]]:
    told = []
    for refusal in found.refused:
        if refusal.key != key:
            continue
        made = refusal.provenance
        rule = f" (rule {made.rule})" if made.rule else ""
        what = "refused"
        if refusal.reason.startswith("overwritten"):
            what = "also wanted"
        told.append(
            (what, f"{refusal.value!r} by source {made.source}{rule}: {refusal.reason}")
        )
    return told


def _feature_there(
    feature: str, element: str, features: Features, recorded: Recorder
) -> Explanation:
    source = feature.partition(".")[0]
    kinds = [
        f"{kind} ({len(sets[feature])})"
        for kind, sets in (
            ("flag", features.flags),
            ("attribute", features.attributes),
            ("instance", features.instances),
        )
        if feature in sets
    ]
    facts = [("source", source), ("kind", ", ".join(kinds))]
    if feature in features.unknown:
        facts.append(("incomplete", features.unknown[feature]))
    facts += _notes(features, feature)
    elements = tuple(_elements(features, feature, element))
    key = feature
    if element:
        key = f"{feature}.{element}"
        if not elements:
            names = (
                *features.flags.get(feature, ()),
                *features.attributes.get(feature, {}),
            )
            facts.append(("missing", f"{feature} has no element {element!r}"))
            files, more = evidence.files(recorded, source, (element,), absent=True)
            return Explanation(
                key=key,
                kind="feature",
                found=False,
                facts=tuple(facts),
                files=files,
                more_files=more,
                nearest=_nearest(element, names),
            )
    value = features.attributes.get(feature, {}).get(element, "")
    files, more = evidence.files(recorded, source, (element, value))
    return Explanation(
        key=key,
        kind="feature",
        found=True,
        facts=tuple(facts),
        elements=elements,
        files=files,
        more_files=more,
    )


def _feature_absent(
    feature: str,
    found: Discovery,
    plan: Plan,
    recorded: Recorder,
    available: Iterable[str],
) -> Explanation:
    source = feature.partition(".")[0]
    features = found.features
    facts = _source_facts(source, found, plan, available, labels=False)
    if not _is_settled(facts):
        if feature in features.unknown:
            facts.append(("unknown", features.unknown[feature]))
        elif any(s.key == feature for p in plan.sources for s in p.feature_specs):
            facts.append(("missing", "the host has nothing of this kind"))
        else:
            facts.append(("missing", f"source {source} has no such feature"))
    facts += _notes(features, feature)
    facts += [
        ("documented as", s.help)
        for p in plan.sources
        for s in p.feature_specs
        if s.key == feature
    ]
    names = {s.key for p in plan.sources for s in p.feature_specs}
    names.update(features.keys())
    files, more = evidence.files(recorded, source, (), absent=True)
    return Explanation(
        key=feature,
        kind="feature",
        found=False,
        facts=tuple(facts),
        files=files,
        more_files=more,
        nearest=_nearest(feature, names - {feature}),
    )


def _label_absent(
    key: str,
    found: Discovery,
    plan: Plan,
    recorded: Recorder,
    available: tuple[str, ...],
) -> Explanation:
    full = key
    name = key.removeprefix(FEATURE_NS + "/")
    maker = max((n for n in available if name.startswith(n + "-")), key=len, default="")
    if maker and "/" not in key:
        full = f"{FEATURE_NS}/{key}"
    maker = maker or _documented_maker(key, plan)
    facts = _unwanted(full, found) or _unwanted(key, found)
    for rule in _writers(name, plan):
        facts += _tried(plan, found.features, rule)
    problem = key_problem(full)
    if problem:
        facts.append(("invalid key", problem))
    files: tuple[evidence.FileRead, ...] = ()
    more = 0
    if maker:
        facts += _source_facts(maker, found, plan, available, labels=True)
        source = next((s for s in plan.sources if s.name == maker), None)
        if source is not None and not _is_settled(facts):
            reason = _why_not(source, name.removeprefix(maker + "-"), found, plan)
            facts.append(("missing", reason or "the source found no reason to make it"))
        result = found.results.get(maker)
        if result is not None and result.status == "ok":
            facts += [
                ("unknown", f"{feature}: {why}")
                for feature, why in sorted(result.features.unknown.items())
            ]
        files, more = evidence.files(recorded, maker, _places(facts), absent=True)
    elif "/" in key and not key.startswith(FEATURE_NS + "/"):
        facts.append(
            ("missing", "no source or rule makes this key; rules and features.d could")
        )
    elif not facts:
        facts.append(
            (
                "missing",
                "no source has this prefix (known: " + ", ".join(available) + "); "
                "rules and features.d could make it",
            )
        )
    if not maker:
        facts += _unprefixed(name, found, plan)
    return Explanation(
        key=full,
        kind="label",
        found=False,
        facts=tuple(facts),
        files=files,
        more_files=more,
        nearest=_nearest(full, found.labels),
    )


def _documented_maker(key: str, plan: Plan) -> str:
    """Return the source that documents a key of another namespace, "" for none."""
    for source in plan.sources:
        for spec in source.label_specs:
            namespace, slash, _ = spec.name.partition("/")
            if slash and "<" not in namespace:
                pattern = re.sub("<[^>]*>", ".+", re.escape(spec.name))
                if re.fullmatch(pattern, key):
                    return source.name
    return ""


def _unprefixed(name: str, found: Discovery, plan: Plan) -> list[tuple[str, str]]:
    """Ask the sources that add no prefix (features.d); any key could be theirs."""
    reasons = (
        (s.name, _why_not(s, name, found, plan))
        for s in plan.sources
        if not s.prefix_labels and s.name in found.results
    )
    return [(source, reason) for source, reason in reasons if reason]


def _is_settled(facts: Iterable[tuple[str, str]]) -> bool:
    """Tell whether the facts already say why a source made nothing."""
    return any(
        name in ("refused", "failed", "absent", "not selected", "not installed")
        for name, _ in facts
    )


def _places(facts: Iterable[tuple[str, str]]) -> list[str]:
    """Find words in what is missing that may name files: addresses, paths, numbers."""
    words = (
        w.strip(",;:()") for n, said in facts if n == "missing" for w in said.split()
    )
    return [word for word in words if re.search(r"[:/]|\d", word)]


def _source_facts(
    name: str, found: Discovery, plan: Plan, available: Iterable[str], *, labels: bool
) -> list[tuple[str, str]]:
    facts = [("source", name)]
    result = found.results.get(name)
    if name not in available:
        facts.append(("not installed", f"there is no source {name!r}"))
    elif result is None:
        facts.append(
            ("not selected", f"add {name!r} to --sources or core.featureSources")
        )
    elif result.status != "ok":
        facts.append((result.status, result.error))
    elif labels and name not in plan.label_sources:
        facts.append(
            ("not selected", f"add {name!r} to --label-sources or core.labelSources")
        )
    return facts


def _why_not(source: Source[Any], name: str, found: Discovery, plan: Plan) -> str:
    features = found.results[source.name].features
    try:
        return source.why_not(name, features, plan.settings_of(source))
    except Exception as error:  # noqa: BLE001 - a plug-in costs only itself
        return f"why_not raised {describe(error)}"


def _split_feature(key: str, features: Features, plan: Plan) -> tuple[str, str]:
    """Split a key into feature and element; ("", "") when it is no feature's."""
    known = {s.key for p in plan.sources for s in p.feature_specs}
    known.update(features.keys())
    known.update(features.unknown)
    if key in known:
        return key, ""
    for feature in sorted(known, key=len, reverse=True):
        if key.startswith((feature + ".", feature + "[")):
            return feature, key[len(feature) + 1 :].rstrip("]")
    parts = key.split(".")
    if len(parts) == 2 and "/" not in key and "-" not in parts[0]:
        return key, ""
    return "", ""


def _elements(features: Features, feature: str, element: str) -> Iterable[str]:
    """Yield elements as text: those called `element`, or all."""
    for name in sorted(features.flags.get(feature, ())):
        if element in ("", name):
            yield name
    for name, value in sorted(features.attributes.get(feature, {}).items()):
        if element in ("", name):
            yield f"{name}={value}"
    for index, instance in enumerate(features.instances.get(feature, ())):
        if not element or element == str(index) or element in instance.values():
            yield " ".join(f"{n}={v}" for n, v in sorted(instance.items()))


def _notes(features: Features, feature: str) -> list[tuple[str, str]]:
    return [
        ("left out", f"{key.removeprefix(feature + '/')}: {reason}")
        for key, reason in sorted(features.notes.items())
        if key.startswith(feature + "/")
    ]


def _nearest(key: str, known: Iterable[str]) -> tuple[str, ...]:
    """Find the keys most like `key`; the usual prefix does not count as likeness."""
    short = {name.removeprefix(FEATURE_NS + "/"): name for name in known}
    near = get_close_matches(
        key.removeprefix(FEATURE_NS + "/"), short, n=NEAREST, cutoff=CUTOFF
    )
    return tuple(short[name] for name in near)
