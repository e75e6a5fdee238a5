"""The objects of the fake API server, their versions, and the history of changes."""

import base64
import copy
import json
import re
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import attrs

from nfd.kube.resources import JsonObject, Resource
from tests.fakeapi import refusals
from tests.fakeapi.managedfields import track
from tests.fakeapi.selectors import Selector

Key = tuple[str, str]
"""Namespace and name."""

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_LABEL_KEY = re.compile(
    r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@attrs.frozen
class Change:
    """One entry of the history."""

    version: int
    type: str
    resource: Resource
    new: JsonObject
    old: JsonObject | None


@attrs.frozen
class Page:
    """Part of a list: what it shows, and the token for what is left."""

    items: list[JsonObject]
    version: int
    token: str = ""
    left: int = 0


@attrs.define
class Write:
    """Who writes, and how."""

    manager: str = "fakeapi"
    subresource: str = ""
    dry_run: bool = False
    admit: Callable[[JsonObject | None, JsonObject | None], None] | None = None


def is_custom(resource: Resource) -> bool:
    """Whether a CustomResourceDefinition defines it, so that it has a generation."""
    return "." in resource.group and not resource.group.endswith(".k8s.io")


class Store:
    """All objects. Stored ones are never changed in place, so that they may be shared."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.version = 1
        self.compacted = 0
        self.ends_initial_events = True
        self.history: list[Change] = []
        self.status_subresources: set[str] = {
            "nodes",
            "pods",
            "namespaces",
            "nodefeaturerules",
            "nodefeaturegroups",
        }
        self._objects: dict[tuple[str, str], dict[Key, JsonObject]] = {}
        self._rests: dict[str, Page] = {}
        self.now: Callable[[], str] = _now  # what objects are stamped with

    def all(
        self, resource: Resource, namespace: str, wanted: Selector
    ) -> list[JsonObject]:
        with self.changed:
            return [
                obj
                for (where, _), obj in sorted(self._of(resource).items())
                if (not namespace or where == namespace) and wanted(obj)
            ]

    def find(self, resource: Resource, key: Key) -> JsonObject | None:
        with self.changed:
            return self._of(resource).get(key)

    def get(self, resource: Resource, key: Key) -> JsonObject:
        obj = self.find(resource, key)
        if obj is None:
            raise refusals.not_found(resource, key[1])
        return obj

    def page(
        self,
        resource: Resource,
        namespace: str,
        wanted: Selector,
        *,
        limit: int,
        token: str,
    ) -> Page:
        with self.changed:
            if token:
                rest = self._rests.pop(token, None)
                if rest is None:
                    raise refusals.expired_continue()
            else:
                rest = Page(self.all(resource, namespace, wanted), self.version)
            if not limit or len(rest.items) <= limit:
                return rest
            following = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()
            self._rests[following] = attrs.evolve(rest, items=rest.items[limit:])
            left = len(rest.items) - limit
            return Page(rest.items[:limit], rest.version, following, left)

    def compact(self) -> None:
        """Forget the past: old continue tokens and resourceVersions answer 410."""
        with self.changed:
            self.compacted = self.version
            self.history.clear()
            self._rests.clear()
            self.changed.notify_all()

    def create(self, resource: Resource, obj: JsonObject, write: Write) -> JsonObject:
        with self.changed:
            new = copy.deepcopy(obj)
            metadata = new.setdefault("metadata", {})
            if not metadata.get("name") and metadata.get("generateName"):
                metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
            key = (metadata.get("namespace", ""), metadata.get("name", ""))
            if key in self._of(resource):
                raise refusals.already_exists(resource, key[1])
            metadata["uid"] = str(uuid.uuid4())
            metadata["creationTimestamp"] = self.now()
            metadata.pop("resourceVersion", None)
            metadata.pop("managedFields", None)
            if is_custom(resource):
                metadata["generation"] = 1
                if resource.plural in self.status_subresources:
                    new.pop("status", None)
            elif resource.plural in self.status_subresources:
                new = {**new, "spec": new.get("spec") or {}}
                new = {**new, "status": new.get("status") or {}}
            return self._store(resource, key, None, new, write)

    def update(
        self,
        resource: Resource,
        key: Key,
        change: Callable[[JsonObject], JsonObject],
        write: Write,
    ) -> JsonObject:
        """Store what `change` makes of the current object."""
        with self.changed:
            old = self.get(resource, key)
            new = self._merged(resource, old, change(old), write.subresource)
            asked = new["metadata"].get("resourceVersion", "")
            if asked and asked != old["metadata"]["resourceVersion"]:
                raise refusals.conflict(resource, key[1])
            new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            if new == old:
                return old
            if is_custom(resource) and not write.subresource:
                body = {"apiVersion", "kind", "metadata", "status"}
                before = {k: v for k, v in old.items() if k not in body}
                after = {k: v for k, v in new.items() if k not in body}
                new["metadata"]["generation"] += before != after
            return self._store(resource, key, old, new, write)

    def delete(
        self, resource: Resource, key: Key, guards: JsonObject, write: Write
    ) -> JsonObject:
        with self.changed:
            old = self.get(resource, key)
            has = old["metadata"]
            for field, label in (
                ("uid", "UID"),
                ("resourceVersion", "ResourceVersion"),
            ):
                asked = guards.get(field)
                if asked and asked != has[field]:
                    raise refusals.conflict(
                        resource,
                        key[1],
                        f"the {label} in the precondition ({asked}) does not match the"
                        f" {label} in record ({has[field]}). The object might have been"
                        " deleted and then recreated",
                    )
            if write.admit:
                write.admit(old, None)
            if not write.dry_run:
                self.version += 1
                version = {"resourceVersion": str(self.version)}
                last = {**old, "metadata": {**has, **version}}
                del self._of(resource)[key]
                self._record(Change(self.version, "DELETED", resource, last, old))
            return old

    def _merged(
        self, resource: Resource, old: JsonObject, new: JsonObject, subresource: str
    ) -> JsonObject:
        """What an update may change, depending on the subresource."""
        new = copy.deepcopy(new)
        uid, has = new.get("metadata", {}).get("uid"), old["metadata"]["uid"]
        if uid and uid != has:
            raise refusals.conflict(
                resource,
                old["metadata"]["name"],
                f"Precondition failed: UID in precondition: {uid}, UID in object meta:"
                f" {has}",
            )
        fixed = ("uid", "creationTimestamp", "generation", "name", "namespace")
        metadata = {
            **new.get("metadata", {}),
            **{k: old["metadata"][k] for k in fixed if k in old["metadata"]},
            "managedFields": old["metadata"].get("managedFields", []),
        }
        new = {**new, "metadata": metadata}
        if subresource == "status":
            version = metadata.get("resourceVersion", "")
            kept = old["metadata"] if is_custom(resource) else metadata
            return {
                **old,
                "metadata": {**kept, "resourceVersion": version},
                **({"status": new["status"]} if "status" in new else {}),
            }
        if resource.plural in self.status_subresources:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        return new

    def _store(
        self,
        resource: Resource,
        key: Key,
        old: JsonObject | None,
        new: JsonObject,
        write: Write,
    ) -> JsonObject:
        new.setdefault("apiVersion", resource.api_version)
        new.setdefault("kind", resource.kind)
        _validate(resource, new)
        if write.admit:
            write.admit(old, new)
        new["metadata"]["managedFields"] = track(
            old,
            new,
            manager=write.manager,
            subresource=write.subresource,
            time=self.now(),
        )
        if write.dry_run:
            version = old["metadata"]["resourceVersion"] if old else ""
            new["metadata"]["resourceVersion"] = version
            return new
        self.version += 1
        new["metadata"]["resourceVersion"] = str(self.version)
        new = _ordered(new)
        self._of(resource)[key] = new
        kind = "MODIFIED" if old else "ADDED"
        self._record(Change(self.version, kind, resource, new, old))
        return new

    def _record(self, change: Change) -> None:
        self.history.append(change)
        self.changed.notify_all()

    def _of(self, resource: Resource) -> dict[Key, JsonObject]:
        return self._objects.setdefault((resource.group, resource.plural), {})


def _validate(resource: Resource, obj: JsonObject) -> None:
    metadata = obj["metadata"]
    name = metadata.get("name", "")
    if not name:
        why = "name or generateName is required"
        raise refusals.invalid(resource, "", f"metadata.name: Required value: {why}")
    if not _NAME.fullmatch(name):
        why = f"metadata.name: Invalid value: {json.dumps(name)}: a lowercase RFC 1123"
        raise refusals.invalid(resource, name, f"{why} subdomain must consist of ...")
    for key, value in (metadata.get("labels") or {}).items():
        shown: Any = None
        if not _LABEL_KEY.fullmatch(key):
            shown = key
        elif not isinstance(value, str):
            raise refusals.bad_request(f"metadata.labels: {key}: not a string")
        elif len(value) > 63 or not _LABEL_VALUE.fullmatch(value):
            shown = value
        if shown is not None:
            why = f"metadata.labels: Invalid value: {json.dumps(shown)}: a valid label"
            raise refusals.invalid(resource, name, f"{why} must be ...")


def _ordered(obj: JsonObject) -> JsonObject:
    first = ("apiVersion", "kind", "metadata")
    return {k: obj[k] for k in first} | {k: obj[k] for k in obj if k not in first}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
