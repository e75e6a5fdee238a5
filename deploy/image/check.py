"""Checks an unpacked image: bytecode, rights, links, libraries, contents, size.

Usage: check.py ROOT. Prints the size and what is wrong; exits with 1 if anything is.
Needs Python's standard library only, of any version.
"""

import _imp
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterator

USER = GROUP = 65534
MAX_BYTES = 130_000_000
GOAL_BYTES = 90_000_000
BILL = "usr/share/node-feature-discovery.cdx.json"
COMMANDS = (
    "gpu-feature-discovery",
    "kubectl-nfd",
    "nfd",
    "nfd-gc",
    "nfd-master",
    "nfd-worker",
)
UNWANTED = ("kubernetes", "rich", "pip", "setuptools")
_UNCHECKED_HASH = 0b01


def walk(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """Return every file and folder below `root`, with its own (not a target's) status."""
    for folder, folders, files in os.walk(root):
        for name in sorted([*folders, *files]):
            path = os.path.join(folder, name)
            yield path, os.lstat(path)


def bytecode_problems(root: str) -> Iterator[str]:
    """Find modules whose bytecode is missing, old, or checked at run time."""
    for path, status in walk(root):
        if not path.endswith(".py") or not stat.S_ISREG(status.st_mode):
            continue
        folder, name = os.path.split(path)
        cache = os.path.join(folder, "__pycache__")
        stem = name.removesuffix(".py") + ".cpython-"
        found = [
            os.path.join(cache, entry)
            for entry in (os.listdir(cache) if os.path.isdir(cache) else ())
            if entry.startswith(stem) and entry.endswith(".pyc")
        ]
        if not found:
            yield f"no bytecode: {path}"
            continue
        with open(path, "rb") as source, open(found[0], "rb") as compiled:
            header = compiled.read(16)
            # NB: importlib.util.source_hash takes the magic number of this Python.
            magic = int.from_bytes(header[:4], "little")
            digest = _imp.source_hash(magic, source.read())
        if struct.unpack("<I", header[4:8]) != (_UNCHECKED_HASH,):
            yield f"bytecode is checked at run time: {found[0]}"
        elif header[8:] != digest:
            yield f"bytecode of another source: {found[0]}"


def right_problems(root: str) -> Iterator[str]:
    """Find what the user of the image may write, and set-user-ID programs."""
    for path, status in walk(root):
        mode = status.st_mode
        if stat.S_ISLNK(mode):
            continue
        if (
            mode & stat.S_IWOTH
            or (status.st_uid == USER and mode & stat.S_IWUSR)
            or (status.st_gid == GROUP and mode & stat.S_IWGRP)
            or status.st_uid == USER  # an owner may change the mode
        ):
            yield f"writable by the user: {path}"
        if mode & (stat.S_ISUID | stat.S_ISGID):
            yield f"runs as another user: {path}"
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            yield f"neither file nor folder: {path}"


def content_problems(root: str) -> Iterator[str]:
    """Find commands and the bill of materials missing, and packages not wanted."""
    for name in COMMANDS:
        if not os.access(os.path.join(root, "usr/bin", name), os.X_OK):
            yield f"no command: {name}"
    if not os.path.exists(os.path.join(root, BILL)):
        yield f"no bill of materials: {BILL}"
    for path, status in walk(root):
        name = os.path.basename(path)
        if stat.S_ISDIR(status.st_mode) and "-packages/" in path and name in UNWANTED:
            yield f"not wanted: {path}"
        if name in {"sh", "bash", "dash", "busybox"} and "/bin/" in path:
            yield f"a shell: {path}"


def link_problems(root: str) -> Iterator[str]:
    """Find symbolic links that lead nowhere."""
    for path, status in walk(root):
        if not stat.S_ISLNK(status.st_mode):
            continue
        target = os.readlink(path)
        base = root if target.startswith("/") else os.path.dirname(path)
        if not os.path.lexists(os.path.join(base, target.lstrip("/"))):
            yield f"leads nowhere: {path} -> {target}"


def library_problems(root: str) -> Iterator[str]:
    """Find shared libraries that a program or library names and the image lacks."""
    needed: dict[str, str] = {}
    present = set()
    for path, status in walk(root):
        present.add(os.path.basename(path))
        if stat.S_ISREG(status.st_mode):
            for name in needed_libraries(path):
                needed.setdefault(name, path)
    for name, path in sorted(needed.items()):
        if name not in present:
            yield f"no library {name}, which {path} needs"


def needed_libraries(path: str) -> tuple[str, ...]:
    """Read the DT_NEEDED names of a 64-bit little-endian ELF file (elf(5))."""
    with open(path, "rb") as file:
        if file.read(6) != b"\x7fELF\x02\x01":
            return ()
        file.seek(0)
        image = file.read()
    (header_offset,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    segments = [
        struct.unpack_from("<IIQQQQ", image, header_offset + i * size)
        for i in range(count)
    ]
    loads = [
        (addr, offset, length)
        for kind, _, offset, addr, _, length in segments
        if kind == 1
    ]
    entries: list[tuple[int, int]] = []
    for kind, _, offset, _, _, length in segments:
        if kind == 2:  # PT_DYNAMIC
            dynamic = image[offset : offset + length // 16 * 16]
            entries += struct.iter_unpack("<qQ", dynamic)
    strings = [value for tag, value in entries if tag == 5]  # DT_STRTAB
    if not strings:
        return ()
    table = next(
        offset + strings[0] - addr
        for addr, offset, length in loads
        if addr <= strings[0] < addr + length
    )
    names = [table + value for tag, value in entries if tag == 1]  # DT_NEEDED
    return tuple(image[at : image.index(b"\0", at)].decode() for at in names)


def size_of(root: str) -> int:
    """Return the bytes of all files."""
    return sum(s.st_size for _, s in walk(root) if stat.S_ISREG(s.st_mode))


CHECKS: tuple[Callable[[str], Iterator[str]], ...] = (
    bytecode_problems,
    right_problems,
    content_problems,
    link_problems,
    library_problems,
)


def main(root: str) -> int:
    """Check the image below `root`."""
    problems = [problem for check in CHECKS for problem in check(root)]
    size = size_of(root)
    print(f"{size / 1e6:.1f} MB unpacked (goal {GOAL_BYTES / 1e6:.0f})")
    if size > MAX_BYTES:
        problems.append(f"larger than {MAX_BYTES / 1e6:.0f} MB")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
