"""Changes of files and folders by inotify, through the C library (inotify(7)).

A path that does not exist yet is awaited at the nearest folder above it that does.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Mapping

_EVENT = struct.Struct("iIII")
_MODIFIED, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_OVERFLOW, _IGNORED, _ONLYDIR = 0x4000, 0x8000, 0x1000000
_MASK = (
    _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
    | _DELETE_SELF | _MOVE_SELF | _ONLYDIR
)  # fmt: skip
_BUFFER = 64 << 10


class Inotify:
    """Watches paths, each for the names of whom to tell."""

    def __init__(self) -> None:
        """Open the kernel's queue.

        Raises:
            OSError: There are too many of them already (`max_user_instances`).

        """
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise _error("inotify_init1")
        self._paths: dict[str, frozenset[str]] = {}
        self._folders: dict[int, str] = {}  # watch descriptor → folder

    def close(self) -> None:
        """Close the queue."""
        os.close(self.fd)

    def watch(self, paths: Mapping[str, Iterable[str]]) -> list[str]:
        """Watch exactly these paths from now on, and folders in those; say what fails.

        A folder's own folders are watched too, one level deep, as ConfigMaps mount
        their files there.
        """
        self._paths = {p.rstrip("/") or "/": frozenset(n) for p, n in paths.items()}
        return self._arm()

    def read(self) -> set[str]:
        """Return whom to tell of what has happened since; never waits."""
        told: set[str] = set()
        while True:
            try:
                data = os.read(self.fd, _BUFFER)
            except BlockingIOError:
                break
            at = 0
            while at < len(data):
                wd, mask, _, size = _EVENT.unpack_from(data, at)
                at += _EVENT.size
                name = os.fsdecode(data[at : at + size].rstrip(b"\0"))
                at += size
                told |= self._told(wd, mask, name)
        if told:
            self._arm()  # folders may have come or gone
        return told

    def _told(self, wd: int, mask: int, name: str) -> set[str]:
        if mask & _OVERFLOW:
            return {n for names in self._paths.values() for n in names}
        folder = self._folders.get(wd, "")
        if mask & _IGNORED:
            self._folders.pop(wd, None)
            return set()
        if not folder:
            return set()
        path = f"{folder.rstrip('/')}/{name}" if name else folder
        told: set[str] = set()
        for wanted, names in self._paths.items():
            inside = path == wanted or path.startswith(f"{wanted}/")
            above = wanted.startswith(f"{path}/") and not mask & _ATTRIB
            if inside or above or self._is_link_beside(wanted, path):
                told |= names
        return told

    @staticmethod
    def _is_link_beside(wanted: str, path: str) -> bool:
        """Tell whether a path is the link by which a ConfigMap swaps its files."""
        folder, _, name = path.rpartition("/")
        return name == "..data" and wanted.rpartition("/")[0] == folder

    def _arm(self) -> list[str]:
        """Watch the folders that matter now; what cannot be watched is returned.

        Folders may appear between a look and the watch on the one above them, so
        that nobody tells of them: it looks again until nothing is new.
        """
        problems: list[str] = []
        refused: set[str] = set()
        while True:
            wanted = self._wanted()
            missing = sorted(wanted - set(self._folders.values()) - refused)
            if not missing:
                break
            for folder in missing:
                wd = self._libc.inotify_add_watch(self.fd, os.fsencode(folder), _MASK)
                if wd >= 0:
                    self._folders[wd] = folder
                    continue
                number = ctypes.get_errno()
                refused.add(folder)
                if number != errno.ENOENT:  # it is gone again already
                    problems.append(f"{folder}: {os.strerror(number)}")
        for wd, folder in list(self._folders.items()):
            if folder not in wanted:
                del self._folders[wd]
                self._libc.inotify_rm_watch(self.fd, wd)
        return problems

    def _wanted(self) -> set[str]:
        wanted: set[str] = set()
        for path in self._paths:
            wanted.add(_folder_of(path))
            try:
                entries = list(os.scandir(path))
            except (FileNotFoundError, NotADirectoryError):
                continue
            wanted |= {e.path for e in entries if e.is_dir(follow_symlinks=False)}
        return wanted


def _folder_of(path: str) -> str:
    """Return the folder to watch for a path: itself, or the nearest one above."""
    while not os.path.isdir(path):
        path = os.path.dirname(path) or "/"
    return path


def _error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")
