"""The fake API server: what tests start, fill, break and ask."""

import copy
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from http.server import ThreadingHTTPServer
from typing import Any, Self

import attrs

from nfd.kube.client import Client
from nfd.kube.connect import TransportName, client
from nfd.kube.resources import NODES, JsonObject, Resource
from nfd.kube.transport import Connection
from tests.fakeapi import refusals
from tests.fakeapi.answers import Admission
from tests.fakeapi.certificates import server_files
from tests.fakeapi.faults import Asked, Fault, Switch
from tests.fakeapi.handler import Handler
from tests.fakeapi.routes import Route, known
from tests.fakeapi.store import Store, Write
from tests.fakeapi.watches import Watches

_NO_FAULT = Fault()
WAIT = 10.0


@attrs.define
class Denial:
    """A permission that is missing; "*" means any."""

    verb: str
    resource: str
    namespace: str = "*"
    user: str = "*"

    def covers(self, asked: Asked) -> bool:
        pairs = (
            (self.verb, asked.verb),
            (self.resource, asked.resource),
            (self.namespace, asked.namespace),
            (self.user, asked.user),
        )
        return all(rule in {"*", value} for rule, value in pairs)


class FakeApi:
    """An API server in this process. Use it as a context manager.

    Attributes:
        url: where it listens.
        requests: everything asked so far, oldest first.
        admission: hooks that see each write and may raise a `Refusal`.
        denials: missing permissions; see `deny`.
        permitted: when set, the only (verb, resource) pairs allowed.
        tokens: bearer token to user; when set, anyone else gets 401.
        streaming_lists: whether `sendInitialEvents` is served.
        served: the resources, see `serve`.

    """

    def __init__(self, *, tls: bool = False, host: str = "127.0.0.1") -> None:
        self.store = Store()
        self.watches = Watches(self.store)
        self.requests: list[Asked] = []
        self.admission: list[Admission] = []
        self.denials: list[Denial] = []
        self.permitted: set[tuple[str, str]] | None = None
        self.tokens: dict[str, str] | None = None
        self.streaming_lists = True
        self.served = known()
        self.stopping = threading.Event()
        self.in_flight = 0
        self._switches: list[Switch] = []
        self._noted = threading.Condition()
        self._tls = tls
        self._server = _Server(self, host, tls=tls)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="fakeapi"
        )
        self._clients: list[Client] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._server.failures:
            raise self._server.failures[0]

    def stop(self) -> None:
        """Cut every connection and stop listening."""
        self.stopping.set()
        for switch in self._switches:
            switch.lift()
        self.watches.end()
        for each in self._clients:
            each.transport.close()
        self._server.shutdown()
        self._server.cut_all()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        host, port = str(self._server.server_address[0]), self._server.server_port
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self._tls else 'http'}://{shown}:{port}"

    @property
    def ca_file(self) -> str:
        """The certificate authority's file, "" without TLS."""
        return server_files()[0] if self._tls else ""

    def connection(self, **attributes: Any) -> Connection:
        return Connection(server=self.url, ca_file=self.ca_file, **attributes)

    def client(
        self,
        component: str = "test",
        *,
        transport: TransportName = "http",
        connection: Connection | None = None,
        **attributes: Any,
    ) -> Client:
        """A client of ours, closed when the server stops."""
        made = client(
            component,
            connection or self.connection(),
            transport=transport,
            **attributes,
        )
        self._clients.append(made)
        return made

    # What is in it, past HTTP, permissions and faults.

    def put(
        self, resource: Resource, obj: Mapping[str, Any], **write: Any
    ) -> JsonObject:
        """Create an object, or replace it; `write` holds attributes of `Write`."""
        new = copy.deepcopy(dict(obj))
        metadata = new.get("metadata", {})
        key = (metadata.get("namespace", ""), metadata.get("name", ""))
        done = Write(**write)
        if self.store.find(resource, key) is None:
            return self.store.create(resource, new, done)
        metadata.pop("resourceVersion", None)
        metadata.pop("uid", None)
        return self.store.update(resource, key, lambda _: new, done)

    def get(self, resource: Resource, name: str, namespace: str = "") -> JsonObject:
        """A copy of an object; a `Refusal` where there is none."""
        return copy.deepcopy(self.store.get(resource, (namespace, name)))

    def all(self, resource: Resource, namespace: str = "") -> list[JsonObject]:
        return self.store.all(resource, namespace, lambda _: True)

    def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        self.store.delete(resource, (namespace, name), {}, Write())

    def node(self, name: str, labels: Mapping[str, str] | None = None) -> JsonObject:
        """Put a Node."""
        metadata = {"name": name, "labels": dict(labels or {})}
        return self.put(NODES, {"metadata": metadata, "spec": {}, "status": {}})

    def serve(self, resource: Resource) -> None:
        """Serve one more resource, as if its definition had been created."""
        self.served[resource.group, resource.version, resource.plural] = resource

    def stop_serving(self, resource: Resource) -> None:
        """Answer 404 for a resource, as if its definition were missing."""
        del self.served[resource.group, resource.version, resource.plural]

    # How it misbehaves.

    def fault(
        self,
        fault: Fault,
        *,
        times: int | None = 1,
        when: Callable[[Asked], bool] | None = None,
        **equal: str,
    ) -> Switch:
        """Do that to the next `times` requests (None: all) that match.

        `equal` names attributes of `Asked`, such as verb, resource, name, user_agent.
        """

        def matches(asked: Asked) -> bool:
            same = all(getattr(asked, k) == v for k, v in equal.items())
            return same and (when is None or when(asked))

        switch = Switch(fault, matches, times)
        self._switches.append(switch)
        return switch

    def deny(self, verb: str, resource: str, **where: str) -> Denial:
        """Take a permission away; remove it from `denials` to give it back."""
        denial = Denial(verb, resource, **where)
        self.denials.append(denial)
        return denial

    def compact(self) -> None:
        """Forget the past: old continue tokens and versions answer 410."""
        self.store.compact()

    def bookmark(self) -> None:
        """Send a bookmark on every watch that allows them."""
        self.watches.bookmark()

    def end_watches(self) -> None:
        """End every watch, as a server does after its time-out."""
        self.watches.end()

    def cut_connections(self) -> None:
        """Hang up on everyone, as a server that restarts does."""
        self._server.cut_all()

    # What was asked.

    def asked(self, **equal: str) -> list[Asked]:
        """The requests so far that match, oldest first."""
        with self._noted:
            return [
                a
                for a in self.requests
                if all(getattr(a, k) == v for k, v in equal.items())
            ]

    def wait_for(self, condition: Callable[[], bool], seconds: float = WAIT) -> None:
        """Return once a condition on requests, objects or anything else holds.

        Raises:
            AssertionError: It does not in time; lists what was asked.

        """
        deadline = time.monotonic() + seconds
        with self._noted:
            while not condition():
                if time.monotonic() > deadline:
                    seen = [f"{a.verb} {a.resource} {a.status}" for a in self.requests]
                    raise AssertionError(f"not within {seconds} s; asked: {seen}")
                self._noted.wait(0.02)

    @property
    def connections(self) -> int:
        """How many connections have been accepted so far."""
        return self._server.accepted

    def wait_for_requests(self, count: int, **equal: str) -> list[Asked]:
        """Wait for so many matching requests that were answered; return them."""
        self.wait_for(
            lambda: len([a for a in self.asked(**equal) if a.status]) >= count
        )
        return self.asked(**equal)

    # For the handler.

    def note(self, asked: Asked) -> None:
        with self._noted:
            self.requests.append(asked)
            self._noted.notify_all()

    def answered(self, asked: Asked, status: int) -> None:
        with self._noted:
            asked.status = status
            self._noted.notify_all()

    def take(self, asked: Asked) -> Fault:
        with self._noted:
            taken = next((s for s in self._switches if s.take(asked)), None)
        return taken.fault if taken else _NO_FAULT

    def pause(self, fault: Fault) -> None:
        """Hold a request as its fault says, while the server runs."""
        if fault.seconds:
            self.stopping.wait(fault.seconds)
        if fault.hold is not None:
            fault.hold.wait()

    def keep_silent(self, reader_left: Callable[[], bool]) -> None:
        """Return when the reader of a stream has left, or the server stops."""
        while not reader_left():
            self.stopping.wait(0.02)

    def user_of(self, headers: Message, connection: socket.socket) -> str:
        """The common name of a client certificate, else whose token it is."""
        if isinstance(connection, ssl.SSLSocket):
            certificate = connection.getpeercert() or {}
            for part in certificate.get("subject", ()):
                return str(dict(part)["commonName"])  # type: ignore[arg-type] # typeshed knows no nesting
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        return (self.tokens or {}).get(token, "")

    def authenticate(self, asked: Asked) -> None:
        if self.tokens is not None and not asked.user:
            raise refusals.unauthorized()

    def authorise(self, asked: Asked, found: Route) -> None:
        pair = (asked.verb, asked.resource)
        denied = any(d.covers(asked) for d in self.denials)
        if denied or (self.permitted is not None and pair not in self.permitted):
            raise refusals.not_permitted(
                asked.user or "system:serviceaccount:nfd:nfd",
                asked.verb,
                found.resource,
                found.subresource,
                found.name,
                found.namespace,
            )

    @contextmanager
    def handling(self, asked: Asked) -> Iterator[None]:
        """Count a request that is no watch while it is carried out.

        Its sender may have left: then it is carried out all the same.
        """
        count = asked.verb != "watch"
        with self._noted:
            self.in_flight += count
        try:
            yield
        finally:
            with self._noted:
                self.in_flight -= count
                self._noted.notify_all()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count an open watch."""
        with self._noted:
            self.watches.open += 1
            self._noted.notify_all()
        try:
            yield
        finally:
            with self._noted:
                self.watches.open -= 1
                self._noted.notify_all()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for every handler

    def __init__(self, api: FakeApi, host: str, *, tls: bool) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, 0), type("ApiHandler", (Handler,), {"api": api}))
        self.failures: list[BaseException] = []
        self.accepted = 0
        self._api = api
        self._context = _context() if tls else None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        if self._context is not None:
            connection = self._context.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        with self._lock:
            self.accepted += 1
            self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def cut_all(self) -> None:
        with self._lock:
            for connection in self._open:
                try:
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)
                except OSError:
                    continue  # closed meanwhile

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """A broken connection is the client's business; anything else is a defect."""
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            self.failures.append(error)


def _context() -> ssl.SSLContext:
    authority, server = server_files()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server)
    context.load_verify_locations(authority)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context
