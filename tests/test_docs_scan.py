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
from nfd.cli.goflags import KLOG
from nfd.config.decode import keys
from nfd.config.goyaml import load
from nfd.config.worker import CoreConfig
from nfd.registry import Plugin, Registry
from tests import tiny
from tests.conftest import ROOT

DOCS = ROOT / "docs"
TEXTS = [path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")]


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", page(name), re.DOTALL | re.MULTILINE
    )


def options(
    parser: argparse.ArgumentParser, name: str
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield command and spellings of the options of a parser and those below it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, below in action.choices.items():
                yield from options(below, f"{name} {word}")
        elif action.option_strings and not isinstance(action, argparse._HelpAction):
            yield name, tuple(action.option_strings)


def all_options() -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in COMMANDS:
        module = import_module(COMMANDS[name][0])
        if not hasattr(module, "main"):
            subparsers: Any = argparse.ArgumentParser().add_subparsers()
            module.add_parser(subparsers)
            yield from options(subparsers.choices[name], name)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    assert any(f"nfd {name}" in text or f"nfd-{name}" in text for text in TEXTS)


@pytest.mark.parametrize(("name", "spellings"), list(all_options()))
def test_every_option_is_documented(name: str, spellings: tuple[str, ...]) -> None:
    """On a page that has the command, or as one that commands share."""
    (shared,) = re.findall(
        r"^## Options that (.*?)^##", page("cli.md"), re.MULTILINE | re.DOTALL
    )
    assert any(
        re.search(rf"(?<![\w-]){option}(?![\w-])", text)
        for text in (shared, *(t for t in TEXTS if f"nfd {name}" in t))
        for option in spellings
    )


@pytest.mark.parametrize("name", ["worker", "gfd", "master", "gc"])
def test_every_flag_is_documented(name: str) -> None:
    """Those of klog count as a group."""
    if name in ("master", "gc") and not (DOCS / "master.md").exists():
        pytest.skip("there is no page about the master yet")
    flags = import_module(f"nfd.cli.{name}").FLAGS
    missing = [
        flag.name
        for flag in getattr(flags, "flags", flags)
        if flag not in KLOG
        and not any(
            re.search(rf"(?<![\w-])--?{re.escape(flag.name)}(?![\w-])", text)
            for text in TEXTS
        )
    ]

    assert missing == []


def test_every_metric_is_documented() -> None:
    named = {
        name
        for path in (ROOT / "nfd").rglob("*.py")
        for name in re.findall(r'"(nfd_[a-z_]+)"', path.read_text(encoding="utf-8"))
    }
    if not (DOCS / "master.md").exists():
        named = {name for name in named if name.startswith("nfd_worker_")}

    assert named
    assert [name for name in sorted(named) if f"`{name}" not in "".join(TEXTS)] == []


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = re.findall(
        r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    pages = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]

    assert sorted(pages) == sorted(listed)


def test_output_in_the_manual_is_real(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    shown = re.findall(
        r"^    \$ nfd (.*)\n((?:    .*\n)+)",
        page("cli.md") + page("index.md"),
        re.MULTILINE,
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
