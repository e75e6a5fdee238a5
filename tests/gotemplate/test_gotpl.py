"""A second oracle: gotpl, another engine, must agree on generated templates."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfd.gotemplate import TemplateError, parse

gotpl = pytest.importorskip("gotpl", reason="gotpl is not installed")

DATA = {
    "pci": {
        "device": [
            {"class": "0200", "vendor": "8086"},
            {"class": "0302", "vendor": "10de"},
        ],
        "none": [],
    }
}
ENVIRONMENT = gotpl.Environment(missing_key="error")

OPERANDS = st.sampled_from(
    [
        *("1", "-2", "0", "1.5", '"a"', '"0302"', '""', "true", "false", ".pci"),
        *(".pci.none", ".pci.device", "(index .pci.device 1).class"),
        *("(len .pci.device)", ".pci.nope"),
    ]
)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    operand = draw(OPERANDS)
    match draw(st.integers(0, 8)):
        case 0 | 1:
            return operand
        case 2:
            name = draw(st.sampled_from(["len", "not", "html", "js", "urlquery"]))
            return f"{name} {operand}"
        case 3:
            name = draw(st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]))
            return f"{name} {operand} {draw(OPERANDS)}"
        case 4:
            return f"{draw(st.sampled_from(['and', 'or']))} {operand} {draw(OPERANDS)}"
        case 5:
            verb = draw(st.sampled_from(["%v", "%v-%v", "%%"]))
            return f'printf "{verb}" {operand}'
        case 6:
            return f"print {operand} {draw(OPERANDS)}"
        case 7:
            return f"{operand} | printf `%v`"
        case _:
            # gotpl takes any key of a map, as its data has no Go types.
            indexed = draw(st.sampled_from([".pci.device", ".pci.none", '"a"', "1"]))
            return f"index {indexed} {draw(st.sampled_from(['0', '5', '`device`']))}"


TEXTS = st.sampled_from(["x", " ", "\n", "a b "])


def statements(bodies: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Build controls around the templates of a strategy."""
    return st.one_of(
        st.builds(
            "{{{{ if {} }}}}{}{{{{ else }}}}{}{{{{ end }}}}".format,
            expressions(),
            bodies,
            bodies,
        ),
        st.builds("{{{{ with {} -}}}}{}{{{{- end }}}}".format, expressions(), bodies),
        st.builds(
            "{{{{ range .pci.device }}}}{{{{ .class }}}}{}{{{{ end }}}}".format, TEXTS
        ),
        st.builds(
            "{{{{ range $i, $d := .pci.device }}}}{{{{ $i }}}}{{{{ $d.vendor }}}}{}{{{{ end }}}}".format,
            TEXTS,
        ),
        st.builds("{}{}".format, bodies, bodies),
    )


TEMPLATES = st.recursive(
    st.one_of(TEXTS, expressions().map("{{{{ {} }}}}".format)), statements, max_leaves=6
)


@settings(derandomize=True, deadline=None, max_examples=400, database=None)
@given(TEMPLATES)
def test_gotpl_agrees(text: str) -> None:
    try:
        theirs: str | None = ENVIRONMENT.from_string(text).render(DATA)
    except gotpl.TemplateError:
        theirs = None
    try:
        ours: str | None = parse(text).render(DATA)
    except TemplateError:
        ours = None

    assert theirs == ours
