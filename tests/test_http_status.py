"""The server of probes and metrics."""

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from nfd.http_status import Answer, StatusServer


def broken() -> Answer:
    raise RuntimeError("boom")


@pytest.fixture
def server() -> Iterator[StatusServer]:
    routes = {
        "/healthz": Answer,
        "/readyz": lambda: Answer("no: source pci\n", 503),
        "/metrics": lambda: Answer("x 1\n" * 100_000),
        "/broken": broken,
    }
    with StatusServer(0, routes, "127.0.0.1") as running:
        yield running


def get(server: StatusServer, path: str, method: str = "GET") -> tuple[int, str]:
    url = f"http://127.0.0.1:{server.port}{path}"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, method=method), timeout=5
        ) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_answers(server: StatusServer) -> None:
    assert get(server, "/healthz") == (200, "")
    assert get(server, "/readyz?verbose") == (503, "no: source pci\n")
    assert get(server, "/metrics") == (200, "x 1\n" * 100_000)
    assert get(server, "/metrics", "HEAD") == (200, "")
    assert get(server, "/nope") == (404, "not found\n")
    assert get(server, "/healthz", "POST") == (405, "only GET and HEAD\n")
    assert get(server, "/broken") == (500, "RuntimeError: boom\n")


def test_silent_clients_keep_nobody_waiting(server: StatusServer) -> None:
    """More of them than it holds: the oldest go."""
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(80)]
    try:
        assert get(server, "/healthz") == (200, "")
    finally:
        for each in silent:
            each.close()


def test_a_taken_port_is_an_error(server: StatusServer) -> None:
    with pytest.raises(OSError, match="in use"):
        StatusServer(server.port, {}, "127.0.0.1")


def test_garbage_is_answered(server: StatusServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.sendall(b"\x16\x03\x01\x00\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 400")
