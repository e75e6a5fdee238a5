"""Writes captures: archives of what the sources read of a host, redacted.

A capture holds one folder with the files, folders and links that answered, at their real
places, so that `nfd scan --root CAPTURE` reads the same; and `.nfd/` with what is no file:
`uname` (the machine word), facts such as `cpuid` and `auxv`, `errors` (reads that failed,
`<ERRNO> <path>` a line) and `meta.json`. Equal hosts give equal bytes.
"""

import errno
import io
import json
import lzma
import os
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import attrs

from nfd._version import __version__
from nfd.errors import HostError
from nfd.hostroot import NOT_THERE, HostRoot, Recorder
from nfd.redaction import Redactor

FORMAT = 1


@attrs.frozen(slots=True)
class Link:
    """A link as it is written."""

    target: str


Entry: TypeAlias = bytes | Link | None  # a file's content, a link, a folder


@attrs.frozen(slots=True)
class Written:
    """What was written: bytes of the archive, and how much it holds."""

    size: int
    files: int
    links: int
    redacted: Mapping[str, int]  # kind of value -> how many different ones


def write(host: HostRoot, out_path: str, sources: Iterable[str] = ()) -> Written:
    """Write what `host` answered since it was opened with a `Recorder`.

    Args:
        host: A root opened with `record=`; run the sources on it first.
        out_path: The archive, replaced as a whole; its name without the suffixes is the
            name of the folder inside.
        sources: The names of the sources that ran, for `meta.json`.

    Raises:
        HostError: The host does not record, or the archive cannot be written.

    """
    if host.recorder is None:
        raise HostError(f"host root {host.path!r} was opened without a recorder")
    recorder = host.recorder
    redactor = Redactor(_host_names(host, recorder))
    tree = redact(collect(host, recorder), redactor)
    meta = {
        "format": FORMAT,
        "nfd": __version__,
        "redacted": redactor.counts,
        "sources": sorted(sources),
    }
    text = json.dumps(meta, indent=2, sort_keys=True) + "\n"
    tree["/.nfd/meta.json"] = text.encode()
    name = os.path.basename(out_path)
    for suffix in (".xz", ".txz", ".tar"):
        name = name.removesuffix(suffix)
    data = pack(tree, name or "host")
    _replace(out_path, data)
    return Written(
        len(data),
        sum(isinstance(entry, bytes) for entry in tree.values()),
        sum(isinstance(entry, Link) for entry in tree.values()),
        redactor.counts,
    )


def collect(host: HostRoot, recorder: Recorder) -> dict[str, Entry]:
    """Place all that answered at its real path, with the links that lead there.

    The recorder may grow meanwhile: a source that timed out can still be reading.
    """
    links: dict[str, str | None] = {}
    tree: dict[str, Entry] = {}

    for path, names in list(recorder.folders.items()):
        real = host.follow(path, links)
        tree[real] = None
        for name in names:
            child = f"{real.rstrip('/')}/{name}"
            host.follow(child, links)
            if links.get(child) is None:
                tree.setdefault(child, None if host.kind(child) == "folder" else b"")
    for path in list(recorder.modes):
        real = host.follow(path, links)
        tree.setdefault(real, None if host.kind(real) == "folder" else b"")
    for path, target in list(recorder.links.items()):
        parent, _, name = path.rpartition("/")
        links[f"{host.follow(parent, links).rstrip('/')}/{name}"] = target
    for path, content in list(recorder.files.items()):
        tree[host.follow(path, links)] = content
    tree.update({p: Link(to) for p, to in links.items() if to is not None})
    failed = {
        path: errno.errorcode.get(number, "EIO")
        for path, number in sorted(recorder.errors.items())
        if number not in NOT_THERE or host.follow(path, links) in tree
    }
    tree = {p: e for p, e in tree.items() if p != "/" and not p.startswith("/.nfd")}
    for name, text in recorder.facts.items():
        tree[f"/.nfd/{name}"] = text.encode()
    tree["/.nfd/uname"] = f"{host.arch}\n".encode()
    if failed:
        lines = [f"{name} {path}\n" for path, name in failed.items()]
        tree["/.nfd/errors"] = "".join(lines).encode()
    return tree


def redact(tree: Mapping[str, Entry], redactor: Redactor) -> dict[str, Entry]:
    """Redact contents, names and targets, in the order of the paths; pure."""
    done: dict[str, Entry] = {}
    for path, entry in sorted(tree.items()):
        new: Entry = entry
        if isinstance(entry, Link):
            new = Link(redactor.name(entry.target))
        elif entry is not None:
            new = redactor.content(path, entry)
        done[redactor.name(path)] = new
    return done


def pack(tree: Mapping[str, Entry], name: str) -> bytes:
    """Pack a tree into a tar.xz with one folder `name`; equal trees, equal bytes."""
    folders = {parent for path in tree for parent in _parents(path)}
    whole = {**dict.fromkeys(folders), **tree}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, entry in sorted(whole.items()):
            member = tarfile.TarInfo(f"{name}{path}".rstrip("/"))
            member.mode = 0o755 if entry is None else 0o644
            if entry is None:
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
            elif isinstance(entry, Link):
                member.type = tarfile.SYMTYPE
                member.linkname = entry.target
                archive.addfile(member)
            else:
                member.size = len(entry)
                archive.addfile(member, io.BytesIO(entry))
    return lzma.compress(raw.getvalue(), preset=9)


def _parents(path: str) -> Iterable[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path or "/"


def _host_names(host: HostRoot, recorder: Recorder) -> list[str]:
    files = ("/etc/hostname", "/proc/sys/kernel/hostname")
    names = [
        recorder.files.get(f, b"").decode("utf-8", "replace").strip() for f in files
    ]
    names.append(recorder.facts.get("node_name", ""))
    if host.live:
        names.append(os.uname().nodename)
    return names


def _replace(path: str, data: bytes) -> None:
    folder = os.path.dirname(path) or "."
    try:
        fd, temporary = tempfile.mkstemp(prefix=".nfd-", dir=folder)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise HostError(f"capture {path!r}: {error.strerror}") from error
