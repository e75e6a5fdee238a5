"""Chaos on a real control plane: `make chaos`, `python -m tests.cluster.chaos`.

Two masters with leader election label a fleet while workers publish, rules change, the
API server is killed and restarted, etcd is frozen, and masters are stopped and killed.
Afterwards the audit log is read: every removal of a label from a Node is held against
what was wanted then. Exit status 1 when one was wrong, or when the end is not as wanted.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from tests.cluster.api import RefusedError
from tests.cluster.controlplane import ControlPlane
from tests.cluster.masters import FNS, Space
from tests.cluster.processes import free_port

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = (
    "{removalGuard: {listInterval: 5s, editHold: 5s},"
    " leaderElection: {leaseDuration: 6s, renewDeadline: 4s, retryPeriod: 1s}}"
)
KEYS = "abcdef"
LATE = 60.0  # seconds that a master may be behind when things break


@attrs.define
class Truth:
    """What was wanted of each node, with the times of each change."""

    changes: dict[str, list[tuple[float, frozenset[str]]]] = attrs.field(factory=dict)

    def note(self, node: str, keys: set[str]) -> None:
        self.changes.setdefault(node, []).append((time.time(), frozenset(keys)))

    def always_wanted(self, node: str, key: str, since: float, until: float) -> bool:
        """Tell whether a key was wanted at every moment of a span."""
        wanted: frozenset[str] | None = None
        for when, keys in self.changes.get(node, []):
            if when > until:
                break
            if when > since and wanted is not None and key not in wanted:
                return False  # it was not, up to this change
            wanted = keys
        return wanted is not None and key in wanted


@attrs.define
class Chaos:
    """The fleet, the masters, and what happens to them."""

    space: Space
    count: int
    draw: random.Random
    truth: Truth = attrs.field(factory=Truth)
    labels: dict[str, set[str]] = attrs.field(factory=dict)
    masters: list[subprocess.Popen[bytes]] = attrs.field(factory=list)

    @property
    def plane(self) -> ControlPlane:
        return self.space.plane

    def fill(self) -> None:
        for i in range(self.count):
            self.space.node(f"n{i}")
            self.publish(f"n{i}", {"keep", "a"})

    def publish(self, name: str, keys: set[str]) -> None:
        """Publish labels as a worker does, trying until the server takes them."""
        self.labels[name] = keys
        self.truth.note(self.space.node_name(name), keys)
        for pause in (0.5, 1, 2, 4, 8, 8, 8, 8):
            try:
                self.space.feature({"labels": dict.fromkeys(keys, "true")}, node=name)
                return
            except (RefusedError, OSError) as error:
                last = error
            except Exception as error:  # noqa: BLE001 - urllib3's many ways to fail
                last = OSError(str(error))
            time.sleep(pause)
        raise last

    def start_master(self, number: int) -> None:
        words = [sys.executable, "-m", "nfd", "master", "-config=", "-options", OPTIONS]
        words += ["-kubeconfig", str(self.plane.kubeconfig), "-enable-leader-election"]
        words += ["-port", str(free_port())]
        environment = {
            **os.environ,
            "KUBERNETES_NAMESPACE": self.space.name,
            "NODE_NAME": f"master-{number}",
        }
        with (self.plane.folder / f"master-{number}.log").open("ab") as log:
            self.masters.append(subprocess.Popen(words, env=environment, stderr=log))

    def events(self, seconds: float) -> Iterator[str]:
        """Yield what was done, until the time is over."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            yield self.draw.choice([self.relabel] * 40 + [self.break_something])()

    def relabel(self) -> str:
        name = f"n{self.draw.randrange(self.count)}"
        keys = set(self.draw.sample(KEYS, self.draw.randint(1, 4)))
        self.publish(name, {"keep", *keys})
        return "relabel"

    def break_something(self) -> str:
        what = self.draw.choice(
            [self.kill_server, self.restart_server, self.freeze, self.swap_master]
        )
        what()
        return what.__name__

    def kill_server(self) -> None:
        self.plane.restart_api_server(kill=True)

    def restart_server(self) -> None:
        self.plane.restart_api_server()

    def freeze(self) -> None:
        self.plane.pause("etcd")
        time.sleep(self.draw.uniform(1, 7))
        self.plane.resume("etcd")

    def swap_master(self) -> None:
        victim = self.masters.pop(self.draw.randrange(len(self.masters)))
        victim.send_signal(self.draw.choice([signal.SIGTERM, signal.SIGKILL]))
        victim.wait(30)
        self.start_master(len(self.masters) + self.draw.randrange(1000))

    def different(self) -> list[str]:
        return [
            name
            for name, keys in self.labels.items()
            if set(self.space.labels(name)) != keys
        ]

    def stop(self) -> None:
        for process in self.masters:
            process.kill()
            process.wait()

    def removals(self) -> Iterator[tuple[float, str, str]]:
        """Yield time, node and short key of each removal that the audit log shows."""
        for event in self.plane.audit_events(agent="nfd-master/", verb="patch"):
            if event["objectRef"]["resource"] != "nodes":
                continue
            if event.get("responseStatus", {}).get("code") != 200:
                continue
            when = _seconds(event["stageTimestamp"])
            for op in event.get("requestObject") or ():
                prefix = f"/metadata/labels/{FNS}~1"
                if op["op"] == "remove" and op["path"].startswith(prefix):
                    yield when, event["objectRef"]["name"], op["path"][len(prefix) :]


def _seconds(text: str) -> float:
    from datetime import datetime  # noqa: PLC0415 - one use

    return datetime.fromisoformat(text).timestamp()


def main() -> int:
    """Run; print what happened and the verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    done: dict[str, int] = {}
    with (
        tempfile.TemporaryDirectory(prefix="nfd-chaos-") as folder,
        ControlPlane(Path(folder)) as plane,
    ):
        plane.apply_files(*sorted((ROOT / "deploy" / "crds").glob("*.yaml")))
        space = Space(plane, "chaos")
        space.namespace()
        chaos = Chaos(space, options.nodes, random.Random(options.seed))
        try:
            chaos.fill()
            chaos.start_master(1)
            chaos.start_master(2)
            plane.wait_for(chaos.different, [], seconds=60)
            for what in chaos.events(options.seconds):
                done[what] = done.get(what, 0) + 1
            plane.wait_for(chaos.different, [], seconds=120)
            verdict = judge(chaos)
        finally:
            chaos.stop()
    print(json.dumps({"done": done, **verdict}, indent=2))
    return 1 if verdict["wrong"] else 0


def judge(chaos: Chaos) -> dict[str, Any]:
    """Hold every removal against what was wanted around its time."""
    removals = list(chaos.removals())
    wrong = [
        (node, key)
        for when, node, key in removals
        if chaos.truth.always_wanted(node, key, when - LATE, when)
    ]
    return {"removals": len(removals), "wrong": wrong, "nodes": chaos.count}


if __name__ == "__main__":
    sys.exit(main())
