"""Templates of labels and vars, expanded into keys and values (spec section 6.5)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from nfd.errors import RuleError
from nfd.features import Attributes

if TYPE_CHECKING:
    from nfd.gotemplate import Template

TemplateData = Mapping[str, Mapping[str, Sequence[Attributes]]]
Elements: TypeAlias = list[Attributes]


def put(data: dict[str, dict[str, Elements]], feature: str, elements: Elements) -> None:
    """Add elements to template data under `.domain.feature`, original and lower case.

    Upstream knows only the case that the rule uses, its manual shows the lower one.
    """
    for spelling in dict.fromkeys((feature, feature.lower())):
        domain, dot, name = spelling.partition(".")
        if not dot:
            domain = domain.lower()
        data.setdefault(domain, {}).setdefault(name, []).extend(elements)


class Expansion:
    """The two templates of a rule, parsed when they are first needed."""

    __slots__ = ("_labels", "_labels_text", "_vars", "_vars_text")

    def __init__(self, labels: str, variables: str) -> None:
        self._labels_text = labels
        self._vars_text = variables
        self._labels: Template | None = None
        self._vars: Template | None = None

    def run(
        self, data: TemplateData, outputs: tuple[dict[str, str], dict[str, str]]
    ) -> None:
        """Render over matched elements; lines are added to labels and vars.

        Raises:
            RuleError: A template is wrong, fails on this data or has a bad line.

        """
        labels, variables = outputs
        if self._labels_text:
            if self._labels is None:
                self._labels = parse(self._labels_text, "labelsTemplate")
            labels.update(_render(self._labels, data, "labelsTemplate"))
        if self._vars_text:
            if self._vars is None:
                self._vars = parse(self._vars_text, "varsTemplate")
            variables.update(_render(self._vars, data, "varsTemplate"))


def parse(text: str, field: str) -> "Template":
    """Parse a template; `field` is named in errors.

    Raises:
        RuleError: Too large, or not a template.

    """
    from nfd import gotemplate  # noqa: PLC0415 - most rules need no templates

    try:
        return gotemplate.parse(text)
    except gotemplate.TemplateError as error:
        raise RuleError(f"{field}: {error}") from None


def _render(template: "Template", data: TemplateData, field: str) -> dict[str, str]:
    from nfd import gotemplate  # noqa: PLC0415 - as above

    try:
        text = template.render(data)
    except gotemplate.TemplateError as error:
        raise RuleError(f"{field}: {error}") from None
    return pairs(text, field)


def pairs(text: str, field: str) -> dict[str, str]:
    """Read `key=value` lines; blank ones are skipped, later duplicates win.

    Raises:
        RuleError: A line has no `=`.

    """
    found: dict[str, str] = {}
    for line in text.split("\n"):
        trimmed = line.strip()
        if not trimmed:
            continue
        key, equals, value = trimmed.partition("=")
        if not equals:
            msg = f"{field}: missing value in expanded template line {trimmed[:80]!r}"
            raise RuleError(f"{msg} (format: key=value)")
        found[key] = value
    return found
