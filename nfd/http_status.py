"""A tiny HTTP server for `/metrics`, `/healthz` and `/readyz` of the agents.

One thread serves everybody without ever waiting for one of them, so that a slow or
silent client cannot keep a probe from its answer. Requests are GET and HEAD, every
answer closes the connection.
"""

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Self

import attrs

PLAIN = "text/plain; charset=utf-8"
_MOST = 64  # connections at the same time
_PATIENCE = 5.0  # seconds a connection may last
_MOST_REQUEST = 8192  # bytes
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


@attrs.frozen(slots=True)
class Answer:
    """What a path answers."""

    body: str = ""
    status: int = 200
    content_type: str = PLAIN


Routes = Mapping[str, Callable[[], Answer]]


@attrs.define(slots=True, eq=False)
class _Client:
    sock: socket.socket
    until: float
    received: bytes = b""
    left: memoryview = attrs.field(factory=lambda: memoryview(b""))


class StatusServer:
    """Serves `routes` (path → function) from a thread until it is closed."""

    def __init__(self, port: int, routes: Routes, host: str = "") -> None:
        """Listen on `port` (0: any) of all addresses, or of `host`.

        Raises:
            OSError: The port cannot be had.

        """
        self._routes = routes
        self._listener = _listen(host, port)
        self._clients: dict[int, _Client] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._wake, self._waker = socket.socketpair()
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._thread = threading.Thread(
            target=self._serve, name="nfd-status", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        """Stop listening and drop all connections."""
        self._waker.close()
        self._thread.join()

    def _serve(self) -> None:
        try:
            while True:
                for key, _ in self._selector.select(self._next_end()):
                    if key.fileobj is self._wake:
                        return
                    if key.fileobj is self._listener:
                        self._accept()
                    else:
                        self._go_on(key.data)
                now = time.monotonic()
                for client in list(self._clients.values()):
                    if client.until <= now:
                        self._drop(client)
        finally:
            for client in list(self._clients.values()):
                self._drop(client)
            self._selector.close()
            self._listener.close()
            self._wake.close()

    def _next_end(self) -> float | None:
        ends = [client.until for client in self._clients.values()]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return  # it went away again, or no descriptor is free
        sock.settimeout(0)
        if len(self._clients) >= _MOST:
            self._drop(next(iter(self._clients.values())))  # the oldest
        client = _Client(sock, time.monotonic() + _PATIENCE)
        self._clients[sock.fileno()] = client
        self._selector.register(sock, selectors.EVENT_READ, client)

    def _drop(self, client: _Client) -> None:
        self._clients.pop(client.sock.fileno(), None)
        with contextlib.suppress(KeyError):
            self._selector.unregister(client.sock)
        client.sock.close()

    def _go_on(self, client: _Client) -> None:
        try:
            if client.left:
                client.left = client.left[client.sock.send(client.left) :]
                if not client.left:
                    self._drop(client)
                return
            data = client.sock.recv(_MOST_REQUEST)
        except BlockingIOError:
            return
        except OSError:
            self._drop(client)
            return
        client.received += data
        whole = b"\r\n\r\n" in client.received or b"\n\n" in client.received
        if not whole and data and len(client.received) < _MOST_REQUEST:
            return
        if not data and not whole:
            self._drop(client)
            return
        client.left = memoryview(self._answer(client.received))
        self._selector.modify(client.sock, selectors.EVENT_WRITE, client)

    def _answer(self, request: bytes) -> bytes:
        words = request.split(b"\n", 1)[0].decode("latin-1").split()
        method, target = (words[0], words[1]) if len(words) > 1 else ("", "")
        route = self._routes.get(target.partition("?")[0])
        if not target.startswith("/"):
            answer = Answer("bad request\n", 400)
        elif method not in {"GET", "HEAD"}:
            answer = Answer("only GET and HEAD\n", 405)
        elif route is None:
            answer = Answer("not found\n", 404)
        else:
            try:
                answer = route()
            except Exception as error:  # noqa: BLE001 - a defect costs one answer
                answer = Answer(f"{type(error).__name__}: {error}\n", 500)
        body = answer.body.encode()
        head = (
            f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Status')}\r\n"
            f"Content-Type: {answer.content_type}\r\n"
            f"Content-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        return head.encode() + (b"" if method == "HEAD" else body)


def _listen(host: str, port: int) -> socket.socket:
    if host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return _bound(family, host, port)
    try:
        return _bound(socket.AF_INET6, "::", port)
    except OSError as error:
        try:
            return _bound(socket.AF_INET, "0.0.0.0", port)  # noqa: S104 - probes come from the node
        except OSError:
            raise error from None


def _bound(family: int, host: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and host == "::":
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((host, port))
        sock.listen(16)
        sock.settimeout(0)
    except BaseException:
        sock.close()
        raise
    return sock
