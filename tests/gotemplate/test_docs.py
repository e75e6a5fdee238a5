"""The manual's page on templates is complete and its examples are true."""

import json
import re

import pytest

from nfd.gotemplate import TemplateError, parse
from nfd.gotemplate.functions import REFUSED, functions
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "templates.md").read_text(encoding="utf-8")
DATA = json.loads(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0])
EXAMPLES = [
    pytest.param(*example, id=str(at))
    for at, example in enumerate(
        re.findall(
            r"^(\{\{.*)\n=> (.*)$",
            "\n".join(re.findall(r"```template\n(.*?)```", PAGE, re.DOTALL)),
            re.MULTILINE,
        )
    )
]


@pytest.mark.parametrize(("template", "wanted"), EXAMPLES)
def test_example_is_true(template: str, wanted: str) -> None:
    try:
        found = parse(template).render(DATA)
    except TemplateError as error:
        found = f"error: {error}"

    assert wanted == found


def test_examples_were_found() -> None:
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("name", sorted(functions()))
def test_function_is_named(name: str) -> None:
    plain = name.removeprefix("must")
    plain = plain[0].lower() + plain[1:]

    assert f"`{name}`" in PAGE or f"`{plain}`!" in PAGE


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_function_is_named(name: str) -> None:
    _, refused = PAGE.split("### Refused")

    assert f"`{name}`" in refused
