"""The README shows what the commands print: each console block is run.

After a change on purpose: `python -m tests.test_readme` writes the blocks anew.
"""

import io
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from nfd.cli import main

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def rendered(block: str) -> str:
    """Run the commands of a block and return it with what they print."""
    out = []
    for line in block.splitlines():
        if line.startswith("$ nfd "):
            printed = io.StringIO()
            with redirect_stdout(printed), redirect_stderr(printed):
                main(shlex.split(line.removeprefix("$ nfd ")))
            out.append(f"{line}\n{printed.getvalue()}")
    return "".join(out)


@pytest.mark.parametrize("block", BLOCK.findall(README.read_text()))
def test_console_blocks_are_real(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the README shows is what a reader gets."""
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("NFD_HOST_ROOT", raising=False)

    assert rendered(block) == block


def test_links_lead_somewhere() -> None:
    """Every link to a file of this repository has its file."""
    links = re.findall(r"\]\(((?!http)[^)#]+)\)", README.read_text())

    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


if __name__ == "__main__":
    README.write_text(
        BLOCK.sub(lambda m: f"```console\n{rendered(m[1])}```", README.read_text())
    )
    sys.stdout.write("README.md written\n")
