"""Back-off, troubles, recollection, demand, status: the small parts of a worker."""

from typing import Any

import attrs

from nfd.config.duration import Duration
from nfd.config.worker import CoreConfig
from nfd.features import Features
from nfd.kube.errors import Forbidden, ServerError, TooManyRequests
from nfd.kube.resources import CONFIGMAPS
from nfd.labels import FEATURE_NS
from nfd.publish.demand import CONFIGMAP, Demand
from nfd.publish.nodefeature import STALE, TRIMMED
from nfd.worker.demand import DemandFeed
from nfd.worker.look import Seen
from nfd.worker.nodeplan import prefixed
from nfd.worker.pace import REPAIR_INTERVAL, REPAIRS, Repairs, Target
from nfd.worker.recollection import recollect
from nfd.worker.results import Published
from nfd.worker.settings import poll_interval
from nfd.worker.status import GRACE, Status
from nfd.worker.troubles import Troubles
from tests.fakeapi import FakeApi, FakeClock
from tests.worker.rig import Log


def waits(error: Any, count: int) -> list[float]:
    target, now = Target("x"), 0.0
    found = []
    for _ in range(count):
        target.failed(error, now)
        found.append(target.not_before - now)
        now = target.not_before
    return found


def test_backoff_is_bounded_and_longer_for_missing_rights() -> None:
    """An outage ends by itself, a missing permission by an administrator."""
    denied = Forbidden('User "u" cannot create resource "nodes" in API group ""')

    assert 60 <= waits(ServerError("x"), 12)[-1] <= 120
    assert 1800 <= waits(denied, 14)[-1] <= 3600
    assert waits(TooManyRequests("x", retry_after=500), 1) == [500]


def test_target_is_due_until_its_version_is_published() -> None:
    target = Target("x")
    assert target.due(1, 0.0)
    target.failed(ServerError("x"), 0.0)
    assert not target.due(1, 0.1)
    assert target.wait(1, 0.0) == target.not_before
    target.succeeded(1)
    assert (target.due(1, 10.0), target.wait(1, 10.0)) == (False, None)


def test_repairs_are_bounded_over_time() -> None:
    repairs = Repairs()
    assert [repairs.take(0.0) for _ in range(REPAIRS)] == [0.0] * REPAIRS
    assert repairs.take(0.0) == REPAIR_INTERVAL
    assert repairs.take(REPAIR_INTERVAL) == 0.0
    assert repairs.strained


def test_trouble_is_said_once_and_again_when_it_changes() -> None:
    clock, log = FakeClock(), Log()
    troubles = Troubles(log, clock.monotonic)
    for text in ("EIO", "EIO", "EACCES"):
        troubles.begin("source pci", text)
        clock.advance(5)
    troubles.settle("source", {"usb": "x"})
    troubles.settle("source", {})
    troubles.end("nothing")

    assert [(event, fields["what"]) for _, event, fields in log.said] == [
        ("trouble", "source pci"),
        ("trouble", "source pci"),
        ("trouble over", "source pci"),
        ("trouble", "source usb"),
        ("trouble over", "source usb"),
    ]
    assert log.said[2][2]["seconds"] == 15


def test_grave_troubles_make_unready_in_time() -> None:
    clock = FakeClock()
    troubles = Troubles(Log(), clock.monotonic)
    status = Status("n", troubles, None)
    assert status.readyz(clock.now).status == 503

    status.seen = Seen(Features(), {})
    assert (status.readyz(clock.now).status, status.readyz(clock.now).body) == (
        200,
        "ok\n",
    )
    troubles.begin("publishing", "503", grave=True)
    clock.advance(GRACE - 1)
    assert status.readyz(clock.now).status == 200
    clock.advance(1)
    answer = status.readyz(clock.now)
    assert answer.status == 503
    assert answer.body == "not ready: publishing\npublishing: 503 (for 60 s)\n"


def published() -> dict[str, Any]:
    return {
        "metadata": {"annotations": {}},
        "spec": {
            "labels": {f"{FEATURE_NS}/pci-x": "1", "rdma.capable": "true"},
            "features": {
                "flags": {
                    "kernel.config": {"elements": {"A": {}}},
                    "pci.x": {"elements": {"B": {}}},
                }
            },
        },
    }


def test_partial_sets_are_not_remembered() -> None:
    """What was trimmed or unknown may have held more than it shows."""
    obj = published()
    obj["metadata"]["annotations"] = {
        TRIMMED: '{"kernel.config":["A"]}',
        STALE: '{"usb.device":"","pci":"2026-11-30T00:00:00Z"}',
    }

    found = recollect(Published(obj), ["pci", "kernel"], now=5.0)

    assert set(found.memory) == {"pci"}
    assert found.memory["pci"].when == 1795996800.0
    assert found.problems == ()


def test_unreadable_notes_are_named() -> None:
    obj = published()
    obj["metadata"]["annotations"] = {TRIMMED: "[", STALE: "{"}

    found = recollect(Published(obj), ["pci"], now=5.0)

    assert len(found.problems) == 2
    assert set(found.memory) == {"kernel", "pci"}


def test_labels_on_the_node_alone_are_remembered_too() -> None:
    """Written there first, by a worker that died before it published them."""
    on_node = {f"{FEATURE_NS}/rdma.capable": "true", f"{FEATURE_NS}/usb-y": "1"}

    found = recollect(Published(published(), on_node), ["pci", "usb"], now=5.0)

    assert {k: v.provenance.source for k, v in found.labels.items()} == {
        f"{FEATURE_NS}/pci-x": "pci",
        f"{FEATURE_NS}/usb-y": "usb",
        "rdma.capable": "",
    }


def test_prefixed_twin_wins() -> None:
    assert prefixed({"a": "1", f"{FEATURE_NS}/a": "2", "b": "3"}) == {
        f"{FEATURE_NS}/a": "2",
        f"{FEATURE_NS}/b": "3",
    }


def test_polls_of_a_fleet_spread() -> None:
    """Each node keeps its own interval, within a tenth of what is configured."""
    core = CoreConfig()
    intervals = {poll_interval(core, f"node-{i}") for i in range(50)}

    assert len(intervals) == 50
    assert 54 <= min(intervals) < 56
    assert 64 < max(intervals) <= 66
    assert poll_interval(attrs.evolve(core, sleep_interval=Duration(0)), "n") == 0


def test_demand_that_cannot_be_read_is_no_demand() -> None:
    """Then everything is published."""
    changes: list[Demand | None] = []
    feed = DemandFeed(lambda: changes.append(feed.demand))
    with FakeApi() as api:
        denied = api.deny("get", "configmaps")
        feed.read(api.client(), "nfd")
        assert (feed.demand, feed.known.is_set()) == (None, True)
        api.denials.remove(denied)
        metadata = {"name": CONFIGMAP, "namespace": "nfd"}
        api.put(CONFIGMAPS, {"metadata": metadata, "data": {"kernel.config": "*"}})
        feed.read(api.client(), "nfd")

    assert changes == [None, Demand({"kernel.config": None})]
