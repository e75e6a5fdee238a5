"""HostRoot, the only door to host files (first version: plain folders)."""

import errno
import os
import platform
import stat
from collections.abc import Callable
from types import TracebackType
from typing import Self

from nfd.errors import HostError

DEFAULT_LIMIT = 4 << 20  # bytes
NOT_THERE = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ENODEV,
        errno.ENXIO,
        errno.EINVAL,
        errno.EOPNOTSUPP,
        errno.ELOOP,
    }
)
_SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def trim(text: str) -> str:
    """Trim Unicode white space as Go's strings.TrimSpace does (spec section 8)."""
    return text.strip(_SPACE)


class HostRoot:
    """A host's file tree: the running host, a mounted root, or a capture.

    Paths are absolute as on the host ("/sys/bus/pci/devices"); links are resolved
    inside the root. All methods that read raise OSError with the host path in
    `filename`.
    """

    def __init__(self, path: str = "/", *, live: bool | None = None) -> None:
        if not os.path.isdir(path):
            raise HostError(f"host root {path!r}: not a folder")
        self.path = path
        self.live = path == "/" if live is None else live

    @classmethod
    def open(cls, root: str = "/", *, live: bool | None = None) -> Self:
        """Open a root given as `--root` takes it: folder, `prefix-` or archive."""
        return cls(root, live=live)

    def close(self) -> None:
        """Release file descriptors and temporary folders."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def arch(self) -> str:
        """The machine word of uname ("x86_64"), of the capture when it is one."""
        return platform.machine()

    @property
    def node_name(self) -> str:
        """The Kubernetes node name from NODE_NAME, or ""."""
        return os.environ.get("NODE_NAME", "")

    def fact(self, name: str, live: Callable[[], str]) -> str | None:
        """Return a fact that is no file (CPUID, auxv): asked live, or recorded.

        On a live root `live` is called and its text recorded; on a capture the text
        is read from `/.nfd/<name>`, None when the capture has none.
        """
        if self.live:
            return live()
        return self.read_optional(f"/.nfd/{name}")

    def _real(self, path: str) -> str:
        if self.path == "/":
            return path
        parts = [p for p in path.split("/") if p]
        done: list[str] = []
        links = 0
        while parts:
            part = parts.pop(0)
            if part == "..":
                done = done[:-1]
                continue
            if part == ".":
                continue
            here = os.path.join(self.path, *done, part)
            try:
                target = os.readlink(here)
            except OSError:
                done.append(part)
                continue
            links += 1
            if links > 40:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target.startswith("/"):
                done = []
            parts = [p for p in target.split("/") if p] + parts
        return os.path.join(self.path, *done)

    def read_bytes(self, path: str, limit: int = DEFAULT_LIMIT) -> bytes:
        """Read a regular file whole, at most `limit` bytes (EFBIG beyond)."""
        fd = os.open(self._real(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            chunks = []
            size = 0
            while chunk := os.read(fd, 65536):
                chunks.append(chunk)
                size += len(chunk)
                if size > limit:
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
            return b"".join(chunks)
        finally:
            os.close(fd)

    def read(self, path: str, limit: int = DEFAULT_LIMIT) -> str:
        """Read a file as text, untrimmed; bytes that are not UTF-8 become U+FFFD."""
        return self.read_bytes(path, limit).decode("utf-8", "replace")

    def read_optional(self, path: str) -> str | None:
        """Read and trim a file; None when it is not there or has nothing to say.

        "Not there" are the errors of `NOT_THERE` (a missing file, a vanished device,
        an attribute that does not apply); all other errors are raised.
        """
        try:
            return trim(self.read(path))
        except OSError as error:
            if error.errno in NOT_THERE:
                return None
            raise

    def listdir(self, path: str) -> list[str]:
        """List a folder's entries, sorted by their bytes."""
        return sorted(os.listdir(self._real(path)), key=os.fsencode)

    def exists(self, path: str) -> bool:
        """Tell whether a path leads to something; errors but "not there" raise."""
        try:
            os.stat(self._real(path))
        except OSError as error:
            if error.errno in NOT_THERE:
                return False
            raise
        return True

    def is_dir(self, path: str) -> bool:
        """Tell whether a path leads to a folder."""
        return os.path.isdir(self._real(path))

    def link_name(self, path: str) -> str | None:
        """Return the base name of a link's target, which may dangle; None if no link.

        The name is the answer for `driver`, `subsystem` and `iommu_group` links.
        """
        folder, _, name = path.rpartition("/")
        try:
            return os.path.basename(os.readlink(os.path.join(self._real(folder), name)))
        except OSError as error:
            if error.errno in NOT_THERE:
                return None
            raise

    def dir(self, path: str) -> "HostDir":
        """Open a folder to read many of its files by name, fast."""
        return HostDir(self, path)


class HostDir:
    """One folder of the host, for reading many small files by relative name."""

    def __init__(self, host: HostRoot, path: str) -> None:
        self._host = host
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the folder."""

    def read_optional(self, name: str) -> str | None:
        """As `HostRoot.read_optional`, of a name below this folder."""
        return self._host.read_optional(f"{self.path}/{name}")

    def link_name(self, name: str) -> str | None:
        """As `HostRoot.link_name`, of a name below this folder."""
        return self._host.link_name(f"{self.path}/{name}")

    def exists(self, name: str) -> bool:
        """As `HostRoot.exists`, of a name below this folder."""
        return self._host.exists(f"{self.path}/{name}")
