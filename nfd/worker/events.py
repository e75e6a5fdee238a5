"""What wakes the worker: files that change, devices that come and go, its threads.

One poll over file descriptors; everything that cannot be had (no inotify, no
netlink, no pyudev) is one line in the log, and polling has to do.
"""

import errno
import os
import select
import signal
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from nfd.hostroot import HostRoot
from nfd.source import Watch

_OWN_FOLDERS = ("/etc/kubernetes/node-feature-discovery/",)
_MOST_DEVICES = 1000  # events taken at once


class Monitor(Protocol):
    """The part of pyudev's Monitor that is used."""

    def fileno(self) -> int:
        """Return what to poll."""
        ...

    def poll(self, timeout: float | None = None) -> Any:
        """Return the next device, None when there is none in time."""
        ...


def kernel_monitor(subsystems: Iterable[str]) -> Monitor:
    """Listen to the kernel's device events of these subsystems.

    Raises:
        ImportError: pyudev or libudev is not installed.
        OSError: Netlink is not to be had.

    """
    pyudev = _import_pyudev()
    monitor: Any = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
    for subsystem in sorted(subsystems):
        monitor.filter_by(subsystem)
    monitor.start()
    return monitor  # type: ignore[no-any-return] # pyudev has no types


def _import_pyudev() -> Any:
    """Import pyudev with libudev by its name.

    Left alone it searches with ctypes, which runs ldconfig and compilers: programs
    that are not in our image, and that we do not run where they are.
    """
    from ctypes import util  # noqa: PLC0415 - only in a live worker

    search = util.find_library
    util.find_library = lambda name: f"lib{name}.so.1"
    try:
        import pyudev  # noqa: PLC0415 - optional, and only in a live worker
    finally:
        util.find_library = search
    return pyudev


class Events:
    """Waits for reasons to look again; reasons are names, mostly of sources."""

    def __init__(
        self,
        host: HostRoot,
        unable: Callable[[str, str], None],
        *,
        monitor: Callable[[Iterable[str]], Monitor] | None = kernel_monitor,
    ) -> None:
        """Prepare; `unable` is told what cannot be watched, and why."""
        self._host = host
        self._unable = unable
        self._new_monitor = monitor if host.live else None
        self._poll = select.poll()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll.register(self._wake_read, select.POLLIN)
        self._signals = False
        self._inotify: Any = None
        self._monitor: Monitor | None = None
        self._by_subsystem: dict[str, set[str]] = {}

    def close(self) -> None:
        """Release what is open."""
        if self._signals:
            signal.set_wakeup_fd(-1)
        if self._inotify is not None:
            self._inotify.close()
        self._monitor = None
        os.close(self._wake_read)
        os.close(self._wake_write)

    def wake_on_signals(self) -> None:
        """Have signals end a wait; only the main thread may ask for that."""
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._signals = True

    def wake(self) -> None:
        """End a wait, from any thread."""
        try:
            os.write(self._wake_write, b"\0")
        except BlockingIOError:
            return  # it is awake already
        except OSError as error:
            if error.errno != errno.EBADF:  # closed: nobody waits any more
                raise

    def watch(
        self,
        sources: Mapping[str, tuple[Watch, ...]],
        own_files: Mapping[str, str],
    ) -> None:
        """Watch what the sources ask for, and files of this process: path → name."""
        paths: dict[str, set[str]] = {}
        subsystems: dict[str, set[str]] = {}
        for name, watches in sources.items():
            for each in watches:
                if each.kind == "udev":
                    subsystems.setdefault(each.target, set()).add(name)
                else:
                    for path in self.real_paths(each.target):
                        paths.setdefault(path, set()).add(name)
        for path, name in own_files.items():
            paths.setdefault(os.path.abspath(path), set()).add(name)
        self._watch_paths(paths)
        self._watch_devices(subsystems)

    def real_paths(self, path: str) -> list[str]:
        """Return where a path of the host may lie for this process."""
        root = self._host.path
        if root == "/":
            return [path]
        if not root.endswith("-") and not os.path.isdir(root):
            return []  # an archive
        found = [root + path.lstrip("/")]
        if not root.endswith("-"):
            found = [root.rstrip("/") + path]
        if self._host.live and path.startswith(_OWN_FOLDERS):
            found.append(path)
        return found

    def _watch_paths(self, paths: Mapping[str, set[str]]) -> None:
        if self._inotify is None:
            from nfd.worker.inotify import Inotify  # noqa: PLC0415 - ctypes

            try:
                self._inotify = Inotify()
            except OSError as error:
                self._unable("file events", str(error))
                return
            self._poll.register(self._inotify.fd, select.POLLIN)
        problems = self._inotify.watch(paths)
        if problems:
            self._unable("file events", "; ".join(problems))

    def _watch_devices(self, subsystems: dict[str, set[str]]) -> None:
        same = self._by_subsystem.keys() == subsystems.keys()
        self._by_subsystem = subsystems
        if same or self._new_monitor is None or not subsystems:
            return
        try:
            monitor = self._new_monitor(subsystems)
        except (ImportError, OSError) as error:
            self._new_monitor = None
            self._unable("device events", str(error) or type(error).__name__)
            return
        if self._monitor is not None:
            self._poll.unregister(self._monitor.fileno())
        self._monitor = monitor
        self._poll.register(monitor.fileno(), select.POLLIN)

    def wait(self, seconds: float | None) -> set[str]:
        """Wait for an event; return whom it concerns, nobody when just woken."""
        limit = None if seconds is None else max(0, round(seconds * 1000))
        touched: set[str] = set()
        for fd, _ in self._poll.poll(limit):
            if fd == self._wake_read:
                os.read(fd, 4096)
            elif self._inotify is not None and fd == self._inotify.fd:
                touched |= self._inotify.read()
            else:
                touched |= self._devices()
        return touched

    def _devices(self) -> set[str]:
        assert self._monitor is not None
        touched: set[str] = set()
        try:
            for _ in range(_MOST_DEVICES):
                device = self._monitor.poll(timeout=0)
                if device is None:
                    break
                touched |= self._by_subsystem.get(device.subsystem, set())
        except OSError:  # events were lost: anything may have changed
            touched |= {n for names in self._by_subsystem.values() for n in names}
        return touched
