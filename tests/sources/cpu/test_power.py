"""Idle and frequency control."""

from collections.abc import Callable

import pytest

from nfd_sources._reading import Gaps
from nfd_sources.cpu import power
from tests.sources.cpu.shared import SYSTEM, Tree

MAX_CSTATE = "sys/module/intel_idle/parameters/max_cstate"
DRIVER = f"{SYSTEM}/cpuidle/current_driver"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({f"{SYSTEM}/online": "0"}, {}),
        ({f"{SYSTEM}/cpuidle/current_governor": "menu"}, None),
        ({DRIVER: "acpi_idle\n"}, {}),
        ({DRIVER: "intel_idle\n"}, None),
        ({DRIVER: "intel_idle\n", MAX_CSTATE: "9\n"}, {"enabled": "true"}),
        ({DRIVER: "intel_idle", MAX_CSTATE: " 0 "}, {"enabled": "false"}),
        ({DRIVER: "intel_idle", MAX_CSTATE: "many"}, None),
    ],
)
def test_cstate(
    tree: Tree, files: dict[str, str], expected: dict[str, str] | None
) -> None:
    """Only intel_idle has states to tell; what is missing leaves the set absent."""
    gaps = Gaps()

    assert expected == power.cstate(tree(files), gaps)
    assert gaps.unknown == {}


def test_cstate_that_cannot_be_read(tree: Tree, broken: Callable[[str], None]) -> None:
    """A read error makes the set unknown, not absent."""
    host = tree({DRIVER: "intel_idle", MAX_CSTATE: "9"})
    gaps = Gaps()
    broken("max_cstate")

    assert power.cstate(host, gaps) is None
    assert list(gaps.unknown) == ["cpu.cstate"]


PSTATE = f"{SYSTEM}/intel_pstate"


def policies(*governors: tuple[str, str | None]) -> dict[str, str]:
    files = {f"{PSTATE}/status": "active\n", f"{SYSTEM}/cpufreq/boost": "1"}
    for number, (affected, governor) in enumerate(governors):
        here = f"{SYSTEM}/cpufreq/policy{number}"
        files[f"{here}/affected_cpus"] = affected
        if governor is not None:
            files[f"{here}/scaling_governor"] = governor
    return files


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, {}),
        ({f"{PSTATE}/no_turbo": "0"}, {}),
        ({f"{PSTATE}/status": "off\n", f"{PSTATE}/no_turbo": "0"}, {}),
        ({f"{PSTATE}/status": "passive\n"}, {"status": "passive"}),
        (
            {f"{PSTATE}/status": "passive\n", f"{PSTATE}/no_turbo": "0\n"},
            {"status": "passive", "turbo": "true"},
        ),
        (
            {f"{PSTATE}/status": "active", f"{PSTATE}/no_turbo": " 1"},
            {"status": "active", "turbo": "false"},
        ),
        # An empty no_turbo crashes upstream.
        (
            {f"{PSTATE}/status": "active", f"{PSTATE}/no_turbo": ""},
            {"status": "active"},
        ),
        (
            policies(("0\n", "powersave\n"), ("1\n", "powersave\n")),
            {"status": "active", "scaling_governor": "powersave"},
        ),
        (policies(("0", "powersave"), ("1", "performance")), {"status": "active"}),
        (
            policies(("0", "powersave"), ("\n", "performance"), ("2", None)),
            {"status": "active", "scaling_governor": "powersave"},
        ),
        (
            policies(("0", "powersave")) | {f"{PSTATE}/status": "passive"},
            {"status": "passive"},
        ),
    ],
)
def test_pstate(tree: Tree, files: dict[str, str], expected: dict[str, str]) -> None:
    """Status, turbo and the governor that all policies share."""
    gaps = Gaps()

    assert expected == power.pstate(tree(files), gaps)
    assert gaps.unknown == {}


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        ("status", None),
        ("no_turbo", {"status": "active", "scaling_governor": "powersave"}),
        ("policy1/scaling_governor", {"status": "active", "turbo": "true"}),
    ],
)
def test_pstate_that_cannot_be_read(
    tree: Tree,
    broken: Callable[[str], None],
    ending: str,
    expected: dict[str, str] | None,
) -> None:
    """A read error costs its own element, and is said."""
    files = policies(("0", "powersave"), ("1", "powersave"))
    host = tree(files | {f"{PSTATE}/no_turbo": "0"})
    gaps = Gaps()
    broken(ending)

    assert expected == power.pstate(host, gaps)
    assert list(gaps.unknown) == ["cpu.pstate"]


@pytest.mark.parametrize(
    ("frequencies", "nominal", "expected"),
    [
        (["2300000\n", "2700000\n"], 2300, {"bf.enabled": "true"}),
        (["2300999", "2300000"], 2300, {}),
        ([], 2300, {}),
        (["9900000"], 0, {}),
        (["fast", "2700000"], 2300, {"bf.enabled": "true"}),
    ],
)
def test_sst(
    tree: Tree, frequencies: list[str], nominal: int, expected: dict[str, str]
) -> None:
    """A base frequency above the nominal one means that SST-BF is on."""
    host = tree(
        {
            f"sys/bus/cpu/devices/cpu{number}/cpufreq/base_frequency": text
            for number, text in enumerate(frequencies)
        }
    )

    assert expected == power.sst(host, nominal, Gaps())
