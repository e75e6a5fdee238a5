"""Capture archives (.tar, .tar.gz, .tar.xz), read without unpacking to disk.

Contents stay in memory up to a budget; what is beyond it goes into one nameless private
temporary file. Nothing is ever created under a name that the archive chose.
"""

import bz2
import errno
import gzip
import io
import lzma
import os
import stat
import tarfile
import tempfile
import zlib
from typing import IO, TypeAlias, cast

import attrs

from nfd.errors import HostError
from nfd.hostroot.paths import os_error, resolve
from nfd.hostroot.tree import check_folder

MAX_UNPACKED = 1 << 30  # bytes of tar stream
MAX_ENTRIES = 500_000  # files, links and folders, those that names imply too
MEMORY_BUDGET = 64 << 20  # bytes of file content
_TOPS = frozenset(
    [
        "bin",
        "boot",
        "dev",
        "etc",
        "lib",
        "lib64",
        ".nfd",
        "opt",
        "proc",
        "run",
        "sbin",
        "sys",
        "usr",
        "var",
    ]
)
_BROKEN = (
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    lzma.LZMAError,
    tarfile.TarError,
    zlib.error,
)


@attrs.frozen(slots=True)
class _Spilled:
    """File content in the temporary file."""

    offset: int
    size: int


@attrs.frozen(slots=True)
class _Link:
    target: str


class _Folder(dict[str, "_Node"]):
    """Entries by name."""

    __slots__ = ()


_Content: TypeAlias = bytes | _Spilled
_Node: TypeAlias = _Content | _Link | _Folder


class _Bounded(io.RawIOBase):
    """A stream that refuses to give more than `limit` bytes."""

    def __init__(self, stream: IO[bytes], limit: int, name: str) -> None:
        self._stream = stream
        self._left = limit
        self._name = name

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes."""
        chunk = self._stream.read(size)
        self._left -= len(chunk)
        if self._left < 0:
            raise HostError(
                f"archive {self._name!r}: unpacks to more than the limit of bytes"
            )
        return chunk


class ArchiveTree:
    """The tree in a tar archive: its one top folder, or its top where that is a root.

    Raises:
        HostError: The archive is unreadable, broken, too big, or has a member that no
            capture has: an absolute name, `..`, a device, FIFO or socket.

    """

    def __init__(
        self,
        path: str,
        *,
        max_unpacked: int = MAX_UNPACKED,
        max_entries: int = MAX_ENTRIES,
        memory_budget: int = MEMORY_BUDGET,
    ) -> None:
        self._name = path
        self._memory_left = memory_budget
        self._entries_left = max_entries
        self._spill: IO[bytes] | None = None
        top = _Folder()
        try:
            with open(path, "rb") as file, _decompressed(file) as stream:
                bounded = _Bounded(stream, max_unpacked, path)
                with tarfile.open(fileobj=bounded, mode="r|") as archive:
                    for member in archive:
                        self._add(top, archive, member)
        except HostError:
            self.close()
            raise
        except _BROKEN as error:
            self.close()
            raise HostError(f"archive {path!r}: {error}") from error
        self._root = _root_of(top)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Drop the temporary file."""
        spill: IO[bytes] | None = getattr(self, "_spill", None)
        if spill is not None:
            spill.close()
            self._spill = None

    def _count(self) -> None:
        self._entries_left -= 1
        if self._entries_left < 0:
            raise HostError(f"archive {self._name!r}: more entries than the limit")

    def _folder(self, above: _Folder, part: str, name: str) -> _Folder:
        """Return the folder `part` of another, made where it is missing."""
        folder = above.get(part)
        if folder is None:
            self._count()
            folder = above[part] = _Folder()
        if not isinstance(folder, _Folder):
            raise self._hostile(name, f"{part!r} is a file or link already")
        return folder

    def _add(
        self, top: _Folder, archive: tarfile.TarFile, member: tarfile.TarInfo
    ) -> None:
        parts = self._parts(member.name)
        if not parts:
            return  # "./"
        folder = top
        for part in parts if member.isdir() else parts[:-1]:
            folder = self._folder(folder, part, member.name)
        if member.isdir():
            return
        self._count()
        node: _Node
        if member.issym():
            node = _Link(member.linkname)
        elif member.islnk():
            node = self._node(top, self._parts(member.linkname), member.linkname)
        elif member.isreg():
            node = self._content(archive.extractfile(member), member.size)
        else:
            raise self._hostile(member.name, "a device, FIFO or unknown type")
        if isinstance(folder.get(parts[-1]), _Folder):
            raise self._hostile(member.name, "a folder has its name")
        folder[parts[-1]] = node

    def _parts(self, name: str) -> list[str]:
        parts = [p for p in name.split("/") if p not in {"", "."}]
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise self._hostile(name, "its name leads out of the archive")
        return parts

    def _hostile(self, name: str, reason: str) -> HostError:
        return HostError(f"archive {self._name!r}: member {name!r} refused: {reason}")

    def _node(self, top: _Folder, parts: list[str], name: str) -> _Node:
        node: _Node = top
        for part in parts:
            if not isinstance(node, _Folder) or part not in node:
                raise self._hostile(name, "a hard link to nothing")
            node = node[part]
        if isinstance(node, _Folder):
            raise self._hostile(name, "a hard link to a folder")
        return node

    def _content(self, stream: IO[bytes] | None, size: int) -> bytes | _Spilled:
        if stream is None:
            return b""
        if size <= self._memory_left:
            self._memory_left -= size
            return stream.read()
        if self._spill is None:
            self._spill = tempfile.TemporaryFile(prefix="nfd-")  # noqa: SIM115 - closed by close()
        offset = self._spill.tell()
        while chunk := stream.read(1 << 20):
            self._spill.write(chunk)
        self._spill.flush()
        return _Spilled(offset, self._spill.tell() - offset)

    def _at(self, path: str) -> _Node | None:
        node: _Node = self._root
        for part in path.split("/"):
            if not part:
                continue
            if not isinstance(node, _Folder):
                return None
            below = node.get(part)
            if below is None:
                return None
            node = below
        return node

    def _link(self, path: str) -> str | None:
        node = self._at(path)
        return node.target if isinstance(node, _Link) else None

    def _find(self, path: str) -> bytes | _Spilled | _Folder:
        real = resolve(path, self._link)
        node = self._at(real)
        if node is None or isinstance(node, _Link):
            parent = self._at(real.rpartition("/")[0])
            there = parent is None or isinstance(parent, _Folder)
            raise os_error(errno.ENOENT if there else errno.ENOTDIR, path)
        return node

    def read(self, path: str, limit: int) -> bytes:
        """Read a file whole."""
        node = self._find(path)
        if isinstance(node, _Folder):
            raise os_error(errno.EISDIR, path)
        size = node.size if isinstance(node, _Spilled) else len(node)
        if size > limit:
            raise os_error(errno.EFBIG, path)
        if isinstance(node, bytes):
            return node
        if self._spill is None:
            raise os_error(errno.EBADF, path)
        return os.pread(self._spill.fileno(), node.size, node.offset)

    def listdir(self, path: str) -> list[str]:
        """List a folder."""
        node = self._find(path)
        if not isinstance(node, _Folder):
            raise os_error(errno.ENOTDIR, path)
        return list(node)

    def mode(self, path: str) -> int:
        """Return the mode of what a path leads to; permissions are not kept."""
        folder = isinstance(self._find(path), _Folder)
        return stat.S_IFDIR | 0o755 if folder else stat.S_IFREG | 0o644

    def readlink(self, path: str) -> str:
        """Return a link's target."""
        node = self._at(resolve(path, self._link, last=False))
        if node is None:
            raise os_error(errno.ENOENT, path)
        if not isinstance(node, _Link):
            raise os_error(errno.EINVAL, path)
        return node.target

    def real_path(self, path: str) -> str:
        """Return the path without links."""
        return resolve(path, self._link)

    def open_dir(self, path: str) -> tuple[int, bool] | None:
        """There are no descriptors here."""
        check_folder(self.mode(path), path)
        return None


def _decompressed(file: IO[bytes]) -> IO[bytes]:
    magic = file.read(2)
    file.seek(0)
    if magic == b"\x1f\x8b":
        return cast("IO[bytes]", gzip.open(file))
    if magic == b"\xfd7":
        return lzma.open(file)
    return bz2.open(file) if magic == b"BZ" else file


def _root_of(top: _Folder) -> _Folder:
    only = next(iter(top.values()), None)
    if len(top) > 1 or not isinstance(only, _Folder):
        return top
    return only if _TOPS.isdisjoint(top) or ".nfd" in only else top
