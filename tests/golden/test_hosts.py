"""Every recorded host gives exactly its recorded labels and features."""

import json
import os
import runpy
from pathlib import Path
from typing import Any

import pytest

import nfd
from nfd.discovery import Discovery
from tests.conftest import ROOT

HOSTS = sorted(p.name for p in (ROOT / "fixtures" / "hosts").iterdir() if p.is_dir())


def answer(found: Discovery) -> dict[str, Any]:
    plain = found.to_plain(features=True)
    return {
        "labels": plain["labels"],
        "refused": {r.key: r.reason for r in found.refused},
        "sources": {name: s["status"] for name, s in plain["sources"].items()},
        "features": plain["features"],
    }


@pytest.mark.parametrize("name", HOSTS)
def test_golden(name: str, host_dir: Path, update_golden: bool) -> None:  # noqa: FBT001 - a fixture
    golden = host_dir / f"{name}.golden.json"
    found = answer(nfd.scan(host_dir / name))
    if update_golden:
        golden.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    expected = json.loads(golden.read_text(encoding="utf-8"))

    assert expected == found


def test_no_golden_without_host(host_dir: Path) -> None:
    goldens = {p.name.removesuffix(".golden.json") for p in host_dir.glob("*.json")}

    assert set(HOSTS) == goldens


def test_hosts_are_what_the_script_writes(tmp_path: Path, host_dir: Path) -> None:
    runpy.run_path(str(ROOT / "fixtures" / "make_hosts.py"))["main"](str(tmp_path))

    assert tree(host_dir, suffix=".golden.json") == tree(tmp_path)


def tree(folder: Path, suffix: str = "\0") -> dict[str, bytes | str]:
    content: dict[str, bytes | str] = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            where = str(path.relative_to(folder))
            if path.is_symlink():
                content[where] = os.readlink(path)
            elif path.is_file() and not name.endswith(suffix):
                content[where] = path.read_bytes()
    return content
