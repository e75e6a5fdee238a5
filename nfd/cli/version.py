"""`nfd version`: print the version."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from nfd._version import __version__


def add_parser(commands: Any) -> None:
    """Add the parser of `nfd version`."""
    from nfd.cli.parsing import HelpFormatter  # noqa: PLC0415 - argparse

    commands.add_parser(
        "version", help="print the version", formatter_class=HelpFormatter
    )


def quick(words: Sequence[str]) -> SimpleNamespace | None:
    """Take no arguments; None when there are some."""
    return None if words else SimpleNamespace()


def run(args: Any) -> int:
    """Print the version, as `nfd 1.2.3`."""
    del args
    print(f"nfd {__version__}")
    return 0
