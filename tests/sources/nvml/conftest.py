"""Builds libraries of ours from C."""

import shutil
import subprocess
from pathlib import Path
from typing import Protocol

import pytest

from tests.conftest import ROOT

STUBS = ROOT / "tests" / "nvmlstub"


class Build(Protocol):
    def __call__(self, source: str, soname: str, folder: Path) -> Path: ...


@pytest.fixture(scope="session")
def build() -> Build:
    """Compile a source of tests/nvmlstub into a folder; skips without a compiler."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed, so the stub libraries cannot be built")

    def compile_(source: str, soname: str, folder: Path) -> Path:
        built = folder / soname
        subprocess.run(
            [
                *(compiler, "-shared", "-fPIC", "-fvisibility=hidden", "-O1"),
                *("-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{soname}"),
                *("-o", str(built), str(STUBS / source)),
            ],
            check=True,
        )
        return built

    return compile_
