"""HTTP for the fake API server: connections, framing, and breaking both on demand."""

import json
import os
import select
import socket
import ssl
import struct
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from tests.fakeapi import refusals
from tests.fakeapi.answers import discovery, reply
from tests.fakeapi.faults import Asked, Fault
from tests.fakeapi.routes import Route, route

if TYPE_CHECKING:
    from tests.fakeapi.server import FakeApi


class CutError(Exception):
    """The connection was cut on purpose."""


class Handler(BaseHTTPRequestHandler):
    """One connection; `api` is set by the server's subclass."""

    api: "FakeApi"
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body leave in one piece

    def setup(self) -> None:
        super().setup()
        if isinstance(self.connection, ssl.SSLSocket):
            self.connection.do_handshake()

    def handle(self) -> None:
        try:
            super().handle()
        except CutError:
            self.close_connection = True

    def finish(self) -> None:
        try:
            super().finish()
        except OSError:
            self.close_connection = True  # the client left before it had everything
        finally:
            self.rfile.close()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """The request log is `FakeApi.requests`."""

    def do_GET(self) -> None:
        asked = self._asked()
        found = self._route(asked)
        self.api.note(asked)
        fault = self.api.take(asked)
        with self.api.handling(asked):
            try:
                self._answer(asked, found, fault)
            except refusals.Refusal as refusal:
                self._send_json(asked, refusal.status, refusal.body(), refusal.headers)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

    def _answer(self, asked: Asked, found: Route | None, fault: Fault) -> None:
        self.api.pause(fault)
        if fault.reset:
            self._cut()
        if fault.refusal is not None:
            raise fault.refusal
        if fault.status_line:
            self._send(asked, 200, fault.status_line, {"Content-Type": "text/html"})
            return
        self.api.authenticate(asked)
        if found is None:
            self._send_json(asked, 200, self._other(asked.path))
            return
        self.api.authorise(asked, found)
        if asked.verb == "watch":
            self._watch(asked, found, fault)
            return
        if found.subresource == "log":
            self._send(asked, 200, self._log(found), {"Content-Type": "text/plain"})
            return
        status, body = reply(self.api.store, found, asked, self.api.admission)
        if fault.empty:
            body = {**body, "items": []}
            body["metadata"] = {"resourceVersion": body["metadata"]["resourceVersion"]}
        if fault.lose_answer:
            self._cut()
        self._send_json(asked, status, body, truncate=fault.truncate)

    def _log(self, found: Route) -> bytes:
        """What a Pod printed is kept in an annotation."""
        pod = self.api.get(found.resource, found.name, found.namespace)
        said: str = pod["metadata"]["annotations"]["fakeapi/log"]
        return said.encode()

    def _other(self, path: str) -> Any:
        if path in {"/readyz", "/livez", "/healthz"}:
            return "ok"
        served = list(self.api.served.values())
        found = discovery(path, served, self.api.store.status_subresources)
        if found is None:
            raise refusals.no_such_resource()
        return found

    def _asked(self) -> Asked:
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        return Asked(
            method=self.command,
            path=url.path,
            query=dict(parse_qsl(url.query, keep_blank_values=True)),
            headers={k.lower(): v for k, v in self.headers.items()},
            body=self.rfile.read(length) if length else b"",
            user=self.api.user_of(self.headers, self.connection),
        )

    def _route(self, asked: Asked) -> Route | None:
        """What the path is about, noted in `asked`; None where it is no resource."""
        try:
            found = route(asked.path, self.api.served)
        except refusals.Refusal:
            return None
        watch = asked.query.get("watch", "") in {"1", "true"}
        asked.verb = found.verb(asked.method, watch=watch)
        plural, sub = found.resource.plural, found.subresource
        asked.resource = f"{plural}/{sub}" if sub else plural
        asked.namespace, asked.name = found.namespace, found.name
        return found

    def _watch(self, asked: Asked, found: Route, fault: Fault) -> None:
        query = asked.query
        if query.get("sendInitialEvents") == "true":
            if not self.api.streaming_lists:
                raise refusals.no_streaming_lists()
            if query.get("resourceVersionMatch") != "NotOlderThan":
                why = "sendInitialEvents requires setting resourceVersionMatch"
                raise refusals.Refusal(422, "Invalid", why)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        self.api.answered(asked, 200)
        with self.api.watching():
            if fault.silent:
                self.api.keep_silent(self._reader_left)
                self._cut()
            if not fault.close_stream:
                stream = self.api.watches.stream(found, asked, self._reader_left)
                self._send_lines(stream, fault.truncate)
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _send_lines(self, lines: Iterable[bytes], truncate: int | None) -> None:
        sent = 0
        for line in lines:
            if truncate is not None and sent + len(line) > truncate:
                part = line[: truncate - sent]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
                self._cut()
            sent += len(line)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()

    def _send_json(
        self,
        asked: Asked,
        status: int,
        body: Any,
        headers: dict[str, str] | None = None,
        *,
        truncate: int | None = None,
    ) -> None:
        text = json.dumps(body, separators=(",", ":")).encode()
        kind = {"Content-Type": "application/json"}
        self._send(asked, status, text, kind | (headers or {}), truncate=truncate)

    def _send(
        self,
        asked: Asked,
        status: int,
        body: bytes,
        headers: dict[str, str],
        *,
        truncate: int | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if truncate is not None:
            self.wfile.write(body[:truncate])
            self.wfile.flush()
            self._cut()
        self.wfile.write(body)
        self.api.answered(asked, status)
        self.wfile.flush()

    def _reader_left(self) -> bool:
        if self.api.stopping.is_set():
            return True
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable)

    def _cut(self) -> None:
        """Reset the connection, whatever is still on its way."""
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        os.close(self.connection.detach())
        raise CutError
