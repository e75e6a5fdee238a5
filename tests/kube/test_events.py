"""Events beyond the plain course in `tests/kube/behaviour.py`."""

import pytest

from nfd.kube.errors import ApiError, Forbidden, ServerError
from nfd.kube.events import EventRecorder, Reference
from nfd.kube.resources import EVENTS, NODEFEATURES, NODES
from tests.fakeapi import FakeApi, FakeClock, answer

NODE = Reference(NODES, "n1", uid="u1")


class Told:
    """A recorder, its clock, and the errors it met."""

    def __init__(self, api: FakeApi) -> None:
        self.clock = FakeClock()
        self.errors: list[ApiError] = []
        self.recorder = EventRecorder(
            client=api.client(clock=self.clock),
            component="nfd-master",
            instance="pod-1",
            on_error=self.errors.append,
        )

    def tell(self, message: str = "a label was refused") -> None:
        self.recorder.record(NODE, "Warning", "Refused", message)


@pytest.fixture
def told(api: FakeApi) -> Told:
    return Told(api)


def test_what_an_event_says(api: FakeApi, told: Told) -> None:
    told.tell()
    (event,) = api.all(EVENTS)

    assert event["metadata"]["namespace"] == "default"
    involved = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1"}
    assert involved == event["involvedObject"]
    assert (event["type"], event["reason"]) == ("Warning", "Refused")
    assert event["source"] == {"component": "nfd-master", "host": "pod-1"}
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2025-12-06T05:46:40Z"


def test_events_of_namespaced_objects_live_beside_them(
    api: FakeApi, told: Told
) -> None:
    about = Reference.to(
        NODEFEATURES, {"metadata": {"name": "n1", "namespace": "nfd", "uid": "u2"}}
    )
    told.recorder.record(about, "Normal", "Fine", "all is well")
    (event,) = api.all(EVENTS, "nfd")

    assert event["involvedObject"]["namespace"] == "nfd"


def test_different_messages_are_different_events(api: FakeApi, told: Told) -> None:
    told.tell("one")
    told.tell("two")

    assert len(api.all(EVENTS)) == 2


def test_a_thousand_repetitions_are_two_requests(api: FakeApi, told: Told) -> None:
    for _ in range(1000):
        told.tell()
        told.clock.advance(1)

    assert [asked.verb for asked in api.requests] == ["create", "patch"]


def test_an_event_that_expired_is_made_again(api: FakeApi, told: Told) -> None:
    told.tell()
    api.remove(EVENTS, api.all(EVENTS)[0]["metadata"]["name"], "default")
    told.clock.advance(601)
    told.tell()

    assert [event["count"] for event in api.all(EVENTS)] == [1]
    assert told.errors == []


def test_without_permission_it_falls_silent(api: FakeApi, told: Told) -> None:
    api.deny("create", "events")
    told.tell("one")
    told.tell("two")

    assert len(api.requests) == 1
    assert not told.recorder.enabled
    assert isinstance(told.errors[0], Forbidden)


def test_trouble_is_not_the_callers(api: FakeApi, told: Told) -> None:
    api.fault(answer(500))
    told.tell()
    assert isinstance(told.errors[0], ServerError)
    told.tell()

    assert len(api.all(EVENTS)) == 1


def test_what_it_remembers_is_bounded(told: Told) -> None:
    for i in range(520):
        told.tell(f"message {i}")
    assert len(told.recorder._told) == 512


def test_over_long_messages_are_cut(api: FakeApi, told: Told) -> None:
    told.tell("x" * 5000)

    assert len(api.all(EVENTS)[0]["message"]) == 1024
