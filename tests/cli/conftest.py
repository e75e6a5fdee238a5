"""Runs commands in this process and returns status, output and complaints."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from nfd import registry
from nfd.cli import main
from tests import tiny


class Done(NamedTuple):
    status: int
    out: str
    err: str


Nfd = Callable[..., Done]


@pytest.fixture
def nfd(capsys: pytest.CaptureFixture[str]) -> Nfd:
    def run(*words: str) -> Done:
        try:
            status = main(words)
        except SystemExit as exit_:  # argparse ends the process
            status = int(exit_.code or 0)
        return Done(status, *capsys.readouterr())

    return run


@pytest.fixture
def tiny_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tiny sources be the installed ones."""
    found = tiny.registry(
        tiny.TinySource, tiny.OffSource, tiny.LoudSource, tiny.BrokenSource
    )
    monkeypatch.setattr(registry, "find_plugins", lambda _: found.plugins.values())


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Return a captured host on which the tiny source finds something."""
    folder = tmp_path / "host"
    tiny.host(folder, {"/etc/tiny": "hello\n"}).close()
    return str(folder)
