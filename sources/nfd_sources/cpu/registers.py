"""CPUID registers as a value, and their text form; pure.

The text has one line per leaf, `mask eax ebx ecx edx => eax ebx ecx edx` in hex: the
inputs and outputs of one CPUID instruction. A bit of the mask (1, 2, 4, 8 for eax,
ebx, ecx, edx) says that this input counts. This is the format of the dumps that
hwloc-gather-cpuid writes, plus one line of our own, `xcr0 <hex>`.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from nfd.errors import NfdError

Words: TypeAlias = tuple[int, int, int, int]  # eax, ebx, ecx, edx

EAX, EBX, ECX, EDX = range(4)
NOTHING: Words = (0, 0, 0, 0)

# NB: The values of this package are named tuples, for making an attrs class takes six
# times as long, and a scan has 60 ms for everything.


class Registers(NamedTuple):
    """What CPUID answered on one logical CPU.

    `xcr0` is the register of the XGETBV instruction: the vector states that the
    operating system switched on; None where a dump does not tell.
    """

    leaves: Mapping[tuple[int, int], Words]  # (leaf, subleaf) -> answer
    xcr0: int | None = None

    def get(self, leaf: int, subleaf: int = 0) -> Words:
        """Return the answer for a leaf; zeros when it lies above the maximum.

        Intel processors answer a leaf above the maximum with the highest one, so
        such answers are not to be looked at.
        """
        return self.leaves.get((leaf, subleaf), NOTHING) if self.has(leaf) else NOTHING

    def has(self, leaf: int) -> bool:
        """Tell whether the processor's maximum for this range reaches `leaf`."""
        base = leaf & 0xF000_0000
        return leaf == base or leaf <= self.leaves.get((base, 0), NOTHING)[EAX]

    def bit(self, leaf: int, subleaf: int, register: int, bit: int) -> bool:
        """Tell whether one bit of an answer is set."""
        return bool(self.get(leaf, subleaf)[register] >> bit & 1)

    @property
    def enabled_states(self) -> int:
        """The XCR0 register; without one, what leaf 0xD says can be switched on.

        Systems switch on all they know, so that is a good guess for old dumps.
        Zero without OSXSAVE.
        """
        if not self.bit(1, 0, ECX, 27):
            return 0
        return self.get(0xD)[EAX] if self.xcr0 is None else self.xcr0


def parse(text: str) -> Registers:
    """Read the text form; comments (`#`) and blank lines are skipped.

    Raises:
        NfdError: A line is in none of the forms; the text names it.

    """
    leaves: dict[tuple[int, int], Words] = {}
    xcr0 = None
    for line in text.splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            if words[0] == "xcr0" and len(words) == 2:
                xcr0 = int(words[1], 16)
                continue
            mask, leaf, _, subleaf, _, arrow, *out = words
            if arrow != "=>":
                raise ValueError  # noqa: TRY301 - one handler for all bad lines
            eax, ebx, ecx, edx = (int(word, 16) for word in out)
            key = int(leaf, 16), int(subleaf, 16) if int(mask, 16) & 4 else 0
        except ValueError:
            raise NfdError(f"cpuid dump: unexpected line {line[:80]!r}") from None
        leaves[key] = eax, ebx, ecx, edx
    return Registers(leaves, xcr0)


def to_text(registers: Registers) -> str:
    """Write the text form, leaves in order."""
    lines = ["# mask eax ebx ecx edx => eax ebx ecx edx"]
    for (leaf, subleaf), words in sorted(registers.leaves.items()):
        out = " ".join(f"{word:x}" for word in words)
        lines.append(f"5 {leaf:x} 0 {subleaf:x} 0 => {out}")
    if registers.xcr0 is not None:
        lines.append(f"xcr0 {registers.xcr0:x}")
    return "\n".join(lines) + "\n"


def ascii_text(*words: int) -> str:
    """Join register words to the text they spell, without NULs at the end."""
    raw = b"".join(word.to_bytes(4, "little") for word in words)
    return raw.rstrip(b"\0").decode("ascii", "replace")
