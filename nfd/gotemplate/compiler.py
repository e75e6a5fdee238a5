"""Turns a template's syntax tree into Python closures, which render it fast.

Each closure takes the frame of the running template and the cursor ("dot").
Semantics are those of Go 1.26's text/template with `missingkey=error`.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple, NoReturn

from nfd.gotemplate import nodes
from nfd.gotemplate.errors import EvaluationError, TemplateError
from nfd.gotemplate.formatting import print_value, sprint
from nfd.gotemplate.functions import RANDOM_LENGTHS, REFUSED, TYPES, Function, GoType
from nfd.gotemplate.lexer import Source
from nfd.gotemplate.values import MAX_STEPS, Meter, go_type

MAX_CALL_DEPTH: Final = 240  # nesting of all running templates together

_BREAK: Final = "break"
_CONTINUE: Final = "continue"


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
Run = Callable[[Frame, Any], str | None]  # returns _BREAK, _CONTINUE or None


class Operand(NamedTuple):
    """A compiled value; `constant` ones do not depend on frame or cursor."""

    evaluate: Evaluate
    constant: bool = False


class Body(NamedTuple):
    """A compiled template."""

    run: Run
    slots: int
    depth: int
    weight: int


_ANY = TYPES["any"]


def compile_templates(
    source: Source,
    templates: Mapping[str, nodes.Body],
    functions: Mapping[str, Function],
) -> Body:
    """Compile all templates of a source and return the main one."""
    bodies: dict[str, Body] = {}
    for name, body in templates.items():
        compiler = _Compiler(source, functions, bodies)
        run = compiler.block(body.statements)
        bodies[name] = Body(run, body.slots, body.depth + 1, compiler.weight)
    return bodies[""]


class _Compiler:
    def __init__(
        self,
        source: Source,
        functions: Mapping[str, Function],
        bodies: Mapping[str, Body],
    ) -> None:
        self._source = source
        self._functions = functions
        self._bodies = bodies
        self.weight = 0

    # Statements ---------------------------------------------------------------

    def block(self, statements: Sequence[nodes.Node]) -> Run:
        """Compile statements that run one after another."""
        self.weight += len(statements)
        runs = [self._statement(statement) for statement in statements]
        if not runs:
            return lambda _frame, _dot: None
        if len(runs) == 1:
            return runs[0]

        def run(frame: Frame, dot: Any) -> str | None:
            for step in runs:
                jump = step(frame, dot)
                if jump is not None:
                    return jump
            return None

        return run

    def _statement(self, node: nodes.Node) -> Run:
        match node:
            case nodes.Text():
                return _emit_text(node.text)
            case nodes.Action():
                return self._action(node)
            case nodes.If():
                return self._if(node)
            case nodes.Range():
                return self._range(node)
            case nodes.Break():
                return lambda _frame, _dot: _BREAK
            case nodes.Continue():
                return lambda _frame, _dot: _CONTINUE
            case nodes.Call():
                return self._call_template(node)
        raise AssertionError(node)

    def _action(self, node: nodes.Action) -> Run:
        evaluate = self._pipeline(node.pipeline).evaluate
        if node.pipeline.slots:

            def assign(frame: Frame, dot: Any) -> None:
                evaluate(frame, dot)

            return assign
        fail = self._fail_at(node.pipeline.position, "printing")

        def run(frame: Frame, dot: Any) -> None:
            value = evaluate(frame, dot)
            if type(value) is str:
                frame.emit(value)
                return
            try:
                frame.emit(print_value(value))
            except EvaluationError as error:
                fail(error)

        return run

    def _if(self, node: nodes.If) -> Run:
        moves_dot = node.moves_dot
        branches = [
            (self._pipeline(pipeline).evaluate, self.block(body))
            for pipeline, body in node.branches
        ]
        otherwise = self.block(node.otherwise) if node.otherwise else None

        def run(frame: Frame, dot: Any) -> str | None:
            for condition, body in branches:
                value = condition(frame, dot)
                if value:
                    return body(frame, value if moves_dot else dot)
            return otherwise(frame, dot) if otherwise is not None else None

        return run

    def _range(self, node: nodes.Range) -> Run:
        evaluate = self._pipeline(node.pipeline).evaluate
        before = self.weight
        body = self.block(node.body)
        cost = 1 + self.weight - before
        otherwise = self.block(node.otherwise) if node.otherwise else None
        slots = node.pipeline.slots
        first = slots[0] if slots else -1
        second = slots[1] if len(slots) > 1 else -1
        over_budget = self._fail_at(node.position, "range")
        fail = self._fail_at(node.pipeline.position, "range")

        def run(frame: Frame, dot: Any) -> str | None:
            value = evaluate(frame, dot)
            if isinstance(value, list):
                if not value:
                    return otherwise(frame, dot) if otherwise is not None else None
                items: Any = enumerate(value) if second >= 0 else value
            elif isinstance(value, dict):
                if not value:
                    return otherwise(frame, dot) if otherwise is not None else None
                items = sorted(value.items())
                if second < 0:
                    items = [item for _key, item in items]
            elif value is None:
                return otherwise(frame, dot) if otherwise is not None else None
            else:
                try:
                    items = _integers(value, alone=second < 0)
                except EvaluationError as error:
                    fail(error)
                if not items:
                    return otherwise(frame, dot) if otherwise is not None else None
            variables = frame.variables
            meter = frame.meter
            for item in items:
                meter.steps += cost
                if meter.steps > MAX_STEPS:
                    over_budget(EvaluationError(f"needs more than {MAX_STEPS} steps"))
                element = item
                if second >= 0:
                    variables[first], element = item
                    variables[second] = element
                elif first >= 0:
                    variables[first] = element
                if body(frame, element) is _BREAK:
                    break
            return None

        return run

    def _call_template(self, node: nodes.Call) -> Run:
        evaluate: Evaluate = lambda _frame, _dot: None  # noqa: E731 - a default
        if node.pipeline is not None:
            evaluate = self._pipeline(node.pipeline).evaluate
        name = node.name
        bodies = self._bodies
        fail = self._fail_at(node.position, "template")

        def run(frame: Frame, dot: Any) -> None:
            body = bodies.get(name)
            if body is None:
                fail(EvaluationError(f"the template {name!r} is not defined"))
            meter = frame.meter
            meter.steps += body.weight + 1
            meter.depth += body.depth
            if meter.steps > MAX_STEPS:
                fail(EvaluationError(f"needs more than {MAX_STEPS} steps"))
            if meter.depth > MAX_CALL_DEPTH:
                fail(EvaluationError("templates call each other too deeply"))
            value = evaluate(frame, dot)
            variables = [None] * body.slots
            variables[0] = value
            body.run(Frame(variables, frame.emit, meter), value)
            meter.depth -= body.depth

        return run

    # Pipelines and commands ---------------------------------------------------

    def _pipeline(self, node: nodes.Pipeline) -> Operand:
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

    def _operand(self, node: nodes.Node) -> Operand:
        match node:
            case nodes.Dot():
                return Operand(lambda _frame, dot: dot)
            case nodes.Field():
                return self._fields(None, node.fields, node.position)
            case nodes.Variable():
                slot = node.slot
                variable = Operand(lambda frame, _dot: frame.variables[slot])
                if not node.fields:
                    return variable
                return self._fields(variable, node.fields, node.position)
            case nodes.Chain():
                if isinstance(node.operand, nodes.Nil):
                    return self._failure(node.position, "nil has no fields")
                inner = self._operand(node.operand)
                return self._fields(inner, node.fields, node.position)
            case nodes.Pipeline():
                return self._pipeline(node)
            case nodes.Name():
                return self._call(node, (), None)
            case nodes.Nil():
                return _constant(None)
            case nodes.Bool() | nodes.Quoted() | nodes.Number():
                return _constant(node.value)
        raise AssertionError(node)

    def _fields(
        self, inner: Operand | None, fields: tuple[str, ...], position: int
    ) -> Operand:
        fail = self._fail_at(position, "." + ".".join(fields))

        def slow(value: Any) -> Any:
            try:
                for name in fields:
                    value = field_of(value, name)
            except EvaluationError as error:
                fail(error)
            return value

        if inner is None and len(fields) == 1:
            (only,) = fields

            def one(_frame: Frame, dot: Any) -> Any:
                try:
                    return dot[only]
                except (KeyError, TypeError):
                    return slow(dot)

            return Operand(one)

        def many(frame: Frame, dot: Any) -> Any:
            start = value = dot if inner is None else inner.evaluate(frame, dot)
            try:
                for name in fields:
                    value = value[name]
            except (KeyError, TypeError):
                return slow(start)
            return value

        return Operand(many)

    # Calls --------------------------------------------------------------------

    def _call(
        self, node: nodes.Name, arguments: Sequence[nodes.Node], final: Operand | None
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
        self, node: nodes.Name, arguments: Sequence[nodes.Node], final: Operand | None
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
        arguments: Sequence[nodes.Node],
        final: Operand | None,
    ) -> Operand:
        count = len(arguments) + (final is not None)
        complaint = function.complaint(count)
        if complaint is not None:
            return self._failure(position, f"{name}: {complaint}")
        operands = [
            self._argument(argument, function.type_at(index))
            for index, argument in enumerate(arguments)
        ]
        if final is not None:
            wanted = function.type_at(count - 1)
            operands.append(self._checked(final, wanted, position))
        final_first = final is not None and not all(
            operand.constant for operand in operands[:-1]
        )
        evaluates = [operand.evaluate for operand in operands]
        return Operand(
            _invoke(
                function.call, evaluates, self._fail_at(position, name), final_first
            )
        )

    def _method(
        self, head: nodes.Node, arguments: Sequence[nodes.Node], final: Operand | None
    ) -> Operand:
        assert isinstance(head, nodes.Field | nodes.Variable | nodes.Chain)
        *path, name = head.fields
        if isinstance(head, nodes.Field):
            inner = Operand(lambda _frame, dot: dot)
        elif isinstance(head, nodes.Variable):
            inner = self._operand(nodes.Variable(0, head.name, head.slot, ()))
        else:
            inner = self._operand(head.operand)
        receiver = self._fields(inner, tuple(path), head.position).evaluate
        fail = self._fail_at(head.position, name)

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

    def _argument(self, node: nodes.Node, wanted: GoType) -> Operand:
        if wanted.python is None:
            return self._operand(node)
        match node:
            case nodes.Nil():
                if wanted.takes_nil:
                    return _constant(None)
                return self._failure(
                    node.position, f"expected {wanted.name}, found nil"
                )
            case nodes.Number():
                if wanted.python is int and node.whole is not None:
                    return _constant(node.whole)
                if wanted.python is float and node.real is not None:
                    return _constant(node.real)
                return self._failure(
                    node.position, f"expected {wanted.name}, found {node.text}"
                )
            case nodes.Bool() | nodes.Quoted():
                if type(node.value) is wanted.python:
                    return _constant(node.value)
                return self._failure(
                    node.position, f"expected {wanted.name}, found {node.value!r}"
                )
        return self._checked(self._operand(node), wanted, node.position)

    def _checked(self, operand: Operand, wanted: GoType, position: int) -> Operand:
        python = wanted.python
        if python is None:
            return operand
        evaluate = operand.evaluate
        takes_nil = wanted.takes_nil
        fail = self._fail_at(position, "argument")

        def check(frame: Frame, dot: Any) -> Any:
            value = evaluate(frame, dot)
            if type(value) is python or (value is None and takes_nil):
                return value
            fail(EvaluationError(f"expected {wanted.name}, found {go_type(value)}"))

        return Operand(check, operand.constant)

    # Errors -------------------------------------------------------------------

    def _fail_at(self, position: int, what: str) -> Callable[[Exception], NoReturn]:
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


def _emit_text(text: str) -> Run:
    def run(frame: Frame, _dot: Any) -> None:
        frame.emit(text)

    return run


def _constant(value: object) -> Operand:
    return Operand(lambda _frame, _dot: value, constant=True)


def _integers(value: object, *, alone: bool) -> Sequence[int]:
    if isinstance(value, bool) or not isinstance(value, int):
        raise EvaluationError(
            f"expected a list, a map or a number, found {go_type(value)}"
        )
    if not alone:
        raise EvaluationError("a number gives one variable, not two")
    if type(value) is int:
        return range(value)
    return [type(value)(item) for item in range(min(value, MAX_STEPS + 1))]


def _invoke(
    call: Callable[..., Any],
    evaluates: Sequence[Evaluate],
    fail: Callable[[Exception], NoReturn],
    final_first: bool,
) -> Evaluate:
    if final_first:
        *before, last = evaluates

        def piped(frame: Frame, dot: Any) -> Any:
            final = last(frame, dot)
            try:
                return call(*[evaluate(frame, dot) for evaluate in before], final)
            except EvaluationError as error:
                fail(error)

        return piped
    if len(evaluates) == 1:
        (only,) = evaluates

        def one(frame: Frame, dot: Any) -> Any:
            try:
                return call(only(frame, dot))
            except EvaluationError as error:
                fail(error)

        return one
    if len(evaluates) == 2:
        left, right = evaluates

        def two(frame: Frame, dot: Any) -> Any:
            try:
                return call(left(frame, dot), right(frame, dot))
            except EvaluationError as error:
                fail(error)

        return two

    def many(frame: Frame, dot: Any) -> Any:
        try:
            return call(*[evaluate(frame, dot) for evaluate in evaluates])
        except EvaluationError as error:
            fail(error)

    return many


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


__all__ = ["Body", "Frame", "TemplateError", "compile_templates", "sprint"]
