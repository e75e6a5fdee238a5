"""`nfd export`: what upstream's client prints (worker.md 3.4), and node templates."""

import argparse
import sys
from typing import Any

from nfd.cli import export_template, options
from nfd.discovery import Discovery
from nfd.errors import NfdError
from nfd.library import scan

# Upstream reads no configuration here and builds no CPUID filter.
CONFIG: dict[str, Any] = {"sources": {"cpu": {"cpuid": {"attributeBlacklist": []}}}}

EXAMPLES = """\
  nfd export features
  nfd export labels -p /tmp/labels.json
  nfd export autoscaler-template --rules gpu.yaml
"""


def add_parser(commands: Any) -> None:
    """Add the parser of `nfd export`."""
    parser = options.add_parser(
        commands,
        "export",
        "print features or labels as upstream's client does, or a node template",
        EXAMPLES,
    )
    actions = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for what in ("features", "labels"):
        action = actions.add_parser(what, help=f"the {what}, as JSON")
        action.add_argument(
            "-p", "--path", metavar="FILE", help="file to write instead"
        )
        options.add_root(action)
    export_template.add_parser(actions)


def run(args: argparse.Namespace) -> int:
    """Print what is asked for; a failed source aborts.

    Raises:
        NfdError: A source failed, or the file cannot be written.

    """
    if args.what == "autoscaler-template":
        return export_template.run(args)
    with options.open_root(args) as host:
        found = scan(host, config=CONFIG)
    for result in found.failed:
        raise NfdError(f"source {result.name} failed: {result.error}")
    text = go_json(_content(found, args.what))
    if not args.path:
        sys.stdout.write(text + "\n")
        return 0
    try:
        with open(args.path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise NfdError(f"{args.path}: {error.strerror}") from error
    return 0


def _content(found: Discovery, what: str) -> Any:
    if what == "features":
        return found.features.to_spec()
    return {key: label.value for key, label in found.labels.items()}


def go_json(plain: Any) -> str:
    """Write JSON as Go does: four spaces, `<`, `>`, `&` and line separators escaped."""
    import json  # noqa: PLC0415 - only when it is written

    text = json.dumps(plain, indent=4, ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text
