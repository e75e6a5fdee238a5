"""What the core relies on holds for every registered source.

That features, labels and settings are declared and documented is tested beside the
sources, in `tests/sources/test_contract.py`.
"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from nfd.config.decode import decode, keys
from nfd.discovery import run_source
from nfd.features import Features
from nfd.hostroot import HostRoot, Recorder
from nfd.labels import name_problem
from nfd.registry import installed
from nfd.source import Source

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


def test_an_empty_host_is_no_failure(source: Source[Any], empty: HostRoot) -> None:
    result = run_source(empty, source)

    assert result.status in ("ok", "absent"), result.error
    assert result.features.unknown == {}


def test_discovery_is_repeatable(source: Source[Any], recorded: HostRoot) -> None:
    first, second = run_source(recorded, source), run_source(recorded, source)

    assert first.features == second.features
    assert first.features.to_plain() == second.features.to_plain()
    assert Features.from_plain(first.features.to_plain()) == first.features


def test_labels_do_not_change_what_they_are_given(
    source: Source[Any], settings: Any, recorded: HostRoot
) -> None:
    features = run_source(recorded, source).features
    before = features.to_plain()

    source.labels(features, settings)
    source.why_not("nothing.of.this.name", features, settings)

    assert features.to_plain() == before


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
