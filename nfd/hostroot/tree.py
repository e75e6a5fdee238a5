"""Trees of host files: what a `HostRoot` reads from, whatever holds the files.

A tree knows paths as they are on the host ("/sys/class/net") and resolves links
inside itself. Errors are OSErrors whose `filename` is that path.
"""

import errno
import os
import stat
from typing import Protocol

from nfd.hostroot.paths import os_error

READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
PATH_FLAGS = os.O_PATH | os.O_CLOEXEC
DIR_FLAGS = PATH_FLAGS | os.O_DIRECTORY
# A page, the most that sysfs gives of a binary file at once: a text attribute comes whole
# and short, and a read that fills the buffer tells that there may be more.
FIRST_READ = 4096
NEXT_READ = 65536


class Tree(Protocol):
    """Where host files come from."""

    def read(self, path: str, limit: int) -> bytes:
        """Read a regular file whole; EFBIG beyond `limit` bytes, EINVAL for others."""
        ...

    def listdir(self, path: str) -> list[str]:
        """List a folder in any order."""
        ...

    def mode(self, path: str) -> int:
        """Return `st_mode` of what a path leads to."""
        ...

    def readlink(self, path: str) -> str:
        """Return a link's target as it is written; EINVAL when it is no link."""
        ...

    def real_path(self, path: str) -> str:
        """Return the host path with all links resolved; the end need not exist."""
        ...

    def open_dir(self, path: str) -> tuple[int, bool] | None:
        """Open a folder for fast reading by name.

        Returns its descriptor (the caller closes it) and whether its files may be
        trusted to be regular and no links (sysfs); None when the tree has none.
        """
        ...

    def close(self) -> None:
        """Release what the tree holds."""
        ...


def check_folder(mode: int, path: str) -> None:
    """Raise ENOTDIR when `mode` is not that of a folder."""
    if not stat.S_ISDIR(mode):
        raise os_error(errno.ENOTDIR, path)


def read_fd(fd: int, path: str, limit: int, *, trusted: bool) -> bytes:
    """Read an open file whole and close it.

    A trusted file is known to be regular, and ends with a read that comes short.
    """
    try:
        if not trusted and not stat.S_ISREG(os.fstat(fd).st_mode):
            raise os_error(errno.EINVAL, path)
        chunk = os.read(fd, FIRST_READ)
        if len(chunk) < FIRST_READ and trusted:
            return chunk
        chunks = [chunk]
        size = len(chunk)
        while chunk:
            if size > limit:
                raise os_error(errno.EFBIG, path)
            chunk = os.read(fd, NEXT_READ)
            chunks.append(chunk)
            size += len(chunk)
        return b"".join(chunks)
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(fd)
