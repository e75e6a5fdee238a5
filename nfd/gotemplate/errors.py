"""What a template's reader is told when it cannot be parsed or rendered."""

from nfd.errors import NfdError


class TemplateError(NfdError):
    """A template that is wrong, or that these features cannot fill.

    `line` and `column` count from 1, columns in characters; `message` says what
    was found and what was expected.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.message = message
        self.line = line
        self.column = column


class RenderingError(Exception):
    """Rendering must end; whoever knows the position makes a TemplateError of it."""


class EvaluationError(RenderingError):
    """A value or call is wrong; some of sprig's functions go on without telling."""


class BudgetError(RenderingError):
    """A template takes too much of something; nothing goes on after this."""
