"""What only the running processor and process can tell: CPUID, XGETBV, auxv.

The machine code lies in a page of its own that is never writable and executable at
once. A hardened kernel may refuse to make an anonymous page executable; then a page
of a memory file (memfd) is mapped executable instead.
"""

import ctypes
import mmap
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from nfd_sources.cpu.registers import EAX, ECX, Registers, Words

# Both follow the System V calling convention: rdi points to four 32-bit words.
CPUID_CODE = bytes.fromhex(
    "f30f1efa"  # endbr64
    "53"  # push rbx
    "8b07 8b4f04"  # mov eax, [rdi]; mov ecx, [rdi+4]
    "0fa2"  # cpuid
    "8907 895f04"  # mov [rdi], eax; mov [rdi+4], ebx
    "894f08 89570c"  # mov [rdi+8], ecx; mov [rdi+12], edx
    "5b c3"  # pop rbx; ret
)
XGETBV_CODE = bytes.fromhex(
    "f30f1efa"  # endbr64
    "31c9 0f01d0"  # xor ecx, ecx; xgetbv
    "8907 895704"  # mov [rdi], eax; mov [rdi+4], edx
    "c3"  # ret
)
_XGETBV_OFFSET = 64
CODE = CPUID_CODE.ljust(_XGETBV_OFFSET, b"\xcc") + XGETBV_CODE  # 0xcc: int3

EXTENDED = (
    *(0x8000_0001, 0x8000_0007, 0x8000_0008, 0x8000_000A, 0x8000_001A),
    *(0x8000_001B, 0x8000_001E, 0x8000_001F, 0x8000_0021),
)

_AT_HWCAP = 16
_AT_HWCAP2 = 26

_PAGE = mmap.PAGESIZE
_FAILED = ctypes.c_void_p(-1).value


def sweep() -> Registers:
    """Execute CPUID for the leaves that the decoders look at, and XGETBV.

    Raises:
        OSError: The system lets no page of ours be executed, or this is no 64-bit
            x86 program.

    """
    with _code_page() as page:
        words = (ctypes.c_uint32 * 4)()
        call = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint32))
        cpuid_at, xgetbv_at = call(page), call(page + _XGETBV_OFFSET)

        def cpuid(leaf: int, subleaf: int) -> Words:
            words[0], words[1] = leaf, subleaf
            cpuid_at(words)
            return words[0], words[1], words[2], words[3]

        def xgetbv() -> int:
            xgetbv_at(words)
            return int(words[1]) << 32 | int(words[0])

        return collect(cpuid, xgetbv)


def collect(cpuid: Callable[[int, int], Words], xgetbv: Callable[[], int]) -> Registers:
    """Ask for every leaf that the decoders look at, and for no other; pure.

    Each CPUID is a trap into the hypervisor on virtual machines (12 to 70 us).
    """
    leaves: dict[tuple[int, int], Words] = {}

    def ask(leaf: int, subleaf: int = 0) -> Words:
        leaves[leaf, subleaf] = answer = cpuid(leaf, subleaf)
        return answer

    top = ask(0)[EAX]
    if top < 1:
        return Registers(leaves)
    ecx1 = ask(1)[ECX]
    _ask_basic(ask, top, ecx1)
    if ecx1 >> 31 & 1 and ask(0x4000_0000)[EAX] >= 0x4000_000C:
        ask(0x4000_000C)
    top = ask(0x8000_0000)[EAX]
    for leaf in EXTENDED:
        if leaf <= top < 0x8000_FFFF:
            ask(leaf)
    # XGETBV faults unless the system switched it on (OSXSAVE).
    return Registers(leaves, xgetbv() if ecx1 >> 27 & 1 else 0)


def _ask_basic(ask: Callable[..., Words], top: int, ecx1: int) -> None:
    _, ebx7, ecx7, _ = ask(7) if top >= 7 else (0, 0, 0, 0)
    wanted = {
        (0x4, 0): top < 0xB,  # threads of a core where there is no leaf 0xB
        (0x7, 1): True,
        (0x7, 2): True,
        (0xA, 0): True,  # performance counters
        (0xB, 0): True,  # threads of a core
        (0xD, 0): ecx1 >> 26 & 1,  # XSAVE
        (0xD, 1): ecx1 >> 26 & 1,
        (0xF, 0): ebx7 >> 12 & 1,  # RDT monitoring
        (0xF, 1): ebx7 >> 12 & 1,
        (0x10, 0): ebx7 >> 15 & 1,  # RDT allocation
        (0x12, 0): ebx7 >> 2 & 1,  # SGX
        (0x16, 0): True,  # base frequency
        (0x19, 0): ecx7 >> 23 & 1,  # key locker
        (0x21, 0): True,  # TDX guest
        (0x24, 0): True,  # AVX10
    }
    for (leaf, subleaf), useful in wanted.items():
        if useful and leaf <= top:
            ask(leaf, subleaf)
    if ebx7 >> 2 & 1 and top >= 0x12:
        for subleaf in range(2, 10):  # sections of the enclave page cache
            if ask(0x12, subleaf)[EAX] & 0xF == 0:
                break


@contextmanager
def _code_page() -> Iterator[int]:
    """Map the code into an executable page; yields its address."""
    if sys.maxsize >> 32 == 0 or os.uname().machine != "x86_64":
        raise OSError("CPUID: not a 64-bit x86 program")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t),
        *(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long),
    )
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    try:
        page = _anonymous_page(libc)
    except OSError:
        page = _memfd_page(libc)
    try:
        yield page
    finally:
        libc.munmap(page, _PAGE)


def _map(libc: ctypes.CDLL, protection: int, flags: int, fd: int) -> int:
    page = libc.mmap(None, _PAGE, protection, flags, fd, 0)
    if page == _FAILED:
        _raise("mmap")
    return int(page)


def _anonymous_page(libc: ctypes.CDLL) -> int:
    writable = mmap.PROT_READ | mmap.PROT_WRITE
    page = _map(libc, writable, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1)
    ctypes.memmove(page, CODE, len(CODE))
    if libc.mprotect(page, _PAGE, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        error = ctypes.get_errno()
        libc.munmap(page, _PAGE)
        ctypes.set_errno(error)
        _raise("mprotect")
    return page


def _memfd_page(libc: ctypes.CDLL) -> int:
    fd = os.memfd_create("nfd-cpuid", os.MFD_CLOEXEC)
    try:
        os.write(fd, CODE.ljust(_PAGE, b"\xcc"))
        return _map(libc, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, fd)
    finally:
        os.close(fd)


def _raise(what: str) -> NoReturn:
    error = ctypes.get_errno()
    raise OSError(error, f"CPUID: {what}: {os.strerror(error)}")


def capability_words() -> tuple[int, int]:
    """Ask the C library for this process's AT_HWCAP and AT_HWCAP2."""
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.restype = ctypes.c_ulong
    getauxval.argtypes = (ctypes.c_ulong,)
    return int(getauxval(_AT_HWCAP)), int(getauxval(_AT_HWCAP2))
