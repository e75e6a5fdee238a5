"""Runs the benchmarks that need no cluster, one after the other: `make bench`.

Each is a script `bench_NAME.py` that prints figures beside their budgets and exits with
1 when it misses one. `python -m benchmarks.run NAME ...` runs only those named.
"""

import os
import subprocess  # noqa: TID251 - a benchmark runs what it measures
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(wanted: list[str]) -> int:
    """Run the wanted benchmarks, all by default; 1 when one missed a budget."""
    scripts = {
        path.stem.removeprefix("bench_"): path
        for path in sorted(HERE.glob("bench_*.py"))
    }
    unknown = [name for name in wanted if name not in scripts]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join(scripts)}")
        return 2
    environment = {
        k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
    }
    missed = []
    for name in wanted or scripts:
        print(f"\n== {name}: {summary(scripts[name])}", flush=True)
        done = subprocess.run(
            [sys.executable, str(scripts[name])], env=environment, check=False
        )
        if done.returncode:
            missed.append(name)
    if missed:
        print(f"\nmissed a budget, or failed: {', '.join(missed)}")
    return 1 if missed else 0


def summary(script: Path) -> str:
    """Return the first line of a script's docstring."""
    with script.open(encoding="utf-8") as file:
        return file.readline().strip().strip('"').rstrip(".")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
