"""The shared captures against the answers recorded beside them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd_sources.cpu import CpuSettings, CpuSource
from tests.sources.cpu.shared import SHARED, need

CAPTURES = sorted(
    path.name.removesuffix(".upstream.json")
    for path in (SHARED / "hosts/expected").glob("*.upstream.json")
)
# Upstream looks for CPUs on the cpu bus only, which these captures lack; on a live
# host it is always there.
NO_CPU_BUS = {
    *("loongarch64-3a5000", "ppc64-power7-8node", "riscv64-visionfive2"),
    *("s390x-lpar-drawer", "x86-amd-ryzen1600-desktop"),
    *("x86-dell-r740xd-2s-skylake", "x86-dell-r910-ib-numa", "x86-pmem-2s-6node"),
    *("x86-thinkpad-fullsys", "x86-vm-gpu-accel", "x86-vm-sosreport-focal"),
}


@pytest.fixture(scope="module")
def discovered() -> Callable[[str], Features]:
    """Return a function that discovers a capture, once."""
    done: dict[str, Features] = {}

    def discover(name: str) -> Features:
        if name not in done:
            archive = need(f"hosts/{name}.tar.xz")
            with HostRoot.open(str(archive)) as host:
                done[name] = CpuSource().discover(host, CpuSettings())
        return done[name]

    return discover


def expected(name: str, kind: str) -> dict[str, Any]:
    """Return one of the recorded answers of a capture."""
    path: Path = need(f"hosts/expected/{name}.{kind}.json")
    answer: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return answer


def test_all_captures_are_looked_at() -> None:
    """An empty list would prove nothing."""
    need("hosts/expected")

    assert len(CAPTURES) == 21


@pytest.mark.parametrize("name", CAPTURES)
def test_features_equal_upstreams(
    name: str, discovered: Callable[[str], Features]
) -> None:
    """Each cpu set that upstream's answer holds is equal, but for what we add."""
    answer = Features.from_spec(expected(name, "upstream")["features"]).attributes
    ours = discovered(name).attributes
    added = {"cpu.topology"} if name in NO_CPU_BUS else set()
    theirs = {k: v for k, v in answer.items() if k.startswith("cpu.")}

    assert theirs.keys() <= ours.keys()
    for key in theirs.keys() - added:
        assert theirs[key] == ours[key]
    assert discovered(name).unknown == {}


@pytest.mark.parametrize("name", CAPTURES)
def test_labels_hold_upstreams(
    name: str, discovered: Callable[[str], Features]
) -> None:
    """Every cpu label of upstream's answer is there with its value."""
    prefix = "feature.node.kubernetes.io/cpu-"
    answer = expected(name, "upstream")["labels"]
    theirs = {
        key.removeprefix(prefix): value
        for key, value in answer.items()
        if key.startswith(prefix)
    }
    made = CpuSource().labels(discovered(name), CpuSettings())
    ours = {k: v if isinstance(v, str) else v.value for k, v in made.items()}

    assert theirs.items() <= ours.items()


@pytest.mark.parametrize("name", CAPTURES)
def test_topology_equals_the_facts(
    name: str, discovered: Callable[[str], Features]
) -> None:
    """Threads and sockets are those that an independent script counted."""
    facts = expected(name, "facts").get("cpu") or {}
    ours = discovered(name).attributes["cpu.topology"]

    assert (facts.get("packages") or 0) == int(ours.get("socket_count", "0"))
    told = ours.get("hardware_multithreading", "false")
    assert bool(facts.get("multithreading")) == (told == "true")


MODELS = {
    "arm64-hpe-rl300-altra": ("ARM", "63", "53441", "none"),
    "arm64-huawei-xa320-128c": ("VendorUnknown", "31", "53264", "none"),
    "loongarch64-3a5000": ("Loongson", "Loongson-64bit", "Loongson-3A5000-HV", None),
    "riscv64-visionfive2": ("0x489", "0x8000000000000007", "0x4210427", None),
    "s390x-lpar-drawer": ("IBM_S390", "001234", "2964", "none"),
    "x86-amd-ryzen1600-desktop": ("AMD", "23", "1", "none"),
    "x86-dell-r815-opteron-cpuid": ("AMD", "21", "1", "none"),
    "x86-raptorlake-hybrid": ("Intel", "6", "186", "none"),
    "x86-vm-gpu-accel": ("Intel", "6", "85", "unknown"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, discovered: Callable[[str], Features]) -> None:
    """The model is told from what the capture has, on every architecture."""
    model = discovered(name).attributes["cpu.model"]

    assert MODELS[name] == tuple(
        model.get(element) for element in ("vendor_id", "family", "id", "hypervisor")
    )


def test_a_recorded_dump_beats_cpuinfo(discovered: Callable[[str], Features]) -> None:
    """The capture with a CPUID dump has flags that cpuinfo has no words for."""
    flags = discovered("x86-dell-r815-opteron-cpuid").flags["cpu.cpuid"]

    assert {"IBSFFV", "X86_64_V2", "XOP"} <= flags
    assert "X86_64_V3" not in flags


@pytest.mark.parametrize(
    "name", ["x86-block-lvm", "x86-lsmem-16g", "x86-nvidia-dgx-a100"]
)
def test_no_flags_where_nothing_tells(
    name: str, discovered: Callable[[str], Features]
) -> None:
    """Without CPUID and cpuinfo the flags are absent, and not the scanner's own."""
    features = discovered(name)

    assert "cpu.cpuid" not in features.flags
    assert "cpu.model" not in features.attributes
