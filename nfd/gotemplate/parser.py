"""Builds the syntax tree of a template, by the grammar of Go 1.26's text/template."""

from collections.abc import Callable

from nfd.gotemplate import lexer, nodes
from nfd.gotemplate.errors import TemplateError
from nfd.gotemplate.lexer import Source, Token
from nfd.gotemplate.literals import parse_number, unquote, unquote_character
from nfd.gotemplate.scope import Scope, Statements

_OPERANDS = frozenset(
    (
        lexer.BOOL,
        lexer.CHARACTER,
        lexer.DOT,
        lexer.FIELD,
        lexer.IDENTIFIER,
        lexer.LEFT_PAREN,
        lexer.NIL,
        lexer.NUMBER,
        lexer.RAW_STRING,
        lexer.STRING,
        lexer.VARIABLE,
    )
)
_NO_FIELDS = (nodes.Bool, nodes.Quoted, nodes.Number, nodes.Nil, nodes.Dot)


class Parser:
    """A recursive descent over the tokens; `templates` holds what was defined.

    Args:
        source: the text.
        refuse: called with each function's name; returns why it cannot be used, or
            None.
    """

    def __init__(self, source: Source, refuse: Callable[[str], str | None]) -> None:
        self._source = source
        self._refuse = refuse
        self._tokens = lexer.tokenize(source)
        self._next = 0
        self._scope = Scope()
        self.templates: dict[str, nodes.Body] = {}

    def parse(self) -> dict[str, nodes.Body]:
        """Parse everything; the main template has the empty name."""
        statements: list[nodes.Statement] = []
        while self._peek().kind != lexer.END:
            if self._at_define():
                self._define()
                continue
            statement = self._statement()
            if isinstance(statement, Token):
                raise self._error(f"unexpected {{{{{statement.text}}}}}", statement)
            statements.append(statement)
        self._add("", self._scope.body(tuple(statements)), self._peek())
        return self.templates

    # Tokens -------------------------------------------------------------------

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        if token.kind != lexer.END:
            self._next += 1
        return token

    def _skip_space(self) -> Token:
        if self._tokens[self._next].kind == lexer.SPACE:
            self._next += 1
        return self._tokens[self._next]

    def _error(self, message: str, at: Token) -> TemplateError:
        return self._source.error(message, at.position)

    def _unexpected(self, token: Token, expected: str) -> TemplateError:
        found = token.kind if token.kind == lexer.END else repr(token.text)
        return self._error(f"unexpected {found}; expected {expected}", token)

    def _expect_close(self, after: str) -> None:
        token = self._skip_space()
        if token.kind != lexer.CLOSE:
            raise self._unexpected(token, f"}}}} after {after}")
        self._take()

    # Statements ---------------------------------------------------------------

    def _at_define(self) -> bool:
        ahead = self._tokens[self._next : self._next + 3]
        words = [token for token in ahead[1:] if token.kind != lexer.SPACE]
        return (
            ahead[0].kind == lexer.OPEN
            and words[:1] != []
            and words[0][:2]
            == (
                lexer.KEYWORD,
                "define",
            )
        )

    def _define(self) -> None:
        self._take()
        opening = self._skip_space()
        self._take()
        name = self._name("define")
        self._expect_close("the name of the template")
        self._parse_body(name, opening)

    def _parse_body(self, name: str, opening: Token) -> None:
        outer, self._scope = self._scope, Scope()
        statements, stop = self._statements(opening)
        if stop.text != "end":
            raise self._unexpected(stop, "{{end}}")
        self._add(name, self._scope.body(statements), opening)
        self._scope = outer

    def _add(self, name: str, body: nodes.Body, at: Token) -> None:
        known = self.templates.get(name)
        if known is None or _is_blank(known):
            self.templates[name] = body
        elif not _is_blank(body):
            raise self._error(f"the template {name!r} is defined twice", at)

    def _statements(self, opening: Token) -> tuple[Statements, Token]:
        """Parse up to an `end` or `else`, which is returned."""
        statements: list[nodes.Statement] = []
        while self._skip_space().kind != lexer.END:
            statement = self._statement()
            if isinstance(statement, Token):
                return tuple(statements), statement
            statements.append(statement)
        raise self._error(f"{{{{{opening.text}}}}} has no {{{{end}}}}", opening)

    def _statement(self) -> nodes.Statement | Token:
        """Parse a text or action; an `end` or `else` comes back as its token."""
        token = self._take()
        if token.kind == lexer.TEXT:
            return nodes.Text(token.position, token.text)
        assert token.kind == lexer.OPEN
        word = self._skip_space()
        if word.kind != lexer.KEYWORD:
            pipeline = self._pipeline("an action", lexer.CLOSE)
            return nodes.Action(token.position, pipeline)
        self._take()
        if word.text == "end":
            self._expect_close("end")
            return word
        if word.text == "else":
            if self._skip_space()[:2] not in (
                (lexer.KEYWORD, "if"),
                (lexer.KEYWORD, "with"),
            ):
                self._expect_close("else")
            return word
        parse = {
            "block": self._block,
            "break": self._jump,
            "continue": self._jump,
            "if": self._if,
            "range": self._range,
            "template": self._call,
            "with": self._if,
        }.get(word.text)
        if parse is None:
            raise self._unexpected(word, "a value or a function; define stands outside")
        self._scope.enter(self._source, word)
        statement = parse(word)
        self._scope.leave()
        return statement

    def _jump(self, word: Token) -> nodes.Break | nodes.Continue:
        self._expect_close(word.text)
        if not self._scope.loops:
            raise self._error(f"{{{{{word.text}}}}} outside of {{{{range}}}}", word)
        if word.text == "break":
            return nodes.Break(word.position)
        return nodes.Continue(word.position)

    def _if(self, word: Token) -> nodes.If:
        mark = self._scope.mark()
        branches: list[tuple[nodes.Pipeline, Statements]] = []
        otherwise: Statements = ()
        while True:
            pipeline = self._pipeline(word.text, lexer.CLOSE)
            inner = self._scope.mark()
            body, stop = self._statements(word)
            self._scope.release(inner)
            branches.append((pipeline, body))
            if stop.text == "end":
                break
            if self._peek()[:2] == (lexer.KEYWORD, word.text):
                self._take()
                continue
            otherwise, stop = self._otherwise(word)
            break
        self._scope.release(mark)
        return nodes.If(word.position, tuple(branches), otherwise, word.text == "with")

    def _range(self, word: Token) -> nodes.Range:
        mark = self._scope.mark()
        pipeline = self._pipeline("range", lexer.CLOSE)
        inner = self._scope.mark()
        self._scope.loops += 1
        body, stop = self._statements(word)
        self._scope.loops -= 1
        self._scope.release(inner)
        otherwise: Statements = ()
        if stop.text == "else":
            otherwise, stop = self._otherwise(word)
        self._scope.release(mark)
        return nodes.Range(word.position, pipeline, body, otherwise)

    def _otherwise(self, word: Token) -> tuple[Statements, Token]:
        token = self._peek()
        if token.kind == lexer.KEYWORD:
            raise self._unexpected(token, "}} after else")
        statements, stop = self._statements(word)
        if stop.text != "end":
            raise self._error("a second {{else}}; expected {{end}}", stop)
        return statements, stop

    def _call(self, word: Token) -> nodes.Call:
        name = self._name("template")
        pipeline = None
        if self._skip_space().kind == lexer.CLOSE:
            self._take()
        else:
            pipeline = self._pipeline("template", lexer.CLOSE)
        return nodes.Call(word.position, name, pipeline)

    def _block(self, word: Token) -> nodes.Call:
        name = self._name("block")
        pipeline = self._pipeline("block", lexer.CLOSE)
        self._parse_body(name, word)
        return nodes.Call(word.position, name, pipeline)

    def _name(self, word: str) -> str:
        token = self._skip_space()
        if token.kind not in (lexer.STRING, lexer.RAW_STRING):
            raise self._unexpected(token, f"a quoted name after {word}")
        self._take()
        return self._unquote(token)

    # Pipelines ----------------------------------------------------------------

    def _pipeline(self, context: str, end: str) -> nodes.Pipeline:
        start = self._skip_space()
        slots = self._declarations(context)
        commands: list[nodes.Command] = []
        while True:
            token = self._skip_space()
            if token.kind == end:
                self._take()
                break
            if token.kind not in _OPERANDS:
                raise self._unexpected(token, f"a value in {context}")
            commands.append(self._command())
        if not commands:
            raise self._error(f"{context} needs a value", start)
        for command in commands[1:]:
            if isinstance(command.operands[0], _NO_FIELDS):
                raise self._source.error(
                    "only functions can follow a |; expected a function",
                    command.position,
                )
        return nodes.Pipeline(start.position, tuple(commands), slots)

    def _declarations(self, context: str) -> tuple[int, ...]:
        """Parse the `$a, $b :=` that a pipeline may begin with."""
        names: list[Token] = []
        while (variable := self._skip_space()).kind == lexer.VARIABLE:
            back = self._next
            self._take()
            sign = self._skip_space()
            if sign.kind in (lexer.DECLARE, lexer.ASSIGN):
                self._take()
                names.append(variable)
                if sign.kind == lexer.ASSIGN:
                    return tuple(self._assigned(name) for name in names)
                break
            if sign.kind != lexer.COMMA:
                self._next = back
                break
            self._take()
            if context != "range" or names:
                raise self._error(f"too many variables in {context}", sign)
            names.append(variable)
            if self._skip_space().kind not in (lexer.VARIABLE, lexer.CLOSE):
                raise self._unexpected(self._peek(), "a second variable after ,")
        return tuple(self._scope.declare(name.text) for name in names)

    def _assigned(self, variable: Token) -> int:
        slot = self._scope.slot(variable.text)
        if slot is None:
            raise self._error(f"undefined variable {variable.text}", variable)
        return slot

    def _command(self) -> nodes.Command:
        start = self._peek()
        operands: list[nodes.Operand] = []
        while True:
            token = self._skip_space()
            if token.kind in _OPERANDS:
                operands.append(self._operand())
            token = self._peek()
            if token.kind == lexer.SPACE:
                self._take()
                continue
            if token.kind == lexer.PIPE:
                self._take()
            elif token.kind not in (lexer.CLOSE, lexer.RIGHT_PAREN):
                raise self._unexpected(token, "a space, |, ) or }} after a value")
            break
        if not operands:
            raise self._error("a value or a function is missing", start)
        return nodes.Command(start.position, tuple(operands))

    def _operand(self) -> nodes.Operand:
        token = self._take()
        node = self._term(token)
        fields: list[str] = []
        while self._peek().kind == lexer.FIELD:
            if isinstance(node, _NO_FIELDS):
                raise self._unexpected(self._peek(), f"a space after {token.text!r}")
            fields.append(self._take().text[1:])
        if not fields:
            return node
        if isinstance(node, nodes.Field):
            return nodes.Field(node.position, (*node.fields, *fields))
        if isinstance(node, nodes.Variable):
            return nodes.Variable(node.position, node.name, node.slot, tuple(fields))
        return nodes.Chain(node.position, node, tuple(fields))

    def _term(self, token: Token) -> nodes.Operand:
        position = token.position
        match token.kind:
            case lexer.FIELD:
                return nodes.Field(position, (token.text[1:],))
            case lexer.IDENTIFIER:
                reason = self._refuse(token.text)
                if reason is not None:
                    raise self._error(reason, token)
                return nodes.Name(position, token.text)
            case lexer.VARIABLE:
                return nodes.Variable(position, token.text, self._assigned(token), ())
            case lexer.LEFT_PAREN:
                self._scope.enter(self._source, token)
                pipeline = self._pipeline("parentheses", lexer.RIGHT_PAREN)
                self._scope.leave()
                return pipeline
            case lexer.DOT:
                return nodes.Dot(position)
            case lexer.NIL:
                return nodes.Nil(position)
            case _:
                return self._literal(token)

    def _literal(self, token: Token) -> nodes.Operand:
        position = token.position
        if token.kind in (lexer.STRING, lexer.RAW_STRING):
            return nodes.Quoted(position, self._unquote(token))
        if token.kind == lexer.BOOL:
            return nodes.Bool(position, token.text == "true")
        if token.kind == lexer.CHARACTER:
            code = unquote_character(token.text)
            if code is None:
                raise self._error(f"bad character {token.text}", token)
            return nodes.Number(position, token.text, code, code, float(code))
        assert token.kind == lexer.NUMBER
        number = parse_number(token.text)
        if isinstance(number, str):
            raise self._error(number, token)
        return nodes.Number(position, token.text, *number)

    def _unquote(self, token: Token) -> str:
        text = unquote(token.text)
        if text is None:
            raise self._error(f"bad escape in {token.text}", token)
        return text


def _is_blank(body: nodes.Body) -> bool:
    return all(
        isinstance(statement, nodes.Text) and not statement.text.strip()
        for statement in body.statements
    )
