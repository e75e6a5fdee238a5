"""`nfd capture`: write what the sources read of a host into one archive, redacted."""

import argparse
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nfd import capture
from nfd.cli import options, warn
from nfd.hostroot import Recorder

EXAMPLES = """\
  nfd capture host.tar.xz                 capture this machine
  nfd capture --root /mnt node.tar.xz     capture a mounted root
  nfd capture --sources pci,usb pci.tar.xz
  nfd scan --root host.tar.xz             scan the capture, anywhere
"""
TICK = 0.1  # seconds between two updates on a terminal


def add_parser(commands: Any) -> None:
    """Add the parser of `nfd capture`."""
    parser = options.add_parser(
        commands,
        "capture",
        "write the files that the sources read into an archive, redacted",
        EXAMPLES,
    )
    parser.add_argument(
        "output", metavar="OUT.tar.xz", help="the archive to write; replaced if there"
    )
    options.add_root(parser)
    options.add_discovery(parser)


def run(args: argparse.Namespace) -> int:
    """Scan the host while recording, write the archive, and say what it holds."""
    recorder = Recorder()
    with options.open_root(args, record=recorder) as host, _progress(recorder):
        found = options.run_discovery(args, host)
        written = capture.write(host, args.output, found.results)
    for result in found.failed:
        warn(f"source {result.name} failed: {result.error}")
    redacted = ", ".join(f"{n} {kind}" for kind, n in written.redacted.items())
    print(
        f"{args.output}: {written.size} bytes, {written.files} files,"
        f" {written.links} links; redacted: {redacted or 'nothing'}"
    )
    return 0


@contextmanager
def _progress(recorder: Recorder) -> Iterator[None]:
    """Show on a terminal how many questions the host has answered."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()

    def show() -> None:
        while not done.wait(TICK):
            print(f"\rreading: {len(recorder.asked)} files", end="", file=sys.stderr)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        print("\r\033[K", end="", file=sys.stderr)
