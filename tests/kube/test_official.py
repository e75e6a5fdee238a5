"""The official `kubernetes` package: as a peer of the fake, and as our transport."""

from collections.abc import Iterator
from typing import Any

import pytest

from nfd.kube.errors import Unreachable
from nfd.kube.official import OfficialTransport
from nfd.kube.resources import NODES
from nfd.kube.retry import NO_RETRY
from tests.fakeapi import FakeApi, reset

kubernetes = pytest.importorskip("kubernetes")


@pytest.fixture
def api_client(api: FakeApi) -> Iterator[Any]:
    api.node("n1", {"a": "1"})
    api.tokens = {"secret": "me"}
    configuration = kubernetes.client.Configuration()
    configuration.host = api.url
    configuration.api_key = {"authorization": "Bearer secret"}
    with kubernetes.client.ApiClient(configuration) as made:
        yield made
        made.rest_client.pool_manager.clear()


def test_it_reads_the_fake(api_client: Any) -> None:
    core = kubernetes.client.CoreV1Api(api_client)
    listed = core.list_node()
    assert [node.metadata.name for node in listed.items] == ["n1"]
    patched = core.patch_node("n1", {"metadata": {"labels": {"b": "2"}}})
    assert patched.metadata.labels == {"a": "1", "b": "2"}
    with pytest.raises(kubernetes.client.ApiException, match="not found"):
        core.read_node("no")


def test_it_watches_the_fake(api: FakeApi, api_client: Any) -> None:
    core = kubernetes.client.CoreV1Api(api_client)
    api.node("n2")
    seen = []
    watch = kubernetes.watch.Watch()
    for event in watch.stream(core.list_node, timeout_seconds=5):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 2:
            watch.stop()

    assert seen == [("ADDED", "n1"), ("ADDED", "n2")]


def test_our_client_on_its_transport(api: FakeApi, api_client: Any) -> None:
    client = api.client().but(transport=OfficialTransport(api_client), retry=NO_RETRY)
    assert client.get(NODES, "n1")["metadata"]["labels"] == {"a": "1"}
    assert len(list(client.list(NODES))) == 1
    with client.watch(NODES, query={}, read_timeout=5) as watch:
        assert next(iter(watch))[0] == "ADDED"
    api.fault(reset())
    with pytest.raises(Unreachable):
        client.get(NODES, "n1")
    assert api.requests[-1].headers["authorization"] == "Bearer secret"
