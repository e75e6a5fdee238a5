"""What callers rely on: positions, refusals, budgets, purity."""

import copy
import threading

import pytest

from nfd.gotemplate import MAX_SOURCE, TemplateError, parse
from nfd.gotemplate.functions import REFUSED, functions

DATA = {
    "pci": {
        "device": [
            {"class": "0200", "vendor": "8086"},
            {"class": "0302", "vendor": "10de"},
        ]
    },
    "cpu": {"cpuid": [{"Name": "AVX"}]},
}


def refusal(text: str, data: dict[str, dict[str, list[dict[str, str]]]] = DATA) -> str:
    with pytest.raises(TemplateError) as caught:
        parse(text).render(data)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ end }}", "line 1, column 4: unexpected {{end}}"),
        ("a\n  {{ if }}", "line 2, column 9: if needs a value"),
        ("{{ if 1 }}", "line 1, column 4: {{if}} has no {{end}}"),
        ('{{ "a }}', 'line 1, column 4: this text is not closed; expected "'),
        ("{{ (1 }}", "line 1, column 4: this ( is not closed; expected )"),
        ("{{ 1", "line 1, column 1: this action is not closed; expected }}"),
        ("{{/* a", "line 1, column 1: this comment is not closed; expected */"),
        ("{{ nope }}", "line 1, column 4: there is no function 'nope'"),
        ("{{ $x }}", "line 1, column 4: undefined variable $x"),
        ("{{ 08 }}", "line 1, column 4: the number 08 overflows int"),
        ("{{ break }}", "line 1, column 4: {{break}} outside of {{range}}"),
        (
            "{{ define x }}{{ end }}",
            "line 1, column 11: unexpected 'x'; expected a quoted name after define",
        ),
        (
            "{{ 1 | 2 }}",
            "line 1, column 8: only functions can follow a |; expected a function",
        ),
        (
            "é{{ .pci.gpu }}",
            "line 1, column 5: .pci.gpu: there is no 'gpu'; expected one of: device",
        ),
        (
            "{{ range .pci.device }}\n{{ .nope }}{{ end }}",
            (
                "line 2, column 4: .nope: there is no 'nope'; "
                "expected one of: class, vendor"
            ),
        ),
        ("{{ upper 5 }}", "line 1, column 10: upper: expected string, found 5"),
        (
            "{{ upper .pci }}",
            (
                "line 1, column 10: upper: expected string, "
                "found map[string][]map[string]string"
            ),
        ),
        ("{{ upper }}", "line 1, column 4: upper: expected 1 arguments, found 0"),
        ("{{ div 1 0 }}", "line 1, column 4: div: division by zero"),
        (
            "{{ index .pci.device 2 }}",
            "line 1, column 4: index: position 2 is outside of 0 to 1",
        ),
        (
            '{{ template "t" }}',
            "line 1, column 4: template: the template 't' is not defined",
        ),
    ],
)
def test_error_names_line_column_and_expectation(text: str, message: str) -> None:
    assert message == refusal(text)


def test_error_has_its_parts() -> None:
    with pytest.raises(TemplateError) as caught:
        parse("\n {{ nope }}")

    assert (caught.value.line, caught.value.column) == (2, 5)
    assert caught.value.message == "there is no function 'nope'"


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_function_says_why_when_parsed(name: str) -> None:
    with pytest.raises(TemplateError, match=f"the function {name} .*(label|rules)"):
        parse(f"{{{{ if false }}}}{{{{ {name} }}}}{{{{ end }}}}")


def test_every_sprig_function_is_known_or_refused() -> None:
    """The names of spec section 6.5; ranges of names there are spelled out here."""
    named = """
    ago date date_in_zone date_modify dateInZone dateModify duration durationRound
    htmlDate htmlDateInZone must_date_modify mustDateModify mustToDate now toDate
    unixEpoch abbrev abbrevboth trunc trim upper lower title untitle substr repeat
    trimall trimAll trimSuffix trimPrefix nospace initials randAlphaNum randAlpha
    randAscii randNumeric swapcase shuffle snakecase camelcase kebabcase wrap wrapWith
    contains hasPrefix hasSuffix quote squote cat indent nindent replace plural sha1sum
    sha256sum sha512sum adler32sum toString hello atoi int64 int float64 seq toDecimal
    until untilStep add1 add sub div mod mul randInt add1f addf subf divf mulf biggest
    max min maxf minf ceil floor round split splitList splitn toStrings join sortAlpha
    default empty coalesce all any compact mustCompact fromJson toJson toPrettyJson
    toRawJson mustFromJson mustToJson mustToPrettyJson mustToRawJson ternary deepCopy
    mustDeepCopy typeOf typeIs typeIsLike kindOf kindIs deepEqual base dir clean ext
    isAbs osBase osClean osDir osExt osIsAbs b64enc b64dec b32enc b32dec tuple list dict
    get set unset hasKey pluck keys pick omit merge mergeOverwrite mustMerge
    mustMergeOverwrite values append push prepend first rest last initial reverse uniq
    without has slice concat dig chunk mustAppend mustPush mustPrepend mustFirst
    mustRest mustLast mustInitial mustReverse mustUniq mustWithout mustHas mustSlice
    mustChunk bcrypt htpasswd genPrivateKey derivePassword buildCustomCert genCA
    genCAWithKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert
    genSignedCertWithKey encryptAES decryptAES randBytes uuidv4 semver semverCompare
    fail regexMatch regexFindAll regexFind regexReplaceAll regexReplaceAllLiteral
    regexSplit mustRegexMatch mustRegexFindAll mustRegexFind mustRegexReplaceAll
    mustRegexReplaceAllLiteral mustRegexSplit regexQuoteMeta urlParse urlJoin
    env expandenv getHostByName
    and or not len index print printf println html js call urlquery eq ne lt le gt ge
    """

    assert set(named.split()) == set(functions()) | set(REFUSED)
    assert not set(functions()) & set(REFUSED)


def test_only_the_length_of_a_random_text_is_stable() -> None:
    assert (
        parse(
            "{{ len (randAlpha 5) }} {{ uuidv4 | len }} {{ 3 | randNumeric | len }}"
        ).render({})
        == "5 36 3"
    )
    assert "is random" in refusal('{{ randAlpha 5 | printf "%s" | len }}')


@pytest.mark.parametrize(
    "text",
    [
        '{{ date "2006" "text" }}',
        "{{ htmlDate nil }}",
        '{{ durationRound (toDate "2006" "2020") }}',
        '{{ printf "%p" . }}',
    ],
)
def test_what_changes_from_run_to_run_is_refused(text: str) -> None:
    assert refusal(text)


def test_maps_come_in_the_order_of_their_keys() -> None:
    text = '{{ $d := dict "b" 1 "c" 2 "a" 3 }}{{ keys $d }}{{ values $d }}'

    assert parse(text).render({}) == "[a b c][3 1 2]"


def test_source_of_64_kib_is_taken_and_one_byte_more_refused() -> None:
    assert parse("x" * MAX_SOURCE).render({}) == "x" * MAX_SOURCE
    assert "65537 bytes" in refusal("x" * (MAX_SOURCE + 1))
    assert "65538 bytes" in refusal("é" * (MAX_SOURCE // 2 + 1))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ range 9999999 }}{{ end }}", "steps"),
        ('{{ define "t" }}{{ template "t" }}{{ end }}{{ template "t" }}', "too deep"),
        ('{{ repeat 2000000 "x" }}', "longer than"),
        ('{{ indent 2000000 "x" }}', "longer than"),
        ('{{ printf "%2000000d" 1 }}', "longer than"),
        ("{{ until 100000 }}", "longer than"),
        ('{{ $x := repeat 1000000 "x" }}{{ $x }}{{ $x }}', "makes more than"),
        (
            '{{ $x := "x" }}{{ range 40 }}{{ $x = print $x $x }}{{ end }}',
            "longer than",
        ),
        (
            "{{ $x := list 1 }}{{ range 40 }}{{ $x = list $x $x }}{{ end }}{{ $x }}",
            "steps",
        ),
        ('{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}', "nested deeper"),
        ('{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toJson $d }}', "nested deeper"),
        ('{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ deepCopy $d }}', "nested"),
        ("{{ range 300 }}{{ until 60000 | toJson | len }}{{ end }}", "steps"),
        ('{{ replace "" "xxxxxxxx" (repeat 200000 "y") }}', "longer than"),
        ('{{ regexReplaceAll "" (repeat 500000 "y") "xxxx" }}', "steps"),
    ],
)
def test_budget_ends_a_template(text: str, reason: str) -> None:
    assert reason in refusal(text)


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("int", "0"),
        ("atoi", "9223372036854775807"),
        ("float64", "0"),
        ("toDecimal", "0"),
        ("add", "0"),
        ("duration", "-1s"),
        ("durationRound", "0s"),
        ('printf "%v" ', "1" * 5000),
    ],
)
def test_many_digits_are_no_python_error(call: str, wanted: str) -> None:
    """Python itself refuses to read more than 4300 digits."""
    assert wanted == parse(f'{{{{ repeat 5000 "1" | {call} }}}}').render({})


@pytest.mark.parametrize(
    "text",
    [
        "{{ " + "1" * 5000 + " }}",
        '{{ semver (repeat 5000 "1") }}',
        '{{ mustFromJson (repeat 5000 "1") }}',
        '{{ toDate (repeat 5000 "2") "1" | unixEpoch | semver }}',
    ],
)
def test_many_digits_are_refused(text: str) -> None:
    assert refusal(text)


def test_many_digits_in_a_verb() -> None:
    digits = "1" * 5000

    assert (
        parse(f'{{{{ printf "%{digits}d" 1 }}}}').render({})
        == "%!(NOVERB)%!(EXTRA int=1)"
    )
    assert parse(f'{{{{ printf "%[{digits}]d" 1 }}}}').render({}) == "%!d(BADINDEX)"


@pytest.mark.parametrize("opening", ["{{ if 1 }}", "{{ range 1 }}"])
def test_deep_nesting_is_refused_by_the_parser(opening: str) -> None:
    with pytest.raises(TemplateError, match="nested deeper than 64"):
        parse(opening * 65)
    with pytest.raises(TemplateError, match="nested deeper than 64"):
        parse("{{ " + "(" * 65 + "1" + ")" * 65 + " }}")


def test_nesting_to_the_limit_renders() -> None:
    text = "{{ if 1 }}" * 60 + "x" + "{{ end }}" * 60

    assert parse(text).render({}) == "x"


def test_long_else_if_chain_is_no_nesting() -> None:
    chain = "".join(f"{{{{ else if eq 1 {n} }}}}{n}" for n in range(2, 500))

    assert (
        parse(f"{{{{ if false }}}}{chain}{{{{ else }}}}end{{{{ end }}}}").render({})
        == "end"
    )


def test_recursion_within_reason_renders() -> None:
    text = (
        '{{ define "t" }}{{ if . }}{{ . }} {{ template "t" (sub . 1) }}{{ end }}{{ end }}'
        '{{ template "t" 50 }}'
    )

    assert " ".join(map(str, range(50, 0, -1))) + " " == parse(text).render({})


def test_data_is_not_changed() -> None:
    before = copy.deepcopy(DATA)
    parse(
        "{{ range .pci.device }}{{ sortAlpha (list .class) }}{{ end }}"
        '{{ index . "x" "y" }}{{ append .pci.device 1 }}'
    ).render(DATA)

    assert before == DATA
    assert type(DATA["pci"]) is dict


def test_tuples_of_elements_are_taken_as_lists() -> None:
    data = {"pci": {"device": ({"class": "02"},)}}

    assert (
        parse("{{ typeOf .pci.device }} {{ (first .pci.device).class }}").render(data)
        == "[]map[string]string 02"
    )


def test_rendering_again_starts_afresh() -> None:
    template = parse(
        '{{ $d := dict "a" 1 }}{{ $_ := set $d "b" 2 }}{{ $d }}{{ len . }}'
    )

    assert template.render({}) == template.render({}) == "map[a:1 b:2]0"


def test_threads_render_one_template() -> None:
    template = parse("{{ range $i, $x := until 2000 }}{{ $i }}{{ end }}")
    wanted = template.render({})
    found: list[str] = []

    def work() -> None:
        found.extend(template.render({}) for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [wanted] * 40 == found


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert parse(r'{{ "\xff" }}').render({}) == "\ufffd"
    assert parse(r'{{ "\xc3" }}{{ "\xa9" }}').render({}) == "é"
    assert parse(r'{{ len "é" }} {{ trunc 1 "é" | printf "%x" }}').render({}) == "2 c3"
