"""Compiles pipelines, function calls and field accesses to closures."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, NoReturn

from nfd.gotemplate import nodes
from nfd.gotemplate.closures import (
    Evaluate,
    Fail,
    Frame,
    field_chain,
    field_of_dot,
    invoke,
    invoke_piped,
)
from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.functions import RANDOM_LENGTHS, REFUSED, Function, GoType
from nfd.gotemplate.lexer import Source
from nfd.gotemplate.values import charge_text, go_type

_LONG = 1024  # characters of an argument from which on reading it costs steps


class Operand(NamedTuple):
    """A compiled value; `constant` ones do not depend on frame or cursor."""

    evaluate: Evaluate
    constant: bool = False


class ExpressionCompiler:
    """Compiles the expressions of one template.

    `weight` counts the commands compiled so far, for the budget of steps.
    """

    def __init__(self, source: Source, functions: Mapping[str, Function]) -> None:
        self._source = source
        self._functions = functions
        self.weight = 0

    def pipeline(self, node: nodes.Pipeline) -> Operand:
        """Compile a pipeline; its value is what the last command returns."""
        self.weight += len(node.commands)
        operand: Operand | None = None
        is_measured = False
        for command, following in zip_longest(node.commands, node.commands[1:]):
            if is_measured:
                is_measured = False
                continue
            length = None
            if following is not None and _is_len(following):
                length = self._random_length(command, operand)
            is_measured = length is not None
            operand = length or self._command(command, operand)
        assert operand is not None
        if not node.slots:
            return operand
        evaluate = operand.evaluate
        slots = node.slots

        def declare(frame: Frame, dot: Any) -> Any:
            value = evaluate(frame, dot)
            for slot in slots:
                frame.variables[slot] = value
            return value

        return Operand(declare)

    def _command(self, node: nodes.Command, final: Operand | None) -> Operand:
        head, *arguments = node.operands
        if isinstance(head, nodes.Name):
            return self._call(head, arguments, final)
        if not arguments and final is None:
            if isinstance(head, nodes.Nil):
                return self._failure(head.position, "nil is not a value to print")
            return self._operand(head)
        if isinstance(head, nodes.Field | nodes.Chain) or (
            isinstance(head, nodes.Variable) and head.fields
        ):
            return self._method(head, arguments, final)
        text = self._source.text[head.position :].split(maxsplit=1)[0]
        return self._failure(
            head.position, f"{text} is no function and cannot take arguments"
        )

    def _operand(self, node: nodes.Operand) -> Operand:
        match node:
            case nodes.Dot():
                return _DOT
            case nodes.Field():
                return self._fields(None, node.fields, node.position)
            case nodes.Variable():
                return self._fields(_variable(node.slot), node.fields, node.position)
            case nodes.Chain():
                if isinstance(node.operand, nodes.Nil):
                    return self._failure(node.position, "nil has no fields")
                inner = self._operand(node.operand)
                return self._fields(inner, node.fields, node.position)
            case nodes.Pipeline():
                return self.pipeline(node)
            case nodes.Name():
                return self._call(node, (), None)
            case nodes.Nil():
                return _constant(None)
            case nodes.Bool() | nodes.Quoted() | nodes.Number():
                return _constant(node.value)

    def _fields(
        self, inner: Operand | None, fields: tuple[str, ...], position: int
    ) -> Operand:
        if not fields:
            return inner or _DOT
        fail = self.fail_at(position, "." + ".".join(fields))
        if inner is None and len(fields) == 1:
            return Operand(field_of_dot(fields[0], fail))
        return Operand(field_chain((inner or _DOT).evaluate, fields, fail))

    # Calls --------------------------------------------------------------------

    def _call(
        self,
        node: nodes.Name,
        arguments: Sequence[nodes.Operand],
        final: Operand | None,
    ) -> Operand:
        reason = REFUSED.get(node.name)
        if reason is not None:
            raise self._source.error(
                f"the function {node.name} {reason}", node.position
            )
        function = self._functions[node.name]
        if node.name in ("and", "or"):
            return self._and_or(node, arguments, final)
        if node.name == "len" and len(arguments) == 1 and final is None:
            (argument,) = arguments
            if isinstance(argument, nodes.Pipeline) and len(argument.commands) == 1:
                length = self._random_length(argument.commands[0], None)
                if length is not None:
                    return length
        return self._bind(function, node.name, node.position, arguments, final)

    def _random_length(
        self, node: nodes.Command, final: Operand | None
    ) -> Operand | None:
        """Compile the length of a random text; None for any other command."""
        head, *arguments = node.operands
        name = head.name if isinstance(head, nodes.Name) else ""
        function = RANDOM_LENGTHS.get(name)
        if function is None:
            return None
        return self._bind(function, name, head.position, arguments, final)

    def _and_or(
        self,
        node: nodes.Name,
        arguments: Sequence[nodes.Operand],
        final: Operand | None,
    ) -> Operand:
        operands = [self._operand(argument) for argument in arguments]
        if not operands and final is None:
            return self._failure(
                node.position, f"{node.name}: expected at least 1 argument, found 0"
            )
        evaluates = [operand.evaluate for operand in operands]
        stops_on = node.name == "or"
        last = final.evaluate if final is not None else None

        def run(frame: Frame, dot: Any) -> Any:
            piped = last(frame, dot) if last is not None else None
            value = None
            for evaluate in evaluates:
                value = evaluate(frame, dot)
                if bool(value) is stops_on:
                    return value
            return value if last is None else piped

        return Operand(run)

    def _bind(
        self,
        function: Function,
        name: str,
        position: int,
        arguments: Sequence[nodes.Operand],
        final: Operand | None,
    ) -> Operand:
        count = len(arguments) + (final is not None)
        complaint = function.complaint(count)
        if complaint is not None:
            return self._failure(position, f"{name}: {complaint}")
        operands = [
            self._argument(name, argument, function.type_at(index))
            for index, argument in enumerate(arguments)
        ]
        if final is not None:
            wanted = function.type_at(count - 1)
            operands.append(self._checked(name, final, wanted, position))
        evaluates = [operand.evaluate for operand in operands]
        fail = self.fail_at(position, name)
        if final is None or all(operand.constant for operand in operands[:-1]):
            return Operand(invoke(function.call, evaluates, fail))
        return Operand(invoke_piped(function.call, evaluates, fail))

    def _method(
        self,
        head: nodes.Field | nodes.Variable | nodes.Chain,
        arguments: Sequence[nodes.Operand],
        final: Operand | None,
    ) -> Operand:
        *path, name = head.fields
        inner: Operand | None = None
        if isinstance(head, nodes.Variable):
            inner = _variable(head.slot)
        elif isinstance(head, nodes.Chain):
            inner = self._operand(head.operand)
        receiver = self._fields(inner, tuple(path), head.position).evaluate
        fail = self.fail_at(head.position, name)

        def run(frame: Frame, dot: Any) -> Any:
            value = receiver(frame, dot)
            method = getattr(value, "METHODS", {}).get(name)
            if method is None:
                fail(EvaluationError("only methods take arguments"))
            bound = Function(lambda *given: method.call(value, *given), *method.params)
            bound.rest = method.rest
            return self._bind(bound, name, head.position, arguments, final).evaluate(
                frame, dot
            )

        return Operand(run)

    def _argument(self, name: str, node: nodes.Operand, wanted: GoType) -> Operand:
        if wanted.python is None:
            return self._operand(node)
        match node:
            case nodes.Nil():
                if wanted.takes_nil:
                    return _constant(None)
                return self._failure(
                    node.position, f"{name}: expected {wanted.name}, found nil"
                )
            case nodes.Number():
                if wanted.python is int and node.whole is not None:
                    return _constant(node.whole)
                if wanted.python is float and node.real is not None:
                    return _constant(node.real)
                return self._failure(
                    node.position, f"{name}: expected {wanted.name}, found {node.text}"
                )
            case nodes.Bool() | nodes.Quoted():
                if type(node.value) is wanted.python:
                    return _constant(node.value)
                return self._failure(
                    node.position,
                    f"{name}: expected {wanted.name}, found {node.value!r}",
                )
            case _:
                return self._checked(name, self._operand(node), wanted, node.position)

    def _checked(
        self, name: str, operand: Operand, wanted: GoType, position: int
    ) -> Operand:
        python = wanted.python
        if python is None:
            return operand
        evaluate = operand.evaluate
        takes_nil = wanted.takes_nil
        fail = self.fail_at(position, name)

        def check(frame: Frame, dot: Any) -> Any:
            value = evaluate(frame, dot)
            if type(value) is not python and not (value is None and takes_nil):
                fail(EvaluationError(f"expected {wanted.name}, found {go_type(value)}"))
            if isinstance(value, str) and len(value) > _LONG:
                charge_text(len(value))
            return value

        return Operand(check, operand.constant)

    # Errors -------------------------------------------------------------------

    def fail_at(self, position: int, what: str) -> Fail:
        """Make the function that raises an error at a position of the source."""
        source = self._source

        def fail(error: Exception) -> NoReturn:
            raise source.error(f"{what}: {error}", position) from error

        return fail

    def _failure(self, position: int, message: str) -> Operand:
        """Make a value that fails when it is needed, as Go's engine does."""
        source = self._source

        def run(_frame: Frame, _dot: Any) -> NoReturn:
            raise source.error(message, position)

        return Operand(run)


def _is_len(node: nodes.Command) -> bool:
    head, *arguments = node.operands
    return isinstance(head, nodes.Name) and head.name == "len" and not arguments


_DOT = Operand(lambda _frame, dot: dot)


def _variable(slot: int) -> Operand:
    return Operand(lambda frame, _dot: frame.variables[slot])


def _constant(value: object) -> Operand:
    return Operand(lambda _frame, _dot: value, constant=True)
