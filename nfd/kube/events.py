"""Kubernetes Events, told once: the same event again is counted, not repeated."""

import datetime as dt
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

import attrs

from nfd.kube.client import Client
from nfd.kube.errors import ApiError, Forbidden, NotFound
from nfd.kube.resources import EVENTS, JsonObject, Resource
from nfd.kube.retry import NO_RETRY

_MESSAGE_LIMIT = 1024
_REMEMBERED = 512

EventType = Literal["Normal", "Warning"]


@attrs.frozen(slots=True)
class Reference:
    """The object that an event is about."""

    resource: Resource
    name: str
    namespace: str = ""
    uid: str = ""

    @classmethod
    def to(cls, resource: Resource, obj: JsonObject) -> "Reference":
        """Return the reference to an object as read from the API."""
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "")
        return cls(resource, metadata["name"], namespace, metadata.get("uid", ""))


@attrs.define(slots=True)
class _Told:
    name: str
    namespace: str
    count: int
    written: float


@attrs.define(slots=True, kw_only=True)
class EventRecorder:
    """Writes Events of one component; a failure to do so is never the caller's.

    The same type, reason and message about the same object within `window` seconds
    costs no request; later its Event's count and time are brought up to date. After
    the first refusal for lack of permission nothing is sent any more. `on_error`
    hears of every failed request.
    """

    client: Client
    component: str
    instance: str = ""
    window: float = 600.0
    on_error: Callable[[ApiError], None] = lambda _: None
    enabled: bool = attrs.field(init=False, default=True)
    _told: OrderedDict[tuple[object, ...], _Told] = attrs.field(
        init=False, factory=OrderedDict
    )

    def record(
        self, about: Reference, kind: EventType, reason: str, message: str
    ) -> None:
        """Tell of something. `reason` is one CamelCase word, `message` a sentence."""
        if not self.enabled:
            return
        message = message[:_MESSAGE_LIMIT]
        key = (about, kind, reason, message)
        told = self._told.get(key)
        now = self.client.clock.monotonic()
        if told is not None:
            self._told.move_to_end(key)
            told.count += 1
            if now - told.written < self.window:
                return
        try:
            if told is None or not self._again(told):
                self._told[key] = self._first(about, kind, reason, message)
            self._told[key].written = now
        except Forbidden as error:
            self.enabled = False
            self.on_error(error)
        except ApiError as error:
            self.on_error(error)
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)

    def _again(self, told: _Told) -> bool:
        """Bring an Event up to date; return whether it was still there."""
        patch: JsonObject = {"count": told.count, "lastTimestamp": self._time()}
        try:
            self._once().merge_patch(EVENTS, told.name, patch, told.namespace)
        except NotFound:
            return False
        return True

    def _first(
        self, about: Reference, kind: EventType, reason: str, message: str
    ) -> _Told:
        # Events about cluster-wide objects live in the namespace `default`.
        namespace = about.namespace or "default"
        time = self._time()
        text = repr((self.component, self.instance, about, kind, reason, message, time))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        name = f"{about.name[:230]}.{digest}"
        involved = {
            "apiVersion": about.resource.api_version,
            "kind": about.resource.kind,
            "name": about.name,
            "namespace": about.namespace,
            "uid": about.uid,
        }
        event: JsonObject = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {k: v for k, v in involved.items() if v},
            "type": kind,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": time,
            "lastTimestamp": time,
            "source": {"component": self.component, "host": self.instance},
            "reportingComponent": self.component,
            "reportingInstance": self.instance,
        }
        self._once().create(EVENTS, event)
        return _Told(name, namespace, 1, self.client.clock.monotonic())

    def _once(self) -> Client:
        return self.client.but(retry=NO_RETRY)

    def _time(self) -> str:
        time = dt.datetime.fromtimestamp(self.client.clock.wall(), dt.UTC)
        return time.strftime("%Y-%m-%dT%H:%M:%SZ")
