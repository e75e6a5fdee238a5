"""Versions are compared by their leading numbers."""

import pytest

from nfd import version


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2", (2, 0, 0)),
        ("v2.0", (2, 0, 0)),
        ("2.0.1", (2, 0, 1)),
        ("1.2.3-rc1", (1, 2, 3)),
        ("1.2.3+meta", (1, 2, 3)),
        ("007.01", (7, 1, 0)),
        ("6.1.0-13-amd64", (6, 1, 0)),
        ("5.15.0-1025-aws", (5, 15, 0)),
        ("5.14.0-503.35.1.el9_5.x86_64", (5, 14, 0)),
        ("4.18.0-553.el8_10.x86_64", (4, 18, 0)),
        ("5.15.79.1-microsoft-standard-WSL2", (5, 15, 79)),
        ("6.6.31_rpt-rpi-v8", (6, 6, 31)),
    ],
)
def test_leading_numbers(text: str, numbers: version.Version) -> None:
    """Missing numbers are 0, suffixes are ignored."""
    assert numbers == version.parse(text)


@pytest.mark.parametrize(
    "text", ["", "str", "-11", "V1", "1.", "1..2", "1 2", " 1", "1\n", "1x", "\u0661"]
)
def test_refused(text: str) -> None:
    """A text without leading numbers is no version."""
    with pytest.raises(version.VersionError, match="not a version"):
        version.parse(text)
