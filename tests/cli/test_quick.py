"""Arguments read without argparse: the same results, or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfd.cli import scan, version
from nfd.cli.parsing import parse

WORDS = (
    *("-o", "--output", "--features", "--strict", "--root", "--live", "--config"),
    *(
        "--options",
        "--sources",
        "--label-sources",
        "--timeout",
        "--profile",
        "--help",
        "-h",
        "--",
    ),
    *("json", "yes", "no", "", "/", "-", "-1", "5", "0", "a b", "-a b", "all,-usb"),
    *("-ojson", "--out", "--root=/", "--options=", "--strict=yes", "--no-such"),
)


def test_every_default_is_that_of_argparse() -> None:
    assert vars(scan.quick([]) or object) == vars(parse(scan, ["scan"]))


@pytest.mark.parametrize(
    "words",
    [
        ["-o", "json"],
        ["--output", "table", "--features", "--strict"],
        ["--root", "/host-", "--live", "yes", "--config", "", "--options", "{}"],
        ["--sources", "pci", "--label-sources", "all", "-o", "env", "-o", "yaml"],
    ],
)
def test_options_in_full_need_no_argparse(words: list[str]) -> None:
    args = scan.quick(words)

    assert args is not None
    assert vars(args) == vars(parse(scan, ["scan", *words]))


@pytest.mark.parametrize(
    "words",
    [
        *(["--help"], ["-o"], ["-o", "xml"], ["--live", "maybe"], ["--no-such"]),
        *(["--out", "json"], ["--output=json"], ["-ojson"], ["word"], ["--"]),
        *(["--sources", "-usb"], ["--root", "--strict"], ["--timeout", "5"]),
    ],
)
def test_all_else_is_left_to_argparse(words: list[str]) -> None:
    assert scan.quick(words) is None


@given(st.lists(st.sampled_from(WORDS), max_size=6))
def test_quick_arguments_are_those_of_argparse(words: list[str]) -> None:
    args = scan.quick(words)

    if args is not None:
        assert vars(args) == vars(parse(scan, ["scan", *words]))


def test_version_takes_nothing() -> None:
    assert version.quick([]) is not None
    assert version.quick(["--help"]) is None
