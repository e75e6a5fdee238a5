"""Transport on the standard library's http.client: no dependency, little memory."""

import http.client
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from urllib.parse import urlencode

from nfd.kube.clock import Stop
from nfd.kube.errors import TransportError
from nfd.kube.transport import (
    CHUNK,
    CONNECT_TIMEOUT,
    Address,
    Connection,
    Response,
    Tls,
    address,
    interrupt,
    keep_alive_options,
)


class HttpTransport:
    """Keeps up to `idle` connections open between requests; threads may share it."""

    def __init__(
        self,
        connection: Connection,
        *,
        idle: int = 4,
        connect_timeout: float = CONNECT_TIMEOUT,
    ) -> None:
        self._address = address(connection.server)
        self._tls = Tls(connection) if self._address.tls else None
        self._server_name = connection.server_name or self._address.host
        self._connect_timeout = connect_timeout
        self._most_idle = idle
        self._idle: list[_Wire] = []
        self._lock = threading.Lock()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float,
        stream: bool,
        stop: Stop | None,
    ) -> Response:
        """See `Transport.request`."""
        target = self._address.prefix + path + ("?" + urlencode(query) if query else "")
        wire = self._take(min(timeout, self._connect_timeout), stop)
        deadline = None if stream else time.monotonic() + timeout
        try:
            wire.sock.settimeout(timeout)
            with _interruptible(wire.sock, stop):
                wire.request(method, target, body, dict(headers))
                answer = wire.getresponse()
        except (OSError, http.client.HTTPException) as error:
            wire.close()
            raise _failure(error, stop) from error
        except BaseException:
            wire.close()
            raise
        return _HttpResponse(self, wire, answer, deadline, stop)

    def close(self) -> None:
        """Close idle connections; the next request opens a new one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for wire in idle:
            wire.close()

    def _take(self, timeout: float, stop: Stop | None) -> "_Wire":
        context = self._tls.context() if self._tls else None
        while True:
            with self._lock:
                wire = self._idle.pop() if self._idle else None
            if wire is None:
                break
            if wire.context is context and not _readable(wire.sock):
                return wire
            wire.close()  # the server hung up while it lay idle, or files were rotated
        wire = _Wire(self._address, self._server_name, context, timeout)
        wire.stop = stop
        try:
            wire.connect()
        except OSError as error:
            raise _failure(error, stop) from error
        return wire

    def _give_back(self, wire: "_Wire") -> None:
        with self._lock:
            if len(self._idle) < self._most_idle:
                self._idle.append(wire)
                return
        wire.close()


class _Wire(http.client.HTTPConnection):
    """One connection: http.client's, with our socket options and TLS name."""

    auto_open = 0  # a lost connection is an error to report, not to paper over
    sock: socket.socket
    stop: Stop | None = None

    def __init__(
        self, to: Address, server_name: str, context: ssl.SSLContext | None, wait: float
    ) -> None:
        super().__init__(to.host, to.port, timeout=wait)
        self.context = context
        self._server_name = server_name

    def connect(self) -> None:
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        *others, last = found
        for family, _, _, _, where in others:
            try:
                self.sock = self._connect(family, where)
            except OSError:
                continue  # of several addresses the last one's error is told
            return
        self.sock = self._connect(last[0], last[4])

    def _connect(self, family: int, where: Any) -> socket.socket:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.settimeout(self.timeout)
            for option in keep_alive_options():
                sock.setsockopt(*option)
            with _interruptible(sock, self.stop):
                sock.connect(where)
            if self.context is not None:
                sock = self.context.wrap_socket(
                    sock,
                    server_hostname=self._server_name,
                    do_handshake_on_connect=False,
                )
                with _interruptible(sock, self.stop):
                    sock.do_handshake()
        except BaseException:
            sock.close()
            raise
        return sock


class _HttpResponse:
    """The answer on one wire; gives the wire back once the body was read whole."""

    def __init__(
        self,
        transport: HttpTransport,
        wire: _Wire,
        answer: http.client.HTTPResponse,
        deadline: float | None,
        stop: Stop | None,
    ) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = {
            name.lower(): value for name, value in answer.getheaders()
        }
        self._transport = transport
        self._wire: _Wire | None = wire
        self._sock = wire.sock  # http.client forgets it when the server will close
        self._answer = answer
        self._deadline = deadline
        self._stop = stop

    def read(self) -> bytes:
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        left = self._answer.length  # None where the body is chunked or ends by close
        try:
            with _interruptible(self._sock, self._stop):
                while left is None or left > 0:
                    self._keep_deadline()
                    data = self._answer.read1(CHUNK if left is None else left)
                    if not data:
                        break
                    left = None if left is None else left - len(data)
                    yield data
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise _failure(error, self._stop) from error
        except BaseException:
            self.close()
            raise
        if left or (self._stop is not None and self._stop.is_set()):
            self.close()
            raise TransportError(f"body ends {left} bytes early" if left else "stopped")
        self._finish()

    def patience(self, seconds: float) -> None:
        self._sock.settimeout(seconds)

    def close(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            self._answer.close()
            wire.close()

    def _finish(self) -> None:
        wire, self._wire = self._wire, None
        if wire is None:
            return
        self._answer.close()
        if self._answer.will_close:
            wire.close()
        else:
            self._transport._give_back(wire)  # noqa: SLF001 - two halves of one thing

    def _keep_deadline(self) -> None:
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._sock.settimeout(left)


def _interruptible(
    sock: socket.socket, stop: Stop | None
) -> AbstractContextManager[None]:
    if stop is None:
        return nullcontext()
    return stop.calling(lambda: interrupt(sock))


def _readable(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _failure(error: Exception, stop: Stop | None) -> TransportError:
    if stop is not None and stop.is_set():
        return TransportError("stopped")
    return TransportError.of(error)
