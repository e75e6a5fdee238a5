"""Lenient versions: the leading numbers decide, whatever follows is ignored.

Accepts all that the strict form does (one to three numbers, `-pre-release`,
`+metadata`; spec/worker.md section 6.2) and also what kernels are really called:
`5.14.0-503.el9_5.x86_64`, `6.6.87.2-microsoft`, `6.6.31_rpt-rpi-v8`.
"""

import re
from typing import TypeAlias

from nfd.errors import NfdError

Version: TypeAlias = tuple[int, int, int]

_NUMBER = r"[0-9]{1,20}"
_TEXT = re.compile(
    rf"v?({_NUMBER})(?:\.({_NUMBER}))?(?:\.({_NUMBER}))?"
    r"(?:\.[0-9]+)*(?:[-_+~][^\s]*)?",
    re.ASCII,
)


class VersionError(NfdError):
    """A text does not begin with the numbers of a version."""


def parse(text: str) -> Version:
    """Return major, minor and patch number; missing ones are 0.

    Raises:
        VersionError: There are no leading numbers, or something odd follows them.

    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise VersionError(f"not a version: {text[:80]!r}")
    major, minor, patch = match.groups("0")
    return int(major), int(minor), int(patch)
