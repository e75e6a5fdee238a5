"""Made-up trees, and files in them that cannot be read."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from nfd.hostroot import HostDir, HostRoot
from tests.sources.cpu.shared import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Return a function that writes files and opens them as a host root."""

    def build(files: dict[str, str]) -> HostRoot:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not name.endswith("/"):
                path.write_text(text, encoding="utf-8")
            else:
                path.mkdir()
        (tmp_path / "sys").mkdir(exist_ok=True)
        return HostRoot.open(str(tmp_path), live=False)

    return build


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes reads of paths with an ending fail with EIO."""
    endings: list[str] = []
    read, read_in = HostRoot.read_optional, HostDir.read_optional

    def fail(path: str) -> None:
        if any(path.endswith(ending) for ending in endings):
            raise OSError(errno.EIO, "Input/output error", path)

    def from_root(self: HostRoot, path: str) -> str | None:
        fail(path)
        return read(self, path)

    def from_folder(self: HostDir, name: str) -> str | None:
        fail(name)
        return read_in(self, name)

    monkeypatch.setattr(HostRoot, "read_optional", from_root)
    monkeypatch.setattr(HostDir, "read_optional", from_folder)
    return endings.append
