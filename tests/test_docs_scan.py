"""The manual names every option and key, and its examples run."""

import argparse
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import nfd
from nfd.cli import COMMANDS, main
from nfd.config.decode import keys
from nfd.config.goyaml import load
from nfd.config.worker import CoreConfig
from nfd.registry import Plugin, Registry
from tests import tiny
from tests.conftest import ROOT

DOCS = ROOT / "docs"
NAMES = ("scan", "explain", "sources", "diff", "export", "version")


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", page(name), re.DOTALL | re.MULTILINE
    )


def options(name: str) -> Iterator[str]:
    parser = argparse.ArgumentParser()
    subparsers: Any = parser.add_subparsers()
    import_module(COMMANDS[name][0]).add_parser(subparsers)
    for action in subparsers.choices[name]._actions:
        if not isinstance(action, argparse._HelpAction):
            yield from action.option_strings


@pytest.mark.parametrize("name", NAMES)
def test_every_command_and_option_is_documented(name: str) -> None:
    text = page("cli.md")

    assert f"## nfd {name}\n" in text
    for option in options(name):
        assert re.search(rf"`{re.escape(option)}[` ]", text), option


def test_output_in_the_manual_is_real(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    shown = re.findall(
        r"^    \$ nfd (.*)\n((?:    .*\n)+)", page("cli.md"), re.MULTILINE
    )
    assert shown
    for words, expected in shown:
        main(words.split())

        assert capsys.readouterr().out == textwrap.dedent(expected)


def test_every_key_is_documented() -> None:
    text = page("configuration.md")
    for key in keys(CoreConfig):
        assert f"`core.{key.path}`" in text, key.path


def test_example_of_the_configuration(host_dir: Path) -> None:
    (example,) = blocks("configuration.md", "yaml")
    found = nfd.scan(host_dir / "gpu-server-a100", config=load(example))

    assert found.warnings == ()
    assert "example.com/gpu" not in found.labels  # the white list of the example
    assert "feature.node.kubernetes.io/pci-10de.present" in found.labels


@pytest.mark.parametrize("number", [0, 1])
def test_examples_of_the_library(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)

    exec(compile(blocks("library.md", "python")[number], "library.md", "exec"), {})

    assert capsys.readouterr().out


def test_the_source_of_the_manual_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nfd_watchdog.py").write_text(
        blocks("writing-a-source.md", "python")[0]
    )
    monkeypatch.syspath_prepend(tmp_path)
    (entry,) = re.findall(
        r'^watchdog = "(.*)"$', page("writing-a-source.md"), re.MULTILINE
    )
    registry = Registry([Plugin("watchdog", entry, "nfd-watchdog", "1")])
    root = tmp_path / "host"

    with tiny.host(
        root, {"/sys/class/watchdog/watchdog0/identity": "iTCO_wdt"}
    ) as host:
        found = nfd.scan(host, registry=registry)
    with tiny.host(root, {"/sys/class/watchdog/watchdog0/identity": "softdog"}) as host:
        ignored = nfd.scan(host, registry=registry)

    assert list(found.labels) == ["feature.node.kubernetes.io/watchdog-present"]
    assert list(ignored.labels) == []
    assert found.results["watchdog"].status == "ok"
