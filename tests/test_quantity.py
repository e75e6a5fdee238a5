"""Quantities follow the grammar and canonical form of Kubernetes."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfd.quantity import MAX_BINARY, Quantity, QuantityError


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("00", "0"),
        ("-0", "0"),
        ("0Ki", "0"),
        ("007", "7"),
        ("+5", "5"),
        ("-1", "-1"),
        ("1024", "1024"),
        ("1000", "1k"),
        ("2000000", "2M"),
        ("10k", "10k"),
        ("1.0", "1"),
        ("1.5", "1500m"),
        (".5", "500m"),
        ("5.", "5"),
        ("0.1m", "100u"),
        ("1500m", "1500m"),
        ("2048Ki", "2Mi"),
        ("1048576Ki", "1Gi"),
        ("64Ki", "64Ki"),
        ("524288Ki", "512Mi"),
        ("1.5Ki", "1536"),
        ("0.5Ki", "512"),
        ("-2048Ki", "-2Mi"),
        ("0.0001Ki", "102400u"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("1e+3", "1e3"),
        ("1e2", "100"),
        ("1500e-3", "1500e-3"),
        ("1E", "1E"),
        ("1000E", "1000E"),
        ("100Ei", str(MAX_BINARY)),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
    ],
)
def test_canonical_form(text: str, canonical: str) -> None:
    """The written form has the largest suffix that leaves an integer."""
    assert canonical == str(Quantity.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "abc", "1K", "1 k", " 1", "1\n", "1.2.3", "+", "-", ".", "k"),
        *("1e", "1ki", "1kk", "1_000", "0x10", "--1", "1e3k", "1e101", "\u0661", "1i"),
        "9" * 101,
    ],
)
def test_refused(text: str) -> None:
    """What breaks the grammar is an error, never a number."""
    with pytest.raises(QuantityError):
        Quantity.parse(text)


def test_equal_amounts_compare_equal() -> None:
    """Formats do not matter in comparisons."""
    assert Quantity.parse("2Gi") == Quantity.parse("2147483648")
    assert Quantity.parse("1k") < Quantity.parse("1Ki")
    assert hash(Quantity.parse("1e3")) == hash(Quantity.parse("1k"))


def test_numbers() -> None:
    """Whole numbers come out; fractions are rounded up."""
    assert int(Quantity.parse("2Gi")) == 2147483648
    assert int(Quantity.parse("1500m")) == 2
    assert not Quantity.parse("1.5").is_whole
    assert Quantity.of(4) == Quantity.parse("4")


@given(
    st.from_regex(
        r"\A[+-]?([0-9]{1,20}(\.[0-9]{0,12})?|\.[0-9]{1,12})"
        r"([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?\Z",
        fullmatch=True,
    ).filter(str.isascii)
)
def test_canonical_form_is_stable(text: str) -> None:
    """Parsing the canonical form gives the same amount and the same form."""
    quantity = Quantity.parse(text)

    assert quantity == Quantity.parse(str(quantity))
    assert str(quantity) == str(Quantity.parse(str(quantity)))


@given(st.text(max_size=12))
def test_any_text_parses_or_is_refused(text: str) -> None:
    """No other exception than QuantityError comes out."""
    with contextlib.suppress(QuantityError):
        Quantity.parse(text)
