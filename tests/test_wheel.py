"""The wheel, installed alone: it scans a recorded host, and holds nothing else."""

import json
import os
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


def test_scan_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """A fresh environment with the wheel alone finds what the golden file says."""
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", wheel, cwd=tmp_path)
    host = ROOT / "fixtures" / "hosts" / "gpu-server-a100"
    nfd = python.with_name("nfd")

    scanned = json.loads(run(nfd, "scan", "--root", host, "-o", "json", cwd=tmp_path))

    golden = json.loads(host.with_suffix(".golden.json").read_text())
    assert scanned["labels"] == golden["labels"]
