"""Threads, sockets, core types."""

from collections.abc import Callable

import pytest

from nfd_sources._reading import Gaps
from nfd_sources.cpu import processor, topology
from tests.sources.cpu.shared import SYSTEM, Tree


def cpus(
    siblings: list[str | None], packages: list[str | None], folder: str = "sys/bus/cpu"
) -> dict[str, str]:
    files = {}
    pairs = zip(siblings, packages, strict=True)
    for number, (threads, package) in enumerate(pairs):
        here = f"{folder}/devices/cpu{number}"
        files[f"{here}/uevent"] = ""
        if threads is not None:
            files[f"{here}/topology/thread_siblings_list"] = threads
        if package is not None:
            files[f"{here}/topology/physical_package_id"] = package
    return files


@pytest.mark.parametrize(
    ("siblings", "packages", "expected"),
    [
        # H08: four of eight CPUs are offline.
        (
            ["0", "1", "2", "3", None, None, None, None],
            ["0"] * 4 + [None] * 4,
            {"hardware_multithreading": "false", "socket_count": "1"},
        ),
        (
            ["0,2\n", "1,3\n", "0,2\n", "1,3\n"],
            ["0\n", "1\n", "0\n", "1\n"],
            {"hardware_multithreading": "true", "socket_count": "2"},
        ),
        (
            ["0-1", "0-1"],
            ["0", "0 "],
            {"hardware_multithreading": "true", "socket_count": "1"},
        ),
        (
            ["0", None, "2-3"],
            ["-1", None, "-1"],
            {"hardware_multithreading": "true", "socket_count": "1"},
        ),
        ([None], [None], {}),
        (["", "\n"], ["", None], {}),
        (["0"], [None], {"hardware_multithreading": "false"}),
        ([], [], {}),
    ],
)
def test_topology(
    tree: Tree,
    siblings: list[str | None],
    packages: list[str | None],
    expected: dict[str, str],
) -> None:
    """CPUs that are online decide, offline ones do not count."""
    gaps = Gaps()

    assert expected == topology.threads_and_sockets(
        tree(cpus(siblings, packages)), gaps
    )
    assert gaps.unknown == {}


def test_topology_of_captures_without_the_cpu_bus(tree: Tree) -> None:
    """Without sys/bus/cpu the devices themselves are looked at; others are not."""
    files = {
        f"{SYSTEM}/cpu0/topology/thread_siblings_list": "0,1",
        f"{SYSTEM}/cpu0/topology/physical_package_id": "3",
        f"{SYSTEM}/cpufreq/topology/physical_package_id": "4",
        f"{SYSTEM}/online": "0-1",
    }

    assert topology.threads_and_sockets(tree(files), Gaps()) == {
        "hardware_multithreading": "true",
        "socket_count": "1",
    }


@pytest.mark.parametrize(
    ("ending", "siblings", "expected", "unknown"),
    [
        ("cpu1/topology/thread_siblings_list", "0", {"socket_count": "1"}, True),
        (
            "cpu1/topology/thread_siblings_list",
            "0-1",
            {"hardware_multithreading": "true", "socket_count": "1"},
            False,
        ),
        (
            "cpu1/topology/physical_package_id",
            "0",
            {"hardware_multithreading": "false"},
            True,
        ),
    ],
)
def test_topology_that_is_not_wholly_readable(
    tree: Tree,
    broken: Callable[[str], None],
    ending: str,
    siblings: str,
    expected: dict[str, str],
    *,
    unknown: bool,
) -> None:
    """What a CPU with a read error could change is left out, and said."""
    host = tree(cpus([siblings, "1"], ["0", "0"]))
    gaps = Gaps()
    broken(ending)

    assert expected == topology.threads_and_sockets(host, gaps)
    assert unknown == ("cpu.topology" in gaps.unknown)


def test_core_types(tree: Tree, broken: Callable[[str], None]) -> None:
    """A hybrid processor has a device for each core type."""
    host = tree(
        {"sys/devices/cpu_core/cpus": "0-11", "sys/devices/cpu_atom/cpus": "12-19"}
    )
    gaps = Gaps()

    assert {"cpu_core", "cpu_atom"} == topology.core_types(host, gaps)
    broken("cpu_atom/cpus")
    assert {"cpu_core"} == topology.core_types(host, gaps)
    assert list(gaps.unknown) == ["cpu.hybrid"]


def test_midr_of_the_first_cpu_that_shows_it(tree: Tree) -> None:
    """Offline CPUs show no register; the order of numbers counts, not of letters."""
    files = {
        f"{SYSTEM}/cpu0/uevent": "",
        f"{SYSTEM}/cpu10/regs/identification/midr_el1": "0x00000000410fd0c0\n",
        f"{SYSTEM}/cpu2/regs/identification/midr_el1": "0x00000000c00fac31\n",
        "proc/cpuinfo": "Features : fp cpuid\n",
    }
    found = processor.identify(tree(files), "arm64", Gaps())

    assert found.model is not None
    assert found.model["vendor_id"] == "Ampere"
    assert frozenset({"FP", "CPUID"}) == found.flags
