"""The seam below the client: one HTTP request to the API server, and its answer."""

import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol
from urllib.parse import urlsplit

import attrs

from nfd.errors import ConfigError
from nfd.kube.clock import Stop

CONNECT_TIMEOUT = 5.0
CHUNK = 256 * 1024


class Response(Protocol):
    """An answer whose body is read once, whole or as it arrives.

    Header names are lower case. Reading raises `TransportError` when the body ends
    early, nothing arrives within the time-out, or the request's `stop` is set.
    """

    @property
    def status(self) -> int:
        """HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers by lower-case name."""
        ...

    def read(self) -> bytes:
        """Return the rest of the body."""
        ...

    def chunks(self) -> Iterator[bytes]:
        """Yield the body piece by piece as it arrives, never an empty piece."""
        ...

    def patience(self, seconds: float) -> None:
        """Wait so long for each further piece."""
        ...

    def close(self) -> None:
        """Give the connection back, or drop it when the body was not read whole."""
        ...


class Transport(Protocol):
    """Sends one request; knows nothing of Kubernetes. Threads may share it.

    `path` starts with `/` and is quoted already, `query` is not. `timeout` is in
    seconds: for the whole exchange, or between two pieces where `stream` is set.
    Setting `stop` ends a blocked request with an error. Redirects are not followed.

    Raises:
        TransportError: There is no complete answer.

    """

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
        """Return the answer; its body has not been read."""
        ...

    def close(self) -> None:
        """Close idle connections."""
        ...


@attrs.frozen(slots=True)
class Connection:
    """How to reach and trust one API server, and who to be there.

    `server` is a URL such as `https://[fd00::1]:6443`. Certificates are PEM text or
    files; `token` is called for each request. `namespace` is the context's, or "".
    """

    server: str
    ca_file: str = ""
    ca_data: str = ""
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    cert_data: str = attrs.field(default="", repr=False)
    key_data: str = attrs.field(default="", repr=False)
    token: Callable[[], str] | None = attrs.field(default=None, repr=False)
    username: str = ""
    password: str = attrs.field(default="", repr=False)
    namespace: str = ""


@attrs.frozen(slots=True)
class Address:
    """Host without brackets, port, path prefix and whether TLS is spoken."""

    host: str
    port: int
    prefix: str
    tls: bool


def address(server: str) -> Address:
    """Split a server URL; a missing scheme means https, as in kubeconfig files.

    Raises:
        ConfigError: It is no URL of a server.

    """
    url = server if "://" in server else f"https://{server}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"server: {server!r}: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(f"server: {server!r} is no http or https URL")
    tls = parts.scheme == "https"
    return Address(
        parts.hostname, port or (443 if tls else 80), parts.path.rstrip("/"), tls
    )


class Tls:
    """The TLS context of a connection, made again when its files are rotated."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] = ()
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Return the context for a new connection.

        Raises:
            ConfigError: A certificate or key cannot be loaded.

        """
        c = self._connection
        stamp = tuple(_changed(f) for f in (c.ca_file, c.cert_file, c.key_file) if f)
        with self._lock:
            if self._context is None or stamp != self._stamp:
                self._context = _new_context(c)
                self._stamp = stamp
            return self._context


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _new_context(c: Connection) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if c.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif c.ca_file or c.ca_data:
            # Only this one: the system's store costs megabytes and is not meant.
            context.load_verify_locations(c.ca_file or None, cadata=c.ca_data or None)
        else:
            context.load_default_certs()
        if c.cert_file:
            context.load_cert_chain(c.cert_file, c.key_file or None)
        elif c.cert_data:
            _load_chain(context, c.cert_data, c.key_data)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{c.server}: TLS files: {error}") from error
    return context


def _load_chain(context: ssl.SSLContext, certificate: str, key: str) -> None:
    # OpenSSL reads chains from files only; this one is in memory and has no name.
    with open(os.memfd_create("chain"), "wb") as file:
        file.write(f"{certificate}\n{key}\n".encode())
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")


def keep_alive_options() -> list[tuple[int, int, int]]:
    """Return socket options by which the kernel finds a dead peer within a minute."""
    return [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
        (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000),
    ]


def interrupt(sock: socket.socket) -> None:
    """Wake whoever is blocked on a socket; it then sees the end of the stream."""
    try:
        # Not SSLSocket's own: it takes the TLS state away under the reader.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        return  # closed already: nobody is blocked on it
