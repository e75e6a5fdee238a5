"""`nfd diff A B`: compare two hosts, captures or saved scans."""

import argparse
import os
from typing import Any

from nfd.cli import options, warn
from nfd.cli.output import to_json
from nfd.diff import Snapshot, compare
from nfd.errors import HostError, NfdError
from nfd.hostroot import HostRoot

EXAMPLES = """\
  nfd scan -o json --features > before.json
  nfd diff before.json /                    what has changed on this machine
  nfd diff old.tar.xz new.tar.xz            two captures
  nfd diff a.json b.json --exit-code        1 when they differ, as for git diff
"""


def add_parser(commands: Any) -> None:
    """Add the parser of `nfd diff`."""
    parser = options.add_parser(
        commands, "diff", "compare two hosts, captures or saved scans", EXAMPLES
    )
    for name in ("a", "b"):
        parser.add_argument(
            name,
            metavar=name.upper(),
            help="a host as for --root, or a .json file made by nfd scan -o json",
        )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="format"
    )
    parser.add_argument(
        "--exit-code", action="store_true", help="exit with 1 when there are changes"
    )
    options.add_discovery(parser)


def run(args: argparse.Namespace) -> int:
    """Print the changes from A to B."""
    difference = compare(_snapshot(args.a, args), _snapshot(args.b, args))
    if args.output == "json":
        print(to_json(difference.to_plain()), end="")
    else:
        for warning in difference.warnings:
            warn(f"warning: {warning}")
        for change in difference.changes:
            print(change)
    return 1 if args.exit_code and difference.changes else 0


def _snapshot(what: str, args: argparse.Namespace) -> Snapshot:
    if what.endswith(".json") and not os.path.isdir(what):
        return _saved(what)
    with HostRoot.open(what) as host:
        return Snapshot.of(options.run_discovery(args, host))


def _saved(path: str) -> Snapshot:
    import json  # noqa: PLC0415 - for saved scans only

    try:
        with open(path, encoding="utf-8") as file:
            return Snapshot.from_plain(json.load(file))
    except OSError as error:
        raise HostError(f"{path}: {error.strerror}") from error
    except (ValueError, NfdError) as error:
        raise NfdError(f"{path}: {error}") from error
