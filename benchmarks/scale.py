"""The master on a real control plane at scale: seconds, CPU, requests, memory.

    python benchmarks/scale.py -n 1000 [--big] [--phases steady,...] [--json FILE]

Needs the programs of `tests/cluster`. Everything shares the machine: compare figures
of one run only. Requests are those of the user agent `nfd-master` in the API server's
audit log, watches counted when they start. Peak memory is VmHWM of the process.
"""

import argparse
import json
import os
import signal
import subprocess  # noqa: TID251 - a benchmark runs what it measures
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import attrs

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import scale_fleet as fleet  # noqa: E402 - after the path

from tests.cluster.controlplane import ControlPlane  # noqa: E402
from tests.cluster.processes import free_port  # noqa: E402

PHASES = ("steady", "single", "rollout", "rule")  # after start and restart
FEATURES = f"/apis/{fleet.API_VERSION}/namespaces/{fleet.NAMESPACE}/nodefeatures"
RULES = f"/apis/{fleet.API_VERSION}/nodefeaturerules"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Run the phases and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=1000, help="nodes")
    parser.add_argument("--big", action="store_true", help="9,000 kernel options each")
    parser.add_argument("--phases", default=",".join(PHASES))
    parser.add_argument("--steady", type=float, default=30.0, metavar="SECONDS")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    parser.add_argument("--flags", default="", help="more flags of the master")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="nfd-scale-") as folder,
        ControlPlane(Path(folder)) as plane,
    ):
        plane.apply_files(*sorted((ROOT / "deploy" / "crds").glob("*.yaml")))
        plane.service_account(fleet.NAMESPACE, "default")
        run = Run(plane, options)
        run.load()
        run.all(options.phases.split(","))
    if options.json:
        options.json.write_text(json.dumps(run.figures, indent=2) + "\n")
    return 0


@attrs.define
class Run:
    """One control plane, one fleet, one master after the other."""

    plane: ControlPlane
    options: argparse.Namespace
    figures: list[dict[str, Any]] = attrs.field(factory=list)
    round: int = 0

    def load(self) -> None:
        """Create Nodes, NodeFeatures and rules."""
        began = time.monotonic()
        for rule in fleet.rules():
            self.plane.admin.create(RULES, rule)
        self.each(lambda i: self.plane.admin.create("/api/v1/nodes", fleet.node(i)))
        self.each(lambda i: self.plane.admin.create(FEATURES, self.feature(i)))
        print(
            f"loaded {self.options.n} nodes in {time.monotonic() - began:.0f} s",
            flush=True,
        )

    def feature(self, index: int) -> dict[str, Any]:
        return fleet.node_feature(index, big=self.options.big, round_=self.round)

    def each(self, work: Callable[[int], Any]) -> None:
        """Do something for every node, a few at a time."""
        with ThreadPoolExecutor(4) as pool:
            for _ in pool.map(work, range(self.options.n)):
                pass

    def all(self, phases: list[str]) -> None:
        before = self.requests()  # reading the audit log takes seconds
        with self.master() as one, self.measured("start", one, before) as figures:
            figures["first_s"] = self.until(1)
            figures["all_s"] = self.until(self.options.n) + figures["first_s"]
        before = self.requests()
        with self.master() as process:
            with self.measured("restart", process, before) as figures:
                figures["last_work_s"] = self.quiet(process)
            for phase in phases:
                if phase in ("steady", "single", "rollout", "rule"):
                    with self.measured(phase, process) as figures:
                        getattr(self, phase)(figures, process)

    def steady(self, figures: dict[str, Any], process: "Master") -> None:
        del process
        time.sleep(self.options.steady)
        figures["seconds"] = self.options.steady

    def single(self, figures: dict[str, Any], process: "Master") -> None:
        """Change one label of one NodeFeature, ten times; time to see it on its Node."""
        del process
        took = []
        for i in range(10):
            time.sleep(0.3 + 0.13 * i)
            patch = {"spec": {"labels": {f"{fleet.FNS}/single": str(i)}}}
            name = fleet.name_of(i)
            began = time.monotonic()
            self.plane.admin.patch(
                f"{FEATURES}/{name}", patch, content_type="application/merge-patch+json"
            )
            while self.label(name, "single") != str(i):
                time.sleep(0.005)
            took.append(time.monotonic() - began)
        figures |= {"median_s": median(took), "max_s": max(took)}

    def rollout(self, figures: dict[str, Any], process: "Master") -> None:
        """Change one label of every NodeFeature; how far is the master behind?"""
        del process
        self.round += 1
        patch = {"spec": {"labels": {f"{fleet.FNS}/round": str(self.round)}}}
        began = time.monotonic()
        self.each(
            lambda i: self.plane.admin.patch(
                f"{FEATURES}/{fleet.name_of(i)}",
                patch,
                content_type="application/merge-patch+json",
            )
        )
        figures["writers_s"] = time.monotonic() - began
        self.until(self.options.n, f"round={self.round}")
        figures["lag_s"] = time.monotonic() - began - figures["writers_s"]

    def rule(self, figures: dict[str, Any], process: "Master") -> None:
        """Change the value that one rule gives to a third of the nodes."""
        del process
        wanted = self.count("mark=1")
        changed = next(r for r in fleet.rules("2") if "mark" in json.dumps(r))
        began = time.monotonic()
        self.plane.admin.apply(changed)
        self.until(wanted, "mark=2")
        figures |= {"nodes": wanted, "all_s": time.monotonic() - began}

    # ---- looking -----------------------------------------------------------------

    def label(self, name: str, key: str) -> str:
        found = self.plane.admin.get(f"/api/v1/nodes/{name}")["metadata"]["labels"]
        value: str = found.get(f"{fleet.FNS}/{key}", "")
        return value

    def count(self, label: str) -> int:
        """Count the Nodes that have a feature label."""
        answer = self.plane.admin.request(
            "GET",
            "/api/v1/nodes",
            accept=METADATA,
            query={"labelSelector": f"{fleet.FNS}/{label}"},
        )
        return len(answer["items"] or ())

    def until(self, count: int, label: str = "") -> float:
        """Wait until so many Nodes have the label; seconds waited."""
        began = time.monotonic()
        label = label or f"round={self.round}"
        while self.count(label) < count:
            time.sleep(0.25)
            if time.monotonic() - began > 900:
                raise SystemExit(f"only {self.count(label)} of {count} nodes")
        return time.monotonic() - began

    def quiet(self, process: "Master", seconds: float = 4.0) -> float:
        """Wait until the process has been idle for a while; when it became so."""
        began = last = time.monotonic()
        before = process.cpu()
        while time.monotonic() - last < seconds:
            time.sleep(0.5)
            now = process.cpu()
            if now - before > 0.03:
                last = time.monotonic()
            before = now
        return last - began

    def requests(self) -> Counter[str]:
        events = self.plane.audit_events(agent="nfd-master/")
        return Counter(
            f"{e['verb']} {e.get('objectRef', {}).get('resource', '?')}" for e in events
        )

    @contextmanager
    def master(self) -> Iterator["Master"]:
        process = Master.start(self.plane, self.options.flags)
        try:
            yield process
        finally:
            process.stop()

    @contextmanager
    def measured(
        self, phase: str, process: "Master", before: Counter[str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Take the figures of one phase and print them.

        `before`: the requests before the process was started, all of which count.
        """
        server = self.plane.programs["kube-apiserver"].pid or 0
        cpu = 0.0
        if before is None:
            before, cpu = self.requests(), process.cpu()
        server_cpu = cpu_of(server)
        figures: dict[str, Any] = {"phase": phase, "n": self.options.n}
        yield figures
        figures["master_cpu_s"] = process.cpu() - cpu
        figures["server_cpu_s"] = cpu_of(server) - server_cpu
        figures["peak_rss_mb"] = process.peak_mb()
        figures["requests"] = dict(self.requests() - before)
        self.figures.append(figures)
        shown = {
            k: round(v, 2) if isinstance(v, float) else v for k, v in figures.items()
        }
        print(json.dumps(shown), flush=True)


@attrs.define
class Master:
    """A running master."""

    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, plane: ControlPlane, flags: str) -> "Master":
        words = [sys.executable, "-m", "nfd", "master", "-config="]
        words += ["-kubeconfig", str(plane.kubeconfig), "-port", str(free_port())]
        environment = {**os.environ, "KUBERNETES_NAMESPACE": fleet.NAMESPACE}
        return cls(subprocess.Popen([*words, *flags.split()], env=environment))

    def cpu(self) -> float:
        return cpu_of(self.process.pid)

    def peak_mb(self) -> float:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(x for x in text.splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    sys.exit(main())
