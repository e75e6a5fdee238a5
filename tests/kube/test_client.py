"""Retries, what is sent, and what errors say."""

import json

import pytest

from nfd._version import __version__
from nfd.kube import errors
from nfd.kube.client import Client
from nfd.kube.clock import Stop
from nfd.kube.listing import ListMetadata
from nfd.kube.patch import add, expect
from nfd.kube.resources import NODEFEATURES, NODES, Resource
from nfd.kube.retry import Backoff, RetryPolicy
from tests.fakeapi import (
    FakeApi,
    FakeClock,
    Refusal,
    Review,
    answer,
    forbidden,
    lost_answer,
    reset,
    truncated,
)

RETRY = RetryPolicy(attempts=4, backoff=Backoff(1.0, 8.0, draw=lambda: 1.0))
OPERATIONS = [add(("metadata", "labels", "a"), "2")]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def client(api: FakeApi, clock: FakeClock) -> Client:
    api.node("n1", {"a": "1"})
    return api.client("worker", clock=clock, retry=RETRY)


def test_429_is_waited_for_as_told(
    api: FakeApi, client: Client, clock: FakeClock
) -> None:
    """H45: 409 once is the caller's, 429 with Retry-After is waited for, then 200."""
    api.fault(answer(409, "Conflict"), verb="patch")
    with pytest.raises(errors.Conflict):
        client.json_patch(NODES, "n1", OPERATIONS)
    assert clock.waits == []
    api.fault(answer(429, "TooManyRequests", retry_after=2), verb="patch")
    client.json_patch(NODES, "n1", OPERATIONS)

    assert clock.waits == [3.0]
    assert [asked.status for asked in api.requests] == [409, 429, 200]


def test_5xx_and_resets_are_backed_off(
    api: FakeApi, client: Client, clock: FakeClock
) -> None:
    api.fault(answer(500, "InternalError"))
    api.fault(reset())
    api.fault(answer(503, "ServiceUnavailable"))
    assert client.get(NODES, "n1")["metadata"]["name"] == "n1"

    assert clock.waits == [1.0, 2.0, 4.0]


def test_a_truncated_answer_is_asked_for_again(
    api: FakeApi, client: Client, clock: FakeClock
) -> None:
    api.fault(truncated(10))
    assert client.get(NODES, "n1")["metadata"]["name"] == "n1"

    assert clock.waits == [1.0]


def test_it_gives_up_after_the_last_attempt(
    api: FakeApi, client: Client, clock: FakeClock
) -> None:
    api.fault(answer(500, "InternalError", "etcd is gone"), times=None)
    with pytest.raises(errors.ServerError, match="500 InternalError: etcd is gone"):
        client.get(NODES, "n1")

    assert len(api.requests) == 4
    assert len(clock.waits) == 3


def test_a_retry_after_beyond_patience_is_the_callers(
    api: FakeApi, client: Client, clock: FakeClock
) -> None:
    api.fault(answer(429, retry_after=3600))
    with pytest.raises(errors.TooManyRequests) as raised:
        client.get(NODES, "n1")

    assert raised.value.retry_after == 3600
    assert clock.waits == []


@pytest.mark.parametrize("status", [400, 403, 404, 405, 409, 410, 413, 415, 422])
def test_other_refusals_are_not_retried(
    api: FakeApi, client: Client, status: int
) -> None:
    api.fault(answer(status, "Because", "so it is"))
    with pytest.raises(errors.ApiError, match=f"get nodes n1: {status} Because: so it"):
        client.get(NODES, "n1")

    assert len(api.requests) == 1


def test_stop_ends_the_waiting(api: FakeApi, client: Client) -> None:
    stop = Stop()
    clock = FakeClock(on_wait=lambda _: stop.set())
    api.fault(answer(500), times=None)
    with pytest.raises(errors.ServerError):
        client.but(stop=stop, clock=clock).get(NODES, "n1")

    assert len(api.requests) == 1


def test_a_write_whose_answer_was_lost_is_caught_by_its_guard(
    api: FakeApi, client: Client
) -> None:
    """The second try of a write that happened fails, and changes nothing more."""
    api.fault(lost_answer(), verb="patch")
    guard = expect(("metadata", "labels", "a"), "1")
    with pytest.raises(errors.Invalid):
        client.json_patch(NODES, "n1", [guard, *OPERATIONS])

    assert api.get(NODES, "n1")["metadata"]["labels"] == {"a": "2"}
    assert len(api.asked(verb="patch")) == 2


def test_what_is_sent(api: FakeApi, client: Client) -> None:
    client = client.but(field_manager="nfd-worker")
    client.json_patch(NODES, "n1", OPERATIONS, dry_run=True)
    asked = api.requests[-1]

    assert asked.user_agent == f"nfd-worker/{__version__}"
    assert asked.query == {"dryRun": "All", "fieldManager": "nfd-worker"}
    assert asked.headers["content-type"] == "application/json-patch+json"
    assert json.loads(asked.body) == OPERATIONS


def test_an_update_needs_a_version(client: Client) -> None:
    with pytest.raises(ValueError, match="resourceVersion"):
        client.update(NODES, {"metadata": {"name": "n1"}})


def test_admission_is_no_missing_permission(api: FakeApi, client: Client) -> None:
    def refuse(review: Review) -> None:
        assert review.new is not None
        if review.new["metadata"]["labels"]["a"] == "2":
            raise forbidden(review.resource, "n1", "ValidatingAdmissionPolicy 'x' said")

    api.admission.append(refuse)
    with pytest.raises(errors.Forbidden, match="ValidatingAdmissionPolicy") as raised:
        client.json_patch(NODES, "n1", OPERATIONS)

    assert not raised.value.missing_permission
    assert api.get(NODES, "n1")["metadata"]["labels"] == {"a": "1"}


def test_a_refusal_that_is_no_status_object(api: FakeApi, client: Client) -> None:
    nothing = Resource("example.com", "v1", "things", "Thing", namespaced=False)
    with pytest.raises(errors.NotFound, match="list things: 404"):
        list(client.list(nothing))
    assert b"ok" in client.raw("/readyz")
    with pytest.raises(errors.NotFound):
        client.raw("/nothing")
    assert api.requests[-1].status == 404


def test_a_continue_token_that_expired(api: FakeApi, client: Client) -> None:
    for i in range(3):
        api.node(f"m{i}")
    metadata = ListMetadata()
    found = client.list(NODES, limit=2, metadata=metadata)
    next(found)
    api.compact()
    with pytest.raises(errors.Gone, match="continue parameter is too old"):
        list(found)


def test_pages_are_retried_where_they_failed(api: FakeApi, client: Client) -> None:
    for i in range(3):
        api.node(f"m{i}")
    found = client.list(NODES, limit=2)
    next(found)
    api.fault(answer(500), verb="list")

    assert len(list(found)) == 3


def test_permissions(api: FakeApi, client: Client) -> None:
    denial = api.deny("update", "nodefeatures", namespace="nfd")
    obj = {"metadata": {"name": "n1", "namespace": "nfd"}, "spec": {}}
    made = client.create(NODEFEATURES, obj)
    with pytest.raises(errors.Forbidden) as raised:
        client.update(NODEFEATURES, made)
    expected = 'update nodefeatures.nfd.k8s-sigs.io in the namespace "nfd"'
    assert expected == raised.value.missing_permission
    api.denials.remove(denial)
    client.update(NODEFEATURES, made)
    api.permitted = {("get", "nodefeatures")}
    client.get(NODEFEATURES, "n1", "nfd")
    with pytest.raises(errors.Forbidden):
        client.get(NODES, "n1")


def test_a_refusal_names_all_of_the_request(api: FakeApi, client: Client) -> None:
    def refuse(_: Review) -> None:
        raise Refusal(403, "Forbidden", "no")

    api.admission.append(refuse)
    with pytest.raises(errors.Forbidden) as raised:
        client.create(NODEFEATURES, {"metadata": {"name": "n1", "namespace": "nfd"}})

    assert str(raised.value) == "create nodefeatures nfd/n1: 403 Forbidden: no"
    assert (raised.value.verb, raised.value.resource) == ("create", "nodefeatures")
    assert (raised.value.name, raised.value.namespace) == ("n1", "nfd")
