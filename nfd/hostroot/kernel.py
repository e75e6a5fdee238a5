"""System calls that Python lacks, through ctypes: openat2 and statfs."""

import ctypes
import errno
import os
import sys

SYSFS_MAGIC = 0x62656572  # statfs(2)
_OPENAT2 = 437  # the same on every architecture but alpha
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_IN_ROOT = 0x10
_TRIES = 8  # openat2(2): EAGAIN when a rename raced with `..`


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


_libc = ctypes.CDLL(None, use_errno=True)


def open_in_root(root_fd: int, path: str, flags: int) -> int:
    """Open `path` as if `root_fd` were the root folder: openat2(RESOLVE_IN_ROOT).

    Raises:
        OSError: As open(2) does, with `path`; ENOSYS or EPERM where the kernel (before
            5.6) or a seccomp filter does not know the call.

    """
    how = _OpenHow(flags, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
    name = os.fsencode(path)
    number = 0
    for _ in range(_TRIES):
        fd: int = _libc.syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(root_fd),
            ctypes.c_char_p(name),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if fd >= 0:
            return fd
        number = ctypes.get_errno()
        if number not in {errno.EAGAIN, errno.EINTR}:
            break
    raise OSError(number, os.strerror(number), path)


def has_open_in_root() -> bool:
    """Tell whether openat2 works here, by trying it on the real root folder."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        root_fd = os.open("/", os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.close(open_in_root(root_fd, "/", os.O_PATH | os.O_CLOEXEC))
    except OSError:
        return False
    finally:
        os.close(root_fd)
    return True


def file_system_magic(path: str) -> int:
    """Return statfs(2)'s `f_type` of a path, 0 when the call fails."""
    buffer = ctypes.create_string_buffer(256)
    if _libc.statfs(os.fsencode(path), buffer) != 0:
        return 0
    # f_type is a long first in the structure, an unsigned int on s390x.
    width = 4 if os.uname().machine == "s390x" else ctypes.sizeof(ctypes.c_long)
    return int.from_bytes(buffer.raw[:width], sys.byteorder)
