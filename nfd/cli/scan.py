"""`nfd scan`: discover once and print."""

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from nfd.cli import options, warn
from nfd.cli.output import FORMATS, render

if TYPE_CHECKING:
    from argparse import Namespace  # slow to import, see quick

EXAMPLES = """\
  nfd scan                                labels of this machine
  nfd scan -o json --features             everything, for programs
  nfd scan --root host.tar.xz             labels of a captured machine
  nfd scan --sources pci,usb -o labels    some sources only
  nfd scan --options '{sources: {pci: {deviceClassWhitelist: ["02"]}}}'
  nfd scan --profile gpu-operator         with all that the GPU operator reads
  eval "$(nfd scan -o env)"               labels as shell variables
"""


def add_parser(commands: Any) -> None:
    """Add the parser of `nfd scan`."""
    parser = options.add_parser(
        commands, "scan", "print the labels and features of a host", EXAMPLES
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=FORMATS,
        help="format; default: table on a terminal, else labels (key=value lines)",
    )
    parser.add_argument(
        "--features", action="store_true", help="print the raw features too"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 when a source failed"
    )
    parser.add_argument(
        "--profile",
        dest="for_profiles",
        metavar="LIST",
        help="add what these programs need to the configuration; nfd check lists them",
    )
    options.add_root(parser)
    options.add_discovery(parser)


def quick(words: Sequence[str]) -> SimpleNamespace | None:
    """Read simple arguments without argparse; see `options.quick_args`."""
    return options.quick_args(
        words,
        flags={"--features": "features", "--strict": "strict"},
        values={
            "-o": "output",
            "--output": "output",
            "--profile": "for_profiles",
            **options.VALUES,
        },
        defaults={
            "output": None,
            "features": False,
            "strict": False,
            "for_profiles": None,
            **options.DEFAULTS,
        },
        choices={"output": FORMATS, "live": options.LIVE},
    )


def run(args: "Namespace") -> int:
    """Print the discovery; 1 with `--strict` when a source failed."""
    with options.open_root(args) as host:
        found = options.run_discovery(args, host)
    form = args.output or ("table" if sys.stdout.isatty() else "labels")
    for result in found.failed:
        warn(f"source {result.name} failed: {result.error}")
    for refusal in found.refused:
        what = f"{refusal.kind} {refusal.key!r}"
        source = refusal.provenance.source
        warn(f"{what} of source {source} came to nothing: {refusal.reason}")
    sys.stdout.write(render(found, form, features=args.features))
    return 1 if args.strict and found.failed else 0
