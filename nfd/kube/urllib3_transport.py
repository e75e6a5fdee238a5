"""Transport on urllib3: its connection pool, and its view of HTTP."""

import http.client
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError

from nfd.kube.clock import Stop
from nfd.kube.errors import TransportError
from nfd.kube.transport import (
    CHUNK,
    CONNECT_TIMEOUT,
    Connection,
    Response,
    Tls,
    address,
    interrupt,
    keep_alive_options,
)

_BROKEN = (HTTPError, http.client.HTTPException, OSError)
_in_use = threading.local()


class Urllib3Transport:
    """Keeps up to `idle` connections open between requests; threads may share it.

    While it connects (`connect_timeout` at most) it cannot be interrupted.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        idle: int = 4,
        connect_timeout: float = CONNECT_TIMEOUT,
    ) -> None:
        self._address = address(connection.server)
        self._tls = Tls(connection) if self._address.tls else None
        self._server_name = connection.server_name or None
        self._connect_timeout = connect_timeout
        self._idle = idle
        self._lock = threading.Lock()
        self._context: Any = None
        self._pool: HTTPConnectionPool | None = None

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
        wait = urllib3.Timeout(
            connect=min(timeout, self._connect_timeout), read=timeout
        )
        pool = self._current_pool()
        deadline = None if stream else time.monotonic() + timeout
        wire = _in_use.wire = _Wire()
        stop = stop or Stop()
        try:
            with stop.calling(wire.interrupt):
                answer = pool.urlopen(
                    method,
                    target,
                    body=body,
                    headers=headers,
                    retries=False,
                    redirect=False,
                    assert_same_host=False,
                    timeout=wait,
                    preload_content=False,
                    decode_content=False,
                )
        except _BROKEN as error:
            raise _failure(error, stop) from error
        return _Urllib3Response(answer, wire, deadline, stop)

    def close(self) -> None:
        """Close idle connections; the next request opens a new one."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _current_pool(self) -> HTTPConnectionPool:
        context = self._tls.context() if self._tls else None
        with self._lock:
            if self._pool is None or context is not self._context:
                self._context = context
                self._pool = self._new_pool()
            return self._pool

    def _new_pool(self) -> HTTPConnectionPool:
        host = self._address.host
        host = f"[{host}]" if ":" in host else host
        options: dict[str, Any] = {
            "maxsize": self._idle,
            "socket_options": keep_alive_options(),
        }
        if self._context is None:
            plain = HTTPConnectionPool(host, self._address.port, **options)
            plain.ConnectionCls = _PlainConnection
            return plain
        pool = HTTPSConnectionPool(
            host,
            self._address.port,
            ssl_context=self._context,
            server_hostname=self._server_name,
            **options,
        )
        pool.ConnectionCls = _TlsConnection
        return pool


class _Wire:
    """Finds the socket under a request, which urllib3 does not tell of."""

    def __init__(self) -> None:
        self.connection: HTTPConnection | None = None

    def interrupt(self) -> None:
        sock = self.connection.sock if self.connection else None
        if sock is not None:
            interrupt(sock)

    def settimeout(self, seconds: float) -> None:
        sock = self.connection.sock if self.connection else None
        if sock is not None:
            sock.settimeout(seconds)


class _PlainConnection(HTTPConnection):
    def request(self, *arguments: Any, **options: Any) -> None:
        _in_use.wire.connection = self
        super().request(*arguments, **options)


class _TlsConnection(HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        # Who does not verify said so; a warning on every request helps nobody.
        self.is_verified = True

    def request(self, *arguments: Any, **options: Any) -> None:
        _in_use.wire.connection = self
        super().request(*arguments, **options)


class _Urllib3Response:
    """urllib3 gives the connection back once the body was read whole."""

    def __init__(
        self,
        answer: urllib3.BaseHTTPResponse,
        wire: _Wire,
        deadline: float | None,
        stop: Stop,
    ) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = {
            name.lower(): value for name, value in answer.headers.items()
        }
        self._answer = answer
        self._wire = wire
        self._deadline = deadline
        self._stop = stop

    def read(self) -> bytes:
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        try:
            with self._stop.calling(self._wire.interrupt):
                while data := self._answer.read1(CHUNK, decode_content=False):
                    yield data
                    self._keep_deadline()
        except _BROKEN as error:
            self.close()
            raise _failure(error, self._stop) from error
        except BaseException:
            self.close()
            raise
        if self._stop.is_set():
            self.close()
            raise TransportError("stopped")
        self._answer.release_conn()

    def patience(self, seconds: float) -> None:
        self._wire.settimeout(seconds)

    def close(self) -> None:
        self._answer.close()

    def _keep_deadline(self) -> None:
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._wire.settimeout(left)


def _failure(error: Exception, stop: Stop) -> TransportError:
    return TransportError("stopped") if stop.is_set() else TransportError.of(error)
