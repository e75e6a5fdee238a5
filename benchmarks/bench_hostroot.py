"""PCI discovery in process against a C program that makes the same system calls.

Prints the best processor time of each, and their ratio beside the budget, for 50, 500 and 2,000
generated devices read as a sysfs (files known to be regular, links trusted) and as a
captured folder (each file is looked at with fstat and no link is trusted: no budget), and
for this machine's own devices. A real sysfs opens files two to three times slower than the
tmpfs or disk that holds the generated tree, so the live ratio is the better one.
Run: `python benchmarks/bench_hostroot.py`; needs a C compiler.
"""

import os
import shutil
import subprocess  # noqa: TID251 - a benchmark runs its yardstick
import sys
import tempfile
import time

from nfd.hostroot import HostRoot
from nfd.hostroot.disk import SysfsTree
from nfd_sources.pci import DEVICES, PciSettings, PciSource

COUNTS = (50, 500, 2000)
BUDGET = 2.0  # times C
ROUNDS = 5  # in each turn
TURNS = 5
HERE = os.path.dirname(os.path.abspath(__file__))


def make_tree(root: str, count: int) -> None:
    """Write `count` PCI devices as sysfs has them, every fourth with SR-IOV."""
    bus = f"{root}/sys/bus/pci/devices"
    os.makedirs(bus)
    for number in range(count):
        address = f"0000:{number >> 8:02x}:{number >> 3 & 31:02x}.{number & 7}"
        device = f"{root}/sys/devices/pci0000:00/{address}"
        os.makedirs(f"{device}/iommu_group")
        values = {
            "class": "0x030200",
            "vendor": "0x10de",
            "device": "0x20b0",
            "subsystem_vendor": "0x10de",
            "subsystem_device": "0x134f",
            "numa_node": "1",
            "iommu_group/type": "DMA",
        }
        if number % 4 == 0:
            values["sriov_totalvfs"] = "16"
        for name, value in values.items():
            with open(f"{device}/{name}", "w", encoding="ascii") as file:
                file.write(f"{value}\n")
        os.symlink("../../../bus/pci/drivers/nvidia", f"{device}/driver")
        os.symlink(f"../../../devices/pci0000:00/{address}", f"{bus}/{address}")


def as_sysfs(root: str) -> HostRoot:
    """Read the tree as a mounted sysfs: files known to be regular, links trusted.

    A generated tree cannot be a sysfs, so the detection is bypassed here.
    """
    host = HostRoot(root)
    host._tree.close()  # noqa: SLF001 - see above
    host._tree = SysfsTree(f"{root}/sys")  # noqa: SLF001
    return host


def best_of_python(host: HostRoot) -> float:
    """Return the processor seconds of the fastest of some discoveries."""
    source = PciSource()
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        source.discover(host, PciSettings())
        best = min(best, time.process_time() - start)
    return best


def best_of_c(program: str, root: str) -> float:
    """Return the processor seconds of the fastest of some runs of the C program."""
    answer = subprocess.run(
        [program, root + DEVICES, str(ROUNDS)],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(answer.stdout.split()[0]) / 1e9


def measure(program: str, root: str, host: HostRoot, kind: str) -> bool:
    """Measure both in turn, so that both see the same noise, and print one row.

    Tells whether a budget was missed.
    """
    ours = theirs = float("inf")
    with host:
        count = len(host.listdir(DEVICES))
        for _ in range(TURNS):
            theirs = min(theirs, best_of_c(program, root))
            ours = min(ours, best_of_python(host))
    missed = kind != "folder" and ours / theirs > BUDGET
    verdict = "" if kind == "folder" else f"<= {BUDGET:.1f}"
    verdict += "  MISSED" if missed else ""
    print(
        f"{count:7d} {kind:8s} {theirs * 1e3:7.2f}ms {ours * 1e3:7.2f}ms"
        f" {ours / theirs:6.2f}  {verdict}".rstrip()
    )
    return missed


def main() -> int:
    """Measure and print; 1 when a budget is missed, 0 without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        print("skipped: there is no C compiler")
        return 0
    missed = False
    with tempfile.TemporaryDirectory(prefix="nfd-bench-") as folder:
        program = f"{folder}/pci_read"
        subprocess.run(
            [compiler, "-O2", "-o", program, f"{HERE}/pci_read.c"], check=True
        )
        print("PCI discovery, best of", ROUNDS * TURNS)
        print("devices read as          C    python  ratio  budget")
        for count in COUNTS:
            root = f"{folder}/{count}"
            make_tree(root, count)
            missed |= measure(program, root, as_sysfs(root), "sysfs")
            missed |= measure(program, root, HostRoot(root), "folder")
        if os.path.isdir(DEVICES):
            missed |= measure(program, "", HostRoot("/"), "live /")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
