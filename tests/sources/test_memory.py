"""The memory source."""

from pathlib import Path

import pytest

from nfd.source import NoSettings
from nfd_sources.memory import (
    HUGE,
    NUMA,
    NV,
    SWAP,
    MemorySource,
    has_swap,
    hugepage_size,
)
from tests.sources.roots import failing, make_root

SETTINGS = NoSettings()
NODES = "/sys/bus/node/devices"
PAGES = "/sys/kernel/mm/hugepages"
HEADER = "Filename\tType\tSize\tUsed\tPriority\n"


@pytest.mark.parametrize(
    ("swaps", "expected"),
    [
        (HEADER, False),
        (HEADER + "\n", False),
        (HEADER + "/dev/sda2 partition 1048572 0 -2\n", True),
        ("", False),
    ],
)
def test_swap(swaps: str, expected: bool) -> None:  # noqa: FBT001 - a table
    """Case H03."""
    assert expected == has_swap(swaps)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hugepages-2048kB", "2Mi"),
        ("hugepages-1048576kB", "1Gi"),
        ("hugepages-64kB", "64Ki"),
        ("hugepages-524288kB", "512Mi"),
        ("hugepages-16777216kB", "16Gi"),
        ("hugepages-1000kB", "1000Ki"),
        ("hugepages-0kB", "0"),
        ("hugepages-x", None),
        ("demote", None),
    ],
)
def test_hugepage_size(name: str, expected: str | None) -> None:
    assert expected == hugepage_size(name)


def test_nothing_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    features = MemorySource().discover(make_root(tmp_path, {}), SETTINGS)

    assert features.attributes == {HUGE: {"enabled": "false"}}
    assert features.instances == {NV: ()}
    assert not features.unknown
    assert not caplog.records


def test_hugepages(tmp_path: Path) -> None:
    host = make_root(
        tmp_path,
        {
            f"{PAGES}/hugepages-1048576kB/nr_hugepages": "2\n",
            f"{PAGES}/hugepages-2048kB/nr_hugepages": "0\n",
            f"{PAGES}/hugepages-64kB": None,
            f"{PAGES}/hugepages-32kB": "a file\n",
        },
    )

    assert MemorySource().discover(host, SETTINGS).attributes[HUGE] == {
        "enabled": "true",
        "hugepages-1Gi": "2",
        "hugepages-2Mi": "0",
        "hugepages-64Ki": "",
    }


def test_unreadable_count_leaves_enabled_open(tmp_path: Path) -> None:
    root = make_root(
        tmp_path,
        {
            f"{PAGES}/hugepages-1048576kB/nr_hugepages": "2\n",
            f"{PAGES}/hugepages-2048kB/nr_hugepages": "0\n",
        },
    )
    bad = f"{PAGES}/hugepages-1048576kB/nr_hugepages"
    features = MemorySource().discover(failing(root, bad), SETTINGS)

    assert features.attributes[HUGE] == {"hugepages-2Mi": "0"}
    assert {HUGE} == features.unknown.keys()


@pytest.mark.parametrize(
    ("cpulists", "expected"),
    [
        (["0-3"], "false"),
        (["0-3", "4-7"], "true"),
        (["0-3", ""], "false"),  # a node of memory alone
        (["0-3", None], "true"),  # a node of which the kernel does not say
    ],
)
def test_numa(tmp_path: Path, cpulists: list[str | None], expected: str) -> None:
    files: dict[str, str | None] = {}
    for number, cpus in enumerate(cpulists):
        files[f"{NODES}/node{number}"] = None
        if cpus is not None:
            files[f"{NODES}/node{number}/cpulist"] = f"{cpus}\n"
    source = MemorySource()
    features = source.discover(make_root(tmp_path, files), SETTINGS)

    assert {
        "node_count": str(len(cpulists)),
        "is_numa": expected,
    } == features.attributes[NUMA]
    assert (expected == "true") == ("numa" in source.labels(features, SETTINGS))


def test_unreadable_node_leaves_numa_open(tmp_path: Path) -> None:
    root = make_root(
        tmp_path,
        {f"{NODES}/node0/cpulist": "0\n", f"{NODES}/node1/cpulist": "1\n"},
    )
    features = MemorySource().discover(
        failing(root, f"{NODES}/node1/cpulist"), SETTINGS
    )

    assert features.attributes[NUMA] == {"node_count": "2"}
    assert {NUMA} == features.unknown.keys()


def test_unreadable_set_is_unknown_and_the_others_stay(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"/proc/swaps": HEADER, f"{NODES}/node0/cpulist": "0\n"})
    features = MemorySource().discover(failing(root, "/proc/swaps"), SETTINGS)

    assert SWAP not in features.attributes
    assert {SWAP} == features.unknown.keys()
    assert NUMA in features.attributes


def test_labels_of_nvdimms_and_swap(tmp_path: Path) -> None:
    source = MemorySource()
    devices = "/sys/bus/nd/devices"
    root = make_root(
        tmp_path,
        {
            f"{devices}/dax0.0/devtype": "nd_dax\n",
            f"{devices}/region0/devtype": "nd_pmem\n",
            "/proc/swaps": f"{HEADER}/dev/zram0 partition 1 0 100\n",
        },
    )
    features = source.discover(root, SETTINGS)

    assert tuple(d["name"] for d in features.instances[NV]) == ("dax0.0", "region0")
    assert {"nv.present", "nv.dax", "swap"} == source.labels(features, SETTINGS).keys()
    assert "no /sys/bus/node" in source.why_not("numa", features, SETTINGS)
