"""Kubernetes quantities: parsing, comparing and the canonical form.

Grammar and canonical form: the Kubernetes API reference "Quantity" and
spec/master.md section 10A.
"""

import re
from typing import Literal, Self, TypeAlias

import attrs

from nfd.errors import NfdError

Format: TypeAlias = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

MAX_BINARY = 2**63 - 1  # larger binary quantities are cut to this, as in Kubernetes
MAX_EXPONENT = 100
_NANO = 10**9
_TEXT = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]{0,100})(?:\.([0-9]{0,100}))?"
    r"(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,4}))?",
    re.ASCII,
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12}
_DECIMAL |= {"P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class QuantityError(NfdError):
    """A text is no Kubernetes quantity."""


@attrs.frozen(slots=True, order=True)
class Quantity:
    """An amount in whole nano units; the format decides only how it is written."""

    nanos: int
    format: Format = attrs.field(default="DecimalSI", eq=False, order=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a quantity such as "2Gi", "1500m" or "1e3".

        Amounts finer than a nano unit are rounded away from zero.

        Raises:
            QuantityError: The text breaks the grammar or is out of range.

        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise QuantityError(f"not a quantity: {text[:80]!r}")
        sign, whole, part, suffix, exponent = match.groups()
        part, suffix = part or "", suffix or ""
        form: Format = "DecimalSI"
        power, factor = 9 - len(part), 1
        if exponent is not None:
            form = "DecimalExponent"
            power += int(exponent)
            if abs(int(exponent)) > MAX_EXPONENT:
                raise QuantityError(f"quantity out of range: {text[:80]!r}")
        elif suffix in _DECIMAL:
            power += _DECIMAL[suffix]
        else:
            form = "BinarySI"
            factor = 1024 ** _BINARY_SUFFIX.index(suffix)
        amount = int(whole + part) * factor
        nanos = amount * 10**power if power >= 0 else -(-amount // 10**-power)
        if form == "BinarySI":
            nanos = min(nanos, MAX_BINARY * _NANO)
        return cls(-nanos if sign == "-" else nanos, form)

    @classmethod
    def of(cls, amount: int, form: Format = "DecimalSI") -> Self:
        """Make the quantity of a whole number."""
        return cls(amount * _NANO, form)

    @property
    def is_whole(self) -> bool:
        """Whether the amount is a whole number."""
        return self.nanos % _NANO == 0

    def __int__(self) -> int:
        """Return the whole amount, fractions rounded up (as Kubernetes' Value)."""
        return -(-self.nanos // _NANO)

    def __str__(self) -> str:
        """Return the canonical form: the largest suffix that leaves no fraction."""
        if not self.nanos:
            return "0"
        if self.format == "BinarySI" and self.is_whole and abs(int(self)) >= 1024:
            return self._binary()
        return self._decimal()

    def _binary(self) -> str:
        number, index = int(self), 0
        while number % 1024 == 0 and index < len(_BINARY_SUFFIX) - 1:
            number //= 1024
            index += 1
        return f"{number}{_BINARY_SUFFIX[index]}"

    def _decimal(self) -> str:
        largest = MAX_EXPONENT + 9 if self.format == "DecimalExponent" else 18
        number, exponent = self.nanos, -9
        while number % 1000 == 0 and exponent + 3 <= largest:
            number //= 1000
            exponent += 3
        if self.format != "DecimalExponent":
            return f"{number}{_DECIMAL_SUFFIX[exponent]}"
        return f"{number}e{exponent}" if exponent else str(number)
