"""One small host in every form that a host root can have."""

import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from nfd.hostroot import HostRoot, Recorder
from nfd.hostroot.disk import FolderTree

DEVICE = "/sys/devices/pci0000:00/0000:00:01.0"


@attrs.frozen
class To:
    """A link."""

    target: str


TREE: Mapping[str, bytes | To] = {
    f"{DEVICE}/vendor": b"0x10de\n",
    f"{DEVICE}/empty": b"",
    f"{DEVICE}/latin": b"caf\xe9\n",
    f"{DEVICE}/spaces": " \u2003two words\u00a0\n".encode(),
    f"{DEVICE}/iommu_group/type": b"DMA\n",
    f"{DEVICE}/page": b"x" * 5000,
    f"{DEVICE}/driver": To("../../../bus/pci/drivers/nvidia"),
    f"{DEVICE}/alias": To("vendor"),
    "/sys/bus/pci/devices/0000:00:01.0": To("../../../devices/pci0000:00/0000:00:01.0"),
    "/etc/os-release": To("../usr/lib/os-release"),
    "/usr/lib/os-release": b"ID=test\n",
    "/etc/absolute": To("/usr/lib/os-release"),
    "/etc/out": To("../../../../../../../../etc/passwd"),
    "/etc/passwd": b"inside\n",
    "/etc/loop": To("loop2"),
    "/etc/loop2": To("loop"),
    "/etc/dangling": To("/nowhere/at/all"),
    "/proc/version": b"Linux version 6.1\n",
}


def write_folder(folder: Path, *, prefix: str = "") -> Path:
    """Write the tree below a folder; each top folder's name starts with `prefix`."""
    for path, entry in TREE.items():
        file = folder / (prefix + path[1:])
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(entry, To):
            file.symlink_to(entry.target)
        else:
            file.write_bytes(entry)
    return folder


def pack(tree: Mapping[str, bytes | To], top: str = "machine/") -> bytes:
    """Pack a tree into a tar, below the folder `top`."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path, entry in tree.items():
            member = tarfile.TarInfo(top + path[1:])
            if isinstance(entry, To):
                member.type = tarfile.SYMTYPE
                member.linkname = entry.target
                archive.addfile(member)
            else:
                member.size = len(entry)
                archive.addfile(member, io.BytesIO(entry))
    return raw.getvalue()


def write_archive(file: Path, *, top: str = "machine/") -> Path:
    """Write the tree into an archive, compressed as the name says."""
    data = pack(TREE, top)
    if file.suffix == ".gz":
        data = gzip.compress(data)
    elif file.suffix == ".xz":
        data = lzma.compress(data)
    file.write_bytes(data)
    return file


def walking(folder: Path) -> HostRoot:
    """Open a folder as where the kernel lacks openat2."""
    host = HostRoot(str(folder))
    host.close()
    host._plain = host._tree = FolderTree(str(folder), walk=True)
    return host


def below_prefix(folder: Path) -> HostRoot:
    write_folder(folder, prefix="host-")
    return HostRoot(os.fspath(folder / "host-"), live=False)


def archived(name: str, top: str = "machine/") -> Callable[[Path], HostRoot]:
    return lambda folder: HostRoot(str(write_archive(folder / name, top=top)))


FORMS: Mapping[str, Callable[[Path], HostRoot]] = {
    "folder": lambda folder: HostRoot(str(write_folder(folder))),
    "folder-walk": lambda folder: walking(write_folder(folder)),
    "folder-recorded": lambda folder: HostRoot(
        str(write_folder(folder)), record=Recorder()
    ),
    "folder-live": lambda folder: HostRoot(str(write_folder(folder)), live=True),
    "prefix": below_prefix,
    "tar": archived("a.tar"),
    "tar.gz": archived("a.tar.gz"),
    "tar.xz": archived("a.tar.xz"),
    "tar-no-top": archived("a.tar", ""),
    "tar-dot-top": archived("a.tar", "./"),
}
