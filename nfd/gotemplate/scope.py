"""What a parser knows inside one template: variables, nesting, loops."""

from typing import Final

from nfd.gotemplate import nodes
from nfd.gotemplate.lexer import Source, Token

MAX_NESTING: Final = 64  # controls and parentheses inside each other

Statements = tuple[nodes.Statement, ...]


class Scope:
    """The variables of one template and how deep its statements nest.

    `loops` counts the ranges around the place that is parsed.
    """

    def __init__(self) -> None:
        self._visible: list[tuple[str, int]] = [("$", 0)]
        self._slots = 1
        self._nesting = 0
        self._deepest = 0
        self.loops = 0

    def declare(self, name: str) -> int:
        """Make a variable that hides others of its name; return its slot."""
        slot = self._slots
        self._slots += 1
        self._visible.append((name, slot))
        return slot

    def slot(self, name: str) -> int | None:
        """Return the slot of a variable, or None if there is none."""
        for visible, slot in reversed(self._visible):
            if visible == name:
                return slot
        return None

    def mark(self) -> int:
        """Remember the variables of now, for `release`."""
        return len(self._visible)

    def release(self, mark: int) -> None:
        """Forget the variables made since `mark`."""
        del self._visible[mark:]

    def enter(self, source: Source, at: Token) -> None:
        """Go one level deeper, or raise TemplateError."""
        self._nesting += 1
        self._deepest = max(self._deepest, self._nesting)
        if self._nesting > MAX_NESTING:
            raise source.error(f"nested deeper than {MAX_NESTING}", at.position)

    def leave(self) -> None:
        """Come back from `enter`."""
        self._nesting -= 1

    def body(self, statements: Statements) -> nodes.Body:
        """Make the node of the whole template."""
        return nodes.Body(0, statements, self._slots, self._deepest)
