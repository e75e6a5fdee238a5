"""Turns a template's syntax tree into Python closures, which render it fast.

Each closure takes the frame of the running template and the cursor ("dot").
Semantics are those of Go 1.26's text/template with `missingkey=error`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from nfd.gotemplate import nodes
from nfd.gotemplate.closures import Evaluate, Frame
from nfd.gotemplate.errors import BudgetError, EvaluationError, RenderingError
from nfd.gotemplate.expressions import ExpressionCompiler
from nfd.gotemplate.formatting import print_value
from nfd.gotemplate.functions import Function
from nfd.gotemplate.lexer import Source
from nfd.gotemplate.values import MAX_STEPS, charge_items, go_type

MAX_CALL_DEPTH: Final = 240  # nesting of all running templates together

_BREAK: Final = "break"
_CONTINUE: Final = "continue"


Run = Callable[[Frame, Any], str | None]  # returns _BREAK, _CONTINUE or None


class Body(NamedTuple):
    """A compiled template."""

    run: Run
    slots: int
    depth: int
    weight: int


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


class _Compiler(ExpressionCompiler):
    """Compiles the statements of one template."""

    def __init__(
        self,
        source: Source,
        functions: Mapping[str, Function],
        bodies: Mapping[str, Body],
    ) -> None:
        super().__init__(source, functions)
        self._bodies = bodies

    def block(self, statements: Sequence[nodes.Statement]) -> Run:
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

    def _statement(self, node: nodes.Statement) -> Run:
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

    def _action(self, node: nodes.Action) -> Run:
        evaluate = self.pipeline(node.pipeline).evaluate
        if node.pipeline.slots:

            def assign(frame: Frame, dot: Any) -> None:
                evaluate(frame, dot)

            return assign
        fail = self.fail_at(node.pipeline.position, "printing")

        def run(frame: Frame, dot: Any) -> None:
            value = evaluate(frame, dot)
            if type(value) is str:
                frame.emit(value)
                return
            try:
                frame.emit(print_value(value))
            except RenderingError as error:
                fail(error)

        return run

    def _if(self, node: nodes.If) -> Run:
        moves_dot = node.moves_dot
        branches = [
            (self.pipeline(pipeline).evaluate, self.block(body))
            for pipeline, body in node.branches
        ]
        otherwise = self.block(node.otherwise)

        def run(frame: Frame, dot: Any) -> str | None:
            for condition, body in branches:
                value = condition(frame, dot)
                if value:
                    return body(frame, value if moves_dot else dot)
            return otherwise(frame, dot)

        return run

    def _range(self, node: nodes.Range) -> Run:
        evaluate = self.pipeline(node.pipeline).evaluate
        before = self.weight
        body = self.block(node.body)
        cost = 1 + self.weight - before
        otherwise = self.block(node.otherwise)
        slots = node.pipeline.slots
        set_variables = _SETTERS[len(slots)](*slots)
        takes_pairs = len(slots) > 1
        fail = self.fail_at(node.pipeline.position, "range")

        def run(frame: Frame, dot: Any) -> str | None:
            value = evaluate(frame, dot)
            try:
                items = _items(value, takes_pairs)
            except RenderingError as error:
                fail(error)
            if not items:
                return otherwise(frame, dot)
            variables = frame.variables
            meter = frame.meter
            for item in items:
                meter.steps += cost
                if meter.steps > MAX_STEPS:
                    fail(BudgetError(f"needs more than {MAX_STEPS} steps"))
                if body(frame, set_variables(variables, item)) is _BREAK:
                    break
            return None

        return run

    def _call_template(self, node: nodes.Call) -> Run:
        evaluate: Evaluate = lambda _frame, _dot: None  # noqa: E731 - a default
        if node.pipeline is not None:
            evaluate = self.pipeline(node.pipeline).evaluate
        name = node.name
        bodies = self._bodies
        fail = self.fail_at(node.position, "template")

        def run(frame: Frame, dot: Any) -> None:
            body = bodies.get(name)
            if body is None:
                fail(EvaluationError(f"the template {name!r} is not defined"))
            meter = frame.meter
            meter.steps += body.weight + 1
            meter.depth += body.depth
            if meter.steps > MAX_STEPS:
                fail(BudgetError(f"needs more than {MAX_STEPS} steps"))
            if meter.depth > MAX_CALL_DEPTH:
                fail(BudgetError("templates call each other too deeply"))
            value = evaluate(frame, dot)
            variables = [None] * body.slots
            variables[0] = value
            body.run(Frame(variables, frame.emit, meter), value)
            meter.depth -= body.depth

        return run


def _emit_text(text: str) -> Run:
    def run(frame: Frame, _dot: Any) -> None:
        frame.emit(text)

    return run


def _items(value: Any, takes_pairs: bool) -> Collection[Any]:  # noqa: FBT001 - inner
    """Return what a range runs over, with positions or keys if it takes pairs."""
    if isinstance(value, list):
        return tuple(enumerate(value)) if takes_pairs else value
    if isinstance(value, dict):
        pairs = sorted(value.items())
        return pairs if takes_pairs else [element for _key, element in pairs]
    if value is None:
        return ()
    if isinstance(value, bool) or not isinstance(value, int):
        raise EvaluationError(
            f"expected a list, a map or a number, found {go_type(value)}"
        )
    if takes_pairs:
        raise EvaluationError("a number gives one variable, not two")
    if type(value) is int:
        return range(value)
    charge_items(value)
    return [type(value)(item) for item in range(value)]


Setter = Callable[[list[Any], Any], Any]  # sets variables, returns the element


def _set_none() -> Setter:
    return lambda _variables, item: item


def _set_element(slot: int) -> Setter:
    def run(variables: list[Any], item: Any) -> Any:
        variables[slot] = item
        return item

    return run


def _set_pair(first: int, second: int) -> Setter:
    def run(variables: list[Any], item: Any) -> Any:
        variables[first], element = item
        variables[second] = element
        return element

    return run


_SETTERS: Sequence[Callable[..., Setter]] = (_set_none, _set_element, _set_pair)
