"""The closures that a rendering runs: calls and field accesses, made for speed.

A closure takes the frame of the running template and the cursor ("dot").
"""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from nfd.gotemplate.errors import EvaluationError, RenderingError
from nfd.gotemplate.values import Meter, go_type


class Frame:
    """One running template: its variables, the common output and meter."""

    __slots__ = ("emit", "meter", "variables")

    def __init__(
        self, variables: list[Any], emit: Callable[[str], None], meter: Meter
    ) -> None:
        self.variables = variables
        self.emit = emit
        self.meter = meter


Evaluate = Callable[[Frame, Any], Any]
Fail = Callable[[Exception], NoReturn]


def invoke(
    call: Callable[..., Any],
    evaluates: Sequence[Evaluate],
    fail: Fail,
) -> Evaluate:
    """Call a function with the values of closures."""
    if len(evaluates) == 1:
        (only,) = evaluates

        def one(frame: Frame, dot: Any) -> Any:
            try:
                return call(only(frame, dot))
            except RenderingError as error:
                fail(error)

        return one
    if len(evaluates) == 2:
        left, right = evaluates

        def two(frame: Frame, dot: Any) -> Any:
            try:
                return call(left(frame, dot), right(frame, dot))
            except RenderingError as error:
                fail(error)

        return two

    def many(frame: Frame, dot: Any) -> Any:
        try:
            return call(*[evaluate(frame, dot) for evaluate in evaluates])
        except RenderingError as error:
            fail(error)

    return many


def invoke_piped(
    call: Callable[..., Any], evaluates: Sequence[Evaluate], fail: Fail
) -> Evaluate:
    """As `invoke`, for a last argument that is evaluated before the others."""
    *before, last = evaluates

    def piped(frame: Frame, dot: Any) -> Any:
        final = last(frame, dot)
        try:
            return call(*[evaluate(frame, dot) for evaluate in before], final)
        except RenderingError as error:
            fail(error)

    return piped


def field_of_dot(name: str, fail: Fail) -> Evaluate:
    """Take a field of the cursor: the commonest expression."""

    def run(_frame: Frame, dot: Any) -> Any:
        try:
            return dot[name]
        except (KeyError, TypeError):
            return _slow_fields(dot, (name,), fail)

    return run


def field_chain(start: Evaluate, fields: Sequence[str], fail: Fail) -> Evaluate:
    """Take fields of fields of a value."""

    def run(frame: Frame, dot: Any) -> Any:
        first = value = start(frame, dot)
        try:
            for name in fields:
                value = value[name]
        except (KeyError, TypeError):
            return _slow_fields(first, fields, fail)
        return value

    return run


def _slow_fields(value: Any, fields: Sequence[str], fail: Fail) -> Any:
    """Walk fields of values that may not be maps, and say what is missing."""
    try:
        for name in fields:
            value = field_of(value, name)
    except RenderingError as error:
        fail(error)
    return value


def field_of(value: Any, name: str) -> Any:
    """Return a field of a value: an element of a map, or what a method returns."""
    if isinstance(value, dict):
        if name in value:
            return value[name]
        known = ", ".join(sorted(value)[:10]) or "nothing"
        raise EvaluationError(f"there is no {name!r}; expected one of: {known}")
    if value is None:
        raise EvaluationError(f"nil has no field {name!r}")
    method = getattr(value, "METHODS", {}).get(name)
    if method is None:
        raise EvaluationError(f"{go_type(value)} has no field {name!r}")
    if method.params:
        raise EvaluationError(f"{name}: {method.complaint(0)}")
    return method.call(value)
