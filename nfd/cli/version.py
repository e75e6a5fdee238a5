"""`nfd version`: print the version."""

import argparse
from typing import Any

from nfd._version import __version__


def add_parser(commands: Any) -> None:
    """Add the parser of `nfd version`."""
    commands.add_parser("version", help="print the version")


def run(args: argparse.Namespace) -> int:
    """Print the version, as `nfd 1.2.3`."""
    del args
    print(f"nfd {__version__}")
    return 0
