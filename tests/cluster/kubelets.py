"""Runs the programs of pods, as the kubelets of kwok's Nodes would.

kwok only says that pods run. For the pods of one namespace this starts what they say:
the command of their container with its arguments and environment, a token bound to the
pod, the ConfigMap it mounts, and the recorded host of its Node in the place of the
mounted folders. What cannot be played here is named in `docs/walkthrough.md`.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from tests.cluster.controlplane import POLL_SECONDS, ControlPlane
from tests.cluster.processes import Program

FEATURES_D = "etc/kubernetes/node-feature-discovery/features.d"
START = "import sys; from nfd.cli.{module} import main; sys.exit(main())"
MODULES = {
    "nfd-worker": "worker",
    "nfd-master": "master",
    "gpu-feature-discovery": "gfd",
}
# NVML is asked on the running machine only: the recorded host is to be taken for it.
LIVE = (
    "from functools import partial; from nfd.hostroot import HostRoot; "
    "HostRoot.open = partial(HostRoot.open, live=True); "
)


@attrs.define
class Running:
    """One pod's program, and when it was started (monotonic seconds)."""

    pod: str
    node: str
    command: str
    program: Program
    started: float


@attrs.define
class Kubelets:
    """The programs of one namespace's pods, known by the pods' UIDs.

    Args:
        plane: a control plane with kwok.
        folder: for configuration and logs.
        namespace: whose pods have programs.
        hosts: Node name to the root of its recorded host.
    """

    plane: ControlPlane
    folder: Path
    namespace: str
    hosts: dict[str, Path]
    running: dict[str, Running] = attrs.field(factory=dict)
    restarted: list[str] = attrs.field(factory=list)  # pods whose program had ended

    def sync(self) -> None:
        """Start and stop programs so that they are those of the pods of now."""
        pods = {pod["metadata"]["uid"]: pod for pod in self.pods()}
        for uid in [uid for uid in self.running if uid not in pods]:
            self.running.pop(uid).program.stop()
        for uid, pod in pods.items():
            if uid not in self.running:
                self.running[uid] = self._start(pod)
            elif pod["spec"]["restartPolicy"] == "Never":
                self._finish(pod, self.running[uid].program)
            elif not self.running[uid].program.running:
                self.restarted.append(self.running[uid].pod)
                self.running[uid].program.start()

    def stop(self) -> None:
        """Stop every program."""
        for each in self.running.values():
            each.program.stop()
        self.running.clear()

    def pods(self) -> list[dict[str, Any]]:
        """Return the pods that have a Node and have not ended."""
        listed = self.plane.admin.get(f"/api/v1/namespaces/{self.namespace}/pods")
        return [
            pod
            for pod in listed["items"]
            if pod["spec"].get("nodeName")
            and pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def wait(
        self, look: Callable[[], Any], wanted: Any, *, seconds: float = 60
    ) -> float:
        """Sync until what is seen equals `wanted`; return when (monotonic seconds)."""
        until = time.monotonic() + seconds
        while (seen := look()) != wanted:
            if time.monotonic() > until:
                raise AssertionError(
                    f"wanted {wanted!r}, after {seconds} s: {seen!r}\n{self.tails()}"
                )
            self.sync()
            time.sleep(POLL_SECONDS)
        return time.monotonic()

    def until(self, look: Callable[[], bool], *, seconds: float = 60) -> float:
        """Sync until `look` says yes; return when (monotonic seconds)."""
        return self.wait(look, wanted=True, seconds=seconds)

    def has(self, command: str, node: str) -> bool:
        """Whether a command runs on a Node."""
        return any(
            each.command == command and each.node == node
            for each in self.running.values()
        )

    def count(self, command: str = "") -> int:
        """Return how many programs run, of a command or at all."""
        return sum(command in ("", each.command) for each in self.running.values())

    def find(self, command: str, node: str = "") -> Running:
        """Return the newest running program of a command, on a Node."""
        found = [
            each
            for each in self.running.values()
            if each.command == command and node in ("", each.node)
        ]
        return max(found, key=lambda each: each.started)

    def tails(self) -> str:
        """Return the ends of all logs."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(
            f"--- {log.name}\n" + "\n".join(log.read_text().splitlines()[-8:])
            for log in logs
        )

    def _start(self, pod: Mapping[str, Any]) -> Running:
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        (container,) = pod["spec"]["containers"]
        (command,) = container["command"]
        arguments = [*container.get("args", ()), *self._more(pod, command)]
        code = START.format(module=MODULES[command])
        environment = _environment(pod, container)
        if command == "gpu-feature-discovery":
            driver = self.hosts[node] / "usr/lib64"
            code = LIVE + code
            environment |= {
                "NFD_HOST_ROOT": str(self.hosts[node]),
                "NVMLSTUB": str(driver / "description"),
            }
        program = Program(
            name,
            [*_unprivileged(), sys.executable, "-c", code, *arguments],
            self.folder / f"{name}.log",
            environment | {"KUBERNETES_NAMESPACE": self.namespace},
        )
        program.start()
        return Running(name, node, command, program, time.monotonic())

    def _more(self, pod: Mapping[str, Any], command: str) -> list[str]:
        """Return arguments in the place of mounts; the last one of a name counts."""
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        if command == "gpu-feature-discovery":
            folder = self.hosts[node] / FEATURES_D
            folder.mkdir(parents=True, exist_ok=True)
            return [f"--output-file={folder / 'gfd'}", "--driver-root-ctr-path=/"]
        account = pod["spec"]["serviceAccountName"]
        token = self.plane.bound_token(self.namespace, account, name)
        arguments = [
            f"-kubeconfig={self.plane.token_kubeconfig(name, token)}",
            f"-config={self._config(pod, f'{command}.conf')}",
            "-port=0",
        ]
        if command == "nfd-worker":
            arguments.append(f"-root={self.hosts[node]}")
        return arguments

    def _config(self, pod: Mapping[str, Any], key: str) -> Path | str:
        """Write the ConfigMap that the pod mounts; "" when it mounts none."""
        for volume in pod["spec"].get("volumes", ()):
            if "configMap" not in volume:
                continue
            name = volume["configMap"]["name"]
            path = f"/api/v1/namespaces/{self.namespace}/configmaps/{name}"
            file = self.folder / f"{pod['metadata']['name']}.conf"
            file.write_text(self.plane.admin.get(path)["data"][key])
            return file
        return ""

    def _finish(self, pod: Mapping[str, Any], program: Program) -> None:
        """Tell that the pod of a Job is done."""
        if program.running:
            return
        phase = "Succeeded" if program.status == 0 else "Failed"
        self.plane.admin.patch(
            self.plane.admin.path_of({"apiVersion": "v1", "kind": "Pod", **pod})
            + "/status",
            {"status": {"phase": phase, "conditions": []}},
            content_type="application/merge-patch+json",
        )


def _unprivileged() -> list[str]:
    """Drop all capabilities, as the pods do, so that root too may be refused a file."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or setpriv is None:
        return []
    return [setpriv, "--bounding-set=-all", "--no-new-privs"]


def _environment(
    pod: Mapping[str, Any], container: Mapping[str, Any]
) -> dict[str, str]:
    found = {}
    for variable in container.get("env", ()):
        value: Any = variable.get("value", "")
        if "valueFrom" in variable:
            value = pod
            for part in variable["valueFrom"]["fieldRef"]["fieldPath"].split("."):
                value = value[part]
        found[variable["name"]] = value
    return found
