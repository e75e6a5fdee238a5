"""The running host as this process sees it."""

import os
from types import BuiltinFunctionType

from nfd.hostroot.tree import DIR_FLAGS, READ_FLAGS, check_folder, read_fd


def os_is_real() -> bool:
    """Tell whether `os` makes system calls; pyfakefs puts Python functions there."""
    return isinstance(os.open, BuiltinFunctionType)


class LiveTree:
    """The running host as this process sees it ("/"): plain system calls."""

    def __init__(self) -> None:
        self._real = os_is_real()

    def read(self, path: str, limit: int) -> bytes:
        """Read a file whole."""
        fd = os.open(path, READ_FLAGS)
        return read_fd(fd, path, limit, trusted=path.startswith("/sys/"))

    def listdir(self, path: str) -> list[str]:
        """List a folder."""
        return os.listdir(path)

    def mode(self, path: str) -> int:
        """Return the mode of what a path leads to."""
        return os.stat(path).st_mode

    def readlink(self, path: str) -> str:
        """Return a link's target."""
        return os.readlink(path)

    def real_path(self, path: str) -> str:
        """Return the path without links."""
        return os.path.realpath(path)

    def open_dir(self, path: str) -> tuple[int, bool] | None:
        """Open a folder for fast reading."""
        if not self._real:
            check_folder(self.mode(path), path)
            return None
        return os.open(path, DIR_FLAGS), path.startswith("/sys/")

    def close(self) -> None:
        """Hold nothing."""
