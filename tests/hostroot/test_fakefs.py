"""HostRoot on pyfakefs.

A faked `os` is noticed by itself (its functions are Python functions): HostRoot then holds
no descriptors and makes no system call through ctypes; paths are resolved component by
component. Tests of sources need no switch: build the tree, then open the root.
"""

import errno
from collections.abc import Iterator

import pytest
from pyfakefs.fake_filesystem import FakeFilesystem
from pyfakefs.fake_filesystem_unittest import Patcher
from pyfakefs.helpers import set_uid

from nfd.hostroot import HostRoot


@pytest.fixture
def fs() -> Iterator[FakeFilesystem]:
    with Patcher() as patcher:
        assert patcher.fs is not None
        yield patcher.fs


def test_reads_a_fake_tree_with_links(fs: FakeFilesystem) -> None:
    fs.create_file("/host/sys/devices/pci0/0000:00:01.0/vendor", contents="0x10de\n")
    fs.create_symlink(
        "/host/sys/bus/pci/devices/0000:00:01.0", "../../../devices/pci0/0000:00:01.0"
    )
    fs.create_symlink(
        "/host/sys/devices/pci0/0000:00:01.0/driver", "../../../bus/pci/drivers/nvidia"
    )
    host = HostRoot("/host")

    assert host.listdir("/sys/bus/pci/devices") == ["0000:00:01.0"]
    assert host.is_dir("/sys/bus/pci/devices/0000:00:01.0")
    with host.dir("/sys/bus/pci/devices/0000:00:01.0") as device:
        assert device.read_optional("vendor") == "0x10de"
        assert device.link_name("driver") == "nvidia"
        assert device.read_optional("device") is None
        assert device.exists("vendor")


def test_an_absolute_link_stays_inside(fs: FakeFilesystem) -> None:
    fs.create_file("/etc/secret", contents="outside")
    fs.create_file("/host/etc/secret", contents="inside")
    fs.create_symlink("/host/etc/link", "/etc/secret")

    assert HostRoot("/host").read("/etc/link") == "inside"


def test_permission_is_an_error_and_not_absence(fs: FakeFilesystem) -> None:
    fs.create_file("/host/sys/x", contents="1", st_mode=0o100000)
    set_uid(1000)
    try:
        with pytest.raises(PermissionError) as caught:
            HostRoot("/host").read_optional("/sys/x")
    finally:
        set_uid(0)

    assert (caught.value.errno, caught.value.filename) == (errno.EACCES, "/sys/x")


def test_the_live_root_reads_the_fake_root(fs: FakeFilesystem) -> None:
    fs.create_file("/sys/kernel/x", contents="7\n")
    with HostRoot().dir("/sys/kernel") as kernel:
        assert kernel.read_optional("x") == "7"


def test_a_mounted_root_takes_missing_files_from_the_own_view(
    fs: FakeFilesystem,
) -> None:
    fs.create_file("/proc/modules", contents="own")
    fs.create_dir("/host/sys")

    assert HostRoot("/host", live=True).read_optional("/proc/modules") == "own"
    assert HostRoot("/host", live=False).read_optional("/proc/modules") is None
