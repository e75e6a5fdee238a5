"""The whole walk, as `make walk` shows it."""

from pathlib import Path

from tests.cluster.binaries import KUBERNETES, KWOK
from tests.cluster.conftest import require
from tests.cluster.controlplane import ControlPlane
from tests.cluster.skipping import skip_where_unavailable
from tests.cluster.walk import Walk
from tests.cluster.walk_site import Site, build_library, changes, removals
from tests.deploy.chart import ROOT

NODE = {"kind": "Node", "metadata": {"name": "n", "labels": {"a": "", "b": ""}}}


def test_walk(tmp_path: Path, helm: Path) -> None:
    """From nodes without a label to pods with GPUs, upgrades, failures and the end."""
    del helm
    require(KUBERNETES, KWOK)
    with skip_where_unavailable("driver library"):
        build_library(tmp_path / "libnvidia-ml.so.1")
    lines: list[str] = []
    with ControlPlane(
        tmp_path / "plane", controller_manager=True, scheduler=True, kwok=True
    ) as plane:
        plane.apply_files(*sorted((ROOT / "deploy" / "crds").glob("*.yaml")))
        Walk(Site(plane, tmp_path), lines.append).run()

    assert [line[0] for line in lines if line[0] != " "] == list("-abcdeefg")


def test_removals_are_counted_from_the_mark_on() -> None:
    """The first event after the mark is compared with the last one before it."""
    less = {"kind": "Node", "metadata": {"name": "n", "labels": {"b": ""}}}
    events = [
        {"user": {"username": "u"}, "responseObject": answer}
        for answer in (NODE, less, NODE, less, {"kind": "Status"})
    ]

    assert list(removals(events, 0)) == ["n: a by u"] * 2
    assert list(removals(events, 3)) == ["n: a by u"]
    assert list(removals(events, 4)) == []


def test_changes() -> None:
    before = {"n": {"a": 1, "b": 2}}

    assert changes(before, {"n": {"a": 1, "b": 3}}) == [" n b: 2 is now 3"]
    assert changes(before, {"n": {"a": 1}}, only_gone=True) == [" n b: 2 is now None"]
    assert changes(before, {"n": {"a": 0, "b": 2, "c": 3}}, only_gone=True) == []
