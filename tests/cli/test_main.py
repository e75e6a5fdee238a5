"""Dispatch: help, mistakes, exit statuses, lean start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nfd._version import __version__
from nfd.cli import COMMANDS
from tests.cli.conftest import Nfd

HEAVY = (
    "argparse",
    "ast",
    "dis",
    "gettext",
    "hashlib",
    "importlib.metadata",
    "json",
    "kubernetes",
    "locale",
    "logging",
    "nfd.config.worker",
    "nfd.rules",
    "prometheus_client",
    "pynvml",
    "pyudev",
    "re2",
    "rich",
    "shutil",
    "structlog",
    "urllib3",
    "yaml",
)


@pytest.mark.parametrize("words", [["version"], ["--version"]])
def test_version(nfd: Nfd, words: list[str]) -> None:
    assert nfd(*words) == (0, f"nfd {__version__}\n", "")


def test_help_lists_every_command(nfd: Nfd) -> None:
    done = nfd("--help")

    assert done.status == 0
    for name, (_, line) in COMMANDS.items():
        assert name in done.out
        assert line.split()[0] in done.out


def test_no_command_is_wrong_use(nfd: Nfd) -> None:
    done = nfd()

    assert done.status == 2
    assert "usage: nfd" in done.out + done.err


def test_unknown_command_names_the_nearest(nfd: Nfd) -> None:
    assert nfd("scna") == (
        2,
        "",
        "nfd: error: there is no command 'scna', did you mean 'scan'?\n",
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(nfd: Nfd, name: str) -> None:
    """Also when other commands have been imported into this process."""
    done = nfd(name, "--help")

    assert done.status == 0
    assert "usage" in (done.out + done.err).lower()


@pytest.mark.parametrize(
    "name", ["scan", "explain", "sources", "capture", "diff", "export", "rules"]
)
def test_every_command_shows_examples(nfd: Nfd, name: str) -> None:
    done = nfd(name, "--help")

    assert done.status == 0
    assert "examples:" in done.out
    assert f"nfd {name}" in done.out


@pytest.mark.parametrize(
    "words",
    [
        ["scan", "--no-such-option"],
        ["scan", "-o", "xml"],
        ["scan", "--timeout", "0"],
        ["scan", "--live", "maybe"],
        ["explain"],
        ["export", "everything"],
        ["diff", "one"],
    ],
)
def test_wrong_use_is_two(nfd: Nfd, words: list[str]) -> None:
    done = nfd(*words)

    assert done.status == 2
    assert done.out == ""
    assert "usage: nfd" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ["scan", "--root", "/no/such/folder"],
        ["scan", "--config", "/no/such/file"],
        ["scan", "--options", "{"],
        ["diff", "/no/such.json", "/"],
    ],
)
def test_failure_is_one_line_and_one(nfd: Nfd, words: list[str]) -> None:
    done = nfd(*words)

    assert done.status == 1
    assert done.out == ""
    assert done.err.startswith("nfd: error: ")
    assert done.err.count("\n") == 1


def _python(code: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **env},
    )


def test_a_scan_imports_nothing_heavy(host_dir: Path) -> None:
    """The budget of DESIGN section 7 stands on this."""
    code = (
        "import sys; from nfd.cli import main\n"
        "main(['scan', '-o', 'json', '--root', sys.argv[1]])\n"
        f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    ).replace("sys.argv[1]", repr(str(host_dir / "vm-without-gpu")))

    assert _python(code).stderr.splitlines()[-1] == "[]"


def test_import_of_the_library_imports_nothing() -> None:
    done = _python(
        "import sys; before = set(sys.modules); import nfd\n"
        "print(sorted(m for m in set(sys.modules) - before if m != 'typing'"
        " and not m.startswith(('re', 'collections', 'functools', 'contextlib')))) "
    )

    assert "attr" not in done.stdout
    assert "nfd.library" not in done.stdout


def test_a_reader_that_stops_is_no_failure(host_dir: Path) -> None:
    code = (
        "import os, sys; from nfd.cli import main\n"
        "r, w = os.pipe(); os.close(r); os.dup2(w, 1)\n"
        f"sys.exit(main(['scan', '--root', {str(host_dir / 'sriov-server')!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nfd", "version"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == f"nfd {__version__}\n"
