"""The whole GPU walk on a real control plane: `make walk`, `python -m tests.cluster.walk`.

From nodes without a label to pods that get GPUs, then everything that happens to a
cluster later. Each step prints what was seen and how long it took; a step that does
not come out ends the walk. `docs/walkthrough.md` tells the story.
"""

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from nfd.autoscaler import STARTUP_TAINT, taint_plain
from tests.cluster import walk_objects as objects
from tests.cluster.binaries import UnavailableError
from tests.cluster.controlplane import ControlPlane, StartError
from tests.cluster.kubelets import Kubelets
from tests.cluster.walk_objects import BITFUSION, GPU, GPU_LABEL, NAMESPACE, PRODUCT
from tests.cluster.walk_site import Site, as_list, changes
from tests.deploy.chart import ROOT

NODES = {  # worker node: the recorded host that it is
    "worker-1": "gpu-server-a100",
    "worker-2": "ppc64le-power9",
    "worker-3": "hybrid-laptop",
    "worker-4": "mi300x-server",
    "worker-5": "vm-without-gpu",
    "worker-6": "nvidia-audio-desktop",
}
WITH_GPU = ["worker-1", "worker-2", "worker-3"]
NEW = "worker-7"
CONTROL_PLANE = ["control-plane-1", "control-plane-2", "control-plane-3"]
IN = f"--namespace={NAMESPACE}"


@attrs.define
class Walk:
    """One walk: a cluster, and somebody to tell.

    Args:
        site: of a control plane that runs, with the CRDs applied.
        say: gets every line.
    """

    site: Site
    say: Callable[[str], None]
    before: dict[str, Any] = attrs.field(init=False, factory=dict)
    step_started: float = attrs.field(init=False, default=0.0)

    @property
    def kubelets(self) -> Kubelets:
        """What runs the programs of the pods."""
        return self.site.kubelets

    def run(self) -> None:
        """Walk; raises what is not as it should be."""
        try:
            self.set_up()
            self.labels_appear()
            self.operator_lands()
            self.gpus_are_given_out()
            self.node_joins()
            self.gpu_is_pulled()
            self.driver_fails()
            self.nothing_shakes_it()
            self.uninstalled()
        finally:
            self.kubelets.stop()

    def set_up(self) -> None:
        """Nine nodes, none of them labelled."""
        site = self.site
        with self.step("-", "3 control-plane and 6 worker nodes, the chart applied"):
            for name in CONTROL_PLANE:
                site.make_node(objects.node(name, control_plane=True))
            for name, host in NODES.items():
                site.make_host(name, host)
                site.make_node(objects.node(name))
            site.plane.service_account(NAMESPACE, "default")
            self.kubelets.until(site.settled)
            self.before = site.all_nodes()
            site.apply([objects.runtime_class()])
            site.apply(site.release())
            self.kubelets.wait(partial(self.kubelets.count, "nfd-worker"), len(NODES))

    def labels_appear(self) -> None:
        """a. Labels on exactly the right nodes."""
        site = self.site
        with self.step("a", f"{GPU_LABEL} on exactly {', '.join(WITH_GPU)}"):
            for node, host in NODES.items():
                started = self.kubelets.find("nfd-worker", node).started
                wanted = site.expected_labels(node)
                seen = self.kubelets.wait(partial(site.labels_of, node), wanted)
                self.tell(
                    f"{node} ({host}): {len(wanted)} labels, "
                    f"{seen - started:.1f} s after the worker's start"
                )
            assert site.labelled(GPU_LABEL) == WITH_GPU
            assert not any(site.labels_of(name) for name in CONTROL_PLANE)
            for node in WITH_GPU:
                self.kubelets.wait(partial(site.label, node, PRODUCT), objects.MODEL)
            self.tell(f"{PRODUCT} of gpu-feature-discovery on the same nodes")

    def operator_lands(self) -> None:
        """b. As many pods of each DaemonSet as labelled nodes."""
        with self.step("b", "an operator's DaemonSets select by the label"):
            self.site.apply(objects.operator())
            self.wait_operator(WITH_GPU)
            self.tell(f"{len(objects.OPERANDS)} DaemonSets on {len(WITH_GPU)} nodes")

    def gpus_are_given_out(self) -> None:
        """c. Extended resources by rule; pods take them until there are none."""
        site = self.site
        with self.step("c", f"{GPU} and {BITFUSION} by rule, one notebook a GPU"):
            site.apply([objects.rule()])
            gpus = {node: site.count_gpus(node) for node in WITH_GPU}
            for node, count in gpus.items():
                wanted = {GPU: str(count), BITFUSION: str(10 * count)}
                for part in ("capacity", "allocatable"):
                    self.kubelets.wait(partial(site.resources, node, part), wanted)
            total = sum(gpus.values())
            site.apply([objects.notebooks(total + 2)])
            self.kubelets.wait(site.notebooks, {"Running": total, "Pending": 2})
            self.kubelets.wait(
                lambda: sum(f"Insufficient {GPU}" in text for text in site.excuses()), 2
            )
            self.tell(f"{total} of {total + 2} run; 2 are Pending: Insufficient {GPU}")

    def node_joins(self) -> None:
        """d. A new GPU node is used within seconds."""
        site = self.site
        with self.step("d", f"{NEW} joins with the start-up taint, as autoscalers do"):
            site.make_host(NEW, "gpu-server-a100")
            running = site.notebooks()["Running"]
            site.make_node(objects.node(NEW, taints=[taint_plain(STARTUP_TAINT)]))
            self.kubelets.until(lambda: self.kubelets.has("nfd-worker", NEW))
            started = self.kubelets.find("nfd-worker", NEW).started
            for what, look in {
                "labelled": lambda: NEW in site.labelled(GPU_LABEL),
                f"{GPU} allocatable": lambda: GPU in site.resources(NEW),
                "taint lifted": lambda: STARTUP_TAINT.key not in site.taints(NEW),
                "pending pods run": lambda: (
                    site.notebooks() == {"Running": running + 2}
                ),
            }.items():
                seconds = self.kubelets.until(look) - started
                self.tell(
                    f"{what}: {seconds:.1f} s after the worker's start (target 3)"
                )

    def gpu_is_pulled(self) -> None:
        """e. A fact that is gone takes its labels along."""
        site = self.site
        with self.step("e", "a GPU is pulled on worker-3"):
            mark = site.audit_mark()
            site.pull_gpus("worker-3")
            self.kubelets.until(lambda: "worker-3" not in site.labelled(GPU_LABEL))
            self.wait_operator(["worker-1", "worker-2", NEW])
            self.kubelets.wait(partial(site.resources, "worker-3"), {})
            self.kubelets.until(
                lambda: not self.kubelets.has("gpu-feature-discovery", "worker-3")
            )
            left = site.expected_labels("worker-3", "nvidia.com/")
            self.kubelets.wait(partial(site.labels_of, "worker-3", "nvidia.com/"), left)
            lost = site.removals(since=mark)
            assert lost
            assert all(line.startswith("worker-3: ") for line in lost), lost
            assert all("10de" in line or "nvidia.com/" in line for line in lost), lost
            self.tell(f"{len(lost)} labels gone, the operator's pods left")

    def driver_fails(self) -> None:
        """e. A failure takes nothing along: neither NVML's nor sysfs'."""
        site = self.site
        with self.step("e", "worker-1 loses its driver library, worker-4 its PCI bus"):
            before, mark = site.all_nodes(), site.audit_mark()
            site.driver("worker-1").unlink()
            site.devices("worker-4").chmod(0)
            gfd = self.kubelets.find("gpu-feature-discovery", "worker-1")
            self.kubelets.until(lambda: "NVML cannot be asked" in gfd.program.tail())
            self.kubelets.until(lambda: "pci" in site.stale_sources("worker-4"))
            self.tell("reported: NVML cannot be asked; pci stale")
            gone = changes(before, site.all_nodes(), only_gone=True)
            assert not gone, gone
            assert site.removals(since=mark) == []
            self.wait_operator(["worker-1", "worker-2", NEW])
            self.tell("nothing gone from any node")
            site.install_driver("worker-1")
            site.devices("worker-4").chmod(0o755)
            self.kubelets.until(lambda: "pci" not in site.stale_sources("worker-4"))

    def nothing_shakes_it(self) -> None:
        """f. Whatever happens to us, no node loses a label."""
        site, kubelets = self.site, self.kubelets
        with self.step("f", "workers, master and API server go and come back"):
            mark = site.audit_mark()
            name = site.worker_daemon_set()
            site.kubectl("delete", "daemonset", name, IN)
            kubelets.wait(partial(kubelets.count, "nfd-worker"), 0)
            site.apply(site.release())
            kubelets.wait(partial(kubelets.count, "nfd-worker"), len(NODES) + 1)
            self.tell("worker DaemonSet deleted and made again")
            site.kubectl("rollout", "restart", f"daemonset/{name}", IN)
            kubelets.until(partial(site.rolled_out, name, len(NODES) + 1), seconds=120)
            self.tell("workers updated one by one")
            old = kubelets.find("nfd-master").pod
            site.kubectl("delete", "pod", old, IN)
            kubelets.until(
                lambda: (
                    kubelets.count("nfd-master") == 1
                    and kubelets.find("nfd-master").pod != old
                )
            )
            self.tell("master restarted")
            site.plane.restart_api_server(kill=True)
            self.tell("API server killed and started again")
            site.put_gpus_back("worker-3")
            kubelets.until(lambda: "worker-3" in site.labelled(GPU_LABEL))
            kubelets.until(lambda: GPU in site.resources("worker-3"))
            self.tell("worker-3 has its GPU again, so everybody is at work")
            lost = site.removals(since=mark)
            assert not lost, lost
            self.tell("label removals in the audit log: 0")
            assert kubelets.restarted == []
            self.tell("none of our programs has ended by itself")

    def uninstalled(self) -> None:
        """g. Uninstalling takes nothing; pruning takes exactly what was ours."""
        site = self.site
        with self.step("g", "uninstalled without prune, then with it"):
            labelled, mark = site.all_nodes(), site.audit_mark()
            site.kubectl("delete", "-f", "-", stdin=as_list(site.release()))
            self.kubelets.wait(self.kubelets.count, 0)
            gone = changes(labelled, site.all_nodes(), only_gone=True)
            assert not gone, gone
            assert site.removals(since=mark) == []
            self.tell("without prune: everything is still there")
            site.apply(site.release(hooks=True))
            self.kubelets.until(site.pruned)
            site.plane.admin.delete(f"/api/v1/nodes/{NEW}")
            self.kubelets.wait(lambda: changes(self.before, site.all_nodes()), [])
            self.tell("with prune: the nodes are as they were before")

    def wait_operator(self, nodes: list[str]) -> None:
        """Wait until every DaemonSet of the operator runs on these nodes."""
        for name in objects.OPERANDS:
            self.kubelets.wait(partial(self.site.on_nodes, name), nodes)

    def tell(self, line: str) -> None:
        """Tell a part of a step, and when it was seen."""
        self.say(f"{time.monotonic() - self.step_started:7.1f} s  {line}")

    @contextmanager
    def step(self, letter: str, what: str) -> Iterator[None]:
        """Tell a step before and after."""
        self.say(f"{letter}.  {what}")
        self.step_started = time.monotonic()
        yield
        self.tell("done")


def main() -> int:
    """Walk; exit 1 where a step does not come out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="keep keys, data and logs there")
    options = parser.parse_args()
    started = time.monotonic()
    temporary = tempfile.TemporaryDirectory(prefix="nfd-walk-")
    with nullcontext(options.folder) if options.folder else temporary as name:
        folder = Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        plane = ControlPlane(
            folder / "plane", controller_manager=True, scheduler=True, kwok=True
        )
        try:
            with plane:
                plane.apply_files(*sorted((ROOT / "deploy" / "crds").glob("*.yaml")))
                _say(f"control plane up after {time.monotonic() - started:.1f} s")
                Walk(Site(plane, folder), _say).run()
        except (AssertionError, StartError, UnavailableError):
            traceback.print_exc()
            return 1
    _say(f"walked in {time.monotonic() - started:.0f} s")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
