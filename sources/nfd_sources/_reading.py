"""What the host sources share: reading attribute files, keeping account of gaps."""

import contextlib
import sys
from collections.abc import Iterable, Iterator

from nfd.hostroot import NOT_THERE, HostRoot

DEBUG, INFO, WARNING = 10, 20, 30  # as in logging


def report(level: int, event: str, *args: object) -> None:
    """Log an event; `logging`, 4 ms of a scan, is loaded for warnings only.

    While nobody has loaded it, nobody has asked for lower levels.
    """
    if level >= WARNING or "logging" in sys.modules:
        import logging  # noqa: PLC0415 - see above

        logging.getLogger("nfd_sources").log(level, event, *args)


class Gaps:
    """Keeps account of what one discovery could not read or did not accept.

    `unknown` and `notes` become the fields of `Features` with the same names.
    """

    def __init__(self) -> None:
        self.unknown: dict[str, str] = {}
        self.notes: dict[str, str] = {}

    def unread(self, key: str, element: str, errors: Iterable[OSError]) -> None:
        """Count `element` of the set `key` as not, or not completely, known."""
        self.unanswered(key, element, "; ".join(describe(error) for error in errors))

    def unanswered(self, key: str, element: str, reason: str) -> None:
        """Count `element` of the set `key` as not, or not completely, known."""
        self.unknown.setdefault(key, f"{element}: {reason}" if element else reason)
        self.notes[f"{key}/{element}"] = reason
        report(
            WARNING, "unreadable feature=%s element=%s error=%s", key, element, reason
        )

    def refused(self, key: str, element: str, reason: str) -> None:
        """Count `element` of the set `key` as left out, and say why."""
        self.notes[f"{key}/{element}"] = reason
        report(
            WARNING, "left out feature=%s element=%s reason=%s", key, element, reason
        )

    @contextlib.contextmanager
    def reading(self, key: str, element: str = "") -> Iterator[None]:
        """Turn an OSError of the block into a gap of the set `key`."""
        try:
            yield
        except OSError as error:
            self.unread(key, element, (error,))


def describe(error: OSError) -> str:
    """Return `path: message` of an error."""
    text = error.strerror or str(error)
    return f"{error.filename}: {text}" if error.filename else text


def read_folder(
    host: HostRoot, path: str, names: Iterable[str], errors: list[OSError]
) -> dict[str, str]:
    """Read the named files of a folder, as `HostDir.read_many` does.

    A folder that is not there has no files.
    """
    try:
        with host.dir(path) as folder:
            return folder.read_many(names, errors)
    except OSError as error:
        if error.errno not in NOT_THERE:
            errors.append(error)
        return {}


def entries(host: HostRoot, path: str) -> list[str] | None:
    """List a folder, sorted; None when it is not there.

    Raises:
        OSError: It is there, but cannot be listed.

    """
    try:
        return host.listdir(path)
    except OSError as error:
        if error.errno in NOT_THERE:
            return None
        raise


def word(yes: bool) -> str:  # noqa: FBT001 - it is the value to convert
    """Return `true` or `false`, as features hold them."""
    return "true" if yes else "false"


def is_positive(text: str | None) -> bool:
    """Tell whether a text is a decimal integer above zero."""
    return (
        text is not None and text.isascii() and text.isdigit() and text.strip("0") != ""
    )
