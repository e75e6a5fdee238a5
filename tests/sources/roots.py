"""Small made-up host roots, and roots whose reads fail or come in another order."""

import errno
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from nfd.hostroot import HostRoot
from nfd.hostroot.tree import Tree

T = TypeVar("T")


class Link(str):
    """A file that is a link, with its target."""

    __slots__ = ()


def make_root(folder: Path, files: Mapping[str, str | bytes | None]) -> HostRoot:
    """Write files by host path and open the folder; None makes a folder."""
    folder.mkdir(exist_ok=True)
    for path, content in files.items():
        where = folder / path.lstrip("/")
        where.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Link):
            where.symlink_to(content)
        elif isinstance(content, bytes):
            where.write_bytes(content)
        elif content is None:
            where.mkdir(exist_ok=True)
        else:
            where.write_text(content, encoding="utf-8")
    return HostRoot(str(folder))


class WatchedTree:
    """A tree that lists what is asked, and fails where it is told to."""

    def __init__(
        self,
        tree: Tree,
        fails: Mapping[str, int] | None = None,
        shuffle: random.Random | None = None,
    ) -> None:
        self.asked: dict[str, None] = {}  # paths that answered, in order
        self._tree = tree
        self._fails = fails or {}
        self._shuffle = shuffle

    def _ask(self, path: str, answer: T) -> T:
        self.asked[path] = None
        return answer

    def _check(self, path: str) -> None:
        number = self._fails.get(path)
        if number is not None:
            raise OSError(number, os.strerror(number), path)

    def read(self, path: str, limit: int) -> bytes:
        self._check(path)
        return self._ask(path, self._tree.read(path, limit))

    def listdir(self, path: str) -> list[str]:
        self._check(path)
        names = self._ask(path, self._tree.listdir(path))
        if self._shuffle:
            self._shuffle.shuffle(names)
        return names

    def mode(self, path: str) -> int:
        self._check(path)
        return self._ask(path, self._tree.mode(path))

    def readlink(self, path: str) -> str:
        self._check(path)
        return self._ask(path, self._tree.readlink(path))

    def real_path(self, path: str) -> str:
        return self._tree.real_path(path)

    def open_dir(self, path: str) -> None:
        self._check(path)
        self._tree.mode(path)  # a folder that is not there cannot be opened

    def close(self) -> None:
        self._tree.close()


def failing(host: HostRoot, *paths: str, number: int = errno.EIO) -> HostRoot:
    """Make every question about these paths fail; returns the host."""
    host._tree = WatchedTree(host._tree, dict.fromkeys(paths, number))
    return host
