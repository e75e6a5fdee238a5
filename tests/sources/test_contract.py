"""Every registered source keeps the promises of nfd.source."""

import fnmatch
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from nfd import registry
from nfd.discovery import SourceResult, run_source
from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.source import LabelValue, Source
from tests.conftest import ROOT
from tests.golden.test_hosts import HOSTS

INSTALLED = registry.installed()
DOCS = ROOT / "docs" / "sources"


@pytest.fixture(params=INSTALLED.names)
def source(request: pytest.FixtureRequest) -> Source[Any]:
    return INSTALLED.load(request.param)


@pytest.fixture
def results(source: Source[Any], host_dir: Path) -> dict[str, SourceResult]:
    found = {}
    for name in HOSTS:
        with HostRoot.open(str(host_dir / name)) as host:
            found[name] = run_source(host, source)
    return found


def fields(source: Source[Any]) -> Iterator[Any]:
    yield from attrs.fields(source.settings_class)


def test_each_module_is_registered() -> None:
    folder = ROOT / "sources" / "nfd_sources"
    modules = {p.name.removesuffix(".py") for p in folder.iterdir()}

    assert {m for m in modules if not m.startswith(("_", "py.typed"))} == set(
        INSTALLED.names
    )


def test_settings_have_keys_help_and_defaults(source: Source[Any]) -> None:
    source.settings_class()
    for field in fields(source):
        assert re.fullmatch(r"[a-zA-Z]+(\.[a-zA-Z]+)*", field.metadata["key"])
        assert field.metadata["help"]


def test_features_are_declared(
    source: Source[Any], results: dict[str, SourceResult]
) -> None:
    specs = {spec.key: spec for spec in source.feature_specs}
    for name, result in results.items():
        assert result.status in ("ok", "absent"), (name, result.error)
        plain = result.features.to_plain()
        for part, kind in (
            ("flags", "flag"),
            ("attributes", "attribute"),
            ("instances", "instance"),
        ):
            for key, value in plain[part].items():
                assert kind in specs[key].kinds
                elements = (
                    value if kind != "instance" else {n for i in value for n in i}
                )

                assert specs[key].elements is None or (
                    set(elements) <= set(specs[key].elements or ())
                ), name


def test_labels_are_declared_and_say_why(
    source: Source[Any], results: dict[str, SourceResult]
) -> None:
    patterns = [re.sub(r"<[^>]+>", "*", spec.name) for spec in source.label_specs]
    settings = source.settings_class()
    for result in results.values():
        keys = result.features.keys()
        for name, value in source.labels(result.features, settings).items():
            assert any(fnmatch.fnmatchcase(name, p) for p in patterns), name
            assert isinstance(value, LabelValue)
            assert value.feature in keys or value.because


def test_labels_are_pure(source: Source[Any], results: dict[str, SourceResult]) -> None:
    settings = source.settings_class()
    for result in results.values():
        copy = Features.from_plain(result.features.to_plain())

        assert source.labels(copy, settings) == source.labels(result.features, settings)


def test_nothing_before_a_discovery(source: Source[Any]) -> None:
    assert not source.labels(Features(), source.settings_class())


@pytest.mark.parametrize("name", ["", ".", "present", "a.b.c", "\u00e4", "x" * 999])
def test_why_not_answers_anything(
    source: Source[Any], name: str, results: dict[str, SourceResult]
) -> None:
    settings = source.settings_class()
    for result in (*results.values(), SourceResult(source.name, "ok")):
        assert isinstance(source.why_not(name, result.features, settings), str)


def test_watch_names_folders_and_subsystems(source: Source[Any]) -> None:
    for watch in source.watch(source.settings_class()):
        assert watch.target
        assert (watch.kind == "path") == watch.target.startswith("/")


def test_documented(source: Source[Any]) -> None:
    text = (DOCS / f"{source.name}.md").read_text(encoding="utf-8")
    for key in (s.key for s in source.feature_specs):
        assert f"`{key}`" in text
    for spec in source.feature_specs:
        for element in spec.elements or ():
            assert f"`{element}`" in text, element
    for label in (s.name for s in source.label_specs):
        prefix = f"{source.name}-" if source.prefix_labels and "/" not in label else ""
        assert f"`{prefix}{label}`" in text
    for field in fields(source):
        assert f"`{field.metadata['key']}`" in text


@pytest.mark.parametrize("name", sorted({"cpu", "memory", "network", "pci", "usb"}))
def test_missing_sysfs_of_a_running_host_is_no_absence(
    name: str, tmp_path: Path
) -> None:
    """A mount that is missing tells nothing: labels must not go because of it."""
    source = INSTALLED.load(name)
    (tmp_path / "etc").mkdir()
    with HostRoot.open(str(tmp_path), live=True) as host:
        live = run_source(host, source)
    with HostRoot.open(str(tmp_path), live=False) as host:
        captured = run_source(host, source)

    assert live.status == "failed"
    assert "/sys/class is missing" in live.error
    assert captured.status != "failed"
