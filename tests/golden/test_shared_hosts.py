"""The captured machines beside the checkout, against recorded answers.

`NAME.upstream.json` is what upstream's worker published for the same tree,
`NAME.facts.json` what a separate small script counted in it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import attrs
import pytest

import nfd
from nfd.cli import main
from nfd.discovery import Discovery
from nfd.features import Features
from nfd.labels import FEATURE_NS

NAMES = (
    "arm64-hpe-rl300-altra",
    "arm64-huawei-xa320-128c",
    "loongarch64-3a5000",
    "ppc64-power7-8node",
    "ppc64le-ibm-power8",
    "riscv64-visionfive2",
    "s390x-lpar-drawer",
    "x86-amd-ryzen1600-desktop",
    "x86-block-lvm",
    "x86-dell-r740xd-2s-skylake",
    "x86-dell-r815-opteron-cpuid",
    "x86-dell-r910-ib-numa",
    "x86-dgx-station-dmi",
    "x86-hpe-dl360g9-sriov",
    "x86-lsmem-16g",
    "x86-nvidia-dgx-a100",
    "x86-pmem-2s-6node",
    "x86-raptorlake-hybrid",
    "x86-thinkpad-fullsys",
    "x86-vm-gpu-accel",
    "x86-vm-sosreport-focal",
)


@attrs.frozen(slots=True)
class Difference:
    """Where we mean to differ from upstream; both names are patterns."""

    what: str
    because: str
    host: str = "*"


# Every difference from upstream, and why. "DESIGN" is section 5 of the design.
DIFFERENCES = (
    Difference(
        "attributes/system.name/nodename",
        "a capture is no node; upstream ran with NODE_NAME set",
    ),
    *(
        Difference(
            what,
            "no sys/bus/cpu in the capture, or CPUs without topology; facts.json agrees",
            host,
        )
        for host in (
            "loongarch64-3a5000",
            "ppc64-power7-8node",
            "riscv64-visionfive2",
            "s390x-lpar-drawer",
            "x86-amd-ryzen1600-desktop",
            "x86-dell-r740xd-2s-skylake",
            "x86-dell-r910-ib-numa",
            "x86-pmem-2s-6node",
            "x86-thinkpad-fullsys",
            "x86-vm-gpu-accel",
            "x86-vm-sosreport-focal",
        )
        for what in ("attributes/cpu.topology/*", "labels/cpu-hardware_multithreading")
    ),
    Difference("instances/pci.device/address", "DESIGN: raw instances gain `address`"),
    Difference("instances/pci.device/driver", "DESIGN: raw instances gain `driver`"),
    Difference(
        "instances/pci.device/numa_node", "DESIGN: raw instances gain `numa_node`"
    ),
    *(
        Difference(
            "instances/pci.device",
            "DESIGN: devices without subsystem ids are kept",
            host,
        )
        for host in (
            "x86-amd-ryzen1600-desktop",
            "x86-dell-r740xd-2s-skylake",
            "x86-vm-gpu-accel",
        )
    ),
    Difference(
        "labels/pci-[0-9a-f][0-9a-f][0-9a-f][0-9a-f].*",
        "DESIGN: `pci-<vendor>` by default",
    ),
    Difference("labels/pci-02??_????.*", "DESIGN: class 02 by default"),
    Difference("labels/pci-0880_????.*", "DESIGN: class 0880 by default"),
    *(
        Difference(
            f"labels/pci-{device}.present",
            "DESIGN: devices without subsystem ids are kept",
            host,
        )
        for host, device in (
            ("x86-amd-ryzen1600-desktop", "0300_1002"),
            ("x86-dell-r740xd-2s-skylake", "0300_102b"),
            ("x86-vm-gpu-accel", "0300_1af4"),
            ("x86-vm-gpu-accel", "1200_1b36"),
        )
    ),
    *(
        Difference(what, "a source of ours", host)
        for host in ("x86-amd-ryzen1600-desktop", "x86-thinkpad-fullsys")
        for what in ("instances/amd.*", "labels/amd-gpu")
    ),
    Difference(
        "labels/storage-nonrotationaldisk",
        "DESIGN: zram is no disk",
        "x86-vm-gpu-accel",
    ),
)

GPU_OPERATOR = {
    "sources": {
        "pci": {
            "deviceClassWhitelist": ["02", "0200", "0207", "0300", "0302"],
            "deviceLabelFields": ["vendor"],
        }
    }
}
# The features that upstream took from the CPU it ran on, and so were left out.
OF_THE_RUNNING_CPU = re.compile(r"cpu\.(cpuid|model|rdt|sst)\b")
SECURITY_OF_THE_RUNNING_CPU = ("sgx.enabled", "sgx.epc", "tdx.protected")


class Capture:
    """One capture with our answers and the recorded ones."""

    def __init__(self, name: str, shared: Path) -> None:
        self.name = name
        expected = shared / "hosts" / "expected"
        with nfd.HostRoot.open(str(shared / "hosts" / f"{name}.tar.xz")) as host:
            self.found = nfd.scan(host)
            self.gpu_operator = nfd.scan(host, config=GPU_OPERATOR)
        self.features = self.found.features
        self.facts: dict[str, Any] = json.loads(
            (expected / f"{name}.facts.json").read_text(encoding="utf-8")
        )
        self.upstream: dict[str, Any] = json.loads(
            (expected / f"{name}.upstream.json").read_text(encoding="utf-8")
        )


@pytest.fixture(scope="module", params=NAMES)
def capture(request: pytest.FixtureRequest, shared_dir: Path) -> Capture:
    return Capture(request.param, shared_dir)


@pytest.fixture(scope="module")
def used() -> Iterator[set[Difference]]:
    """The differences met; each in the table must be, or it is stale."""
    met: set[Difference] = set()
    yield met
    stale = [d for d in DIFFERENCES if d not in met]

    assert not met or not stale


def allowed(capture: Capture, what: str, used: set[Difference]) -> bool:
    matching = {
        d
        for d in DIFFERENCES
        if fnmatchcase(what, d.what) and fnmatchcase(capture.name, d.host)
    }
    used |= matching
    return bool(matching)


def labels_of(found: Discovery, dropped: list[str]) -> dict[str, str]:
    """Return the labels without those made from features that were left out."""
    return {
        key.removeprefix(f"{FEATURE_NS}/"): label.value
        for key, label in found.labels.items()
        if not any(
            label.provenance.feature == feature for feature in dropped_features(dropped)
        )
        and label.provenance.element not in SECURITY_OF_THE_RUNNING_CPU
    }


def dropped_features(dropped: list[str]) -> list[str]:
    """Return the names of whole features in the list of what was left out."""
    return [text.partition(":")[0] for text in dropped if " elements " not in text]


def content(features: Features, dropped: list[str]) -> dict[str, Any]:
    """Return path to value of all features, without those that were left out."""
    left_out = dropped_features(dropped)
    flat: dict[str, Any] = {}
    for key, names in features.flags.items():
        flat |= {f"flags/{key}/{name}": True for name in names} | {f"flags/{key}": True}
    for key, elements in features.attributes.items():
        flat[f"attributes/{key}"] = True
        flat |= {f"attributes/{key}/{name}": v for name, v in elements.items()}
    for key, instances in features.instances.items():
        flat[f"instances/{key}"] = len(instances)
        for number, instance in enumerate(instances):
            flat |= {f"instances/{key}/{n}/{number}": v for n, v in instance.items()}
    return {
        path: value
        for path, value in flat.items()
        if path.split("/")[1] not in left_out
        and path.split("/")[2:] not in [[n] for n in SECURITY_OF_THE_RUNNING_CPU]
    }


def changed(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    return sorted(
        path for path in {*ours, *theirs} if ours.get(path) != theirs.get(path)
    )


def test_features_equal_upstream(capture: Capture, used: set[Difference]) -> None:
    dropped = capture.upstream["dropped"]
    ours = content(capture.features, dropped)
    theirs = content(Features.from_spec(capture.upstream["features"]), dropped)
    wrong = []
    counts_differ = set()
    for path in changed(ours, theirs):
        what = re.sub(r"^(instances/[^/]+/.+)/\d+$", r"\1", path)
        if path.count("/") == 1 and path.startswith("instances/"):
            counts_differ.add(path)
        if what.startswith(tuple(f"{c}/" for c in counts_differ)):
            continue  # the lists cannot be compared element by element
        if not allowed(capture, what, used):
            wrong.append(f"{path}: {ours.get(path)!r} not {theirs.get(path)!r}")

    assert not wrong


@pytest.mark.parametrize("kind", ["labels", "labels_gpu_operator"])
def test_labels_equal_upstream(
    capture: Capture, kind: str, used: set[Difference]
) -> None:
    found = capture.found if kind == "labels" else capture.gpu_operator
    ours = labels_of(found, capture.upstream["dropped"])
    theirs = {
        key.removeprefix(f"{FEATURE_NS}/"): value
        for key, value in capture.upstream[kind].items()
    }
    wrong = [
        f"{key}: {ours.get(key)!r} not {theirs.get(key)!r}"
        for key in changed(ours, theirs)
        if not allowed(capture, f"labels/{key}", used)
    ]

    assert not wrong


def test_all_sources_complete(capture: Capture) -> None:
    assert {r.status for r in capture.found.results.values()} <= {"ok", "absent"}
    assert not capture.features.unknown
    assert not capture.found.refused


def test_facts_of_pci(capture: Capture) -> None:
    facts = capture.facts.get("pci")
    if not facts:
        assert not capture.features.instances.get("pci.device")
        return
    devices = capture.features.instances["pci.device"]

    assert facts["count"] == len(devices)
    assert facts["by_class_vendor"] == Counter(
        f"{d['class']}_{d['vendor']}" for d in devices
    )
    assert facts["with_driver"] == sum("driver" in d for d in devices)
    assert facts["sriov_capable"] == [
        d["address"] for d in devices if "sriov_totalvfs" in d
    ]


def test_facts_of_block_devices(capture: Capture) -> None:
    facts = capture.facts.get("block")
    if not facts:
        assert not capture.features.instances.get("storage.block")
        return
    devices = capture.features.instances["storage.block"]

    assert facts == {d["name"]: without(d, "name") for d in devices}


def test_facts_of_interfaces(capture: Capture) -> None:
    facts = capture.facts.get("net")
    if not facts:
        assert not capture.features.instances.get("network.device")
        return
    instances = capture.features.instances
    found = (*instances["network.device"], *instances["network.virtual"])

    assert {
        name: without(values, "dangling", "virtual", "type")
        for name, values in facts.items()
    } == {i["name"]: without(i, "name") for i in found}
    # Some captures lost the links to the devices, none has one too many.
    assert all(not facts[i["name"]]["virtual"] for i in instances["network.device"])


def test_facts_of_memory(capture: Capture) -> None:
    attributes = capture.features.attributes
    numa = attributes.get("memory.numa")
    if numa:  # some captures have nodes, but not as devices of the bus
        facts = capture.facts["numa"]
        with_cpus = facts["nodes"] - len(facts["cpuless"])

        assert str(facts["nodes"]) == numa["node_count"]
        assert ("true" if with_cpus > 1 else "false") == numa["is_numa"]
    pages = capture.facts.get("hugepages", {})

    assert sorted(pages.values()) == sorted(
        without(attributes["memory.hugepages"], "enabled").values()
    )
    if "swaps" in capture.facts:
        expected = "true" if capture.facts["swaps"] else "false"

        assert {"enabled": expected} == attributes["memory.swap"]


def test_facts_of_system_and_kernel(capture: Capture) -> None:
    facts = capture.facts
    attributes = capture.features.attributes

    if "system.dmiid" in attributes:  # one capture has it in /sys/class only
        assert facts.get("dmi", {}).items() <= attributes["system.dmiid"].items()
    assert (
        facts.get("os_release", {}).items()
        <= attributes.get("system.osrelease", {}).items()
    )
    assert facts.get("osrelease") == attributes.get("kernel.version", {}).get("full")
    assert facts.get("modules", []) == sorted(
        capture.features.flags.get("kernel.loadedmodule", ())
    )


def test_facts_of_cpus(capture: Capture) -> None:
    topology = capture.features.attributes["cpu.topology"]
    facts = capture.facts.get("cpu", {"packages": 0})
    if not topology:
        assert facts["packages"] == 0
        return
    multithreading = "true" if facts["multithreading"] else "false"

    assert multithreading == topology["hardware_multithreading"]
    assert str(facts["packages"]) == topology["socket_count"]


def test_facts_of_usb(capture: Capture) -> None:
    devices = capture.features.instances["usb.device"]
    facts = capture.facts.get("usb_ids", [])

    assert {i.partition("_")[2] for i in facts} == {
        f"{d['vendor']}_{d['device']}" for d in devices
    }


@pytest.mark.parametrize(
    "name",
    [
        "amd-kfd",
        "cpuid-hwloc",
        "cpuid-libcpuid",
        "cpuinfo-archspec",
        "kernel-debian12-cloud",
    ],
)
def test_archives_that_are_no_hosts_scan_too(
    name: str, shared_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their folders lie where no source looks: nothing is found, nothing fails."""
    archive = shared_dir / "hosts" / f"{name}.tar.xz"

    assert main(["scan", "--root", str(archive), "--strict", "-o", "labels"]) == 0
    assert capsys.readouterr() == ("", "")


def test_captures_are_the_shared_ones(shared_dir: Path) -> None:
    expected = (shared_dir / "hosts" / "expected").glob("*.upstream.json")

    assert sorted(p.name.removesuffix(".upstream.json") for p in expected) == list(
        NAMES
    )


def without(values: dict[str, str] | Any, *names: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if name not in names}
