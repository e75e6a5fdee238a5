"""What a mounted root of a running host lacks, and this process's own view has."""

from collections.abc import Callable
from typing import TypeVar

from nfd.hostroot.paths import NOT_THERE
from nfd.hostroot.tree import Tree

T = TypeVar("T")


class OwnViewTree:
    """A mounted root with holes that this process's own view fills (spec 0.1).

    A container always sees the kernel's `/proc` files, and has its configuration
    folders mounted where they belong; a mounted root is asked first.
    """

    _FILES = frozenset(
        {
            "/proc/config.gz",
            "/proc/cpuinfo",
            "/proc/modules",
            "/proc/sys/kernel/osrelease",
            "/proc/sysinfo",
        }
    )
    _FOLDERS = (
        "/lib/modules",
        "/etc/kubernetes/node-feature-discovery/features.d",
        "/etc/kubernetes/node-feature-discovery/custom.d",
    )

    def __init__(self, tree: Tree, own: Tree) -> None:
        self._tree = tree
        self._own = own

    def _first(self, path: str, ask: Callable[[Tree], T]) -> T:
        try:
            return ask(self._tree)
        except OSError as error:
            if error.errno not in NOT_THERE or not self._is_hole(path):
                raise
        return ask(self._own)

    def _is_hole(self, path: str) -> bool:
        if path in self._FILES:
            return True
        for folder in self._FOLDERS:
            if path == folder or path.startswith(f"{folder}/"):
                try:
                    self._tree.mode(folder)
                except OSError as error:
                    return error.errno in NOT_THERE
                # A host's own modules folder may lack what the container mounts
                # there; files of the two features.d must not be mixed.
                return folder == self._FOLDERS[0]
        return False

    def read(self, path: str, limit: int) -> bytes:
        """Read a file whole."""
        return self._first(path, lambda tree: tree.read(path, limit))

    def listdir(self, path: str) -> list[str]:
        """List a folder."""
        return self._first(path, lambda tree: tree.listdir(path))

    def mode(self, path: str) -> int:
        """Return the mode of what a path leads to."""
        return self._first(path, lambda tree: tree.mode(path))

    def readlink(self, path: str) -> str:
        """Return a link's target."""
        return self._first(path, lambda tree: tree.readlink(path))

    def real_path(self, path: str) -> str:
        """Return the path without links."""
        try:
            self._tree.mode(path)
        except OSError as error:
            if error.errno in NOT_THERE and self._is_hole(path):
                return self._own.real_path(path)
        return self._tree.real_path(path)

    def open_dir(self, path: str) -> tuple[int, bool] | None:
        """Open a folder for fast reading."""
        return self._first(path, lambda tree: tree.open_dir(path))

    def close(self) -> None:
        """Close both."""
        self._tree.close()
        self._own.close()
