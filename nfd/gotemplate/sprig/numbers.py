"""Sprig's arithmetic: whole numbers are `int64` and wrap, floats are decimal inside."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.formatting import format_value
from nfd.gotemplate.functions import Function
from nfd.gotemplate.literals import parse_float, parse_int, read_digits
from nfd.gotemplate.values import (
    INT_MAX,
    INT_MIN,
    Int64,
    IntList,
    charge_items,
    charge_text,
)

if TYPE_CHECKING:
    from decimal import Decimal

_DIVISION_DIGITS = 16  # decimal places that the decimal library divides to


def wrap_int64(value: int) -> Int64:
    """Keep the low 64 bits, as Go's arithmetic does."""
    if INT_MIN <= value <= INT_MAX:
        return Int64(value)
    return Int64((value - INT_MIN) % (1 << 64) + INT_MIN)


def to_int64(value: Any) -> Int64:
    """Convert to `int64`; what cannot be converted is 0."""
    if isinstance(value, str):
        return Int64(_int_of_text(value))
    if isinstance(value, float):
        return Int64(_int_of_float(value))
    return wrap_int64(int(value)) if isinstance(value, int) else Int64(0)


def to_int(value: Any) -> int:
    """Convert to `int`; what cannot be converted is 0."""
    return int(to_int64(value))


def to_float64(value: Any) -> float:
    """Convert to `float64`; what cannot be converted is 0."""
    if isinstance(value, str):
        charge_text(len(value))
        return parse_float(value) or 0.0
    return float(value) if isinstance(value, int | float) else 0.0


def _int_of_text(text: str) -> int:
    charge_text(len(text))
    whole, point, zeros = text.rpartition(".")
    if point and zeros and not zeros.strip("0"):
        text = whole
    value = parse_int(text)
    return 0 if value is None or not INT_MIN <= value <= INT_MAX else value


def _int_of_float(value: float) -> int:
    # Go leaves conversions out of range to the processor; amd64 gives the minimum.
    if not math.isfinite(value):
        return INT_MIN
    whole = int(value)
    return whole if INT_MIN <= whole <= INT_MAX else INT_MIN


def atoi(text: str) -> int:
    """Read a decimal whole number; anything else is 0."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdecimal()):
        return 0
    number = read_digits(digits)
    return max(INT_MIN, min(-number if text[0] == "-" else number, INT_MAX))


def to_decimal(value: Any) -> Int64:
    """Read octal digits; anything else is 0."""
    text = format_value(value)
    digits = text.lstrip("+-") if text[:1] in ("+", "-") else text
    if not digits or digits.strip("01234567") or len(text) - len(digits) > 1:
        return Int64(0)
    number = int(text, 8)
    return Int64(number if INT_MIN <= number <= INT_MAX else 0)


def until(count: int) -> IntList:
    """List the whole numbers from 0 to before `count`."""
    return until_step(0, count, -1 if count < 0 else 1)


def until_step(start: int, stop: int, step: int) -> IntList:
    """List whole numbers by steps; a step away from `stop` gives none."""
    if step == 0 or (stop < start) != (step < 0):
        return IntList()
    numbers = range(start, stop, step)
    charge_items(len(numbers))
    return IntList(numbers)


def seq(*params: int) -> str:
    """Write whole numbers as the command of this name does."""
    start, step, end = 1, 0, 0
    match params:
        case (end,):
            step = -1 if end < start else 1
        case (start, end):
            step = -1 if end < start else 1
        case (start, step, end):
            if end < start and step > 0:
                return ""
        case _:
            return ""
    beyond = -1 if end < start else 1
    return " ".join(map(str, until_step(start, end + beyond, step)))


def add(*values: Any) -> Int64:
    """Add whole numbers."""
    return wrap_int64(sum(map(to_int64, values)))


def multiply(first: Any, *others: Any) -> Int64:
    """Multiply whole numbers."""
    product = to_int64(first)
    for other in others:
        product = wrap_int64(product * to_int64(other))
    return product


def divide(left: Any, right: Any) -> Int64:
    """Divide whole numbers, rounding towards zero."""
    dividend, divisor = to_int64(left), _divisor(right)
    quotient = abs(dividend) // abs(divisor)
    return wrap_int64(quotient if (dividend < 0) == (divisor < 0) else -quotient)


def modulo(left: Any, right: Any) -> Int64:
    """Return the rest of a division; it has the sign of the dividend."""
    dividend, divisor = to_int64(left), _divisor(right)
    rest = abs(dividend) % abs(divisor)
    return Int64(-rest if dividend < 0 else rest)


def _divisor(value: Any) -> Int64:
    divisor = to_int64(value)
    if not divisor:
        raise EvaluationError("division by zero")
    return divisor


def greatest(first: Any, *others: Any) -> Int64:
    """Return the greatest whole number."""
    return max(map(to_int64, (first, *others)))


def least(first: Any, *others: Any) -> Int64:
    """Return the least whole number."""
    return min(map(to_int64, (first, *others)))


def greatest_float(first: Any, *others: Any) -> float:
    """Return the greatest float; not-a-number wins."""
    return _extreme(max, first, *others)


def least_float(first: Any, *others: Any) -> float:
    """Return the least float; not-a-number wins."""
    return _extreme(min, first, *others)


def _extreme(choose: Callable[..., float], *values: Any) -> float:
    numbers = [to_float64(value) for value in values]
    return math.nan if any(map(math.isnan, numbers)) else choose(numbers)


def floor(value: Any) -> float:
    """Round down."""
    number = to_float64(value)
    return _signed(math.floor(number), number) if math.isfinite(number) else number


def ceil(value: Any) -> float:
    """Round up."""
    number = to_float64(value)
    return _signed(math.ceil(number), number) if math.isfinite(number) else number


def _signed(whole: int, number: float) -> float:
    """Make a float that keeps the sign of a number rounded to zero."""
    return float(whole) if whole else math.copysign(0, number)


def round_to(value: Any, places: int, *threshold: float) -> float:
    """Round to decimal places; fractions from the threshold (0.5) on go up."""
    number = to_float64(value)
    try:
        power = math.pow(10, places)
    except OverflowError:
        power = math.inf
    digit = power * number
    if not math.isfinite(digit) or not power:
        return digit / power if power else math.nan
    fraction = math.modf(digit)[0]
    up = fraction >= (threshold[0] if threshold else 0.5)
    return float(math.ceil(digit) if up else math.floor(digit)) / power


def _decimal_operation(
    operation: Callable[["Decimal", "Decimal"], "Decimal"], first: Any, others: Any
) -> float:
    from decimal import Context, localcontext  # noqa: PLC0415 - 4 ms for a rare need

    with localcontext(Context(prec=700)):
        result = _to_decimal(first)
        for other in others:
            result = operation(result, _to_decimal(other))
        return float(result) or 0.0  # the decimal library has no -0


def _to_decimal(value: Any) -> "Decimal":
    from decimal import Decimal  # noqa: PLC0415 - 4 ms for a rare need

    number = to_float64(value)
    if not math.isfinite(number):
        raise EvaluationError("expected a finite number")
    return Decimal(repr(number))


def add_float(*values: Any) -> float:
    """Add decimals."""
    return _decimal_operation(lambda a, b: a + b, 0, values)


def subtract_float(first: Any, *others: Any) -> float:
    """Subtract decimals."""
    return _decimal_operation(lambda a, b: a - b, first, others)


def multiply_float(first: Any, *others: Any) -> float:
    """Multiply decimals."""
    return _decimal_operation(lambda a, b: a * b, first, others)


def divide_float(first: Any, *others: Any) -> float:
    """Divide decimals to 16 places."""
    from decimal import ROUND_HALF_UP, Decimal  # noqa: PLC0415 - 4 ms, rarely needed

    unit = Decimal(1).scaleb(-_DIVISION_DIGITS)

    def quotient(left: "Decimal", right: "Decimal") -> "Decimal":
        if not right:
            raise EvaluationError("division by zero")
        return (left / right).quantize(unit, rounding=ROUND_HALF_UP)

    return _decimal_operation(quotient, first, others)


FUNCTIONS = {
    "add": Function(add, "any..."),
    "add1": Function(lambda value: add(value, 1), "any"),
    "add1f": Function(lambda value: add_float(value, 1), "any"),
    "addf": Function(add_float, "any..."),
    "atoi": Function(atoi, "string"),
    "biggest": Function(greatest, "any", "any..."),
    "ceil": Function(ceil, "any"),
    "div": Function(divide, "any", "any"),
    "divf": Function(divide_float, "any", "any..."),
    "float64": Function(to_float64, "any"),
    "floor": Function(floor, "any"),
    "int": Function(to_int, "any"),
    "int64": Function(to_int64, "any"),
    "max": Function(greatest, "any", "any..."),
    "maxf": Function(greatest_float, "any", "any..."),
    "min": Function(least, "any", "any..."),
    "minf": Function(least_float, "any", "any..."),
    "mod": Function(modulo, "any", "any"),
    "mul": Function(multiply, "any", "any..."),
    "mulf": Function(multiply_float, "any", "any..."),
    "round": Function(round_to, "any", "int", "float64..."),
    "seq": Function(seq, "int..."),
    "sub": Function(lambda a, b: wrap_int64(to_int64(a) - to_int64(b)), "any", "any"),
    "subf": Function(subtract_float, "any", "any..."),
    "toDecimal": Function(to_decimal, "any"),
    "until": Function(until, "int"),
    "untilStep": Function(until_step, "int", "int", "int"),
}
