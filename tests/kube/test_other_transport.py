"""A program may bring its own transport; this one plays back canned answers."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from nfd.kube.client import Client
from nfd.kube.errors import BadAnswer, Gone, ServerError, Unreachable
from nfd.kube.resources import NODES
from nfd.kube.retry import NO_RETRY
from nfd.kube.transport import Response


class Canned:
    """A transport and its only response."""

    def __init__(self, *chunks: bytes, status: int = 200) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {}
        self.closed = 0
        self._chunks = chunks

    def request(self, method: str, path: str, **_: Any) -> Response:
        assert (method, path) == ("GET", "/api/v1/nodes")
        return self

    def read(self) -> bytes:
        return b"".join(self._chunks)

    def chunks(self) -> Iterator[bytes]:
        yield from self._chunks

    def patience(self, seconds: float) -> None:
        assert seconds > 0

    def close(self) -> None:
        self.closed += 1


def watch(transport: Canned) -> list[tuple[str, Any]]:
    client = Client(transport=transport, retry=NO_RETRY)
    with client.watch(NODES, query={}, read_timeout=1) as events:
        return list(events)


def test_a_list() -> None:
    transport = Canned(b'{"metadata":{},"items":[{"a":1}', b',{"b":2}]}')
    client = Client(transport=transport)

    assert list(client.list(NODES)) == [{"a": 1}, {"b": 2}]
    assert transport.closed == 1


def test_events_in_pieces() -> None:
    event = b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}}\n'
    transport = Canned(event[:9], event[9:] + event[:20], event[20:])

    expected = ("ADDED", {"metadata": {"resourceVersion": "7"}})
    assert [expected, expected] == watch(transport)
    assert transport.closed == 1


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"{}",
        b'{"type":"ADDED"}',
        b'{"type":1,"object":{}}',
        b'{"type":"ADDED","object":{"metadata":{}}}',
        b"<html>",
        b'{"type":"ADDED"',
    ],
)
def test_what_is_no_event(line: bytes) -> None:
    transport = Canned(line + b"\n")
    with pytest.raises(BadAnswer, match="watch nodes: not the JSON expected"):
        watch(transport)

    assert transport.closed == 1


def test_error_events() -> None:
    status = b'{"type":"ERROR","object":{"code":%d,"message":"so it is"}}\n'
    with pytest.raises(Gone, match="so it is"):
        watch(Canned(status % 410))
    with pytest.raises(ServerError):
        watch(Canned(b'{"type":"ERROR","object":{}}\n'))


def test_a_refusal_in_plain_text() -> None:
    with pytest.raises(ServerError, match="502: bad gateway"):
        watch(Canned(b"bad gateway\n", status=502))
    assert not issubclass(ServerError, Unreachable)
