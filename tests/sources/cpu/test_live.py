"""CPUID executed on the machine that runs the tests."""

import ctypes
import errno
import mmap
import os
import sys
from pathlib import Path
from typing import cast

import pytest

from nfd.hostroot import HostRoot
from nfd_sources._reading import Gaps
from nfd_sources.cpu import live, processor, x86
from nfd_sources.cpu.live import collect
from nfd_sources.cpu.registers import Registers
from nfd_sources.cpu.x86_bits import BANKS
from nfd_sources.cpu.x86_cpuinfo import X86_WORDS, parse_x86

on_x86 = pytest.mark.skipif(
    os.uname().machine != "x86_64" or sys.maxsize >> 32 == 0,
    reason="needs a 64-bit x86 processor",
)


@on_x86
def test_flags_agree_with_the_kernels() -> None:
    """What CPUID shows is what /proc/cpuinfo shows, as far as the kernel tells."""
    told = parse_x86(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    flags = x86.decode_flags(live.sweep())

    assert told is not None
    assert told.model == x86.decode_model(live.sweep())
    assert told.flags <= flags | {"CPPC", "TDX_GUEST", "IBPB", "STIBP"}  # synthetic
    # A mitigation may make the kernel hide a flag, but never one of the vectors.
    vectors = {"AVX", "AVX2", "AVX512F", "SSE42", "FMA3", "BMI2"}
    assert told.flags & vectors == flags & vectors
    assert {f for f in flags if f.startswith("X86_64")} == {
        f for f in told.flags if f.startswith("X86_64")
    }


@on_x86
def test_both_ways_to_an_executable_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that refuses anonymous executable pages gets a memory file."""
    expected = live.sweep()
    tried = []

    def refuse(libc: ctypes.CDLL) -> int:
        tried.append(libc)
        raise PermissionError(13, "mprotect")

    monkeypatch.setattr(live, "_anonymous_page", refuse)

    assert x86.decode_flags(expected) == x86.decode_flags(live.sweep())
    assert len(tried) == 1


@on_x86
def test_no_page_is_writable_and_executable() -> None:
    """While CPUID runs, no mapping of the process is both."""
    seen = []
    with live._code_page() as page:
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
            bounds, rights, *_ = line.split()
            start, end = (int(text, 16) for text in bounds.split("-"))
            assert "wx" not in rights
            if start <= page < end:
                seen.append(rights)

    assert seen == ["r-xp"]


@on_x86
def test_without_executable_pages_cpuinfo_tells(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where CPUID cannot be executed, the flags come from /proc/cpuinfo."""

    def refuse(_: ctypes.CDLL) -> int:
        raise PermissionError(13, "not allowed")

    monkeypatch.setattr(live, "_anonymous_page", refuse)
    monkeypatch.setattr(live, "_memfd_page", refuse)
    processor.warn_once.cache_clear()
    gaps = Gaps()
    with HostRoot.open("/") as host:
        found = processor.identify(host, "x86", gaps)
        assert found == processor.identify(host, "x86", gaps)

    told = parse_x86(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    assert told is not None
    assert told.flags == found.flags
    assert gaps.unknown == {}
    assert caplog.text.count("cpuid not executable") == 1


@on_x86
def test_a_refused_page_is_given_back() -> None:
    """When mprotect fails, the page goes and the system's reason is told."""
    real = ctypes.CDLL(None, use_errno=True)
    real.mmap.restype = ctypes.c_void_p
    pages = []

    class Refusing:
        def mmap(self, *_: object) -> int | None:
            page = real.mmap(
                None, ctypes.c_size_t(mmap.PAGESIZE), 3, 0x22, -1, ctypes.c_long(0)
            )
            pages.append(page)
            return cast("int | None", page)

        def mprotect(self, *_: object) -> int:
            ctypes.set_errno(errno.EACCES)
            return -1

        def munmap(self, page: int, size: int) -> int:
            pages.remove(page)
            return cast("int", real.munmap(ctypes.c_void_p(page), size))

    with pytest.raises(PermissionError, match="mprotect"):
        live._anonymous_page(cast("ctypes.CDLL", Refusing()))
    assert pages == []


def test_live_words_of_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a live root the words are this process's."""
    monkeypatch.setattr(live, "capability_words", lambda: (1 << 12, 1 << 4))
    with HostRoot.open("/") as host:
        found = processor.identify(host, "arm", Gaps())

    assert frozenset({"NEON", "CRC32"}) == found.flags


def test_an_architecture_without_names() -> None:
    """On other architectures there are no flags, and upstream's empty model."""
    with HostRoot.open("/") as host:
        found = processor.identify(host, "mips64", Gaps())

    assert frozenset() == found.flags
    assert found.model is not None
    assert found.model["vendor_id"] == "VendorUnknown"


def test_capability_words() -> None:
    """The C library answers with what the kernel gave this process."""
    auxv = Path("/proc/self/auxv").read_bytes()
    size = ctypes.sizeof(ctypes.c_ulong)
    numbers = [
        int.from_bytes(auxv[i : i + size], sys.byteorder)
        for i in range(0, len(auxv), size)
    ]
    entries = dict(zip(numbers[::2], numbers[1::2], strict=True))

    hwcap, hwcap2 = live.capability_words()
    assert entries.get(26, 0) == hwcap2
    if os.uname().machine != "x86_64":  # where the GNU C library has its own word
        assert entries[16] == hwcap


def test_old_processors_are_asked_little() -> None:
    """No leaf above a maximum is asked for, and XGETBV only with OSXSAVE."""
    asked = []

    def cpuid(leaf: int, subleaf: int) -> tuple[int, int, int, int]:
        asked.append((leaf, subleaf))
        return {0: (2, 0, 0, 0)}.get(leaf, (0, 0, 0, 0))

    def xgetbv() -> int:
        raise AssertionError

    assert collect(cpuid, xgetbv).xcr0 == 0
    assert asked == [(0, 0), (1, 0), (0x8000_0000, 0)]
    assert Registers({(0, 0): (0, 0, 0, 0)}) == collect(lambda *_: (0,) * 4, xgetbv)


def test_words_name_flags_that_exist() -> None:
    """Every name that cpuinfo's words map to is one that CPUID can give."""
    rules = {"TDX_GUEST"}
    names = {name for bank in BANKS for name in bank.names.values()} | rules

    assert {name for word in X86_WORDS.values() for name in word} <= names
