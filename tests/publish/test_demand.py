"""Trimming of bulky sets by what rules use."""

import pytest

from nfd.errors import NfdError
from nfd.features import Features
from nfd.publish.demand import Demand, trim, trimmed_sets

FEATURES = Features.of(
    flags={"kernel.loadedmodule": ["a", "b"], "cpu.cpuid": ["AVX"]},
    attributes={"kernel.config": {"A": "y", "B": "m"}},
)


def test_only_demanded_elements_stay() -> None:
    """Ordinary sets are never touched; what was looked for is recorded."""
    demand = Demand.of([("kernel.config", ["B", "C"]), ("cpu.cpuid", ["X"])])

    left = trim(FEATURES, demand)

    assert left.features == Features.of(
        flags={"kernel.loadedmodule": [], "cpu.cpuid": ["AVX"]},
        attributes={"kernel.config": {"B": "m"}},
    )
    assert trimmed_sets(left.to_annotation()) == {
        "kernel.config": {"B", "C"},
        "kernel.loadedmodule": frozenset(),
    }


def test_whole_set_wins_over_elements() -> None:
    """A rule that needs names it cannot list needs the whole set."""
    demand = Demand.of([("kernel.config", ["B"]), ("kernel.config", None)])

    left = trim(FEATURES, demand | Demand.of([("kernel.loadedmodule", None)]))

    assert left.features == FEATURES
    assert not left.to_annotation()


def test_configmap_round_trip() -> None:
    """What the master writes is what a worker reads."""
    demand = Demand.of([("kernel.config", ["B", "A"]), ("kernel.loadedmodule", None)])

    assert Demand.from_data(demand.to_data()) == demand
    assert demand.to_data() == {"kernel.config": "A\nB", "kernel.loadedmodule": "*"}


def test_unreadable_annotation_is_named() -> None:
    """The offending text is in the message."""
    with pytest.raises(NfdError, match="nonsense"):
        trimmed_sets("nonsense")
