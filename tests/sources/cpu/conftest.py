"""Made-up trees, and files in them that cannot be read."""

import errno
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from nfd.hostroot import DEFAULT_LIMIT, HostDir, HostRoot
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
    read, read_optional = HostRoot.read, HostRoot.read_optional
    read_many = HostDir.read_many

    def error_of(path: str) -> OSError | None:
        if path.endswith(tuple(endings)):
            return OSError(errno.EIO, "Input/output error", path)
        return None

    def whole(self: HostRoot, path: str, limit: int = DEFAULT_LIMIT) -> str:
        if error := error_of(path):
            raise error
        return read(self, path, limit)

    def optional(self: HostRoot, path: str) -> str | None:
        if error := error_of(path):
            raise error
        return read_optional(self, path)

    def many(
        self: HostDir, names: Iterable[str], errors: list[OSError]
    ) -> dict[str, str]:
        paths = {name: f"{self.path}/{name}" for name in names}
        errors.extend(error for path in paths.values() if (error := error_of(path)))
        whole_ones = [name for name, path in paths.items() if not error_of(path)]
        return read_many(self, whole_ones, errors)

    monkeypatch.setattr(HostRoot, "read", whole)
    monkeypatch.setattr(HostRoot, "read_optional", optional)
    monkeypatch.setattr(HostDir, "read_many", many)
    return endings.append
