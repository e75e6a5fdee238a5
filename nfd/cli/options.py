"""Options that several commands share, and what they mean."""

import os
from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from nfd.cli import warn
from nfd.config import DEFAULT_PATH
from nfd.discovery import DEFAULT_TIMEOUT, Discovery, Plan, Runner, discover
from nfd.errors import UsageError
from nfd.hostroot import HostRoot, Recorder
from nfd.library import make_plan, read_config
from nfd.registry import Registry, installed

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace  # slow to import, see quick_args

    from nfd.config.worker import WorkerConfig

# What `quick_args` needs to know of the options below.
VALUES: Mapping[str, str] = {
    "--root": "root",
    "--live": "live",
    "--config": "config",
    "--options": "options",
    "--sources": "sources",
    "--label-sources": "label_sources",
}
DEFAULTS: Mapping[str, Any] = {
    "root": None,
    "live": None,
    "config": None,
    "options": "",
    "sources": None,
    "label_sources": None,
    "timeout": DEFAULT_TIMEOUT,
}
LIVE = ("yes", "no")


def quick_args(
    words: Sequence[str],
    flags: Mapping[str, str],
    values: Mapping[str, str],
    defaults: Mapping[str, Any],
    choices: Mapping[str, Collection[str]],
) -> SimpleNamespace | None:
    """Read arguments as argparse does, if all are options written out in full.

    Importing and using argparse is 6 % of a scan. Abbreviations, `--option=value`,
    help, values that begin with `-`, and all mistakes give None: ask argparse.

    Args:
        words: The arguments.
        flags: The options without a value, and the names of their results.
        values: The options with a value, and the names of their results.
        defaults: The results without any option.
        choices: By name the values that are allowed.

    """
    found = dict(defaults)
    rest = iter(words)
    for word in rest:
        if word in flags:
            found[flags[word]] = True
            continue
        name = values.get(word)
        value = next(rest, "-")
        if name is None or value.startswith("-"):
            return None
        if name in choices and value not in choices[name]:
            return None
        found[name] = value
    return SimpleNamespace(**found)


def add_parser(
    commands: Any, name: str, summary: str, examples: str
) -> "ArgumentParser":
    """Add the parser of a command, with examples below its options."""
    from nfd.cli.parsing import HelpFormatter  # noqa: PLC0415 - argparse

    parser: ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[:1].upper() + summary[1:] + ".",
        epilog="examples:\n" + examples,
        formatter_class=HelpFormatter,
    )
    return parser


def add_root(parser: "ArgumentParser") -> None:
    """Add `--root` and `--live`."""
    group = parser.add_argument_group("host")
    group.add_argument(
        "--root",
        metavar="PATH",
        help="the host: / (default), a folder that holds a mounted root or a captured "
        "tree, a prefix ending in '-' as /host-, or a capture archive; default from "
        "NFD_HOST_ROOT",
    )
    group.add_argument(
        "--live",
        choices=LIVE,
        help="whether the root is the running machine, so that CPUID and such may be "
        "asked; found out by default",
    )


def open_root(args: "Namespace", record: Recorder | None = None) -> HostRoot:
    """Open the host that the options name, recording if asked.

    Raises:
        HostError: It cannot be used.

    """
    live = None if args.live is None else args.live == "yes"
    root = args.root if args.root is not None else os.environ.get("NFD_HOST_ROOT")
    return HostRoot.open(root or "/", live=live, record=record)


def add_discovery(parser: "ArgumentParser") -> None:
    """Add the options that choose and configure sources."""
    group = parser.add_argument_group("discovery")
    group.add_argument(
        "--config",
        metavar="FILE",
        help=f"configuration file of the worker; default: {DEFAULT_PATH} where the "
        "root is the running machine and the file exists; '' for none",
    )
    group.add_argument(
        "--options", metavar="TEXT", default="", help="YAML or JSON over the file"
    )
    group.add_argument(
        "--sources",
        metavar="LIST",
        help="sources to run, as 'pci,cpu' or 'all,-usb'",
    )
    group.add_argument(
        "--label-sources", metavar="LIST", help="sources whose labels count"
    )
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=DEFAULT_TIMEOUT,
        help="time that each source may take (default: %(default)g)",
    )


def split(text: str) -> list[str]:
    """Split a list of words at its commas."""
    return [word for part in text.split(",") if (word := part.strip())]


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise ValueError(text)
    return seconds


def load_config(
    args: "Namespace", host: HostRoot, registry: Registry
) -> "WorkerConfig | None":
    """Load the configuration that the options name; None when there is none.

    Raises:
        ConfigError: It is wrong.
        UsageError: There is no profile of a name.

    """
    text = None
    if args.config:
        text = read_config(args.config)
    elif args.config is None and host.live:
        text = read_config(DEFAULT_PATH, required=False)
    config = None
    if text is not None or args.options:
        from nfd.config.worker import load  # noqa: PLC0415 - only when there is one

        config = load(registry, file=text, options=args.options)
    if getattr(args, "for_profiles", None):
        from nfd.config.worker import with_profiles  # noqa: PLC0415 - as above

        config = with_profiles(config, split(args.for_profiles), registry)
    return config


def plan_discovery(args: "Namespace", host: HostRoot, registry: Registry) -> Plan:
    """Turn the options into a plan, and warn about what is odd.

    Raises:
        ConfigError: The configuration is wrong.
        UsageError: `--sources` names no source.

    """
    plan, warnings = make_plan(
        registry,
        host,
        load_config(args, host, registry),
        sources=args.sources,
        label_sources=args.label_sources,
    )
    for warning in warnings:
        warn(f"warning: {warning}")
    if args.sources is not None and not plan.sources and not plan.broken:
        raise UsageError(f"--sources {args.sources!r} selects no source")
    return plan


def run_discovery(args: "Namespace", host: HostRoot) -> Discovery:
    """Discover what the options ask for.

    Raises:
        ConfigError: The configuration is wrong.

    """
    return discover(host, plan_discovery(args, host, installed()), Runner(args.timeout))
