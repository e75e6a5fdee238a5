"""The wheel, installed alone: it scans a recorded host, and holds nothing else."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.wheel
ROOT = Path(__file__).resolve().parents[1]


def run(*words: str | Path, cwd: Path) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(w) for w in words],
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-w",
        out,
        ROOT,
        cwd=out,
    )
    (built,) = out.glob("*.whl")
    return built


def test_contents(wheel: Path) -> None:
    """Two packages, typed, with their data and the licence, and no tests."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}

    assert {t for t in tops if not t.endswith(".dist-info")} == {"nfd", "nfd_sources"}
    assert {"nfd/py.typed", "nfd_sources/py.typed"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    run(Path(sys.executable).with_name("check-wheel-contents"), wheel, cwd=ROOT)


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment that holds the wheel alone."""
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", folder, cwd=folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", wheel, cwd=folder)
    return python


def test_scan_in_an_empty_environment(python: Path, tmp_path: Path) -> None:
    """A fresh environment with the wheel alone finds what the golden file says."""
    host = ROOT / "fixtures" / "hosts" / "gpu-server-a100"
    nfd = python.with_name("nfd")

    scanned = json.loads(run(nfd, "scan", "--root", host, "-o", "json", cwd=tmp_path))

    golden = json.loads(host.with_suffix(".golden.json").read_text())
    assert scanned["labels"] == golden["labels"]


def test_a_source_of_another_distribution(python: Path, tmp_path: Path) -> None:
    """The source of docs/writing-a-source.md, packaged as its reader would."""
    page = (ROOT / "docs" / "writing-a-source.md").read_text(encoding="utf-8")
    code, entry_point = (
        re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[0]
        for language in ("python", "toml")
    )
    package = tmp_path / "nfd-watchdog"
    package.mkdir()
    (package / "nfd_watchdog.py").write_text(code)
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "nfd-watchdog"\nversion = "1.2"\n'
        'dependencies = ["node-feature-discovery"]\n' + entry_point
    )
    timer = tmp_path / "host/sys/class/watchdog/watchdog0"
    timer.mkdir(parents=True)
    (timer / "identity").write_text("iTCO_wdt\n")
    nfd = python.with_name("nfd")
    root = ("--root", tmp_path / "host")

    run(python, "-m", "pip", "install", "-q", package, cwd=tmp_path)
    scanned = run(nfd, "scan", *root, "-o", "labels", cwd=tmp_path)
    explained = run(nfd, "explain", "watchdog-present", *root, cwd=tmp_path)
    listed = json.loads(run(nfd, "sources", "-o", "json", cwd=tmp_path))

    assert "feature.node.kubernetes.io/watchdog-present=true" in scanned
    assert "/sys/class/watchdog/watchdog0/identity = iTCO_wdt" in explained
    assert listed["watchdog"]["distribution"] == "nfd-watchdog 1.2"
