"""Records what a `HostRoot` was asked and what it answered, and for which source."""

from collections.abc import Callable, Mapping, MutableMapping
from contextvars import ContextVar, Token
from typing import TypeVar

from nfd.hostroot.paths import os_error
from nfd.hostroot.tree import Tree, check_folder

T = TypeVar("T")

# Set by `attributed`; each thread starts without one.
_asking: ContextVar[str] = ContextVar("nfd.hostroot.asking", default="")


class Recorder:
    """What a host root answered; paths are as they were asked.

    Filled from several threads: every note is one dictionary assignment.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.folders: dict[str, list[str]] = {}  # entries, any order
        self.links: dict[str, str] = {}  # path -> target
        self.modes: dict[str, int] = {}  # path -> st_mode
        self.errors: dict[str, int] = {}  # path -> errno
        self.facts: dict[str, str] = {}  # see HostRoot.fact
        self.asked: dict[tuple[str, str], None] = {}  # (source, path)

    def paths_of(self, source: str) -> list[str]:
        """Return the paths that a source asked for, in order, failed ones included."""
        return [path for asker, path in list(self.asked) if asker == source]

    def note_fact(self, name: str, text: str) -> None:
        """Note a fact that is no file; its path is `/.nfd/<name>`."""
        self.asked[_asking.get(), f"/.nfd/{name}"] = None
        self.facts[name] = text

    def ask(
        self, notes: MutableMapping[str, T], path: str, answer: Callable[[], T]
    ) -> T:
        """Call `answer`, note what it says about `path`, and pass it on."""
        self.asked[_asking.get(), path] = None
        try:
            value = answer()
        except OSError as error:
            self.errors[path] = error.errno or 0
            raise
        notes[path] = value
        return value


class Attributed:
    """Attributes what this thread asks of host roots to a source, inside `with`."""

    __slots__ = ("_source", "_token")

    def __init__(self, source: str) -> None:
        self._source = source
        self._token: Token[str] | None = None

    def __enter__(self) -> None:
        self._token = _asking.set(self._source)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _asking.reset(self._token)


class RecordingTree:
    """Passes every question on to another tree and notes the answer."""

    def __init__(self, tree: Tree, recorder: Recorder) -> None:
        self._tree = tree
        self._to = recorder

    def read(self, path: str, limit: int) -> bytes:
        """Read a file whole."""
        return self._to.ask(self._to.files, path, lambda: self._tree.read(path, limit))

    def listdir(self, path: str) -> list[str]:
        """List a folder."""
        return self._to.ask(self._to.folders, path, lambda: self._tree.listdir(path))

    def mode(self, path: str) -> int:
        """Return the mode of what a path leads to."""
        return self._to.ask(self._to.modes, path, lambda: self._tree.mode(path))

    def readlink(self, path: str) -> str:
        """Return a link's target."""
        return self._to.ask(self._to.links, path, lambda: self._tree.readlink(path))

    def real_path(self, path: str) -> str:
        """Return the path without links; that is no answer about content."""
        return self._tree.real_path(path)

    def open_dir(self, path: str) -> tuple[int, bool] | None:
        """Say that there are no descriptors, so that every read comes through here."""
        check_folder(self.mode(path), path)
        return None

    def close(self) -> None:
        """Close the other tree."""
        self._tree.close()


class ErrorsTree:
    """Another tree in which reading or listing the given paths fails.

    Replays the errors that a capture recorded (`EIO` of a bad device stays one).
    """

    def __init__(self, tree: Tree, errors: Mapping[str, int]) -> None:
        self._tree = tree
        self._errors = errors

    def _check(self, path: str) -> None:
        number = self._errors.get(path)
        if number is not None:
            raise os_error(number, path)

    def read(self, path: str, limit: int) -> bytes:
        """Read a file whole."""
        self._check(path)
        return self._tree.read(path, limit)

    def listdir(self, path: str) -> list[str]:
        """List a folder."""
        self._check(path)
        return self._tree.listdir(path)

    def mode(self, path: str) -> int:
        """Return the mode of what a path leads to."""
        try:
            return self._tree.mode(path)
        except OSError:
            self._check(path)
            raise

    def readlink(self, path: str) -> str:
        """Return a link's target."""
        try:
            return self._tree.readlink(path)
        except OSError:
            self._check(path)
            raise

    def real_path(self, path: str) -> str:
        """Return the path without links."""
        return self._tree.real_path(path)

    def open_dir(self, path: str) -> tuple[int, bool] | None:
        """Say that there are no descriptors, so that every read comes through here."""
        self._check(path)
        check_folder(self.mode(path), path)
        return None

    def close(self) -> None:
        """Close the other tree."""
        self._tree.close()
