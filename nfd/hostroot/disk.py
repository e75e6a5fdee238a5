"""Trees on disk that are not this process's own: mounted roots, captured folders."""

import os

from nfd.hostroot import kernel
from nfd.hostroot.live import os_is_real
from nfd.hostroot.paths import naming, resolve
from nfd.hostroot.tree import (
    DIR_FLAGS,
    FOLDER_FLAGS,
    PATH_FLAGS,
    READ_FLAGS,
    Tree,
    check_folder,
    read_fd,
)


class FolderTree:
    """A folder as a root; links are followed inside it and never lead out.

    Opens with openat2(RESOLVE_IN_ROOT). Where that call is missing, and under a faked
    `os` module, paths are resolved component by component and the result is opened
    without following any link, so that a link put there meanwhile is refused.
    """

    def __init__(self, folder: str, *, walk: bool = False) -> None:
        self.folder = folder if folder != "/" else ""
        self._fake = not os_is_real()
        self._walk = walk or self._fake or not kernel.has_open_in_root()
        # Bound here: under a faked os a late close must not reach a real descriptor.
        self._close = os.close
        self._fd = -1 if self._fake else os.open(folder, DIR_FLAGS)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder."""
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            self._close(fd)

    def open(self, path: str, flags: int) -> int:
        """Open a host path, links resolved inside the folder."""
        if not self._walk:
            return kernel.open_in_root(self._fd, path, flags)
        with naming(path):
            return self._open_real(self.real_path(path), flags)

    def _open_real(self, path: str, flags: int) -> int:
        if self._fake:
            return os.open(self._at(path), flags & ~os.O_PATH)
        fd, parts = self._top(path)
        try:
            for part in parts[:-1]:
                below = os.open(part, DIR_FLAGS | os.O_NOFOLLOW, dir_fd=fd)
                if fd != self._fd:
                    os.close(fd)
                fd = below
            name = (parts or ["."])[-1] or "."
            return os.open(name, flags | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            if fd != self._fd:
                os.close(fd)

    def _at(self, path: str) -> str:
        return self.folder + path

    def _top(self, path: str) -> tuple[int, list[str]]:
        return self._fd, path.split("/")[1:]

    def _link(self, path: str) -> str | None:
        try:
            return os.readlink(self._at(path))
        except OSError:
            return None  # no link; opening the path tells what else is wrong

    def read(self, path: str, limit: int) -> bytes:
        """Read a file whole."""
        return read_fd(self.open(path, READ_FLAGS), path, limit, trusted=False)

    def listdir(self, path: str) -> list[str]:
        """List a folder."""
        if self._fake:
            with naming(path):
                return os.listdir(self._at(self.real_path(path)))
        fd = self.open(path, FOLDER_FLAGS)
        try:
            with naming(path):
                return os.listdir(fd)
        finally:
            os.close(fd)

    def mode(self, path: str) -> int:
        """Return the mode of what a path leads to."""
        if self._fake:
            with naming(path):
                return os.stat(self._at(self.real_path(path))).st_mode
        fd = self.open(path, PATH_FLAGS)
        try:
            return os.fstat(fd).st_mode
        finally:
            os.close(fd)

    def readlink(self, path: str) -> str:
        """Return a link's target."""
        parent, _, name = path.rstrip("/").rpartition("/")
        with naming(path):
            if self._fake:
                return os.readlink(f"{self._at(self.real_path(parent))}/{name}")
            fd = self.open(parent or "/", DIR_FLAGS)
            try:
                return os.readlink(name, dir_fd=fd)
            finally:
                os.close(fd)

    def real_path(self, path: str) -> str:
        """Return the host path without links."""
        return resolve(path, self._link)

    def open_dir(self, path: str) -> tuple[int, bool] | None:
        """Open a folder for fast reading."""
        if self._fake:
            check_folder(self.mode(path), path)
            return None
        return self.open(path, DIR_FLAGS), False


class SysfsTree:
    """A sysfs mounted somewhere, as the host's `/sys`.

    No resolving: the kernel makes its links, and none leads out.
    """

    def __init__(self, mount: str) -> None:
        self._mount = mount

    def _at(self, path: str) -> str:
        return self._mount + path[len("/sys") :]

    def read(self, path: str, limit: int) -> bytes:
        """Read a file whole."""
        with naming(path):
            fd = os.open(self._at(path), READ_FLAGS)
        return read_fd(fd, path, limit, trusted=True)

    def listdir(self, path: str) -> list[str]:
        """List a folder."""
        with naming(path):
            return os.listdir(self._at(path))

    def mode(self, path: str) -> int:
        """Return the mode of what a path leads to."""
        with naming(path):
            return os.stat(self._at(path)).st_mode

    def readlink(self, path: str) -> str:
        """Return a link's target."""
        with naming(path):
            return os.readlink(self._at(path))

    def real_path(self, path: str) -> str:
        """Return the host path without links."""
        real = os.path.realpath(self._at(path))
        return "/sys" + real[len(os.path.realpath(self._mount)) :]

    def open_dir(self, path: str) -> tuple[int, bool] | None:
        """Open a folder for fast reading."""
        with naming(path):
            return os.open(self._at(path), DIR_FLAGS), True

    def close(self) -> None:
        """Hold nothing."""


class PrefixTree(FolderTree):
    """Upstream's mount style (spec section 0.1): `/host-sys` and so on.

    Every top folder of the host is mounted at the prefix with its name behind it. Links
    lead from one mount into another as they do on the host; where a top folder is not
    mounted, nothing is there.
    """

    def __init__(self, prefix: str) -> None:
        self.folder = prefix
        self._fake = not os_is_real()
        self._walk = True
        self._fd = -1

    def _at(self, path: str) -> str:
        return self.folder + path[1:]

    def _top(self, path: str) -> tuple[int, list[str]]:
        _, top, *parts = path.split("/")
        return os.open(self._at(f"/{top}"), PATH_FLAGS), parts


class MountedTree:
    """A mounted root of a running host: its sysfs goes past the path resolving."""

    def __init__(self, sysfs: Tree, rest: Tree) -> None:
        self._sysfs = sysfs
        self._rest = rest

    def _tree(self, path: str) -> Tree:
        in_sysfs = path.startswith("/sys/") and ".." not in path
        return self._sysfs if in_sysfs else self._rest

    def read(self, path: str, limit: int) -> bytes:
        """Read a file whole."""
        return self._tree(path).read(path, limit)

    def listdir(self, path: str) -> list[str]:
        """List a folder."""
        return self._tree(path).listdir(path)

    def mode(self, path: str) -> int:
        """Return the mode of what a path leads to."""
        return self._tree(path).mode(path)

    def readlink(self, path: str) -> str:
        """Return a link's target."""
        return self._tree(path).readlink(path)

    def real_path(self, path: str) -> str:
        """Return the host path without links."""
        return self._tree(path).real_path(path)

    def open_dir(self, path: str) -> tuple[int, bool] | None:
        """Open a folder for fast reading."""
        return self._tree(path).open_dir(path)

    def close(self) -> None:
        """Close the folder."""
        self._rest.close()
