"""Parsing and rendering: the two things that the rest of nfd does with templates."""

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from nfd.gotemplate.closures import Frame
from nfd.gotemplate.compiler import Body, compile_templates
from nfd.gotemplate.errors import TemplateError
from nfd.gotemplate.functions import REFUSED, functions
from nfd.gotemplate.lexer import Source
from nfd.gotemplate.parser import Parser
from nfd.gotemplate.values import (
    CURRENT,
    MAX_TEXT,
    DomainMap,
    FeatureMap,
    Meter,
    to_bytes,
)

MAX_SOURCE: Final = 65_536  # bytes of a template, as upstream

Data = Mapping[str, Mapping[str, Sequence[Mapping[str, str]]]]


@attrs.frozen(slots=True, eq=False)
class Template:
    """A parsed template; safe to share between threads."""

    text: str
    _body: Body = attrs.field(repr=False)

    def render(self, data: Data) -> str:
        """Fill the template.

        Args:
            data: domain to feature to elements; each element maps attributes to
                values. Neither kept nor changed.

        Raises:
            TemplateError: the data lacks something that the template names, a
                function refuses its arguments, or a budget is spent.
        """
        root = _typed(data)
        pieces: list[str] = []
        body = self._body
        meter = Meter()
        CURRENT.meter = meter
        meter.depth = body.depth
        variables: list[object] = [None] * body.slots
        variables[0] = root
        try:
            body.run(Frame(variables, pieces.append, meter), root)
        except RecursionError as error:
            raise TemplateError("nested too deeply", 1, 1) from error
        if sum(map(len, pieces)) > MAX_TEXT:
            raise TemplateError(f"makes more than {MAX_TEXT} characters", 1, 1)
        output = "".join(pieces)
        if output.isascii():
            return output
        return to_bytes(output).decode("utf-8", "replace")


def _typed(data: Data) -> DomainMap:
    root = DomainMap()
    for domain, features in data.items():
        typed = root[domain] = FeatureMap()
        for name, elements in features.items():
            if type(elements) is list:  # of dicts: taken as it is, for speed
                typed[name] = elements
            else:
                typed[name] = [dict(element) for element in elements]
    return root


def parse(text: str) -> Template:
    """Parse and compile a template.

    Raises:
        TemplateError: the text is longer than 65536 bytes, is not a template, or uses
            a function that does not exist or that rules may not use.
    """
    source = Source(text)
    size = len(text) if text.isascii() else len(to_bytes(text))
    if size > MAX_SOURCE:
        raise TemplateError(
            f"the template has {size} bytes; expected at most {MAX_SOURCE}", 1, 1
        )
    try:
        templates = Parser(source, _refuse).parse()
        return Template(text, compile_templates(source, templates, functions()))
    except RecursionError as error:
        raise TemplateError("nested too deeply", 1, 1) from error


def _refuse(name: str) -> str | None:
    if name in functions() or name in REFUSED:
        return None
    return f"there is no function {name!r}"
