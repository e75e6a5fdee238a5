"""What makes a root live, and what that changes."""

import errno
import os
from pathlib import Path

import pytest

from nfd.hostroot import DEFAULT_LIMIT, HostRoot, forms, kernel
from nfd.hostroot.disk import FolderTree
from tests.hostroot.trees import DEVICE, write_archive, write_folder

FEATURES_D = "/etc/kubernetes/node-feature-discovery/features.d"


def test_the_root_folder_is_live_and_reads_the_machine() -> None:
    with HostRoot() as host:
        assert host.live
        assert os.uname().machine == host.arch
        assert os.uname().release == host.read_optional("/proc/sys/kernel/osrelease")
        assert host.read_optional("/sys/class/net/lo/mtu") == "65536"
        assert "lo" in host.listdir("/sys/class/net")


def test_big_files_of_sysfs_come_whole() -> None:
    """The kernel gives a page of a binary file at a time."""
    path = "/sys/kernel/btf/vmlinux"
    if not os.path.exists(path):
        pytest.skip(f"this kernel has no {path}")
    whole = Path(path).read_bytes()
    with HostRoot() as host, host.dir("/sys/kernel/btf") as folder:
        assert whole == host.read_bytes(path, limit=len(whole))
        if len(whole) <= DEFAULT_LIMIT:
            assert whole.decode("utf-8", "replace") == folder.read_optional("vmlinux")


def test_overrides(tmp_path: Path) -> None:
    write_folder(tmp_path)

    assert not HostRoot(str(tmp_path)).live
    assert HostRoot(str(tmp_path), live=True).live
    assert not HostRoot("/", live=False).live
    assert not HostRoot(str(write_archive(tmp_path / "x.tar"))).live


@pytest.fixture
def mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `sys` passes for a mounted one, without mounting."""
    monkeypatch.setattr(
        kernel,
        "file_system_magic",
        lambda path: kernel.SYSFS_MAGIC if path.endswith("sys") else 0,
    )


def test_the_magic_number_is_the_kernels() -> None:
    assert kernel.file_system_magic("/sys") == kernel.SYSFS_MAGIC
    assert kernel.file_system_magic("/proc") != kernel.SYSFS_MAGIC
    assert kernel.file_system_magic("/none/at/all") == 0


def test_a_folder_over_the_real_sysfs() -> None:
    """Another way to the real root is a folder with a mounted sysfs."""
    with HostRoot("/proc/self/root") as folder, HostRoot() as real:
        assert folder.live
        assert real.listdir("/sys/class/net") == folder.listdir("/sys/class/net")
        with real.dir("/sys/class/net/lo") as ours, folder.dir(ours.path) as theirs:
            names = ("mtu", "type", "duplex", "none", "statistics/rx_bytes")
            expected = ours.read_many(names[:-1], [])
            assert {"mtu", "type"} <= set(expected)
            assert expected == theirs.read_many(names[:-1], [])
            assert "statistics/rx_bytes" in theirs.read_many(names, [])
        assert os.path.basename(folder.real_path("/sys/class/net/lo")) == "lo"


def test_a_link_to_the_real_sysfs_is_no_mount(tmp_path: Path) -> None:
    (tmp_path / "sys").symlink_to("/sys")
    with HostRoot(str(tmp_path)) as host:
        assert not host.live
        assert not host.exists("/sys/class")


@pytest.mark.usefixtures("mounted")
def test_an_io_error_of_the_fast_path_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(fd: int, size: int) -> bytes:
        raise OSError(errno.EIO, f"fd {fd} of {size}")

    errors: list[OSError] = []
    before = len(os.listdir("/proc/self/fd"))
    with HostRoot(str(write_folder(tmp_path))) as host, host.dir(DEVICE) as device:
        monkeypatch.setattr(os, "read", failing)
        found = device.read_many(("vendor", "none"), errors)
        monkeypatch.undo()

    assert found == {}
    assert [(errno.EIO, f"{DEVICE}/vendor")] == [(e.errno, e.filename) for e in errors]
    assert before == len(os.listdir("/proc/self/fd"))


@pytest.mark.usefixtures("mounted")
def test_a_folder_with_a_mounted_sysfs_is_live(tmp_path: Path) -> None:
    with HostRoot(str(write_folder(tmp_path))) as host:
        assert host.live
        with host.dir(DEVICE) as device:
            assert device.read_many(("vendor", "iommu_group/type", "none"), []) == {
                "vendor": "0x10de",
                "iommu_group/type": "DMA",
            }
            assert len(device.read_optional("page") or "") == 5000
        assert host.read_optional("/sys/../etc/passwd") == "inside"
        assert host.real_path("/sys/bus/pci/devices/0000:00:01.0") == DEVICE
        assert host.link_name(f"{DEVICE}/driver") == "nvidia"
        for ask in (host.read, host.listdir, host.dir):
            with pytest.raises(OSError, match="Errno") as caught:
                ask("/sys/none")
            assert caught.value.filename == "/sys/none"


@pytest.mark.usefixtures("mounted")
def test_a_prefix_is_live_and_its_links_cross_mounts(tmp_path: Path) -> None:
    write_folder(tmp_path, prefix="host-")
    with HostRoot(f"{tmp_path}/host-") as host:
        assert host.live
        assert host.listdir("/sys/bus/pci/devices") == ["0000:00:01.0"]
        assert host.read_optional("/etc/os-release") == "ID=test"
        assert host.read_optional("/boot/config") is None
        assert not host.exists("/")


def test_missing_mounts_come_from_the_own_view(tmp_path: Path) -> None:
    own = os.uname().release
    (tmp_path / "host-sys").mkdir()
    with HostRoot(f"{tmp_path}/host-") as host:
        assert own == host.read_optional("/proc/sys/kernel/osrelease")
        assert host.read_optional("/proc/meminfo") is None
        assert (
            host.real_path("/proc/sys/kernel/osrelease") == "/proc/sys/kernel/osrelease"
        )
    recorded = tmp_path / "host-proc/sys/kernel/osrelease"
    recorded.parent.mkdir(parents=True)
    recorded.write_text("9.9\n")
    with HostRoot(f"{tmp_path}/host-") as host:
        assert host.read_optional("/proc/sys/kernel/osrelease") == "9.9"


class _Own(FolderTree):
    """Another folder in the place of the process's own view."""


def test_features_d_is_never_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for side in ("own", "host"):
        (tmp_path / side / FEATURES_D[1:]).mkdir(parents=True)
        (tmp_path / side / FEATURES_D[1:] / side).write_text(side)
    (tmp_path / "own/lib/modules/1").mkdir(parents=True)
    (tmp_path / "own/lib/modules/1/.config").write_text("own")
    (tmp_path / "host/lib/modules/1").mkdir(parents=True)
    monkeypatch.setattr(forms, "LiveTree", lambda: _Own(str(tmp_path / "own")))

    with HostRoot(str(tmp_path / "host"), live=True) as host:
        assert host.listdir(FEATURES_D) == ["host"]
        assert host.read_optional(f"{FEATURES_D}/own") is None
        assert host.read_optional("/lib/modules/1/.config") == "own"
    (tmp_path / "host/etc").rename(tmp_path / "host/gone")
    with HostRoot(str(tmp_path / "host"), live=True) as host:
        assert host.read_optional(f"{FEATURES_D}/own") == "own"
        with host.dir(FEATURES_D) as folder:
            assert folder.read_optional("own") == "own"
    with HostRoot(str(tmp_path / "host"), live=False) as host:
        assert not host.exists(FEATURES_D)


def test_facts_and_the_node_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path)
    (tmp_path / ".nfd").mkdir()
    (tmp_path / ".nfd/cpuid").write_text("recorded\n")
    (tmp_path / ".nfd/uname").write_text("s390x\n")
    monkeypatch.setenv("NODE_NAME", "worker-1")
    captured = HostRoot(str(tmp_path))
    live = HostRoot(str(tmp_path), live=True)

    assert captured.fact("cpuid", lambda: "asked") == "recorded"
    assert captured.fact("auxv", lambda: "asked") is None
    assert (captured.arch, captured.node_name) == ("s390x", "")
    assert live.fact("cpuid", lambda: "asked") == "asked"
    assert (os.uname().machine, "worker-1") == (live.arch, live.node_name)
    monkeypatch.delenv("NODE_NAME")

    assert live.node_name == ""
