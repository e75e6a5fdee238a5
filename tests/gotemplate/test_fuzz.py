"""Any text is a template or a TemplateError; any template renders or says why."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nfd.gotemplate import Template, TemplateError, parse
from nfd.gotemplate.functions import Function, functions

# Derandomized: the same inputs on every run, within a fixed budget.
FIXED = settings(derandomize=True, deadline=None, max_examples=300, database=None)

PIECES = st.sampled_from(
    [
        *(
            "{{",
            "}}",
            "{{-",
            "-}}",
            " -}}",
            "{{- ",
            "/*",
            "*/",
            "(",
            ")",
            "|",
            ",",
            ".",
        ),
        *("if ", "else", "end", "range ", "with ", "define ", "block ", "template "),
        *(
            "break",
            "continue",
            "nil",
            "true",
            "$x",
            "$",
            ":=",
            "=",
            " ",
            "\n",
            '"',
            "`",
        ),
        *('"a"', "1", "1.5", "-3", "'a'", "0x1p-2", ".pci", ".device", "len", "index "),
        *("printf ", '"%d"', "list ", "dict ", "and ", "or ", "eq ", "\\", "\x00", "é"),
    ]
)
DATA: dict[str, dict[str, list[dict[str, str]]]] = {
    "pci": {"device": [{"class": "0302"}, {}], "none": []},
    "": {"": [{"": ""}]},
}
LITERALS = st.sampled_from(
    [
        *(
            "1",
            "0",
            "-1",
            "2.5",
            "1e3",
            '""',
            '"a"',
            '"a,b"',
            '"1.2.3"',
            '"[a"',
            "true",
        ),
        *("nil", ".", ".pci", ".pci.device", "(list 1 2)", "(list)", '(dict "a" 1)'),
        *("(until 3)", "(add 1)", '(semver "1.2.3")', '(toDate "2006" "2020")', "1i"),
        *(
            '"%s %*d %[2]v"',
            '"2006-01-02"',
            '"{\\"a\\":[1]}"',
            '"\\xff"',
            "(first (list))",
        ),
    ]
)


def attempt(text: str, data: Any) -> str | TemplateError:
    """Parse and render; a TemplateError is a proper end."""
    try:
        template = parse(text)
        assert isinstance(template, Template)
        return template.render(data)
    except TemplateError as error:
        return error


def settle(text: str, data: Any) -> None:
    found = attempt(text, data)
    if isinstance(found, TemplateError):
        assert 1 <= found.line <= text.count("\n") + 1
        assert found.column >= 1
    else:
        assert found == attempt(text, data)
        found.encode()


@FIXED
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    settle("{{" + text, DATA)
    settle(text, DATA)


@FIXED
@given(st.lists(PIECES, max_size=25).map("".join))
def test_any_pieces_of_the_language(text: str) -> None:
    settle(text, DATA)
    settle("{{ " + text + " }}", DATA)


@st.composite
def calls(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(functions())))
    function: Function = functions()[name]
    count = len(function.params) + (draw(st.integers(0, 2)) if function.rest else 0)
    arguments = draw(st.lists(LITERALS, min_size=count, max_size=count))
    return " ".join([name, *arguments])


@settings(FIXED, max_examples=1500)
@given(calls())
def test_any_function_with_any_arguments(call: str) -> None:
    settle("{{ " + call + " }}", DATA)


@FIXED
@given(
    st.dictionaries(
        st.text(max_size=3),
        st.dictionaries(
            st.text(max_size=3),
            st.lists(
                st.dictionaries(
                    st.text(st.characters(codec=None), max_size=3),
                    st.text(st.characters(codec=None), max_size=5),
                    max_size=3,
                ),
                max_size=3,
            ),
            max_size=3,
        ),
        max_size=3,
    )
)
def test_any_data(data: dict[str, dict[str, list[dict[str, str]]]]) -> None:
    settle(
        "{{ . }}{{ toJson . }}{{ range $d, $f := . }}{{ range $f }}{{ range . }}"
        "{{ range $k, $v := . }}{{ $k }}{{ $v | quote }}{{ $v | upper | trunc 2 }}"
        '{{ regexReplaceAll "[^a-z]" $v "-" }}{{ nospace $v }}{{ snakecase $v }}'
        '{{ printf "%x%q" $v $v }}{{ end }}{{ end }}{{ end }}{{ end }}',
        data,
    )
