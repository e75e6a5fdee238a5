"""The worker at rest and at work: memory, processor time, requests, reaction.

Runs `nfd-worker` as a pod would, against the fake API server of the tests (TLS), on
this machine or a host root given, in both publish modes; prints figures beside the
budgets of DESIGN section 7 and upstream's. The device event is a real one of the kernel:
a tap interface is made, which needs root. Needs the packages of the tests.
Run: `python benchmarks/bench_worker.py [--root ROOT]`.
"""

import argparse
import fcntl
import os
import signal
import struct
import subprocess  # noqa: TID251 - a benchmark runs what it measures
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from nfd.kube.resources import NODEFEATURES, NODES  # noqa: E402 - after the path
from tests.fakeapi import FakeApi, forbidden  # noqa: E402

NODE, NAMESPACE = "bench", "nfd"
BUDGET_RSS, BUDGET_DIRTY, GOAL_DIRTY = 36.0, 24.0, 32.0
UPSTREAM_RSS, UPSTREAM_DIRTY = 38.4, 8.8
IDLE_SECONDS = 10.0
PASSES = 10
TAP = "nfdbench0"
TUNSETIFF, TAP_WITHOUT_HEADER = 0x400454CA, 0x0002 | 0x1000  # linux/if_tun.h
IMPORTS = 15
# What a pod has: the API server in the environment, a token in a folder.
LAUNCH = """
import functools, os, sys
from nfd.kube import config
from nfd.worker import start
start.in_cluster = functools.partial(config.in_cluster, folder=sys.argv[1])
from nfd.cli.worker import main
sys.exit(main(sys.argv[2:], os.environ))
"""


def smaps(pid: int) -> dict[str, float]:
    """Return Rss, Private_Dirty and so on in MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {
        line.split(":")[0]: int(line.split()[1]) / 1000
        for line in lines
        if line.endswith("kB")
    }


def cpu_seconds(pid: int) -> float:
    """Return user and system time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait(condition: Callable[[], Any], seconds: float = 30.0) -> float:
    """Wait for a condition; return the time it took."""
    start = time.perf_counter()
    while not condition():
        if time.perf_counter() - start > seconds:
            raise SystemExit("timed out")
        time.sleep(0.002)
    return time.perf_counter() - start


class Bench:
    """One fake cluster and one worker process."""

    def __init__(self, api: FakeApi, folder: Path, publish: str, root: str) -> None:
        self.api = api
        self.folder = folder
        self.config = folder / "conf" / "nfd-worker.conf"
        self.config.parent.mkdir()
        self.config.write_text("")
        account = folder / "account"
        account.mkdir()
        (account / "token").write_text("token")
        (account / "namespace").write_text(NAMESPACE)
        (account / "ca.crt").write_bytes(Path(api.ca_file).read_bytes())
        host, port = api.url.removeprefix("https://").split(":")
        environment = {
            **{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_NAMESPACE": NAMESPACE,
            "NODE_NAME": NODE,
        }
        command = [sys.executable, "-c", LAUNCH, str(account), f"-publish={publish}"]
        command += [f"-config={self.config}", "-port=0", f"-root={root}"]
        self.log = (folder / "log").open("w")
        self.started = time.perf_counter()
        self.process = subprocess.Popen(command, env=environment, stderr=self.log)

    def labels(self) -> dict[str, str]:
        """Return the labels of the Node."""
        return self.api.get(NODES, NODE)["metadata"].get("labels") or {}

    def published(self) -> dict[str, str]:
        """Return the labels of the NodeFeature."""
        found = self.api.all(NODEFEATURES, NAMESPACE)
        return dict(found[0]["spec"]["labels"]) if found else {}

    def pass_again(self, number: int) -> None:
        """Have the worker look at everything again, by touching its configuration."""
        self.config.write_text(f"# {number}\n")
        time.sleep(1.5)

    def close(self) -> float:
        """Stop the worker; return how long that took."""
        start = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)
        self.log.close()
        return time.perf_counter() - start


def fence(review: Any) -> None:
    """Refuse what the admission policy refuses."""
    labels = (review.new or {}).get("metadata", {}).get("labels") or {}
    if review.resource is NODES and "fence.nfd.invalid/probe" in labels:
        raise forbidden(NODES, NODE, "a worker may not change labels outside")


def measure(publish: str, root: str) -> bool:
    """Print the figures of one publish mode; tell whether budgets hold."""
    with FakeApi(tls=True) as api, tempfile.TemporaryDirectory() as name:
        api.node(NODE)
        api.admission.append(fence)
        bench = Bench(api, Path(name), publish, root)
        try:
            return figures(bench, publish, root)
        finally:
            print(
                f"  SIGTERM to exit            {bench.close() * 1000:8.0f} ms (≤ 2000)"
            )


def figures(bench: Bench, publish: str, root: str) -> bool:
    api, pid = bench.api, bench.process.pid
    seen = bench.labels if "node" in publish.split(",") else bench.published
    wait(lambda: any("feature." in k for k in seen()))
    first = time.perf_counter() - bench.started
    wait(lambda: bench.published() or publish == "node")
    wait(lambda: api.watches.open >= ("nodefeature" in publish) * 2)
    print(f"\n{publish}: {len(seen())} labels")
    print(f"  process start to first label {first * 1000:6.0f} ms")
    at_start = len(api.requests)
    size = sum(len(a.body) for a in api.requests)
    print(f"  requests, bytes sent at start {at_start:5d} {size:10d}")
    time.sleep(1.0)
    before = len(api.requests)
    spent = cpu_seconds(pid)
    for number in range(PASSES):
        bench.pass_again(number)
    a_pass = (cpu_seconds(pid) - spent) / PASSES
    print(
        f"  processor time of a pass  {a_pass * 1000:8.0f} ms, each minute"
        f" {a_pass / 60 * 100:.3f} % (< 0.1)"
    )
    print(f"  requests of ten more passes {len(api.requests) - before:7d} (0)")
    time.sleep(1.0)
    memory = smaps(pid)
    rss, dirty = memory["Rss"], memory["Private_Dirty"]
    print(
        f"  RSS                     {rss:11.1f} MB (≤ {BUDGET_RSS:g},"
        f" upstream {UPSTREAM_RSS:g}; goal {GOAL_DIRTY:g})\n"
        f"  private dirty           {dirty:11.1f} MB (≤ {BUDGET_DIRTY:g},"
        f" upstream {UPSTREAM_DIRTY:g})\n"
        f"  private                 {dirty + memory['Private_Clean']:11.1f} MB"
        f"   PSS {memory['Pss']:.1f} MB"
    )
    spent = cpu_seconds(pid)
    time.sleep(IDLE_SECONDS)
    share = (cpu_seconds(pid) - spent) / IDLE_SECONDS * 100
    print(f"  processor, between passes  {share:8.2f} %")
    local = reaction(bench, seen)
    print(f"  rule file to label         {local * 1000:8.0f} ms (< 1000)")
    if root == "/":
        print_device_reaction(bench, seen)
    return rss <= BUDGET_RSS and dirty <= BUDGET_DIRTY


def print_device_reaction(bench: Bench, seen: Callable[[], dict[str, str]]) -> None:
    """Time a new network interface, by the kernel's event, until it makes a label."""
    term = f"{{feature: network.virtual, matchExpressions: {{name: {{op: In, value: [{TAP}]}}}}}}"
    rule = f'{{name: r, labels: {{tap: "true"}}, matchFeatures: [{term}]}}'
    bench.config.write_text(f"sources: {{custom: [{rule}]}}\n")
    wait(lambda: not any(k.endswith("bench") for k in seen()))

    def there() -> bool:
        return any(k.endswith("tap") for k in seen())

    try:
        with tap_interface():
            came = wait(there)
        went = wait(lambda: not there())
    except OSError as error:
        print(f"  device event to label             not measured: {error}")
        return
    print(f"  device added to label      {came * 1000:8.0f} ms (< 1000)")
    print(f"  device gone to label gone  {went * 1000:8.0f} ms (< 1000)")


@contextmanager
def tap_interface() -> Iterator[None]:
    """Have a network interface that goes again at the end.

    Raises:
        OSError: The kernel or its permissions do not let us.

    """
    device = os.open("/dev/net/tun", os.O_RDWR)
    try:
        asked = struct.pack("16sH22x", TAP.encode(), TAP_WITHOUT_HEADER)
        fcntl.ioctl(device, TUNSETIFF, asked)
        yield
    finally:
        os.close(device)


def print_import_budget() -> None:
    """Compare the start of an interpreter with that of one that imports the worker."""
    code = "import nfd.cli.worker, sys; print(len(sys.modules))"
    times: dict[str, list[float]] = {"pass": [], code: []}
    said = ""
    for _ in range(IMPORTS):
        for each, taken in times.items():
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", each], check=True, capture_output=True, text=True
            )
            taken.append(time.perf_counter() - start)
            said = done.stdout.strip() or said
    bare, worker = (median(taken) * 1000 for taken in times.values())
    print(
        f"import nfd.cli.worker: {said} modules, {worker:.0f} ms,"
        f" {worker / bare:.1f} times bare Python ({bare:.0f} ms)"
    )


def reaction(bench: Bench, seen: Callable[[], dict[str, str]]) -> float:
    """Time a change of configuration that makes a label, until it is published."""
    rule = '{name: r, labels: {bench: "true"}}'
    start = time.perf_counter()
    bench.config.write_text(f"sources: {{custom: [{rule}]}}\n")
    wait(lambda: any(k.endswith("bench") for k in (seen() | bench.published())))
    return time.perf_counter() - start


def main() -> int:
    """Measure both modes; 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="/")
    root = parser.parse_args().root
    print_import_budget()
    good = [measure(mode, root) for mode in ("nodefeature,node", "nodefeature", "node")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
