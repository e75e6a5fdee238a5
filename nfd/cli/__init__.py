"""The command `nfd`: dispatch to one module a command, imported when it is called.

A command's module has `add_parser(subparsers)`, which adds a parser named as the
command, and `run(args) -> int`, which returns the exit status: 0 ok, 1 failed, 2
wrong use. A module that reads its arguments itself has `main(argv) -> int` instead; one
that is in a hurry has `quick(words)` too, which reads simple arguments without argparse
and returns None for all others.
"""

import gc as garbage  # nfd.cli.gc takes the name gc here when it is imported
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from nfd.errors import NfdError, UsageError

COMMANDS: dict[str, tuple[str, str]] = {  # name: module, one line of help
    "scan": ("nfd.cli.scan", "print the labels and features of a host"),
    "explain": ("nfd.cli.explain", "say where a label comes from, or why it is absent"),
    "sources": ("nfd.cli.sources", "list the installed sources"),
    "check": ("nfd.cli.check", "check a node's labels for the programs that read them"),
    "capture": ("nfd.cli.capture", "write what the sources read into an archive"),
    "diff": ("nfd.cli.diff", "compare two hosts, captures or saved scans"),
    "export": ("nfd.cli.export", "print features, labels, or a node template"),
    "rules": ("nfd.cli.rules", "validate, try and explain rules"),
    "kubectl-nfd": ("nfd.cli.kubectl_nfd", "check rules as upstream's kubectl plug-in"),
    "fleet": ("nfd.cli.fleet", "show and decide what happens to the whole fleet"),
    "gc": ("nfd.cli.gc", "delete what nodes left behind (nfd-gc)"),
    "master": ("nfd.cli.master", "label the nodes of a cluster (nfd-master)"),
    "worker": ("nfd.cli.worker", "label this node and keep its NodeFeature"),
    "version": ("nfd.cli.version", "print the version"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _dispatch(words)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except UsageError as error:
        warn(f"error: {error}")
        return 2
    except NfdError as error:
        warn(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        garbage.enable()
        if argv is None:  # the process ends: going through it all is 6 % of a scan
            garbage.freeze()
    return status


def _dispatch(words: list[str]) -> int:
    if words[:1] == ["--version"]:
        words[:1] = ["version"]
    command = words[0] if words else ""
    if command in COMMANDS:
        return _run(command, words)
    if command and not command.startswith("-"):
        from nfd.config.nearest import suggest  # noqa: PLC0415 - after a mistake

        raise UsageError(f"there is no command {command!r}{suggest(command, COMMANDS)}")
    from nfd.cli.parsing import show_help  # noqa: PLC0415 - argparse

    show_help(words)
    return 0 if command else 2


def _run(command: str, words: list[str]) -> int:
    garbage.disable()  # imports make no garbage, and a scan ends before it makes much
    if command == "scan":
        from nfd.cli.lean import import_attrs  # noqa: PLC0415 - for a scan only

        import_attrs()
    module = import_module(COMMANDS[command][0])
    if command != "scan":
        garbage.enable()
    if hasattr(module, "main"):
        return int(module.main(words[1:]))
    args = module.quick(words[1:]) if hasattr(module, "quick") else None
    if args is None:
        from nfd.cli.parsing import parse  # noqa: PLC0415 - argparse

        args = parse(module, words)
    return int(module.run(args))


def warn(text: str) -> None:
    """Print one line to standard error."""
    print(f"nfd: {text}", file=sys.stderr)
