"""Every form of a host root answers alike."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nfd.errors import HostError
from nfd.hostroot import HostRoot
from tests.hostroot.trees import DEVICE, FORMS, write_folder

ALIAS = "/sys/bus/pci/devices/0000:00:01.0"


@pytest.fixture(params=sorted(FORMS))
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HostRoot]:
    with FORMS[request.param](tmp_path) as opened:
        yield opened


def test_reads_through_links(host: HostRoot) -> None:
    assert host.read_optional(f"{ALIAS}/vendor") == "0x10de"
    assert host.read(f"{DEVICE}/vendor") == "0x10de\n"
    assert host.read_bytes(f"{ALIAS}/page") == b"x" * 5000
    assert host.read_optional("/etc/os-release") == "ID=test"
    assert host.read_optional("/etc/absolute") == "ID=test"


def test_links_never_lead_out(host: HostRoot) -> None:
    assert host.read_optional("/etc/out") == "inside"
    assert host.read_optional("/../../etc/passwd") == "inside"
    assert host.read_optional("/sys/../etc/./passwd") == "inside"
    assert host.real_path("/etc/out") == "/etc/passwd"


def test_text_is_trimmed_and_never_fails_to_decode(host: HostRoot) -> None:
    assert host.read_optional(f"{DEVICE}/spaces") == "two words"
    assert host.read_optional(f"{DEVICE}/latin") == "caf\ufffd"
    assert host.read_optional(f"{DEVICE}/empty") == ""


@pytest.mark.parametrize(
    "path",
    [
        "/sys/none",
        "/none/at/all",
        "/etc/dangling",
        "/etc/loop",
        f"{DEVICE}/vendor/below",
        "/etc/dangling/below",
    ],
)
def test_what_is_not_there_is_none(host: HostRoot, path: str) -> None:
    assert host.read_optional(path) is None
    assert not host.exists(path)
    assert not host.is_dir(path)
    assert host.mode(path) is None
    with pytest.raises(OSError, match="Errno") as caught:
        host.read(path)

    assert path == caught.value.filename


def test_lists_sorted_by_bytes(host: HostRoot) -> None:
    assert [
        name
        for name in host.listdir("/etc")
        if name not in {"os-release", "out", "passwd"}
    ] == ["absolute", "dangling", "loop", "loop2"]
    assert host.listdir("/sys/bus/pci/devices") == ["0000:00:01.0"]
    with pytest.raises(FileNotFoundError) as caught:
        host.listdir("/sys/none")

    assert caught.value.filename == "/sys/none"


def test_kinds(host: HostRoot) -> None:
    assert host.is_dir(ALIAS)
    assert not host.is_dir(f"{ALIAS}/vendor")
    assert host.exists(f"{ALIAS}/vendor")
    assert (
        host.kind(ALIAS),
        host.kind(f"{ALIAS}/vendor"),
        host.kind("/none"),
    ) == ("folder", "file", "")


def test_links_tell_their_target(host: HostRoot) -> None:
    assert host.link_name(f"{ALIAS}/driver") == "nvidia"
    assert host.readlink("/etc/os-release") == "../usr/lib/os-release"
    assert host.link_name(f"{ALIAS}/vendor") is None
    assert host.link_name(f"{ALIAS}/none") is None


def test_a_folder_is_no_file(host: HostRoot) -> None:
    with pytest.raises(OSError, match="Errno") as caught:
        host.read_bytes(DEVICE)

    assert caught.value.filename == DEVICE


def test_reading_stops_at_the_limit(host: HostRoot) -> None:
    assert len(host.read_bytes(f"{DEVICE}/page", limit=5000)) == 5000
    with pytest.raises(OSError, match="Errno") as caught:
        host.read_bytes(f"{DEVICE}/page", limit=4999)

    assert (errno.EFBIG, f"{DEVICE}/page") == (
        caught.value.errno,
        caught.value.filename,
    )


def test_a_folder_reads_its_files_by_name(host: HostRoot) -> None:
    names = ("vendor", "none", "page", "alias", "iommu_group/type", "latin", "driver")
    errors: list[OSError] = []
    with host.dir(ALIAS) as device:
        values = device.read_many(names, errors)
        assert device.read_optional("alias") == "0x10de"
        assert device.link_name("driver") == "nvidia"
        assert device.link_name("vendor") is None
        assert device.exists("vendor")
        assert not device.exists("none")
        assert "vendor" in device.listdir()

    assert values == {
        "vendor": "0x10de",
        "page": "x" * 5000,
        "alias": "0x10de",
        "iommu_group/type": "DMA",
        "latin": "caf\ufffd",
    }
    assert errors == []


def test_opening_what_is_no_folder_is_an_error(host: HostRoot) -> None:
    with pytest.raises(NotADirectoryError):
        host.dir(f"{DEVICE}/vendor")
    with pytest.raises(FileNotFoundError) as caught:
        host.dir("/sys/none")

    assert caught.value.filename == "/sys/none"


def test_names_with_links_are_resolved_inside(tmp_path: Path) -> None:
    """A link of a captured folder must not be followed by the fast path either."""
    write_folder(tmp_path)
    (tmp_path / "sys/evil").symlink_to("/etc/hostname")
    (tmp_path / "sys/evil-folder").symlink_to("/etc")
    with HostRoot(str(tmp_path)) as host, host.dir("/sys") as sys_folder:
        assert sys_folder.read_optional("evil") is None
        assert sys_folder.read_optional("evil-folder/passwd") == "inside"


def test_a_fifo_or_device_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    os.mkfifo(tmp_path / "sys/fifo")
    with HostRoot(str(tmp_path)) as host:
        with pytest.raises(OSError, match="Errno") as caught:
            host.read("/sys/fifo")
        with host.dir("/sys") as folder:
            assert folder.read_optional("fifo") is None

    assert caught.value.errno == errno.EINVAL


def test_nothing_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for form in FORMS.values():
        folder = tmp_path / str(len(os.listdir(tmp_path)))
        folder.mkdir()
        with form(folder) as host:
            with host.dir(ALIAS) as device:
                device.read_many(("vendor", "none", "alias", "iommu_group"), [])
            host.listdir(ALIAS)
            host.exists("/none")
    with HostRoot() as host, host.dir("/sys/class/net") as net:
        net.read_optional("lo/mtu")

    assert before == len(os.listdir("/proc/self/fd"))


def test_roots_that_are_none(tmp_path: Path) -> None:
    text = tmp_path / "x.txt"
    text.write_text("x")
    broken = tmp_path / "x.tar.gz"
    broken.write_bytes(b"\x1f\x8b" + b"junk" * 100)
    for root, words in (
        (str(tmp_path / "none"), "no such folder"),
        (str(tmp_path / "none-"), "is mounted"),
        (str(text), "neither a folder nor"),
        (str(broken), "x.tar.gz"),
    ):
        with pytest.raises(HostError, match=words):
            HostRoot.open(root)
