"""`nfd version`: print the version."""

import argparse
from typing import Any

from nfd._version import __version__
from nfd.cli import HelpFormatter


def add_parser(commands: Any) -> None:
    """Add the parser of `nfd version`."""
    commands.add_parser(
        "version", help="print the version", formatter_class=HelpFormatter
    )


def run(args: argparse.Namespace) -> int:
    """Print the version, as `nfd 1.2.3`."""
    del args
    print(f"nfd {__version__}")
    return 0
