"""The forms in which a host root is given, and whether one is live."""

import errno
import os
import re

from nfd.errors import HostError
from nfd.hostroot.live import LiveTree, os_is_real
from nfd.hostroot.paths import NOT_THERE
from nfd.hostroot.record import ErrorsTree
from nfd.hostroot.tree import Tree

ERRORS_FILE = "/.nfd/errors"  # lines of `<ERRNO NAME> <path>`
# What upstream's images mount (spec section 0.1); one of them makes a prefix a root.
_MOUNTS = ("sys", "proc", "etc", "boot", "lib", "usr", "var")
_ARCHIVE = re.compile(r"\.(tar(\.(gz|xz|bz2))?|tgz|txz)$")


def open_tree(path: str, *, live: bool | None) -> tuple[Tree, bool]:
    """Open a root in any form; return its tree and whether it is live.

    Raises:
        HostError: There is no such root.

    """
    if path == "/":
        return LiveTree(), live is not False
    if os.path.isdir(path):
        tree, detected = _folder(path)
    elif path.endswith("-"):
        tree, detected = _prefix(path), True
    elif _ARCHIVE.search(path) and os.path.exists(path):
        from nfd.hostroot.archive import ArchiveTree  # noqa: PLC0415 - tarfile is slow

        tree, detected = ArchiveTree(path), False
    elif os.path.exists(path):
        raise HostError(f"host root {path!r}: neither a folder nor a .tar archive")
    else:
        raise HostError(f"host root {path!r}: no such folder or archive")
    is_live = detected if live is None else live
    if is_live:
        from nfd.hostroot.own_view import OwnViewTree  # noqa: PLC0415 - mounted roots only

        return OwnViewTree(tree, LiveTree()), True
    errors = _recorded_errors(tree)
    return ErrorsTree(tree, errors) if errors else tree, False


def _folder(path: str) -> tuple[Tree, bool]:
    from nfd.hostroot.disk import FolderTree  # noqa: PLC0415 - ctypes: not for "/"

    try:
        rest = FolderTree(path)
    except OSError as error:
        raise HostError(f"host root {path!r}: {error.strerror}") from error
    return _with_sysfs(path.rstrip("/") + "/", rest)


def _prefix(prefix: str) -> Tree:
    from nfd.hostroot.disk import PrefixTree  # noqa: PLC0415 - ctypes: not for "/"

    if not any(os.path.isdir(prefix + name) for name in _MOUNTS):
        raise HostError(
            f"host root {prefix!r}: none of {prefix}sys, {prefix}proc, {prefix}etc,"
            " … is mounted"
        )
    return _with_sysfs(prefix, PrefixTree(prefix))[0]


def _with_sysfs(start: str, rest: Tree) -> tuple[Tree, bool]:
    """Put `<start>sys` past the path resolving; also tell whether it is a sysfs."""
    from nfd.hostroot import disk, kernel  # noqa: PLC0415 - ctypes: not for "/"

    mount = start + "sys"
    if (
        not os_is_real()
        or os.path.islink(mount)
        or kernel.file_system_magic(mount) != kernel.SYSFS_MAGIC
    ):
        return rest, False
    return disk.MountedTree(disk.SysfsTree(mount), rest), True


def _recorded_errors(tree: Tree) -> dict[str, int]:
    try:
        text = tree.read(ERRORS_FILE, 1 << 20).decode("utf-8", "replace")
    except OSError as error:
        if error.errno in NOT_THERE:
            return {}
        raise HostError(f"{ERRORS_FILE} of the host root: {error.strerror}") from error
    pairs = (line.split(" ", 1) for line in text.splitlines() if " " in line)
    return {path: getattr(errno, name, errno.EIO) for name, path in pairs}
