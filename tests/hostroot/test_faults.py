"""Absence, ignorance and failure are kept apart."""

import errno
from pathlib import Path

import pytest

from nfd.hostroot import NOT_THERE, HostRoot
from nfd.hostroot import kernel as kernel_calls
from nfd.hostroot.paths import resolve
from tests.hostroot.faulty import FaultyHostRoot
from tests.hostroot.trees import DEVICE, walking, write_folder

VENDOR = f"{DEVICE}/vendor"
FAILURES = (errno.EIO, errno.EACCES, errno.EPERM, errno.EAGAIN, errno.EBUSY)


@pytest.mark.parametrize("number", sorted(NOT_THERE))
def test_an_answer_that_means_absent(tmp_path: Path, number: int) -> None:
    host = FaultyHostRoot(str(write_folder(tmp_path)), {VENDOR: number})

    assert host.read_optional(VENDOR) is None
    errors: list[OSError] = []
    with host.dir(DEVICE) as device:
        assert device.read_many(("vendor",), errors) == {}
    assert errors == []


@pytest.mark.parametrize("number", FAILURES)
def test_an_answer_that_means_unknown(tmp_path: Path, number: int) -> None:
    host = FaultyHostRoot(str(write_folder(tmp_path)), {VENDOR: number})
    with pytest.raises(OSError, match="Errno") as caught:
        host.read_optional(VENDOR)
    errors: list[OSError] = []
    with host.dir(DEVICE) as device:
        assert device.read_many(("vendor", "empty"), errors) == {"empty": ""}
        with pytest.raises(OSError, match="Errno"):
            device.read_optional("vendor")

    assert (number, VENDOR) == (caught.value.errno, caught.value.filename)
    assert [(number, VENDOR)] == [(e.errno, e.filename) for e in errors]


def test_a_folder_that_cannot_be_listed(tmp_path: Path) -> None:
    host = FaultyHostRoot(str(write_folder(tmp_path)), {DEVICE: errno.EIO})
    with pytest.raises(OSError, match="Errno 5"):
        host.listdir(DEVICE)
    with pytest.raises(OSError, match="Errno 5"):
        host.dir(DEVICE)


def test_a_kernel_without_openat2_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(errno.EPERM, "seccomp")

    monkeypatch.setattr(kernel_calls, "open_in_root", refused)
    with HostRoot(str(write_folder(tmp_path))) as host:
        assert host.read_optional("/etc/out") == "inside"
        assert host.read_optional(VENDOR) == "0x10de"


def test_a_link_swapped_in_during_the_walk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("outside")
    host = walking(write_folder(tmp_path / "host"))
    tree = host._plain
    monkeypatch.setattr(tree, "real_path", lambda path: path)  # resolved before ...
    (tmp_path / "host/etc/swapped").symlink_to(tmp_path / "secret")  # ... the swap
    (tmp_path / "host/swapped").symlink_to(tmp_path)

    assert host.read_optional("/etc/swapped") is None
    assert host.read_optional("/swapped/secret") is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/b", "/a/b"),
        ("/link", "/target"),
        ("/link/x", "/target/x"),
        ("/a/up/x", "/x"),
        ("/../../x", "/x"),
        ("/abs/y", "/target/y"),
        ("//a//./b/", "/a/b"),
        ("/", "/"),
    ],
)
def test_resolving_is_pure(path: str, expected: str) -> None:
    links = {"/link": "target", "/a/up": "../../..", "/abs": "/link"}

    assert expected == resolve(path, links.get)


def test_the_last_link_can_be_kept() -> None:
    links = {"/link": "target", "/d": "/e"}

    assert resolve("/link", links.get, last=False) == "/link"
    assert resolve("/d/link", links.get, last=False) == "/e/link"
