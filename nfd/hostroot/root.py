"""HostRoot, the only door to host files."""

import errno
import os
import stat
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Literal, Self

from nfd.hostroot import arch as arches
from nfd.hostroot.forms import open_tree
from nfd.hostroot.paths import NOT_THERE, SPACE, resolve, trim
from nfd.hostroot.record import Attributed, Recorder, RecordingTree
from nfd.hostroot.tree import FIRST_READ, READ_FLAGS, Tree, read_fd

DEFAULT_LIMIT = 4 << 20  # bytes


class HostRoot:
    """A host's file tree: the running host, a mounted root, or a capture.

    Paths are absolute as on the host ("/sys/bus/pci/devices"); links are resolved
    inside the root. All methods that read raise OSError with the host path in
    `filename`.
    """

    def __init__(
        self,
        path: str = "/",
        *,
        live: bool | None = None,
        record: Recorder | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self.recorder = record
        self._plain, self.live = open_tree(self.path, live=live)
        self._tree: Tree = self._plain
        if record is not None:
            self._tree = RecordingTree(self._plain, record)
        self._arch: str | None = None

    @classmethod
    def open(
        cls,
        root: str = "/",
        *,
        live: bool | None = None,
        record: Recorder | None = None,
    ) -> Self:
        """Open a root given as `--root` takes it: folder, `prefix-` or archive.

        Args:
            root: `/`; a folder (a mounted root, or a captured tree); a prefix ending in
                `-`, upstream's mount style (`/host-` means `/host-sys`, …); a capture
                archive (`.tar`, `.tar.gz`, `.tar.xz`).
            live: Whether this is the running host, of which CPUID, auxv and uname may
                be asked; by default true of `/`, of prefixes, and of folders whose
                `sys` is a mounted sysfs.
            record: Notes every question and answer.

        Raises:
            HostError: There is no such root, or it is a broken or hostile archive.

        """
        return cls(root, live=live, record=record)

    def close(self) -> None:
        """Release file descriptors and temporary files."""
        self._tree.close()

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
        """The machine word of uname ("x86_64"); of a capture, as recorded or derived.

        "" when nothing in a capture tells.
        """
        if self._arch is None:
            self._arch = os.uname().machine if self.live else arches.of_capture(self)
        return self._arch

    @property
    def node_name(self) -> str:
        """The Kubernetes node name: of NODE_NAME when live, else as recorded, or ""."""
        return self.fact("node_name", lambda: os.environ.get("NODE_NAME", "")) or ""

    def fact(self, name: str, live: Callable[[], str]) -> str | None:
        """Return a fact that is no file (CPUID, auxv): asked live, or recorded.

        On a live root `live` is called and its text recorded; on a capture the text
        is read from `/.nfd/<name>`, None when the capture has none.
        """
        text = live() if self.live else self.read_optional(f"/.nfd/{name}")
        if self.recorder is not None and text is not None:
            self.recorder.note_fact(name, text)
        return text

    def attributed(self, source: str) -> Attributed:
        """Attribute what this thread reads inside `with` to a source, when recording."""
        return Attributed(source)

    def read_bytes(self, path: str, limit: int = DEFAULT_LIMIT) -> bytes:
        """Read a regular file whole, at most `limit` bytes (EFBIG beyond)."""
        return self._tree.read(path, limit)

    def read(self, path: str, limit: int = DEFAULT_LIMIT) -> str:
        """Read a file as text, untrimmed; bytes that are not UTF-8 become U+FFFD."""
        return self._tree.read(path, limit).decode("utf-8", "replace")

    def read_optional(self, path: str) -> str | None:
        """Read and trim a file; None when it is not there or has nothing to say.

        "Not there" are the errors of `NOT_THERE` (a missing file, a vanished device,
        an attribute that does not apply); all other errors are raised. EAGAIN is one
        of those: a device that cannot answer now has not said that it lacks the fact.
        """
        try:
            return trim(self._tree.read(path, DEFAULT_LIMIT).decode("utf-8", "replace"))
        except OSError as error:
            if error.errno in NOT_THERE:
                return None
            raise

    def listdir(self, path: str) -> list[str]:
        """List a folder's entries, sorted by their bytes."""
        return sorted(self._tree.listdir(path), key=os.fsencode)

    def mode(self, path: str) -> int | None:
        """Return `st_mode` of what a path leads to, None when there is nothing.

        Archives keep no permissions: 0o755 for folders, 0o644 for files.
        """
        try:
            return self._tree.mode(path)
        except OSError as error:
            if error.errno in NOT_THERE:
                return None
            raise

    def exists(self, path: str) -> bool:
        """Tell whether a path leads to something; errors but "not there" raise."""
        return self.mode(path) is not None

    def is_dir(self, path: str) -> bool:
        """Tell whether a path leads to a folder; errors but "not there" raise."""
        mode = self.mode(path)
        return mode is not None and stat.S_ISDIR(mode)

    def readlink(self, path: str) -> str | None:
        """Return a link's target as it is written, which may dangle; None if no link."""
        try:
            return self._tree.readlink(path)
        except OSError as error:
            if error.errno in NOT_THERE:
                return None
            raise

    def link_name(self, path: str) -> str | None:
        """Return the base name of a link's target, which may dangle; None if no link.

        The name is the answer for `driver`, `subsystem` and `iommu_group` links.
        """
        target = self.readlink(path)
        return None if target is None else target.rpartition("/")[2]

    def real_path(self, path: str) -> str:
        """Return a path with all links resolved inside the root; it need not exist."""
        return self._tree.real_path(path)

    def follow(self, path: str, links: dict[str, str | None]) -> str:
        """Return `real_path`, and note in `links` every place on the way.

        A place is a path without links before its end; it maps to the link's target,
        None when it is no link. Nothing is recorded. `links` serves as a cache. "" is
        returned for a loop of links.
        """

        def target(place: str) -> str | None:
            if place not in links:
                try:
                    links[place] = self._plain.readlink(place)
                except OSError:  # no link, whatever else it is
                    links[place] = None
            return links[place]

        try:
            return resolve(path, target)
        except OSError:
            return ""

    def kind(self, path: str) -> Literal["folder", "file", ""]:
        """Tell what a path leads to, "" for nothing or unknown; nothing is recorded."""
        try:
            mode = self._plain.mode(path)
        except OSError:
            return ""
        return "folder" if stat.S_ISDIR(mode) else "file"

    def dir(self, path: str) -> "HostDir":
        """Open a folder to read many of its files by name, fast; use it in `with`."""
        return HostDir(self, path, self._tree.open_dir(path))


class HostDir:
    """One folder of the host, for reading many small files by relative name.

    Names that lead through links or folders cost more than plain ones, no rights.
    """

    __slots__ = ("_close", "_fd", "_host", "_trusted", "path")

    def __init__(
        self, host: HostRoot, path: str, opened: tuple[int, bool] | None
    ) -> None:
        self._host = host
        self.path = path
        self._fd, self._trusted = opened or (-1, False)
        self._close = os.close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the folder."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._close(fd)

    def __del__(self) -> None:
        if self._fd >= 0:
            self._close(self._fd)

    def _is_direct(self, name: str) -> bool:
        return self._fd >= 0 and (self._trusted or "/" not in name)

    def read_optional(self, name: str) -> str | None:
        """As `HostRoot.read_optional`, of a name below this folder."""
        errors: list[OSError] = []
        values = self.read_many((name,), errors)
        if errors:
            raise errors[0]
        return values.get(name)

    def read_many(self, names: Iterable[str], errors: list[OSError]) -> dict[str, str]:
        """Read and trim many files, in the order given; those not there are left out.

        Other errors than "not there" are appended to `errors`. This is the fast path:
        on sysfs it makes three system calls a file, as C does.
        """
        if not self._trusted:
            return self._read_carefully(names, errors)
        values: dict[str, str] = {}
        open_file, read, close, folder = os.open, os.read, os.close, self._fd
        for name in names:
            try:
                fd = open_file(name, READ_FLAGS, dir_fd=folder)
                try:
                    data = read(fd, FIRST_READ)
                finally:
                    close(fd)
                if len(data) == FIRST_READ:
                    data = self._host.read_bytes(f"{self.path}/{name}")
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno not in NOT_THERE:
                    error.filename = f"{self.path}/{name}"
                    errors.append(error)
                continue
            values[name] = str(data, "utf-8", "replace").strip(SPACE)
        return values

    def _read_carefully(
        self, names: Iterable[str], errors: list[OSError]
    ) -> dict[str, str]:
        values: dict[str, str] = {}
        for name in names:
            path = f"{self.path}/{name}"
            try:
                data = self._read_plain(name, path)
            except OSError as error:
                if error.errno not in NOT_THERE:
                    error.filename = path
                    errors.append(error)
                continue
            values[name] = trim(data.decode("utf-8", "replace"))
        return values

    def _read_plain(self, name: str, path: str) -> bytes:
        if self._is_direct(name):
            try:
                fd = os.open(name, READ_FLAGS | os.O_NOFOLLOW, dir_fd=self._fd)
                return read_fd(fd, path, DEFAULT_LIMIT, trusted=False)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
        return self._host.read_bytes(path)  # a link, or no descriptor: resolve

    def listdir(self) -> list[str]:
        """As `HostRoot.listdir`, of this folder."""
        return self._host.listdir(self.path)

    def link_name(self, name: str) -> str | None:
        """As `HostRoot.link_name`, of a name below this folder."""
        if not self._is_direct(name):
            return self._host.link_name(f"{self.path}/{name}")
        try:
            return os.readlink(name, dir_fd=self._fd).rpartition("/")[2]
        except OSError as error:
            if error.errno in NOT_THERE:
                return None
            error.filename = f"{self.path}/{name}"
            raise

    def exists(self, name: str) -> bool:
        """As `HostRoot.exists`, of a name below this folder."""
        return self._host.exists(f"{self.path}/{name}")
