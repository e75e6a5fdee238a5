"""Both transports, plain and with TLS, against a server that misbehaves."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nfd.errors import ConfigError
from nfd.kube.client import Client
from nfd.kube.clock import Stop
from nfd.kube.config import TokenFile
from nfd.kube.connect import TransportName
from nfd.kube.errors import BadAnswer, Unauthorized, Unreachable
from nfd.kube.http_transport import HttpTransport
from nfd.kube.resources import NODES
from nfd.kube.retry import NO_RETRY
from nfd.kube.transport import Connection, address
from tests.fakeapi import (
    FakeApi,
    answer,
    garbage,
    half_open,
    hang,
    lost_answer,
    reset,
    truncated,
)
from tests.fakeapi.certificates import authority

NAMES: tuple[TransportName, ...] = ("http", "urllib3")


@pytest.fixture(params=["plain", "tls"])
def api(request: pytest.FixtureRequest) -> Iterator[FakeApi]:
    with FakeApi(tls=request.param == "tls") as running:
        running.node("n1", {"a": "1"})
        yield running


@pytest.fixture(params=NAMES)
def client(request: pytest.FixtureRequest, api: FakeApi) -> Client:
    return api.client(transport=request.param, retry=NO_RETRY, timeout=10.0)


def test_one_connection_serves_many_requests(api: FakeApi, client: Client) -> None:
    for _ in range(5):
        client.get(NODES, "n1")
    list(client.list(NODES))

    assert api.connections == 1
    assert len(api.requests) == 6


def test_a_refusal_keeps_the_connection(api: FakeApi, client: Client) -> None:
    api.fault(answer(409, "Conflict"))
    with pytest.raises(Exception, match="Conflict"):
        client.get(NODES, "n1")
    client.get(NODES, "n1")

    assert api.connections == 1


def test_an_idle_connection_that_was_closed_is_replaced(
    api: FakeApi, client: Client
) -> None:
    client.get(NODES, "n1")
    api.cut_connections()
    client.get(NODES, "n1")

    assert api.connections == 2


def test_requests_at_the_same_time_do_not_share_a_connection(
    api: FakeApi, client: Client
) -> None:
    switch = api.fault(hang())
    blocked = threading.Thread(target=client.get, args=(NODES, "n1"))
    blocked.start()
    api.wait_for(lambda: len(api.requests) == 1)
    client.get(NODES, "n1")
    switch.lift()
    blocked.join(5)

    assert not blocked.is_alive()
    assert api.connections == 2


@pytest.mark.parametrize("fault", [reset(), truncated(20), lost_answer()], ids=repr)
def test_a_broken_answer_is_unreachable(
    api: FakeApi, client: Client, fault: Any
) -> None:
    api.fault(fault)
    with pytest.raises(Unreachable, match="get nodes n1"):
        client.get(NODES, "n1")

    assert client.get(NODES, "n1")["metadata"]["name"] == "n1"


def test_a_truncated_list_is_unreachable(api: FakeApi, client: Client) -> None:
    api.node("n2")
    api.fault(truncated(300), verb="list")
    with pytest.raises(Unreachable, match="list nodes"):
        list(client.list(NODES))


def test_a_list_that_is_not_read_to_its_end_costs_its_connection(
    api: FakeApi, client: Client
) -> None:
    for i in range(5):
        api.node(f"m{i}")
    found = client.list(NODES, limit=2)
    next(found)
    del found

    assert len(list(client.list(NODES))) == 6


def test_an_answer_that_is_not_json(api: FakeApi, client: Client) -> None:
    api.fault(garbage(), times=2)
    with pytest.raises(BadAnswer, match="not the JSON expected"):
        client.get(NODES, "n1")
    with pytest.raises(BadAnswer, match="not the JSON expected"):
        list(client.list(NODES))


def test_a_server_that_hangs_runs_into_the_time_out(
    api: FakeApi, client: Client
) -> None:
    api.fault(hang())
    with pytest.raises(Unreachable, match=r"(?i)timed? ?out"):
        client.but(timeout=0.1).get(NODES, "n1")


def test_a_silent_watch_runs_into_its_patience(api: FakeApi, client: Client) -> None:
    api.fault(half_open())
    with client.watch(NODES, query={}, read_timeout=10) as watch:
        watch.patience(0.1)
        with pytest.raises(Unreachable, match=r"(?i)timed? ?out"):
            list(watch)


def test_nobody_listens(client: Client, api: FakeApi) -> None:
    api.stop()
    with pytest.raises(Unreachable, match="refused"):
        client.get(NODES, "n1")


def _interrupted(api: FakeApi, client: Client, stop: Stop) -> float:
    """Seconds from `stop` to the end of a request that is blocked."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            client.get(NODES, "n1")
        except Unreachable as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    api.wait_for(lambda: len(api.requests) == 1)
    start = time.monotonic()
    stop.set()
    thread.join(10)
    assert "stopped" in str(errors[0])
    return time.monotonic() - start


def test_stop_ends_a_request_without_answer(api: FakeApi, client: Client) -> None:
    api.fault(hang())
    stop = Stop()

    assert _interrupted(api, client.but(stop=stop), stop) < 1.0


@pytest.mark.usefixtures("api")
def test_stop_ends_a_watch(client: Client) -> None:
    stop = Stop()
    client = client.but(stop=stop)
    with client.watch(NODES, query={}, read_timeout=60) as watch:
        events = iter(watch)
        assert next(events)[0] == "ADDED"
        timer = threading.Timer(0.05, stop.set)
        timer.start()
        start = time.monotonic()
        with pytest.raises(Unreachable, match="stopped"):
            next(events)
        assert time.monotonic() - start < 1.0
        timer.join()


def test_stop_ends_a_tls_handshake_and_a_connection_attempt() -> None:
    """Whoever does not answer, or drops packets, holds nobody up."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent:
        port = silent.getsockname()[1]
        transport = HttpTransport(Connection(server=f"https://127.0.0.1:{port}"))

        def blocked() -> None:
            with pytest.raises(Unreachable, match="stopped"):
                Client(transport=transport, stop=stop).get(NODES, "n1")

        # The first two shake hands with nobody, later ones find the queue full.
        for _ in range(4):
            stop = Stop()
            timer = threading.Timer(0.1, stop.set)
            timer.start()
            start = time.monotonic()
            blocked()
            assert time.monotonic() - start < 1.0
            timer.join()


def test_nothing_is_sent_after_stop(api: FakeApi, client: Client) -> None:
    stop = Stop()
    stop.set()
    with pytest.raises(Unreachable, match="stopped"):
        client.but(stop=stop).get(NODES, "n1")

    assert api.requests == []


@pytest.mark.parametrize("name", NAMES)
def test_ipv6_hosts_are_bracketed(name: TransportName) -> None:
    with FakeApi(tls=True, host="::1") as api:
        api.node("n1")
        assert api.url.startswith("https://[::1]:")
        client = api.client(transport=name)
        assert client.get(NODES, "n1")["metadata"]["name"] == "n1"
        host = api.requests[0].headers["host"]
        assert host == api.url.removeprefix("https://")


@pytest.mark.parametrize("name", NAMES)
class TestTrust:
    """Certificates and tokens."""

    def test_an_unknown_authority_is_refused(self, name: TransportName) -> None:
        with FakeApi(tls=True) as api:
            stranger = Connection(server=api.url)
            client = api.client(connection=stranger, transport=name, retry=NO_RETRY)
            with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
                client.get(NODES, "n1")

    def test_unless_told_not_to_look(self, name: TransportName) -> None:
        with FakeApi(tls=True) as api:
            api.node("n1")
            careless = Connection(server=api.url, insecure=True)
            client = api.client(connection=careless, transport=name)
            assert client.get(NODES, "n1")["metadata"]["name"] == "n1"

    def test_the_name_on_the_certificate_counts(self, name: TransportName) -> None:
        with FakeApi(tls=True) as api:
            for server_name, good in (("localhost", True), ("example.com", False)):
                connection = api.connection(server_name=server_name)
                client = api.client(
                    connection=connection, transport=name, retry=NO_RETRY
                )
                if good:
                    assert list(client.list(NODES)) == []
                else:
                    with pytest.raises(Unreachable, match=r"(?i)mismatch"):
                        list(client.list(NODES))

    def test_client_certificates(self, name: TransportName) -> None:
        pair = authority().pair("alice")
        with FakeApi(tls=True) as api:
            connection = api.connection(
                ca_data=authority().pem,
                cert_data=pair.certificate,
                key_data=pair.key,
            )
            list(api.client(connection=connection, transport=name).list(NODES))
            assert api.requests[0].user == "alice"

    def test_rotated_files_are_loaded_again(
        self, name: TransportName, tmp_path: Path
    ) -> None:
        ca = tmp_path / "ca.crt"
        ca.write_text(authority().pem)
        with FakeApi(tls=True) as api:
            connection = Connection(server=api.url, ca_file=str(ca))
            client = api.client(connection=connection, transport=name, retry=NO_RETRY)
            list(client.list(NODES))
            ca.write_text("not a certificate")
            with pytest.raises(Unreachable, match="TLS files"):
                list(client.list(NODES))

    def test_a_rotated_token_is_read_again(
        self, name: TransportName, tmp_path: Path
    ) -> None:
        token = tmp_path / "token"
        token.write_text("first\n")
        with FakeApi() as api:
            api.node("n1")
            api.tokens = {"first": "me"}
            connection = api.connection(token=TokenFile(str(token)))
            client = api.client(connection=connection, transport=name)
            client.get(NODES, "n1")
            api.tokens = {"second": "me"}
            token.write_text("second\n")
            client.get(NODES, "n1")
            token.unlink()
            client.get(NODES, "n1")
            api.tokens = {}
            with pytest.raises(Unauthorized):
                client.get(NODES, "n1")

            # The last one was tried twice: the token might have been swapped.
            statuses = [200, 200, 200, 401, 401]
            assert statuses == [asked.status for asked in api.requests]


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("https://10.0.0.1:6443", ("10.0.0.1", 6443, "", True)),
        ("https://[fd00::1]:6443/", ("fd00::1", 6443, "", True)),
        ("http://localhost:8080", ("localhost", 8080, "", False)),
        (
            "https://example.com/k8s/clusters/c1",
            ("example.com", 443, "/k8s/clusters/c1", True),
        ),
        ("example.com:6443", ("example.com", 6443, "", True)),
    ],
)
def test_addresses(server: str, expected: tuple[str, int, str, bool]) -> None:
    found = address(server)
    assert expected == (found.host, found.port, found.prefix, found.tls)


@pytest.mark.parametrize("server", ["", "ftp://x", "https://", "https://x:port"])
def test_what_is_no_address(server: str) -> None:
    with pytest.raises(ConfigError, match=r"^server: "):
        address(server)
