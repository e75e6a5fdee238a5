"""Reading the shared captures and dumps; tests skip where they are absent."""

import csv
import os
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest

from nfd.hostroot import HostRoot
from nfd_sources.cpu.registers import Registers, Words

REPOSITORY = Path(__file__).parents[3]
SHARED = Path(os.environ.get("NFD_SHARED", REPOSITORY.parent / "shared"))

SYSTEM = "sys/devices/system/cpu"
Tree: TypeAlias = Callable[[dict[str, str]], HostRoot]


def need(path: str) -> Path:
    """Return a path below the shared folder, or skip the test."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"{path} is not in the shared data")
    return found


def members(path: str) -> list[str]:
    """List the files of a shared archive; none where it is absent."""
    return sorted(_texts(path))


def text_of(path: str, member: str) -> str:
    """Return one file of a shared archive."""
    return _texts(path)[member]


@cache
def _texts(path: str) -> dict[str, str]:
    if not (SHARED / path).exists():
        return {}
    with tarfile.open(SHARED / path) as archive:
        return {
            member.name: extracted.read().decode("utf-8", "replace")
            for member in archive
            if (extracted := archive.extractfile(member))
        }


@cache
def kernel_words() -> dict[str, set[str]]:
    """Return Linux's word -> CPUID names, as spec/cpuid_bits.tsv tells."""
    words: dict[str, set[str]] = {}
    with need("spec/cpuid_bits.tsv").open(encoding="utf-8") as table:
        for row in csv.reader(table, delimiter="\t"):
            if row and not row[0].startswith("#") and row[5][0] != "-":
                words.setdefault(row[5].split()[0], set()).add(row[0])
    return words


def libcpuid_dump(text: str) -> tuple[Registers, list[str]]:
    """Read a libcpuid test file: the first CPU's registers, and its answer's lines."""
    raw, answer = text.split("-" * 80, 1)
    leaves: dict[tuple[int, int], Words] = {}
    next_subleaf: dict[int, int] = {}
    for line in raw.splitlines():
        if line.startswith("CPUID ") and line[6:14].isalnum() and line[14] == ":":
            leaf = int(line[6:14], 16)
            words = [int(word, 16) for word in line[16:51].split("-")]
        elif line.startswith(("basic_cpuid[", "ext_cpuid[")):
            name, values = line.split("=")
            leaf = int(name.partition("[")[2].rstrip("]"))
            leaf += 0x8000_0000 if name.startswith("ext") else 0
            words = [int(word, 16) for word in values.split()]
        else:
            continue
        if leaf == 0 and leaves:
            break  # the second CPU begins
        subleaf = next_subleaf.get(leaf, 0)
        if "[SL " in line:
            subleaf = int(line.partition("[SL ")[2][:2], 16)
        next_subleaf[leaf] = subleaf + 1
        eax, ebx, ecx, edx = words
        leaves[leaf, subleaf] = eax, ebx, ecx, edx
    return Registers(leaves), answer.split("\n")
