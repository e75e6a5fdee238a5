"""Every registered source keeps the promises of the source contract."""

import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from nfd.config.decode import decode, keys
from nfd.discovery import run_source
from nfd.features import Features
from nfd.hostroot import HostRoot, Recorder
from nfd.labels import key_problem, name_problem
from nfd.registry import installed
from nfd.source import LabelValue, Source, Watch

REGISTRY = installed()
RECORDED = sorted(
    p.name for p in (Path(__file__).parent.parent / "fixtures" / "hosts").glob("*/")
)


@pytest.fixture(params=REGISTRY.names)
def source(request: pytest.FixtureRequest) -> Source[Any]:
    return REGISTRY.load(request.param)


@pytest.fixture
def settings(source: Source[Any]) -> Any:
    return source.settings_class()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[HostRoot]:
    with HostRoot.open(str(tmp_path), live=False) as host:
        yield host


@pytest.fixture(params=RECORDED or ["none"])
def recorded(request: pytest.FixtureRequest, host_dir: Path) -> Iterator[HostRoot]:
    if not RECORDED:
        pytest.skip("no recorded hosts in fixtures/hosts")
    with HostRoot.open(str(host_dir / request.param), live=False) as host:
        yield host


def test_name_is_the_entry_point_and_fits_into_labels(source: Source[Any]) -> None:
    assert REGISTRY.load(source.name) is source
    assert name_problem(source.name) == ""
    assert source.name == source.name.lower()
    assert "-" not in source.name
    assert isinstance(source.on_by_default, bool)


def test_settings_have_documented_keys_and_defaults(
    source: Source[Any], settings: Any
) -> None:
    assert settings == source.settings_class()
    assert len(attrs.fields(source.settings_class)) == sum(
        "key" in field.metadata for field in attrs.fields(source.settings_class)
    )
    for key in keys(source.settings_class):
        assert key.help
        assert not key.path.startswith(".")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        settings.anything = 1


def test_settings_decode_from_their_own_defaults(
    source: Source[Any], settings: Any
) -> None:
    tree: dict[str, Any] = {}
    for key in keys(source.settings_class):
        *parents, last = key.path.split(".")
        level = tree
        for parent in parents:
            level = level.setdefault(parent, {})
        if key.default is not None:
            level[last] = key.default
    warnings: list[str] = []

    assert decode(source.settings_class, tree, warnings=warnings) == settings
    assert warnings == []


def test_features_and_labels_are_documented(source: Source[Any]) -> None:
    for spec in source.feature_specs:
        assert spec.key.startswith(source.name + ".")
        assert spec.key.count(".") == 1
        assert spec.kinds
        assert set(spec.kinds) <= {"flag", "attribute", "instance"}
        assert spec.help
    for label in source.label_specs:
        assert label.name
        assert label.help
    assert len({s.key for s in source.feature_specs}) == len(source.feature_specs)


def test_an_empty_host_is_no_failure(source: Source[Any], empty: HostRoot) -> None:
    result = run_source(empty, source)

    assert result.status in ("ok", "absent"), result.error
    assert result.features.unknown == {}


def test_before_a_discovery_there_are_no_labels(
    source: Source[Any], settings: Any
) -> None:
    assert source.labels(Features(), settings) == {}


def test_results_of_recorded_hosts(
    source: Source[Any], settings: Any, recorded: HostRoot
) -> None:
    result = run_source(recorded, source)

    assert result.status in ("ok", "absent"), result.error
    _check_features(source, result.features)
    _check_labels(source, result.features, source.labels(result.features, settings))


def _check_features(source: Source[Any], features: Features) -> None:
    documented = {spec.key: spec for spec in source.feature_specs}
    sets: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("flag", features.flags),
        ("attribute", features.attributes),
        ("instance", features.instances),
    )
    for kind, by_key in sets:
        for key, found in by_key.items():
            spec = documented[key]
            assert kind in spec.kinds
            names = (
                {name for instance in found for name in instance}
                if kind == "instance"
                else set(found)
            )
            if spec.elements is not None:
                assert names <= set(spec.elements)
    for key in features.unknown:
        assert key in documented
    assert Features.from_plain(features.to_plain()) == features


def _check_labels(
    source: Source[Any], features: Features, labels: Mapping[str, LabelValue | str]
) -> None:
    for name, made in labels.items():
        assert isinstance(made, LabelValue), f"{name}: no provenance"
        assert made.feature or made.because
        if made.feature:
            assert made.feature in features
        if source.prefix_labels:
            assert key_problem(f"{source.name}-{name}") == "" or "/" in name


def test_discovery_is_repeatable(source: Source[Any], recorded: HostRoot) -> None:
    first, second = run_source(recorded, source), run_source(recorded, source)

    assert first.features == second.features
    assert first.features.to_plain() == second.features.to_plain()


def test_labels_do_not_change_what_they_are_given(
    source: Source[Any], settings: Any, recorded: HostRoot
) -> None:
    features = run_source(recorded, source).features
    before = features.to_plain()

    source.labels(features, settings)
    source.why_not("nothing.of.this.name", features, settings)

    assert features.to_plain() == before


def test_why_not_answers_in_words(
    source: Source[Any], settings: Any, recorded: HostRoot
) -> None:
    features = run_source(recorded, source).features

    for name in (
        "",
        "x",
        "nothing.present",
        "a_b.c",
        "ünïcode",
        *settings_names(source),
    ):
        assert isinstance(source.why_not(name, features, settings), str)


def settings_names(source: Source[Any]) -> list[str]:
    return [label.name for label in source.label_specs]


def test_watches_are_well_formed(source: Source[Any], settings: Any) -> None:
    for watch in source.watch(settings):
        assert isinstance(watch, Watch)
        assert watch.kind in ("udev", "path")
        assert watch.target
        assert (watch.kind == "path") == watch.target.startswith("/")


def test_only_the_host_root_is_asked(
    source: Source[Any], recorded: HostRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a capture no source opens files or asks the machine by itself."""
    expected = run_source(recorded, source)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a source asked the running machine")

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr(os, "uname", refuse)

    assert run_source(recorded, source).features == expected.features


class BrokenTree:
    """Answers every question with an I/O error."""

    def __init__(self, number: int) -> None:
        self._number = number

    def _fail(self, path: str, *_: Any) -> Any:
        raise OSError(self._number, os.strerror(self._number), path)

    read = listdir = mode = readlink = open_dir = _fail

    def real_path(self, path: str) -> str:
        return path

    def close(self) -> None:
        pass


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_a_host_that_cannot_be_read_is_not_taken_for_empty(
    source: Source[Any], settings: Any, empty: HostRoot, number: int
) -> None:
    """Ignorance is no absence: the source fails, or names the sets as unknown."""
    if source.name == "fake":
        pytest.skip("reads nothing")
    broken: Any = BrokenTree(number)
    empty._tree = broken

    result = run_source(empty, source)

    assert result.status == "failed" or result.features.unknown
    assert source.labels(result.features, settings) == {}


def test_reads_are_attributed(source: Source[Any], host_dir: Path) -> None:
    if source.name == "fake" or not RECORDED:
        pytest.skip("reads nothing")
    recorder = Recorder()
    with HostRoot.open(
        str(host_dir / RECORDED[0]), live=False, record=recorder
    ) as host:
        run_source(host, source)

    assert recorder.paths_of(source.name)
