"""Pure work on host paths and on the text of small kernel files."""

import errno
import os
from collections.abc import Callable

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
MAX_LINKS = 40  # as the kernel's MAXSYMLINKS
SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def trim(text: str) -> str:
    """Trim Unicode white space as Go's strings.TrimSpace does (spec section 8)."""
    return text.strip(SPACE)


def os_error(number: int, path: str) -> OSError:
    """Build the OSError (of the right subclass) for an errno and a host path."""
    return OSError(number, os.strerror(number), path)


class naming:  # noqa: N801 - reads as a statement: with naming(path)
    """Gives OSErrors of a block the host path as their `filename`."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, OSError):
            error.filename = self._path


def resolve(
    path: str, readlink: Callable[[str], str | None], *, last: bool = True
) -> str:
    """Resolve all links of a host path inside its root, purely; absolute ones too.

    `readlink` gets a path whose parents are resolved and returns the link's target,
    None for anything that is no link. `..` above the root stays at the root. With
    `last=False` a link in the last place is kept. Components that do not exist are
    kept as they are.

    Raises:
        OSError: ELOOP after 40 links.

    """
    parts = [p for p in reversed(path.split("/")) if p and p != "."]
    done: list[str] = []
    links = 0
    while parts:
        part = parts.pop()
        if part == "..":
            del done[-1:]
            continue
        here = "/".join(["", *done, part])
        target = readlink(here) if parts or last else None
        if target is None:
            done.append(part)
            continue
        links += 1
        if links > MAX_LINKS:
            raise os_error(errno.ELOOP, path)
        if target.startswith("/"):
            done.clear()
        parts += [p for p in reversed(target.split("/")) if p and p != "."]
    return "/" + "/".join(done)
