"""Cuts a template into tokens, by the lexical rules of Go 1.26's text/template."""

import re
from typing import Final, NamedTuple

from nfd.gotemplate.errors import TemplateError

TEXT: Final = "text"
OPEN: Final = "{{"
CLOSE: Final = "}}"
SPACE: Final = "space"
IDENTIFIER: Final = "name"
KEYWORD: Final = "keyword"
FIELD: Final = "field"
VARIABLE: Final = "variable"
DOT: Final = "."
NIL: Final = "nil"
BOOL: Final = "bool"
NUMBER: Final = "number"
CHARACTER: Final = "character"
STRING: Final = "string"
RAW_STRING: Final = "raw string"
PIPE: Final = "|"
DECLARE: Final = ":="
ASSIGN: Final = "="
COMMA: Final = ","
LEFT_PAREN: Final = "("
RIGHT_PAREN: Final = ")"
OTHER: Final = "character of no use here"
END: Final = "end of the template"

KEYWORDS = frozenset(
    [
        "block",
        "break",
        "continue",
        "define",
        "else",
        "end",
        "if",
        "range",
        "template",
        "with",
    ]
)


class Token(NamedTuple):
    """A token: what it is, its text, and where it starts in the source."""

    kind: str
    text: str
    position: int


class Source:
    """The text of a template, which knows lines and columns."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def error(self, message: str, position: int) -> TemplateError:
        """Make the error for a position in the text."""
        line_start = self.text.rfind("\n", 0, position) + 1
        line = self.text.count("\n", 0, position) + 1
        return TemplateError(message, line, position - line_start + 1)


_TRIMMED = " \t\r\n"
_CLOSER = re.compile(r"[ \t\r\n]-\}\}|\}\}")
_DIGITS = "[0-9_]*"
_UNSIGNED = (
    r"(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?"
    r"|0[oO][0-7_]*(?:\.[0-7_]*)?|0[bB][01_]*(?:\.[01_]*)?"
    rf"|{_DIGITS}(?:\.{_DIGITS})?(?:[eE][+-]?{_DIGITS})?)i?"
)
_TOKEN = re.compile(
    rf"""
      (?P<space>[ \t\r\n]+)
    | (?P<string>"(?:[^"\\\n]|\\[^\n])*")
    | (?P<raw>`[^`]*`)
    | (?P<character>'(?:[^'\\\n]|\\[^\n])*')
    | (?P<declare>:=)
    | (?P<word>[.$]?[^\W\d]\w*|[.$]\w*)
    | (?P<number>[+-]?{_UNSIGNED})
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(rf"[+-]?{_UNSIGNED}(?:[+-]{_UNSIGNED})?")
_WORD_CHARACTER = re.compile(r"\w")
_WORD_END = re.compile(r"[ \t\r\n.,|:()]|\}\}|\Z")
_PUNCTUATION = {"=": ASSIGN, "|": PIPE, ",": COMMA}


def tokenize(source: Source) -> list[Token]:
    """Cut a template into tokens; the last one is `END`."""
    text = source.text
    tokens: list[Token] = []
    position = 0
    trim = False
    while True:
        opening = text.find("{{", position)
        stop = opening if opening >= 0 else len(text)
        start, end = position, stop
        if trim:
            start += len(text[start:end]) - len(text[start:end].lstrip(_TRIMMED))
        inside = opening + 2
        if opening >= 0 and text[inside : inside + 1] == "-":
            marked = text[inside + 1 : inside + 2]
            if marked and marked in _TRIMMED:
                inside += 2
                end = start + len(text[start:end].rstrip(_TRIMMED))
        if end > start:
            tokens.append(Token(TEXT, text[start:end], start))
        if opening < 0:
            tokens.append(Token(END, "", len(text)))
            return tokens
        if text.startswith("/*", inside):
            position, trim = _skip_comment(source, opening, inside)
        else:
            tokens.append(Token(OPEN, "{{", opening))
            position, trim = _Action(source, opening, tokens).read(inside)


def _skip_comment(source: Source, opening: int, start: int) -> tuple[int, bool]:
    end = source.text.find("*/", start + 2)
    if end < 0:
        raise source.error("this comment is not closed; expected */", opening)
    closer = _CLOSER.match(source.text, end + 2)
    if closer is None:
        raise source.error("a comment fills its action; expected }} after */", end + 2)
    return closer.end(), closer.group() != "}}"


class _Action:
    """Reads the tokens of one `{{...}}`."""

    def __init__(self, source: Source, opening: int, tokens: list[Token]) -> None:
        self._source = source
        self._text = source.text
        self._opening = opening
        self._tokens = tokens
        self._parens: list[int] = []

    def read(self, position: int) -> tuple[int, bool]:
        """Append the tokens; return where the action ends and if it trims."""
        while True:
            closer = _CLOSER.match(self._text, position)
            if closer is not None:
                if self._parens:
                    raise self._source.error(
                        "this ( is not closed; expected )", self._parens[-1]
                    )
                self._tokens.append(Token(CLOSE, "}}", position))
                return closer.end(), closer.group() != "}}"
            if position >= len(self._text):
                raise self._source.error(
                    "this action is not closed; expected }}", self._opening
                )
            position = self._token(position)

    def _token(self, position: int) -> int:
        found = _TOKEN.match(self._text, position)
        if found is None:
            return self._punctuation(position)
        kind, text, end = found.lastgroup, found.group(), found.end()
        if kind == "space":
            return self._space(position, end)
        if kind == "word":
            return self._word(text, position, end)
        if kind == "number":
            return self._number(position) if text else self._punctuation(position)
        if kind == "declare":
            return self._add(DECLARE, text, position)
        if kind == "string":
            return self._add(STRING, text, position)
        if kind == "raw":
            return self._add(RAW_STRING, text, position)
        return self._add(CHARACTER, text, position)

    def _add(self, kind: str, text: str, position: int) -> int:
        self._tokens.append(Token(kind, text, position))
        return position + len(text)

    def _space(self, position: int, end: int) -> int:
        # The last space of the run may belong to a trimming " -}}".
        if self._text.startswith("-}}", end):
            end -= 1
        if end > position:
            self._tokens.append(Token(SPACE, " ", position))
        return end

    def _word(self, text: str, position: int, end: int) -> int:
        if text[0] == "." and text[1:2].isdecimal() and text[1:2].isascii():
            return self._number(position)
        if _WORD_END.match(self._text, end) is None:
            raise self._source.error(
                f"unexpected {self._text[end]!r} after {text!r}; expected a space", end
            )
        if text[0] == "$":
            kind = VARIABLE
        elif text[0] == ".":
            kind = FIELD if len(text) > 1 else DOT
        elif text in KEYWORDS:
            kind = KEYWORD
        elif text == "nil":
            kind = NIL
        elif text in ("true", "false"):
            kind = BOOL
        else:
            kind = IDENTIFIER
        return self._add(kind, text, position)

    def _number(self, position: int) -> int:
        found = _NUMBER.match(self._text, position)
        assert found is not None
        end = found.end()
        if _WORD_CHARACTER.match(self._text, end):
            raise self._source.error(
                f"bad number {self._text[position : end + 1]!r}", position
            )
        return self._add(NUMBER, found.group(), position)

    def _punctuation(self, position: int) -> int:
        letter = self._text[position]
        if letter in _PUNCTUATION:
            return self._add(_PUNCTUATION[letter], letter, position)
        if letter == "(":
            self._parens.append(position)
            return self._add(LEFT_PAREN, letter, position)
        if letter == ")":
            if not self._parens:
                raise self._source.error("unexpected ); no ( is open", position)
            self._parens.pop()
            return self._add(RIGHT_PAREN, letter, position)
        if letter in "\"'`":
            raise self._source.error(
                f"this text is not closed; expected {letter}", position
            )
        if letter == ":":
            raise self._source.error("unexpected ':'; expected :=", position)
        if letter.isascii() and letter.isprintable():
            return self._add(OTHER, letter, position)
        raise self._source.error(f"unexpected {letter!r} in an action", position)
