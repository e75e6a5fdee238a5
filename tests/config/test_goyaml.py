"""YAML as sigs.k8s.io/yaml reads it (spec/worker.md section 2, "YAML typing")."""

import contextlib
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfd.config.goyaml import MAX_DEPTH, as_text, load, resolve
from nfd.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, True) for word in ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"]),
        *((word, False) for word in ["n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "FALSE"]),
        *((word, None) for word in ("", "~", "null", "Null", "NULL")),
        *((word, word) for word in ("yEs", "nULL", "tRue", "t", "oN", "yy")),
        ("0200", 128),
        ("03", 3),
        ("12", 12),
        ("+12", 12),
        ("-12", -12),
        ("08", 8.0),
        ("0b40", "0b40"),
        ("0b101", 5),
        ("-0b101", -5),
        ("0B11", 3),
        ("0x1F", 31),
        ("-0x1f", -31),
        ("0o17", 15),
        ("0O17", 15),
        ("0e", "0e"),
        ("1_000", 1000),
        ("_1", "_1"),
        ("1e10", 1e10),
        ("1.", 1.0),
        (".5", 0.5),
        ("._5", "._5"),
        ("1_0.5", 10.5),
        ("-1.5e-3", -0.0015),
        ("1e400", "1e400"),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("18446744073709551615", (1 << 64) - 1),
        ("18446744073709551616", 18446744073709551616.0),
        ("-9223372036854775808", -(1 << 63)),
        ("2020-01-01", "2020-01-01"),
        ("12:30:45", "12:30:45"),
        ("0x", "0x"),
        ("-", "-"),
        ("+", "+"),
        (".", "."),
        ("1.2.3", "1.2.3"),
        ("10de", "10de"),
        ("=", "="),
    ],
)  # fmt: skip
def test_plain_scalars(text: str, value: Any) -> None:
    resolved = resolve(text)

    assert value == resolved
    assert type(value) is type(resolved)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (128, "128"),
        (8.0, "8"),
        (1.1, "1.1"),
        (1e10, "1e+10"),
        (100000.0, "100000"),
        (1000000.0, "1e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (3.14159265358979, "3.1415927"),
        (16777217.0, "1.6777216e+07"),
        (-0.5, "-0.5"),
        (0.0, "0"),
        (1e300, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
        ("as is", "as is"),
    ],
)
def test_scalars_as_text(value: Any, text: str) -> None:
    assert text == as_text(value)


def test_quoted_and_tagged_scalars_are_what_they_say() -> None:
    text = """["0200", 'y', !!str 5, !!int "7", !!float 3, !!bool "on", !!null "",
        !!binary aGk=, !custom x, !!timestamp 2020-01-01]"""

    assert load(text) == [
        "0200", "y", "5", 7, 3.0, True, None, "hi", "x", "2020-01-01",
    ]  # fmt: skip


def test_keys_become_text_and_the_last_of_equal_ones_counts() -> None:
    assert load("y: 1\n010: 2\n1.5: 3\na: 4\na: 5") == {
        "true": 1,
        "8": 2,
        "1.5": 3,
        "a": 5,
    }


def test_anchors_and_merge_keys() -> None:
    text = """
base: &base {a: 1, b: 2}
one: {<<: *base, b: 3}
two: {<<: [*base, {a: 7, c: 8}], d: 9}
"""

    assert load(text) == {
        "base": {"a": 1, "b": 2},
        "one": {"a": 1, "b": 3},
        "two": {"a": 1, "b": 2, "c": 8, "d": 9},
    }


def test_only_the_first_document_counts() -> None:
    assert load("a: 1\n---\nb: 2") == {"a": 1}


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "null"])
def test_empty_documents(text: str) -> None:
    assert load(text) is None


def test_json_is_yaml() -> None:
    assert load('{"a": [1, "y", null, true], "b": {"c": 1.5}}') == {
        "a": [1, "y", None, True],
        "b": {"c": 1.5},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "line 2, column 1: "),
        ("\tx", "line 1, column 1: "),
        ("a: b: c", "line 1, column 5: "),
        ("a: *nope", "line 1, column 4: found undefined alias"),
        ("? [a]\n: 1", "line 1, column 3: a map key must be text"),
        ("a: &a [*a]", "nested lists and maps"),
        ("- " * (MAX_DEPTH + 2) + "x", "nested lists and maps"),
        ("a: !!int x", "line 1, column 4: cannot decode 'x' as a !!int"),
        ("a: !!binary '?'", "base64"),
        ("<<: 5", "map merge"),
        ("\x00", "control characters"),
        ("a: &a [" + "x," * 999 + "]\nb: &b [" + "*a," * 999 + "]", "200000 values"),
    ],
)
def test_errors_name_the_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_parses_or_is_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        load(text)


@given(st.floats(allow_nan=False, width=32))
def test_floats_survive_in_single_precision(value: float) -> None:
    text = as_text(value)

    assert struct.pack("f", value) == struct.pack("f", float(text))
