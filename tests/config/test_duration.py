"""Durations as Go's time.ParseDuration reads them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfd.config.duration import Duration
from nfd.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("60s", 60_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1.5s", 1_500_000_000),
        (".5s", 500_000_000),
        ("1.s", 1_000_000_000),
        ("-1m", -60_000_000_000),
        ("+5ms", 5_000_000),
        ("1h1m1s1ms1us1ns", 3_661_001_001_001),
        ("3µs", 3_000),
        ("3μs", 3_000),
        ("0.000000001s", 1),
    ],
)
def test_go_notation(text: str, nanoseconds: int) -> None:
    assert nanoseconds == Duration.parse(text)
    assert nanoseconds == Duration.from_config(text, "x")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "60",
        "s",
        ".s",
        "1",
        "1 s",
        "1d",
        "--1s",
        "+-1s",
        "1s ",
        "10000000h",
        "+",
        "\u0661s",
    ],
)
def test_what_go_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Duration.parse(text)


@pytest.mark.parametrize(("value", "expected"), [(60, 60), (1.9, 1), (-5, -5)])
def test_numbers_are_nanoseconds(value: float, expected: int) -> None:
    assert expected == Duration.from_config(value, "x")


@pytest.mark.parametrize("value", [None, True, [], {}, "60"])
def test_other_values_are_refused_with_their_path(value: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"^core\.sleepInterval: .* expected a duration"
    ):
        Duration.from_config(value, "core.sleepInterval")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(60, "1m"), (3600, "1h"), (0, "0s"), (0.25, "250ms"), (90, "90s")],
)
def test_text_of_durations(seconds: float, text: str) -> None:
    duration = Duration.of_seconds(seconds)

    assert text == str(duration)
    assert seconds == duration.seconds


@given(st.integers(-(10**17), 10**17))
def test_text_reads_back(nanoseconds: int) -> None:
    assert nanoseconds == Duration.parse(str(Duration(nanoseconds)))
