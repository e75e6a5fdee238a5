"""`nfd scan` as a whole process, against a bare `python -c ''`.

Prints the best wall time, processor time and peak memory of each command, over turns
that alternate between them so that both see the same machine, and ratios beside the
budgets of DESIGN section 7; then what a scan imports. Byte code is compiled first.
Run: `python benchmarks/bench_scan.py [TURNS]`.
"""

import compileall
import os
import subprocess  # noqa: TID251 - a benchmark runs what it measures
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from bench_hostroot import make_tree  # noqa: E402 - after the path

TURNS = 40
DEVICES = 50
BUDGET_MS = 60.0
GOAL_MS = 41.0
BUDGET_RATIO = 6.0
BUDGET_MB = 20.0
SHOWN_IMPORTS = 12
BARE = "python -c ''"


class Run(NamedTuple):
    """One process: wall and processor seconds."""

    wall: float
    cpu: float


def environment() -> dict[str, str]:
    """Return the environment without what would forbid byte code."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    kept.pop("NFD_HOST_ROOT", None)
    return kept


def measure(command: list[str], silent: int) -> Run:
    """Run a command with its output thrown away."""
    actions = [(os.POSIX_SPAWN_DUP2, silent, 1), (os.POSIX_SPAWN_DUP2, silent, 2)]
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environment(), file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"failed: {' '.join(command)}")
    return Run(wall, usage.ru_utime + usage.ru_stime)


def peak_memory(words: list[str]) -> float:
    """Return the peak resident memory of `nfd WORDS` in MiB.

    The process tells it itself: what wait4 says includes its parent's.
    """
    code = (
        "import sys; from nfd.cli import main; main(sys.argv[1:])\n"
        "sys.stderr.write(open('/proc/self/status').read())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    for line in done.stderr.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("the kernel tells no peak memory")


def commands(tree: str) -> dict[str, list[str]]:
    """Name what is measured."""
    python = sys.executable
    nfd = str(Path(python).parent / "nfd")
    scan = [nfd, "scan", "-o", "json"]
    return {
        BARE: [python, "-c", ""],
        "import attrs": [python, "-c", "import attrs"],
        "nfd version": [nfd, "version"],
        "nfd scan -o json (this machine)": scan,
        f"nfd scan -o json ({DEVICES} PCI devices)": [*scan, "--root", tree],
    }


def verdict(name: str, best: Run, bare: Run, memory: float | None) -> str:
    """Write one line of the table."""
    ratio = best.wall / bare.wall
    shown = "" if memory is None else f"{memory:.1f}"
    line = (
        f"{name:<36} {best.wall * 1e3:8.1f} {best.cpu * 1e3:8.1f} "
        f"{shown:>8} {ratio:7.2f}"
    )
    if memory is None:
        return line
    misses = [
        text
        for text, missed in (
            (f"> {BUDGET_MS:g} ms", best.wall * 1e3 > BUDGET_MS),
            (f"> {BUDGET_RATIO:g} times", ratio > BUDGET_RATIO),
            (f"> {BUDGET_MB:g} MB", memory > BUDGET_MB),
        )
        if missed
    ]
    return line + "  " + ("MISSED: " + ", ".join(misses) if misses else "ok")


def imports(command: list[str]) -> list[tuple[int, str]]:
    """Return what a command imports: microseconds of its own, and the module."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    rows = []
    for line in done.stderr.splitlines():
        own, _, rest = line.removeprefix("import time:").partition("|")
        if own.strip().isdigit():
            rows.append((int(own), rest.partition("|")[2].strip()))
    return sorted(rows, reverse=True)


def main() -> int:
    """Measure and print; 1 when a budget is missed."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    for folder in (ROOT / "nfd", ROOT / "sources" / "nfd_sources"):
        compileall.compile_dir(str(folder), quiet=2)
    with tempfile.TemporaryDirectory() as tree:
        make_tree(tree, DEVICES)
        wanted = commands(tree)
        runs: dict[str, list[Run]] = {name: [] for name in wanted}
        silent = os.open(os.devnull, os.O_WRONLY)
        for _ in range(turns + 1):
            for name, command in wanted.items():
                runs[name].append(measure(command, silent))
        memory = {
            name: peak_memory(command[1:])
            for name, command in wanted.items()
            if "scan" in command
        }
        listed = imports(wanted[f"nfd scan -o json ({DEVICES} PCI devices)"])
    best = {
        name: Run(*(min(column) for column in zip(*made[1:], strict=True)))
        for name, made in runs.items()
    }
    print(
        f"best of {turns} turns; budgets of a scan: {BUDGET_MS:g} ms (goal "
        f"{GOAL_MS:g}), {BUDGET_RATIO:g} times {BARE}, {BUDGET_MB:g} MB"
    )
    print(f"{'':<36} {'wall ms':>8} {'cpu ms':>8} {'peak MB':>8} {'ratio':>7}")
    lines = [
        verdict(name, run, best[BARE], memory.get(name)) for name, run in best.items()
    ]
    print("\n".join(lines))
    total = sum(own for own, _ in listed)
    print(f"\na scan imports {len(listed)} modules, {total / 1e3:.1f} ms when timed:")
    for own, name in listed[:SHOWN_IMPORTS]:
        print(f"{own / 1e3:8.1f} ms  {name}")
    return 1 if any("MISSED" in line for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
