"""No label goes out of ignorance: what a pass without knowledge keeps."""

import pytest

from nfd.discovery import SourceResult
from nfd.features import Features
from nfd.labels import FEATURE_NS, Label, Provenance
from nfd.worker.memory import (
    Recalled,
    Remembered,
    read_back_features,
    read_back_labels,
    recall,
    retain,
)

GPU = {"address": "0000:3b:00.0", "vendor": "10de"}
NIC = {"address": "0000:1a:00.0", "vendor": "15b3"}
SETS = {"pci": ("pci.device",), "kernel": ("kernel.version", "kernel.config")}


def devices(*instances: dict[str, str], **unknown: str) -> Features:
    keys = {k.replace("_", "."): why for k, why in unknown.items()}
    return Features.of(instances={"pci.device": instances}, unknown=keys)


def passed(
    result: SourceResult, memory: dict[str, Remembered], **how: float
) -> Recalled:
    return recall({result.name: result}, memory, known_sets=SETS, now=200.0, **how)


def good(features: Features, *, here: bool = True) -> dict[str, Remembered]:
    return {"pci": Remembered(features, 100.0, here=here)}


def test_failed_source_keeps_its_last_good_features() -> None:
    """It is marked stale with the time of its last good discovery."""
    after = passed(SourceResult("pci", "failed", error="EIO"), good(devices(GPU)))

    assert after.results["pci"].features == devices(GPU)
    assert after.stale == {"pci": 100.0}
    assert after.unsettled == frozenset()


def test_failed_source_without_memory_is_unknown() -> None:
    """Nothing is known, so rules that read it are unknown and labels stay."""
    after = passed(SourceResult("pci", "failed", error="EIO"), {})

    assert after.results["pci"].features.unknown == {"pci.device": "EIO"}
    assert after.unsettled == {"pci"}


def test_absent_source_forgets() -> None:
    """Absence is a completed discovery: proof that the facts are gone."""
    after = passed(SourceResult("pci", "absent"), good(devices(GPU)))

    assert after.results["pci"].features == Features()
    assert after.memory == {}
    assert after.stale == {}


def test_source_that_is_not_ready_keeps_what_is_remembered() -> None:
    """The GPU is there and its driver is not: facts from before still hold."""
    result = SourceResult("pci", "absent", error="no driver", not_ready=True)
    after = passed(result, good(devices(GPU)))

    assert after.results["pci"].status == "failed"
    assert after.results["pci"].features == devices(GPU)
    assert after.stale == {"pci": 100.0}


def test_source_that_is_not_ready_proves_nothing() -> None:
    """Labels that were read back, without features, stay until it is ready."""
    result = SourceResult("pci", "absent", error="no driver", not_ready=True)
    after = passed(result, {})

    assert after.results["pci"] == result
    assert after.unsettled == {"pci"}


def test_part_that_could_not_be_read_comes_from_memory() -> None:
    """A device that cannot be read now is kept beside those that can."""
    found = devices(NIC, pci_device="0000:3b:00.0: EIO")

    after = passed(SourceResult("pci", "ok", found), good(devices(NIC, GPU)))

    assert after.results["pci"].features.instances["pci.device"] == (NIC, GPU)
    assert after.results["pci"].features.unknown == {}
    assert after.stale == {"pci": 100.0}


def test_new_facts_count_beside_a_failing_part() -> None:
    """Partial failure stays partial: a set that was read replaces its old value."""
    old = Features.of(
        attributes={"kernel.version": {"full": "5"}, "kernel.config": {"A": "y"}}
    )
    new = Features.of(
        attributes={"kernel.version": {"full": "6"}},
        unknown={"kernel.config": "EIO"},
    )

    after = passed(
        SourceResult("kernel", "ok", new), {"kernel": Remembered(old, 100.0)}
    )

    assert after.results["kernel"].features.attributes == {
        "kernel.version": {"full": "6"},
        "kernel.config": {"A": "y"},
    }


def test_stale_facts_go_only_after_the_limit() -> None:
    """`core.staleLimit` is off by default; past it, facts and labels go."""
    failed = SourceResult("pci", "failed", error="EIO")

    within = passed(failed, good(devices(GPU)), stale_limit=100.0)
    beyond = passed(failed, good(devices(GPU)), stale_limit=99.0)

    assert within.stale == {"pci": 100.0}
    assert beyond.stale == {"pci": 100.0}
    assert beyond.results["pci"].features == Features()
    assert beyond.unsettled == frozenset()


def test_memory_of_another_process_does_not_settle() -> None:
    """What was read back is no proof that a source has completed here."""
    after = passed(
        SourceResult("pci", "failed", error="EIO"), good(devices(GPU), here=False)
    )

    assert after.unsettled == {"pci"}


def test_sources_that_did_not_run_are_remembered() -> None:
    """An event runs only the touched sources again."""
    memory = good(devices(GPU)) | {"cpu": Remembered(Features(), 50.0)}

    after = passed(SourceResult("pci", "ok", devices(GPU)), memory)

    assert after.memory["cpu"] == memory["cpu"]


LABEL = Label(f"{FEATURE_NS}/pci-10de.present", "true", Provenance("pci"))
RULED = Label("v.io/x", "1", Provenance("custom", rule="r1"))
ORPHAN = Label("v.io/y", "1")


@pytest.mark.parametrize(
    ("label", "unsettled", "unknown_rules", "answered", "stays"),
    [
        (LABEL, {"pci"}, (), None, True),
        (LABEL, {"kernel"}, (), None, False),
        (LABEL, set(), ("r1",), {"r2"}, False),
        (RULED, {"pci"}, ("r1",), None, True),
        (RULED, {"pci"}, (), None, False),
        (RULED, {"custom"}, (), None, True),
        (RULED, set(), (), {"r1"}, False),
        (RULED, set(), (), {"r2"}, True),
        (ORPHAN, {"kernel"}, (), None, True),
        (ORPHAN, set(), (), None, False),
        (ORPHAN, set(), ("r2",), None, True),
        (ORPHAN, set(), (), {"r2"}, True),
    ],
)
def test_labels_go_only_with_proof(
    label: Label,
    unsettled: set[str],
    unknown_rules: tuple[str, ...],
    answered: set[str] | None,
    stays: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """The maker decides; where it is unknown, every source and rule has to be sure."""
    kept = retain(
        {label.key: label},
        {},
        unsettled=unsettled,
        unknown_rules=unknown_rules,
        answered=answered,
    )

    assert stays == (label.key in kept)


def test_new_value_wins_over_the_retained_one() -> None:
    """Retaining never hides a newer value."""
    new = Label(LABEL.key, "false", Provenance("pci"))

    kept = retain({LABEL.key: LABEL}, {LABEL.key: new}, unsettled={"pci"})

    assert kept == {LABEL.key: new}


def test_read_back_finds_the_maker() -> None:
    """By the annotation, else by the prefix, else nobody."""
    back = read_back_labels(
        {LABEL.key: "true", "v.io/x": "1", "v.io/y": "1", "v.io/z": "1"},
        {"v.io/x": "rule:r1", "v.io/z": "local"},
        ["cpu", "pci"],
    )

    assert {
        LABEL.key: Provenance("pci"),
        "v.io/x": Provenance("custom", rule="r1"),
        "v.io/y": Provenance(),
        "v.io/z": Provenance("local"),
    } == {k: v.provenance for k, v in back.items()}


def test_read_back_features_by_source() -> None:
    """Stale ones keep the time of their last good discovery."""
    features = Features.of(
        instances={"pci.device": [GPU]}, attributes={"kernel.version": {"full": "6"}}
    )

    memory = read_back_features(features, {"pci": 7.0}, 9.0)

    assert (memory["pci"].when, memory["kernel"].when) == (7.0, 9.0)
    assert memory["pci"].features == devices(GPU)
    assert not memory["pci"].here
