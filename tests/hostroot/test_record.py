"""Recording: what was asked, by whom, and what was answered."""

import errno
import threading
from pathlib import Path

from nfd.hostroot import HostRoot, Recorder
from tests.hostroot.trees import DEVICE, write_folder

ALIAS = "/sys/bus/pci/devices/0000:00:01.0"


def test_notes_answers_under_the_paths_that_were_asked(tmp_path: Path) -> None:
    recorder = Recorder()
    with HostRoot(str(write_folder(tmp_path)), record=recorder) as host:
        host.read_optional(f"{ALIAS}/vendor")
        host.read_optional(f"{ALIAS}/none")
        host.listdir("/sys/bus/pci/devices")
        with host.dir(ALIAS) as device:
            device.read_many(("empty", "iommu_group/type"), [])
            device.link_name("driver")
        host.exists("/etc")

    assert {
        f"{ALIAS}/vendor": b"0x10de\n",
        f"{ALIAS}/empty": b"",
        f"{ALIAS}/iommu_group/type": b"DMA\n",
    } == recorder.files
    assert recorder.folders == {"/sys/bus/pci/devices": ["0000:00:01.0"]}
    assert {f"{ALIAS}/driver": "../../../bus/pci/drivers/nvidia"} == recorder.links
    assert {f"{ALIAS}/none": errno.ENOENT} == recorder.errors
    assert {"/etc", ALIAS} == set(recorder.modes)


def test_attributes_to_sources_by_thread(tmp_path: Path) -> None:
    recorder = Recorder()
    host = HostRoot(str(write_folder(tmp_path)), record=recorder)
    inside = threading.Event()
    done = threading.Event()

    def other() -> None:
        with host.attributed("usb"):
            inside.wait(5)
            host.read_optional("/proc/version")
            host.fact("cpuid", lambda: "x")
            done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with host.attributed("pci"):
        host.read_optional(f"{DEVICE}/vendor")
        inside.set()
        done.wait(5)
        host.read_optional(f"{DEVICE}/none")
    host.read_optional("/etc/passwd")
    thread.join()

    assert [f"{DEVICE}/vendor", f"{DEVICE}/none"] == recorder.paths_of("pci")
    assert recorder.paths_of("usb") == ["/proc/version", "/.nfd/cpuid"]
    assert recorder.paths_of("") == ["/etc/passwd"]


def test_facts_are_recorded(tmp_path: Path) -> None:
    recorder = Recorder()
    host = HostRoot(str(write_folder(tmp_path)), live=True, record=recorder)

    assert host.fact("cpuid", lambda: "text") == "text"
    assert recorder.facts == {"cpuid": "text"}


def test_without_a_recorder_nothing_is_kept(tmp_path: Path) -> None:
    host = HostRoot(str(write_folder(tmp_path)))
    with host.attributed("pci"):
        host.read_optional(f"{DEVICE}/vendor")

    assert host.recorder is None
