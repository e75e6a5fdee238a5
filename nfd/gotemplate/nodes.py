"""The syntax tree of a template; every node knows its position in the source."""

import attrs


@attrs.frozen(slots=True, eq=False)
class Node:
    """Anything that stands in a template."""

    position: int


@attrs.frozen(slots=True, eq=False)
class Text(Node):
    """Text outside of actions."""

    text: str


# Operands ---------------------------------------------------------------------


@attrs.frozen(slots=True, eq=False)
class Dot(Node):
    """`.`, the cursor."""


@attrs.frozen(slots=True, eq=False)
class Nil(Node):
    """The word `nil`."""


@attrs.frozen(slots=True, eq=False)
class Bool(Node):
    """`true` or `false`."""

    value: bool


@attrs.frozen(slots=True, eq=False)
class Quoted(Node):
    """A quoted text."""

    value: str


@attrs.frozen(slots=True, eq=False)
class Number(Node):
    """A number, which takes the type that its place wants.

    `value` has the type it takes where any will do; `whole` and `real` are None
    where the number cannot be an `int` or a `float64`.
    """

    text: str
    value: int | float | complex
    whole: int | None
    real: float | None


@attrs.frozen(slots=True, eq=False)
class Variable(Node):
    """`$name`, resolved to a slot, and the fields behind it."""

    name: str
    slot: int
    fields: tuple[str, ...]


@attrs.frozen(slots=True, eq=False)
class Field(Node):
    """`.a.b` of the cursor."""

    fields: tuple[str, ...]


@attrs.frozen(slots=True, eq=False)
class Chain(Node):
    """`(pipeline).a.b`, or a function's name with fields."""

    operand: "Operand"
    fields: tuple[str, ...]


@attrs.frozen(slots=True, eq=False)
class Name(Node):
    """The name of a function."""

    name: str


@attrs.frozen(slots=True, eq=False)
class Command(Node):
    """Operands side by side: a value, or a function and its arguments."""

    operands: tuple["Operand", ...]


@attrs.frozen(slots=True, eq=False)
class Pipeline(Node):
    """Commands, each the last argument of the next, and the variables they set."""

    commands: tuple[Command, ...]
    slots: tuple[int, ...] = ()


# Statements -------------------------------------------------------------------


@attrs.frozen(slots=True, eq=False)
class Action(Node):
    """`{{pipeline}}`, printed unless it sets a variable."""

    pipeline: Pipeline


@attrs.frozen(slots=True, eq=False)
class If(Node):
    """`if` or `with`: the first branch whose pipeline is true runs."""

    branches: tuple[tuple[Pipeline, tuple["Statement", ...]], ...]
    otherwise: tuple["Statement", ...]
    moves_dot: bool


@attrs.frozen(slots=True, eq=False)
class Range(Node):
    """`range`, with the list that runs when there is nothing."""

    pipeline: Pipeline
    body: tuple["Statement", ...]
    otherwise: tuple["Statement", ...]


@attrs.frozen(slots=True, eq=False)
class Break(Node):
    """`break`."""


@attrs.frozen(slots=True, eq=False)
class Continue(Node):
    """`continue`."""


@attrs.frozen(slots=True, eq=False)
class Call(Node):
    """`template` or `block`: run another template with its own cursor."""

    name: str
    pipeline: Pipeline | None


@attrs.frozen(slots=True, eq=False)
class Body(Node):
    """A whole template: its statements, variables and deepest nesting."""

    statements: tuple["Statement", ...]
    slots: int
    depth: int


Operand = (
    Dot | Nil | Bool | Quoted | Number | Variable | Field | Chain | Name | Pipeline
)
Statement = Text | Action | If | Range | Break | Continue | Call
