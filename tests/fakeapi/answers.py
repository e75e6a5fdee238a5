"""What the fake API server does with each request, apart from HTTP."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from nfd.kube.resources import JsonObject, Resource
from tests.fakeapi import refusals
from tests.fakeapi.faults import Asked
from tests.fakeapi.patching import json_patch, merge_patch
from tests.fakeapi.routes import Route
from tests.fakeapi.selectors import selector
from tests.fakeapi.store import Store, Write, is_custom


@attrs.frozen
class Review:
    """A write that is about to happen, as an admission hook sees it."""

    asked: Asked
    resource: Resource
    old: JsonObject | None
    new: JsonObject | None


Admission = Callable[[Review], None]
"""Raises a `Refusal` to refuse."""


def reply(
    store: Store, route: Route, asked: Asked, admission: list[Admission]
) -> tuple[int, JsonObject]:
    """Carry out anything but a watch; return status and body."""
    partial = "as=PartialObjectMetadata" in asked.headers.get("accept", "")
    key = (route.namespace, route.name)
    match asked.verb:
        case "list":
            return 200, _list(store, route, asked.query, partial=partial)
        case "get":
            return 200, shown(store.get(route.resource, key), partial=partial)
        case "delete":
            return 200, _delete(store, route, asked, admission)
        case "create" if not route.name:
            body = _body(asked)
            metadata = body.setdefault("metadata", {})
            namespace = metadata.setdefault("namespace", route.namespace)
            if namespace != route.namespace:
                raise refusals.bad_request(
                    "the namespace of the provided object does not match the"
                    " namespace sent on the request"
                )
            if not namespace:
                del metadata["namespace"]
            made = store.create(route.resource, body, _write(route, asked, admission))
            return 201, shown(made, partial=partial)
        case "update" | "patch" if route.name:
            change = _put(route, asked) if asked.verb == "update" else _patch(asked)
            write = _write(route, asked, admission)
            changed = store.update(route.resource, key, change, write)
            return 200, shown(changed, partial=partial)
    raise refusals.Refusal(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )


def shown(obj: JsonObject, *, partial: bool) -> JsonObject:
    """The object, or only its metadata."""
    if not partial:
        return obj
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }


def discovery(
    path: str, served: list[Resource], with_status: set[str]
) -> JsonObject | None:
    """The answer to `/version` and to the lists of groups and resources."""
    if path == "/version":
        return {"major": "1", "minor": "36", "gitVersion": "v1.36.0-fakeapi"}
    if path == "/apis":
        groups = sorted({r.group for r in served if r.group})
        return {"kind": "APIGroupList", "groups": [{"name": g} for g in groups]}
    found = [r for r in served if r.root == path]
    if not found:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found[0].api_version,
        "resources": [
            {"name": name, "kind": r.kind, "namespaced": r.namespaced}
            for r in found
            for name in (r.plural, f"{r.plural}/status")
            if name == r.plural or r.plural in with_status
        ],
    }


def _list(
    store: Store, route: Route, query: Mapping[str, str], *, partial: bool
) -> JsonObject:
    page = store.page(
        route.resource,
        route.namespace,
        wanted(query),
        limit=int(query.get("limit") or 0),
        token=query.get("continue", ""),
    )
    metadata: dict[str, Any] = {"resourceVersion": str(page.version)}
    if page.token:
        metadata |= {"continue": page.token, "remainingItemCount": page.left}
    resource = route.resource
    named = is_custom(resource)
    return {
        "kind": "PartialObjectMetadataList" if partial else f"{resource.kind}List",
        "apiVersion": "meta.k8s.io/v1" if partial else resource.api_version,
        "metadata": metadata,
        "items": [
            shown(obj, partial=True) if partial else obj if named else _unnamed(obj)
            for obj in page.items
        ],
    }


def _unnamed(obj: JsonObject) -> JsonObject:
    """Items of built-in lists say neither kind nor version."""
    return {k: v for k, v in obj.items() if k not in {"kind", "apiVersion"}}


def wanted(query: Mapping[str, str]) -> Callable[[JsonObject], bool]:
    return selector(query.get("labelSelector", ""), query.get("fieldSelector", ""))


def _delete(
    store: Store, route: Route, asked: Asked, admission: list[Admission]
) -> JsonObject:
    options = json.loads(asked.body) if asked.body else {}
    guards = options.get("preconditions") or {}
    write = _write(route, asked, admission)
    if asked.body:  # the query does not count then
        write.dry_run = options.get("dryRun") == ["All"]
    key = (route.namespace, route.name)
    old = store.delete(route.resource, key, guards, write)
    details = {"name": route.name, "kind": route.resource.plural}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {**details, "uid": old["metadata"]["uid"]},
    }


def _write(route: Route, asked: Asked, admission: list[Admission]) -> Write:
    def admit(old: JsonObject | None, new: JsonObject | None) -> None:
        for hook in tuple(admission):
            hook(Review(asked, route.resource, old, new))

    manager = asked.query.get("fieldManager") or asked.user_agent.split("/")[0]
    dry_run = asked.query.get("dryRun") == "All"
    return Write(manager or "unknown", route.subresource, dry_run, admit)


def _put(route: Route, asked: Asked) -> Callable[[JsonObject], JsonObject]:
    body = _body(asked)
    resource, metadata = route.resource, body.get("metadata") or {}
    if metadata.get("name") != route.name:
        raise refusals.bad_request(
            f"the name of the object ({metadata.get('name')}) does not match the name"
            f" on the URL ({route.name})"
        )
    strict = is_custom(resource) or resource.plural == "leases"
    if strict and not metadata.get("resourceVersion"):
        why = "metadata.resourceVersion: Invalid value: 0: must be specified for an"
        raise refusals.invalid(resource, route.name, f"{why} update")
    return lambda _: body


def _patch(asked: Asked) -> Callable[[JsonObject], JsonObject]:
    kind = asked.headers.get("content-type", "")
    apply = {
        "application/json-patch+json": json_patch,
        "application/merge-patch+json": merge_patch,
        # The same for maps; lists are replaced here, not merged by key.
        "application/strategic-merge-patch+json": merge_patch,
    }.get(kind)
    if apply is None:
        message = f"the body of the request was in an unknown format: {kind}"
        raise refusals.Refusal(415, "UnsupportedMediaType", message)
    patch = _json(asked)
    return lambda old: apply(old, patch)


def _body(asked: Asked) -> JsonObject:
    body = _json(asked)
    if not isinstance(body, dict):
        raise refusals.bad_request("the body is no object")
    return body


def _json(asked: Asked) -> Any:
    try:
        return json.loads(asked.body)
    except ValueError:
        raise refusals.bad_request("error decoding the body: not JSON") from None


def event(kind: str, obj: JsonObject) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(
    resource: Resource, version: int, *, partial: bool, initial_end: bool = False
) -> bytes:
    """A BOOKMARK event: nothing happened up to this version, or all has been sent."""
    metadata: dict[str, Any] = {
        "resourceVersion": str(version),
        "creationTimestamp": None,
    }
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    obj = {"kind": resource.kind, "apiVersion": resource.api_version}
    return event("BOOKMARK", shown({**obj, "metadata": metadata}, partial=partial))


def initial_events(
    store: Store, route: Route, query: Mapping[str, str], *, partial: bool
) -> tuple[Iterator[bytes], int]:
    """The first events of a watch, and the version that it goes on from."""
    start = query.get("resourceVersion", "")
    streaming = query.get("sendInitialEvents") == "true"
    if not streaming and start not in {"", "0"}:
        return iter(()), int(start)
    with store.changed:
        objects = store.all(route.resource, route.namespace, wanted(query))
        version = store.version

    def events() -> Iterator[bytes]:
        for obj in objects:
            yield event("ADDED", shown(obj, partial=partial))
        marked = query.get("allowWatchBookmarks") == "true"
        if streaming and marked and store.ends_initial_events:
            yield bookmark(route.resource, version, partial=partial, initial_end=True)

    return events(), version
