"""What wakes the worker."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nfd.hostroot import HostRoot
from nfd.source import Watch
from nfd.worker.events import Events, Monitor
from nfd.worker.inotify import Inotify

MS = 0.05


@pytest.fixture
def inotify() -> Iterator[Inotify]:
    opened = Inotify()
    yield opened
    opened.close()


def configmap(folder: Path, version: str, text: str) -> None:
    """Write a mounted ConfigMap's next version, as a kubelet does."""
    data = folder / version
    data.mkdir(parents=True)
    (data / "conf").write_text(text)
    link = folder / "..data_tmp"
    link.symlink_to(version)
    link.rename(folder / "..data")
    if not (folder / "conf").is_symlink():
        (folder / "conf").symlink_to("..data/conf")


Change = Callable[[Path], object]

CHANGES: dict[str, Change] = {
    "written": lambda d: (d / "x").write_text("2"),
    "replaced": lambda d: (d / ".new").write_text("2") and (d / ".new").rename(d / "x"),
    "deleted": lambda d: (d / "x").unlink(),
    "renamed away": lambda d: (d / "x").rename(d / "y"),
    "mode": lambda d: (d / "x").chmod(0o600),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("watched", ["folder", "file"])
def test_changes_are_told(
    inotify: Inotify, tmp_path: Path, name: str, watched: str
) -> None:
    (tmp_path / "x").write_text("1")
    path = tmp_path if watched == "folder" else tmp_path / "x"
    assert inotify.watch({str(path): ["local"]}) == []
    assert inotify.read() == set()

    CHANGES[name](tmp_path)

    assert inotify.read() == {"local"}
    assert inotify.read() == set()


def test_neighbours_are_not_told(inotify: Inotify, tmp_path: Path) -> None:
    inotify.watch({str(tmp_path / "x"): ["config"]})

    (tmp_path / "y").write_text("1")

    assert inotify.read() == set()


def test_folder_that_comes_later_is_awaited(inotify: Inotify, tmp_path: Path) -> None:
    """Upstream needs features.d to exist at its start."""
    path = tmp_path / "a" / "b"
    inotify.watch({str(path): ["local"]})

    path.parent.mkdir()
    assert inotify.read() == {"local"}
    path.mkdir()
    assert inotify.read() == {"local"}
    (path / "x").write_text("1")
    assert inotify.read() == {"local"}

    (path / "x").unlink()
    path.rmdir()
    assert inotify.read() == {"local"}
    path.mkdir()
    assert inotify.read() == {"local"}


def test_folders_that_come_while_it_looks(
    inotify: Inotify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made after the look and before the watch above them, nobody tells of them."""
    path = tmp_path / "a" / "b"
    add = inotify._libc.inotify_add_watch

    def late(*arguments: object) -> object:
        path.mkdir(parents=True, exist_ok=True)
        return add(*arguments)

    monkeypatch.setattr(inotify._libc, "inotify_add_watch", late)
    inotify.watch({str(path): ["local"]})
    (path / "x").write_text("1")

    assert inotify.read() == {"local"}


def test_swapped_configmap_is_told(inotify: Inotify, tmp_path: Path) -> None:
    """Only the link `..data` changes; the file's own link never does."""
    configmap(tmp_path, "..1", "a")
    inotify.watch({str(tmp_path / "conf"): ["config"]})
    inotify.read()

    configmap(tmp_path, "..2", "b")

    assert inotify.read() == {"config"}


def test_configmap_mounted_one_level_down_is_told(
    inotify: Inotify, tmp_path: Path
) -> None:
    """custom.d holds one folder for each ConfigMap."""
    configmap(tmp_path / "extra", "..1", "a")
    inotify.watch({str(tmp_path): ["custom"]})
    inotify.read()

    configmap(tmp_path / "extra", "..2", "b")

    assert inotify.read() == {"custom"}


def test_paths_are_replaced(inotify: Inotify, tmp_path: Path) -> None:
    inotify.watch({str(tmp_path): ["a"]})
    other = tmp_path / "other"
    other.mkdir()
    inotify.watch({str(other): ["b"]})
    inotify.read()

    (tmp_path / "x").write_text("")
    (other / "x").write_text("")

    assert inotify.read() == {"b"}


class FakeMonitor:
    """Devices on a pipe."""

    def __init__(self, subsystems: Iterable[str]) -> None:
        self.subsystems = set(subsystems)
        self.read_end, self.write_end = os.pipe()
        self.devices: list[Any] = []

    def fileno(self) -> int:
        return self.read_end

    def poll(self, timeout: float | None = None) -> Any:
        assert timeout == 0
        if self.devices and isinstance(self.devices[0], OSError):
            raise self.devices.pop(0)
        return self.devices.pop(0) if self.devices else None

    def plug(self, what: Any) -> None:
        device = SimpleNamespace(subsystem=what) if isinstance(what, str) else what
        self.devices.append(device)
        os.write(self.write_end, b"x")

    def close(self) -> None:
        os.close(self.read_end)
        os.close(self.write_end)


WATCHES = {
    "pci": (Watch("udev", "pci"),),
    "network": (Watch("udev", "net"), Watch("udev", "pci")),
}


@pytest.fixture
def made() -> Iterator[list[FakeMonitor]]:
    monitors: list[FakeMonitor] = []
    yield monitors
    for each in monitors:
        each.close()


def live(tmp_path: Path) -> HostRoot:
    (tmp_path / "sys").mkdir(exist_ok=True)
    return HostRoot.open(str(tmp_path), live=True)


def test_devices_touch_the_sources_that_asked(
    tmp_path: Path, made: list[FakeMonitor]
) -> None:
    def monitor(subsystems: Iterable[str]) -> Monitor:
        made.append(FakeMonitor(subsystems))
        return made[-1]

    with live(tmp_path) as host:
        events = Events(host, lambda *_: None, monitor=monitor)
        events.watch(WATCHES, {})
        events.watch(WATCHES, {})  # the same again needs no new one
        (one,) = made

        one.plug("net")
        assert events.wait(MS) == {"network"}
        one.plug("pci")
        assert events.wait(MS) == {"pci", "network"}
        one.plug(OSError(105, "no buffer space"))
        assert events.wait(MS) == {"pci", "network"}
        events.close()

    assert one.subsystems == {"pci", "net"}


@pytest.mark.parametrize("error", [ImportError("no pyudev"), PermissionError(1, "no")])
def test_no_netlink_means_polling(tmp_path: Path, error: Exception) -> None:
    """One line, and it is not tried again and again."""
    told: list[tuple[str, str]] = []
    tries = 0

    def monitor(_: Iterable[str]) -> Monitor:
        nonlocal tries
        tries += 1
        raise error

    with live(tmp_path) as host:
        events = Events(host, lambda *said: told.append(said), monitor=monitor)
        events.watch(WATCHES, {})
        events.watch({"pci": (Watch("udev", "pci"),)}, {})
        assert events.wait(0) == set()
        events.close()

    assert tries == 1
    assert [what for what, _ in told] == ["device events"]


def test_a_captured_host_is_not_asked_for_devices(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    with HostRoot.open(str(tmp_path), live=False) as host:
        events = Events(host, lambda *_: None, monitor=lambda _: pytest.fail("asked"))
        events.watch(WATCHES, {})
        events.close()


def test_paths_of_sources_are_looked_for_below_the_root(tmp_path: Path) -> None:
    """A prefix of mounts, and the container's own configuration folders."""
    root = tmp_path / "host-"
    (tmp_path / "host-sys").mkdir()
    (tmp_path / "host-etc").mkdir()
    with HostRoot.open(str(root), live=True) as host:
        events = Events(host, lambda *_: None, monitor=None)
        assert events.real_paths("/etc/os-release") == [f"{root}etc/os-release"]
        features = "/etc/kubernetes/node-feature-discovery/features.d"
        assert events.real_paths(features) == [f"{root}{features[1:]}", features]
        events.watch({"system": (Watch("path", "/etc/os-release"),)}, {})
        (tmp_path / "host-etc" / "os-release").write_text("ID=x")
        assert events.wait(MS) == {"system"}
        events.close()


def test_waking(tmp_path: Path) -> None:
    """From any thread, any number of times, even once it is closed."""
    with live(tmp_path) as host:
        events = Events(host, lambda *_: None, monitor=None)
        for _ in range(100_000):
            events.wake()
        assert events.wait(None) == set()
        events.close()
        events.wake()


def test_kernel_events_of_this_machine(tmp_path: Path) -> None:
    """Replayed by the kernel itself, which repeats an event when asked to."""
    pytest.importorskip("pyudev")
    trigger = Path("/sys/devices/virtual/mem/null/uevent")
    told: list[tuple[str, str]] = []
    with live(tmp_path) as host:
        events = Events(host, lambda *said: told.append(said))
        events.watch({"memory": (Watch("udev", "mem"),)}, {})
        try:
            trigger.write_text("change")
        except OSError as error:
            pytest.skip(f"{trigger}: {error.strerror}")
        assert told == []
        assert events.wait(2) == {"memory"}
        events.close()
