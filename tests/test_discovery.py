"""Sources are isolated and timed; labels are ordered, prefixed and checked."""

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from nfd.discovery import (
    Discovery,
    Plan,
    Runner,
    SourceResult,
    collect_labels,
    describe,
    discover,
    run_source,
)
from nfd.errors import NfdError
from nfd.features import Features
from nfd.hostroot import HostRoot, Recorder
from nfd.labels import Label, Provenance, Refusal, RuleLabels
from nfd.source import LabelValue, Source
from tests import tiny

NS = "feature.node.kubernetes.io"


def plan(*sources: Source[Any], **extra: Any) -> Plan:
    labels = extra.pop("label_sources", frozenset(s.name for s in sources))
    return Plan(sources, labels, **extra)


def scan(folder: Path, *sources: Source[Any], **extra: Any) -> Discovery:
    with tiny.host(folder, {"/etc/tiny": "hello\n"}) as host:
        return discover(host, plan(*sources, **extra))


def test_a_source_that_finds_something(tmp_path: Path) -> None:
    found = scan(tmp_path, tiny.TinySource())

    assert found.results["tiny"].status == "ok"
    assert found.features.attributes == {"tiny.found": {"text": "hello"}}
    assert {
        f"{NS}/tiny-one": Label(
            f"{NS}/tiny-one",
            "true",
            Provenance("tiny", "tiny.found", "one", because="named"),
        )
    } == found.labels
    assert found.refused == ()


def test_absent_is_not_failed(tmp_path: Path) -> None:
    with tiny.host(tmp_path) as host:
        found = discover(host, plan(tiny.TinySource()))

    assert found.results["tiny"].status == "absent"
    assert found.results["tiny"].error == "no /etc/tiny"
    assert found.failed == ()


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (tiny.BrokenSource, "RuntimeError: boom"),
        (tiny.ExitingSource, "SystemExit: 3"),
        (tiny.ForgingSource, "feature 'cpu.cpuid' does not begin with 'forging.'"),
        (tiny.BadLabelsSource, "labels: ValueError: no labels today"),
    ],
)
def test_a_failing_source_costs_only_itself(
    tmp_path: Path, source: type[Source[Any]], error: str
) -> None:
    found = scan(tmp_path, source(), tiny.TinySource())

    assert {f"{NS}/tiny-one"} == set(found.labels)
    assert ("failed", error) == (
        found.results[source.name].status,
        found.results[source.name].error,
    )


def test_labels_that_raise_keep_the_features(tmp_path: Path) -> None:
    found = scan(tmp_path, tiny.BadLabelsSource())

    assert {"badlabels.found"} == set(found.features.flags)


def test_features_of_a_failed_source_are_unknown(tmp_path: Path) -> None:
    """Rules over them are undecided: failed is not absent."""
    found = scan(tmp_path, tiny.BrokenSource())

    assert found.features.unknown == {"broken.found": "RuntimeError: boom"}


def test_broken_plugins_are_failed_sources(tmp_path: Path) -> None:
    found = scan(tmp_path, tiny.TinySource(), broken={"acme": "distribution x: no"})

    assert (
        SourceResult("acme", "failed", error="distribution x: no")
        == (found.results["acme"])
    )
    assert list(found.results) == ["acme", "tiny"]


def test_hanging_source_is_left_behind_and_not_started_again(tmp_path: Path) -> None:
    hanging = tiny.HangingSource()
    runner = Runner(timeout=0.05)
    with tiny.host(tmp_path, {"/etc/tiny": "x"}) as host:
        first = discover(host, plan(hanging, tiny.TinySource()), runner)
        second = discover(host, plan(hanging, tiny.TinySource()), runner)

        assert first.results["hanging"].error == "timed out after 0.05 s"
        assert (
            second.results["hanging"].error
        ) == "still hangs since a run that took over 0.05 s"
        for found in (first, second):
            assert found.results["tiny"].status == "ok"
            assert {"tiny.found"} == set(found.features.flags)
        assert hanging.runs == 1

        hanging.release.set()
        for thread in threading.enumerate():
            if thread.name == "nfd-sources":
                thread.join(10)
        third = discover(host, plan(hanging, tiny.TinySource()), runner)

    assert third.results["hanging"].status == "ok"
    assert hanging.runs == 2


def test_reads_are_recorded_for_their_source(tmp_path: Path) -> None:
    tiny.host(tmp_path, {"/etc/tiny": "x"}).close()
    recorder = Recorder()
    with HostRoot.open(str(tmp_path), live=False, record=recorder) as host:
        discover(host, plan(tiny.TinySource()))

    assert recorder.paths_of("tiny") == ["/etc/tiny"]


def test_run_source_uses_default_settings(tmp_path: Path) -> None:
    with tiny.host(tmp_path, {"/etc/tiny": "x"}) as host:
        result = run_source(host, tiny.TinySource())

    assert {"tiny.found": frozenset({"one"})} == result.features.flags


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(5, "Input/output error", "/sys/x"), "/sys/x: Input/output error"),
        (OSError(5, "Input/output error"), "[Errno 5] Input/output error"),
        (OSError("odd"), "OSError: odd"),
        (NfdError("plain"), "plain"),
        (NfdError(), "NfdError"),
        (KeyError("x"), "KeyError: 'x'"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_descriptions_of_errors(error: BaseException, text: str) -> None:
    assert text == describe(error)


# Labels: spec/worker.md sections 0.2, 0.3 and 7.1


class Fixed(tiny.TinySource):
    """Makes the labels it is told to."""

    def __init__(self, name: str, labels: Mapping[str, Any], priority: int = 0) -> None:
        self.__dict__.update(name=name, label_priority=priority)
        self.made = labels

    def labels(self, features: Features, settings: Any) -> Mapping[str, Any]:
        del features, settings
        return self.made


def collect(*sources: Source[Any], **extra: Any) -> tuple[dict[str, str], list[str]]:
    results = {
        s.name: SourceResult(s.name, "ok", Features.of(flags={f"{s.name}.x": ["x"]}))
        for s in sources
    }
    collected = collect_labels(plan(*sources, **extra), results)
    return (
        {key: label.value for key, label in collected.labels.items()},
        [f"{r.key}: {r.reason}" for r in collected.refused],
    )


def test_prefix_validity_and_whitelist() -> None:
    """The table of spec/worker.md section 7.1, "label prefix + whitelist"."""
    keys = (
        "testfeature1",
        "testfeature2",
        "test.ns/test",
        "test.ns/foo",
        "/no-ns-label",
        "invalid/test/feature",
    )
    source = Fixed("testSource", dict.fromkeys(keys, "true"))

    labels, refused = collect(source, label_whitelist="^test")

    assert [
        f"{NS}/testSource-testfeature1",
        f"{NS}/testSource-testfeature2",
        "test.ns/test",
    ] == list(labels)
    assert [text.partition(":")[0] for text in refused] == [
        "/no-ns-label",
        "invalid/test/feature",
        "test.ns/foo",
    ]


def test_whitelist_that_matches_nothing() -> None:
    assert collect(Fixed("fake", {"a": "b"}), label_whitelist=".*rdt.*")[0] == {}


@pytest.mark.parametrize("value", ["bad value!", "x" * 64, "-x", True, None, 3])
def test_invalid_values_are_refused_with_reason(value: Any) -> None:
    labels, refused = collect(Fixed("s", {"a": value, "b": ""}))

    assert {f"{NS}/s-b": ""} == labels
    assert [f"{NS}/s-a: the value "] == [text[: len(NS) + 16] for text in refused]


def test_later_sources_overwrite_and_say_so() -> None:
    first = Fixed("b", {"x.io/k": "b"})
    second = Fixed("a", {"x.io/k": "a"})
    third = Fixed("aa", {"x.io/k": "third"}, priority=20)

    labels, refused = collect(third, first, second)

    assert labels == {"x.io/k": "third"}
    assert refused == [
        "x.io/k: overwritten by source 'b'",
        "x.io/k: overwritten by source 'aa'",
    ]


def test_unselected_label_sources_make_none() -> None:
    source = Fixed("s", {"a": "1"})

    assert collect(source, label_sources=frozenset({"other"})) == ({}, [])


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (None, set()),
        (SourceResult("fixed", "absent"), set()),
        (SourceResult("fixed", "failed", error="x"), set()),
        (
            SourceResult("fixed", "failed", Features.of(flags={"fixed.x": ["y"]})),
            {f"{NS}/fixed-a"},
        ),
    ],
)
def test_failed_sources_make_labels_of_last_good_features(
    result: SourceResult | None, expected: set[str]
) -> None:
    source = Fixed("fixed", {"a": "1"})
    results = {} if result is None else {"fixed": result}

    assert expected == set(collect_labels(plan(source), results).labels)


@attrs.define
class Rules:
    name: str = "custom"
    label_priority: int = 10
    seen: Features | None = None

    def labels(self, features: Features) -> RuleLabels:
        self.seen = features
        made = Provenance("custom", rule="r")
        return RuleLabels(
            [Label("rule", "1", made), Label("x.io/k", "rule", made)],
            [Refusal("label", "y.io/z", "@a.b.c", "no such element", made)],
        )


def test_rules_run_between_sources_and_local() -> None:
    rules = Rules()
    chosen = frozenset({"low", "local", "custom"})
    low = Fixed("low", {"x.io/k": "low"})
    local = Fixed("local", {"rule": "2"}, priority=20)
    local.__dict__["prefix_labels"] = False

    labels, refused = collect(low, local, rules=rules, label_sources=chosen)

    assert labels == {"rule": "2", "x.io/k": "rule"}
    assert refused == [
        "y.io/z: no such element",
        "x.io/k: overwritten by source 'custom'",
        "rule: overwritten by source 'local'",
    ]
    assert rules.seen is not None
    assert rules.seen.keys() == ["local.x", "low.x"]


def test_rules_that_are_not_selected_do_not_run() -> None:
    rules = Rules()

    collect(Fixed("low", {}), rules=rules)

    assert rules.seen is None


def orders() -> Iterable[tuple[Source[Any], ...]]:
    sources = (tiny.TinySource(), tiny.BrokenSource(), tiny.LoudSource())
    return (sources, sources[::-1], sources[1:] + sources[:1])


def test_order_of_sources_does_not_matter(tmp_path: Path) -> None:
    plains = []
    for sources in orders():
        plain = scan(tmp_path, *sources).to_plain(features=True)
        for result in plain["sources"].values():
            del result["seconds"]
        plains.append(repr(plain))

    assert len(set(plains)) == 1


def test_plain_form(tmp_path: Path) -> None:
    found = scan(tmp_path, tiny.TinySource(), tiny.BrokenSource())

    plain = found.to_plain(features=True)

    assert {f"{NS}/tiny-one": "true"} == plain["labels"]
    assert list(plain["sources"]) == ["broken", "tiny"]
    assert {"status", "seconds", "error"} == set(plain["sources"]["broken"])
    assert {"status", "seconds"} == set(plain["sources"]["tiny"])
    assert found.features.to_plain() == plain["features"]
    assert "features" not in found.to_plain()


def test_label_values_may_be_text_or_label_value() -> None:
    labels, _ = collect(Fixed("s", {"a": LabelValue("1"), "b": "2"}))

    assert {f"{NS}/s-a": "1", f"{NS}/s-b": "2"} == labels
