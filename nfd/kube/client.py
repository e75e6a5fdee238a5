"""A thin REST client: one method a verb, errors that name the request."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

import attrs

from nfd.errors import ConfigError
from nfd.kube.answers import Target, decode, status_of
from nfd.kube.clock import SYSTEM_CLOCK, Clock, Stop
from nfd.kube.errors import ApiError, NotFound, TransportError, Unauthorized
from nfd.kube.listing import ListMetadata, items
from nfd.kube.patch import Operation
from nfd.kube.resources import JsonObject, Resource
from nfd.kube.retry import RETRY, RetryPolicy
from nfd.kube.transport import Response, Transport
from nfd.kube.watch import Watch

_JSON = "application/json"
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_PARTIAL = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"

_T = TypeVar("_T")


@attrs.frozen(slots=True, kw_only=True)
class Client:
    """Talks to one API server; threads may share it. All objects are plain dicts.

    `authorization` returns the value of that header, asked before each request.
    `field_manager` is what managedFields will say of our writes. `timeout` is for
    one try, in seconds. `stop` interrupts requests and waits. Every method raises
    `ApiError` or one of its kinds.
    """

    transport: Transport
    authorization: Callable[[], str] | None = None
    user_agent: str = "nfd"
    field_manager: str = ""
    timeout: float = 30.0
    retry: RetryPolicy = RETRY
    clock: Clock = SYSTEM_CLOCK
    stop: Stop = attrs.field(factory=Stop)

    def but(self, **changes: Any) -> Self:
        """Return a client that differs in the given attributes."""
        return attrs.evolve(self, **changes)

    def get(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        metadata_only: bool = False,
    ) -> JsonObject:
        """Return one object, or its PartialObjectMetadata."""
        target = Target("get", resource, name, namespace)
        return self._object("GET", target, accept=_accept("", metadata_only))

    def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        metadata_only: bool = False,
        metadata: ListMetadata | None = None,
    ) -> Iterator[JsonObject]:
        """Yield the objects of a collection in pages of `limit` (0: one page).

        Reads etcd's current state. `metadata`, when given, holds the list's
        resourceVersion after the last item. An error (`Gone` between two pages, a
        connection lost) means that what was yielded is no complete list.
        """
        metadata = metadata or ListMetadata()
        query = selectors(label_selector, field_selector)
        if limit:
            query["limit"] = str(limit)
        target = Target("list", resource, namespace=namespace)
        headers = self._headers(_accept("List", metadata_only))
        while True:
            metadata.continue_token = ""
            response = self._retried(
                lambda: self._send("GET", target, query, headers, stream=True)
            )
            try:
                yield from items(response.chunks(), metadata)
            except ValueError as error:
                raise target.bad_answer(error) from error
            except TransportError as error:
                raise target.unreachable(error) from error
            finally:
                response.close()
            if not metadata.continue_token:
                return
            query["continue"] = metadata.continue_token

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        query: Mapping[str, str],
        read_timeout: float,
        metadata_only: bool = False,
    ) -> Watch:
        """Start a watch. Not retried: see `Reflector`.

        `query` holds resourceVersion, timeoutSeconds and so on; `read_timeout` is
        the longest silence in seconds.
        """
        target = Target("watch", resource, namespace=namespace)
        response = self._send(
            "GET",
            target,
            {"watch": "true", **query},
            self._headers(_accept("", metadata_only)),
            stream=True,
            timeout=read_timeout,
        )
        return Watch(target, response)

    def create(
        self, resource: Resource, obj: JsonObject, *, dry_run: bool = False
    ) -> JsonObject:
        """Create an object in the namespace that it names; return it as stored."""
        target = Target("create", resource, *_identity(obj))
        return self._write("POST", target, obj, _JSON, dry_run=dry_run)

    def update(
        self,
        resource: Resource,
        obj: JsonObject,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        """Replace an object (PUT); it must carry the resourceVersion it is based on.

        Raises:
            ValueError: It has none, so that the write would be blind.

        """
        if not obj.get("metadata", {}).get("resourceVersion"):
            raise ValueError("update without metadata.resourceVersion")
        target = Target("update", resource, *_identity(obj), subresource)
        return self._write("PUT", target, obj, _JSON, dry_run=dry_run)

    def json_patch(
        self,
        resource: Resource,
        name: str,
        operations: Sequence[Operation],
        namespace: str = "",
        *,
        subresource: str = "",
        dry_run: bool = False,
        metadata_only: bool = False,
    ) -> JsonObject:
        """Apply a JSON patch; a `test` that fails raises `Invalid`.

        With `metadata_only` the answer holds no more than the metadata.
        """
        target = Target("patch", resource, name, namespace, subresource)
        patch = [*operations]
        accept = _accept("", metadata_only)
        return self._write("PATCH", target, patch, _JSON_PATCH, accept, dry_run=dry_run)

    def strategic_patch(
        self,
        resource: Resource,
        name: str,
        patch: JsonObject,
        *,
        metadata_only: bool = False,
    ) -> JsonObject:
        """Apply a strategic merge patch, which types that are built in understand.

        For maps the same as a JSON merge patch, and cheaper for the API server. A
        `metadata.resourceVersion` or `metadata.uid` in it that is not the object's
        raises `Conflict`.
        """
        target = Target("patch", resource, name)
        accept = _accept("", metadata_only)
        return self._write("PATCH", target, patch, _STRATEGIC_PATCH, accept)

    def merge_patch(
        self,
        resource: Resource,
        name: str,
        patch: JsonObject,
        namespace: str = "",
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        """Apply a JSON merge patch (RFC 7386): null removes, lists are replaced."""
        target = Target("patch", resource, name, namespace, subresource)
        return self._write("PATCH", target, patch, _MERGE_PATCH, dry_run=dry_run)

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> None:
        """Delete an object; with `uid` only that one and not its successor."""
        guards = {"uid": uid, "resourceVersion": resource_version}
        options: JsonObject = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {k: v for k, v in guards.items() if v},
        }
        if dry_run:
            options["dryRun"] = ["All"]  # a body makes the server ignore the query
        target = Target("delete", resource, name, namespace)
        body = json.dumps(options).encode()
        self._object("DELETE", target, body=body, content_type=_JSON)

    def served(self, resource: Resource) -> frozenset[str]:
        """Return what the group and version of `resource` serve.

        Names such as `nodefeaturerules` and `nodefeaturerules/status`; empty where
        the definitions are missing. Every authenticated user may ask.
        """
        try:
            body = self.raw(resource.root)
        except NotFound:
            return frozenset()
        target = Target("get", Resource("", "", resource.root, "", namespaced=False))
        try:
            listed = decode(body).get("resources") or []
            return frozenset(str(entry["name"]) for entry in listed)
        except (ValueError, TypeError, KeyError) as error:
            raise target.bad_answer(ValueError(error)) from error

    def raw(self, path: str, *, accept: str = _JSON) -> bytes:
        """Return the body of any other path, such as `/version` or `/readyz`."""
        target = Target("get", Resource("", "", path, "", namespaced=False))
        headers = self._headers(accept)
        return self._retried(
            lambda: self._body(
                target, self._send("GET", target, {}, headers, path=path)
            )
        )

    def _write(
        self,
        method: str,
        target: Target,
        body: Any,
        content_type: str,
        accept: str = _JSON,
        *,
        dry_run: bool = False,
    ) -> JsonObject:
        query = {"dryRun": "All"} if dry_run else {}
        if self.field_manager:
            query["fieldManager"] = self.field_manager
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        return self._object(
            method,
            target,
            query=query,
            body=text.encode(),
            accept=accept,
            content_type=content_type,
        )

    def _object(
        self,
        method: str,
        target: Target,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        accept: str = _JSON,
        content_type: str = "",
    ) -> JsonObject:
        headers = self._headers(accept, content_type)

        def attempt() -> JsonObject:
            response = self._send(method, target, query or {}, headers, body)
            try:
                return decode(self._body(target, response))
            except ValueError as error:
                raise target.bad_answer(error) from error

        return self._retried(attempt)

    def _retried(self, attempt: Callable[[], _T]) -> _T:
        failures = 0
        renewed = False
        while True:
            try:
                return attempt()
            except Unauthorized:
                # The token may have been rotated between reading and sending it.
                if renewed:
                    raise
                renewed = True
            except ApiError as error:
                failures += 1
                wait = self.retry.wait(error, failures)
                if wait is None or self.clock.wait(self.stop, wait):
                    raise

    def _send(
        self,
        method: str,
        target: Target,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        path: str = "",
        stream: bool = False,
        timeout: float = 0.0,
    ) -> Response:
        if self.authorization is not None:
            headers = {**headers, "Authorization": self.authorization()}
        try:
            if self.stop.is_set():
                raise TransportError("stopped")  # noqa: TRY301 - as the transport would
            response = self.transport.request(
                method,
                path or target.path,
                query=query,
                headers=headers,
                body=body,
                timeout=timeout or self.timeout,
                stream=stream,
                stop=self.stop,
            )
        except (ConfigError, TransportError) as error:  # bad TLS files, too
            raise target.unreachable(error) from error
        if response.status >= 300:
            status = status_of(self._body(target, response))
            raise target.refused(response.status, status, response.headers)
        return response

    def _body(self, target: Target, response: Response) -> bytes:
        try:
            return response.read()
        except TransportError as error:
            raise target.unreachable(error) from error

    def _headers(self, accept: str, content_type: str = "") -> dict[str, str]:
        headers = {"Accept": accept, "User-Agent": self.user_agent}
        if content_type:
            headers["Content-Type"] = content_type
        return headers


def selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    """Return the query parameters of two selectors; an empty one is left out."""
    both = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {k: v for k, v in both.items() if v}


def _accept(of: str, metadata_only: bool) -> str:  # noqa: FBT001 - private, one use
    return _PARTIAL.format(of) if metadata_only else _JSON


def _identity(obj: JsonObject) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    name = metadata.get("name") or metadata.get("generateName") or ""
    return name, metadata.get("namespace") or ""
