"""Picks the files that tell most about an answer from what a host root recorded."""

import contextlib
import errno
import os
import re
import zlib
from collections.abc import Iterable

import attrs

from nfd.hostroot import DEFAULT_LIMIT, Recorder

MAX_FILES = 24  # of the answers shown
MAX_ABSENT = 8  # of the answers shown for something that is not there
MAX_LINES = 3  # of a file shown
MAX_TEXT = 200  # characters of a file's content shown


@attrs.frozen(slots=True)
class FileRead:
    """One file that a source asked for and what it answered."""

    path: str
    content: str  # trimmed and cut; "" when it did not answer
    error: str = ""


def files(
    recorded: Recorder, source: str, words: Iterable[str], *, absent: bool = False
) -> tuple[tuple[FileRead, ...], int]:
    """List what a source read, narrowed to files whose path or content has a word.

    The first word that any file has decides; without one all files are listed. For
    something absent, unusual errors come first and missing files are told.
    """
    paths = [
        p
        for p in dict.fromkeys(recorded.paths_of(source))
        if p in recorded.files
        or p in recorded.errors
        or (absent and p in recorded.folders)
    ]
    word = ""
    for candidate in words:
        named = [
            p
            for p in paths
            if candidate in p.split("/")
            or f"{p}/".startswith(f"{candidate}/")
            or (not absent and _lines_with(candidate, _text(recorded, p)))
        ]
        if candidate and named:
            word, paths = candidate, named
            break
    most = MAX_FILES
    if absent:
        most = MAX_ABSENT
        paths.sort(key=lambda p: recorded.errors.get(p, 0) in (0, errno.ENOENT))
    shown = tuple(_file(recorded, path, word) for path in paths[:most])
    return shown, len(paths) - len(shown)


def _file(recorded: Recorder, path: str, word: str) -> FileRead:
    if path in recorded.folders and path not in recorded.files:
        return FileRead(path, f"folder of {len(recorded.folders[path])}")
    if path not in recorded.files:
        return FileRead(path, "", os.strerror(recorded.errors[path]))
    text = _text(recorded, path)
    if not text.isprintable() and "\0" in text:
        return FileRead(path, f"{len(recorded.files[path])} bytes")
    lines = text.split("\n")
    if len(lines) > 1:
        chosen = _lines_with(word, text) or lines
        text = "\n".join(chosen[:MAX_LINES])
        if len(chosen) > MAX_LINES:
            text += f"\n... {len(chosen)} lines"
    return FileRead(
        path, text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
    )


def _lines_with(word: str, text: str) -> list[str]:
    """Return the lines that hold the word; `CONFIG_` or such may stand before it."""
    if not word or word not in text:
        return []
    pattern = re.compile(rf"(?<![A-Za-z0-9]){re.escape(word)}(?!\w)")
    return [line for line in text.split("\n") if pattern.search(line)]


def _text(recorded: Recorder, path: str) -> str:
    data = recorded.files.get(path, b"")
    if data.startswith(b"\x1f\x8b"):
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        with contextlib.suppress(zlib.error):
            data = unpacker.decompress(data, DEFAULT_LIMIT)
    return data.decode("utf-8", "replace").strip()
