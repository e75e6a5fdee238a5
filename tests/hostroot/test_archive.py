"""Archives from anywhere: broken, hostile, too big, compressed or not."""

import bz2
import io
import lzma
import os
import tarfile
from pathlib import Path

import pytest

from nfd.errors import HostError
from nfd.hostroot import HostRoot
from nfd.hostroot.archive import ArchiveTree
from tests.hostroot.trees import TREE, pack, write_archive


def archive_of(folder: Path, *members: tarfile.TarInfo) -> str:
    file = folder / "hostile.tar"
    with tarfile.open(file, "w") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return str(file)


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    info.size = 1 if kind == tarfile.REGTYPE else 0
    return info


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([member("/etc/passwd")], "leads out"),
        ([member("host/../../etc/passwd")], "leads out"),
        ([member("host/dev/sda", tarfile.BLKTYPE)], "device"),
        ([member("host/dev/mem", tarfile.CHRTYPE)], "device"),
        ([member("host/fifo", tarfile.FIFOTYPE)], "FIFO"),
        ([member("host/x", tarfile.LNKTYPE, "../../etc/passwd")], "leads out"),
        ([member("host/x", tarfile.LNKTYPE, "host/none")], "hard link to nothing"),
        ([member("host/x", tarfile.SYMTYPE, "/etc"), member("host/x/p")], "already"),
        ([member("host/x"), member("host/x/y")], "already"),
        ([member("host/x/y"), member("host/x")], "folder has its name"),
        ([member("host/x"), member("host/x", tarfile.DIRTYPE)], "already"),
    ],
)
def test_hostile_members_are_refused(
    tmp_path: Path, members: list[tarfile.TarInfo], reason: str
) -> None:
    with pytest.raises(HostError, match=reason):
        HostRoot.open(archive_of(tmp_path, *members))


def test_a_link_out_stays_inside(tmp_path: Path) -> None:
    path = archive_of(
        tmp_path,
        member("host/sys", tarfile.DIRTYPE),
        member("host/out", tarfile.SYMTYPE, "/etc/passwd"),
        member("host/up", tarfile.SYMTYPE, "../../../../etc/passwd"),
    )
    with HostRoot.open(path) as host:
        assert host.read_optional("/out") is None
        assert host.read_optional("/up") is None


def test_a_bomb_is_refused_early(tmp_path: Path) -> None:
    info = member("host/zeros")
    info.size = 64 << 20
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    file = tmp_path / "bomb.tar.xz"
    file.write_bytes(lzma.compress(raw.getvalue(), preset=0))

    with pytest.raises(HostError, match="unpacks to more"):
        ArchiveTree(str(file), max_unpacked=1 << 20)


def test_too_many_entries_are_refused(tmp_path: Path) -> None:
    """Folders that a name only implies count too."""
    file = tmp_path / "many.tar"
    file.write_bytes(pack({"/a/" * 50 + "x": b""}))
    ArchiveTree(str(file), max_entries=60).close()

    with pytest.raises(HostError, match="more entries"):
        ArchiveTree(str(file), max_entries=50)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ""])
def test_a_damaged_archive_is_an_error(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"damaged.tar{suffix}"
    data = bytearray(write_archive(file).read_bytes())
    data[len(data) // 3 : len(data) // 3 + 40] = b"\xa5" * 40
    data[148:156] = b"\xff" * 8  # the checksum of a plain tar's first header
    file.write_bytes(data)

    with pytest.raises(HostError, match=r"damaged\.tar"):
        HostRoot.open(str(file))


def test_a_cut_off_archive_is_an_error(tmp_path: Path) -> None:
    whole = lzma.compress(pack(TREE))
    file = tmp_path / "cut.tar.xz"
    file.write_bytes(whole[: len(whole) // 2])

    with pytest.raises(HostError, match=r"cut\.tar\.xz"):
        HostRoot.open(str(file))


def test_what_exceeds_the_memory_budget_goes_to_a_nameless_file(tmp_path: Path) -> None:
    file = tmp_path / "a.tar"
    file.write_bytes(pack(TREE))
    before = set(os.listdir(tmp_path))
    tree = ArchiveTree(str(file), memory_budget=16)
    try:
        for path, entry in TREE.items():
            if isinstance(entry, bytes):
                assert entry == tree.read(path, 1 << 20)
        assert before == set(os.listdir(tmp_path))
    finally:
        tree.close()

    with pytest.raises(OSError, match="Errno"):
        tree.read("/proc/version", 1 << 20)


def test_hard_links_and_other_compressions(tmp_path: Path) -> None:
    plain = archive_of(
        tmp_path,
        member("host/sys/a"),
        member("host/sys/b", tarfile.LNKTYPE, "host/sys/a"),
    )
    file = tmp_path / "x.tar.bz2"
    file.write_bytes(bz2.compress(Path(plain).read_bytes()))
    with HostRoot.open(str(file)) as host:
        assert host.read("/sys/b") == "x"


def test_one_top_folder_is_the_root_unless_it_is_one_of_a_root(tmp_path: Path) -> None:
    file = tmp_path / "a.tar"
    file.write_bytes(pack({"/kernel/x": b"1"}, top="sys/"))
    with HostRoot.open(str(file)) as host:
        assert host.read("/sys/kernel/x") == "1"
    file.write_bytes(pack({"/sys/x": b"1"}, top="my-host/"))
    with HostRoot.open(str(file)) as host:
        assert host.read("/sys/x") == "1"
    file.write_bytes(pack({"/.nfd/uname": b"x", "/sys/x": b"1"}, top="sys/"))
    with HostRoot.open(str(file)) as host:
        assert host.read("/sys/x") == "1"
