"""The parser of the command `nfd`; apart, because argparse is slow to import."""

import argparse
import os
from collections.abc import Sequence
from typing import Any

from nfd.cli import COMMANDS


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps examples as they are, and does not import shutil to learn the width."""

    def __init__(self, prog: str) -> None:
        """Take the width of the terminal, or COLUMNS, or 80."""
        try:
            columns = int(os.environ.get("COLUMNS", "0"))
            columns = columns or os.get_terminal_size(1).columns
        except (OSError, ValueError):
            columns = 80
        super().__init__(prog, width=max(columns - 2, 40))


def _parser() -> tuple[argparse.ArgumentParser, Any]:
    parser = argparse.ArgumentParser(
        prog="nfd",
        description="Discovers the features of a host and labels nodes with them.",
        epilog="nfd COMMAND --help shows the options of a command, and examples.",
        formatter_class=HelpFormatter,
    )
    commands = parser.add_subparsers(  # prog: else argparse imports shutil for it
        metavar="COMMAND", title="commands", prog="nfd"
    )
    return parser, commands


def parse(module: Any, words: Sequence[str]) -> argparse.Namespace:
    """Parse the words for the command that is in `module`.

    Raises:
        SystemExit: They are wrong, which has been said, or help was asked for.

    """
    parser, commands = _parser()
    module.add_parser(commands)
    return parser.parse_args(words)


def show_help(words: Sequence[str]) -> None:
    """Parse words that name no command, and list the commands."""
    parser, commands = _parser()
    for name, (_, line) in sorted(COMMANDS.items()):
        commands.add_parser(name, help=line)
    parser.parse_args(words)
    parser.print_help()
