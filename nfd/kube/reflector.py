"""List and watch: keeps a consumer told of every object of a collection.

The sequence is that of the Kubernetes documentation ("Efficient detection of
changes", "Streaming lists"): a complete list, then a watch from its version, again
from the last version seen, and a new list when that has become too old.
"""

import random
import threading
from collections.abc import Callable
from typing import Protocol

import attrs

from nfd.kube.client import Client, selectors
from nfd.kube.clock import Stop
from nfd.kube.errors import (
    ApiError,
    BadAnswer,
    BadRequest,
    Forbidden,
    Gone,
    Invalid,
    Unreachable,
)
from nfd.kube.listing import ListMetadata
from nfd.kube.resources import JsonObject, Resource
from nfd.kube.retry import Backoff
from nfd.kube.watch import Watch

_INITIAL_END = "k8s.io/initial-events-end"


class Handler(Protocol):
    """What the consumer of a reflector is told, always from the reflector's thread.

    Between `replace_begin` and `replace_end` come the objects of one list, each
    perhaps more than once; only `replace_end` makes it complete. A second
    `replace_begin` says that the list before it broke off: forget its items. What a
    complete list does not show is *missing*, which is no proof that it was deleted;
    `deleted` is: the API server said so (it may also come within a list).
    """

    def replace_begin(self) -> None:
        """A list starts."""
        ...

    def item(self, obj: JsonObject) -> None:
        """The list shows this object."""
        ...

    def replace_end(self) -> None:
        """The list was complete."""
        ...

    def added(self, obj: JsonObject) -> None:
        """An object was created."""
        ...

    def modified(self, obj: JsonObject) -> None:
        """An object changed."""
        ...

    def deleted(self, obj: JsonObject) -> None:
        """An object was deleted; this was its last state."""
        ...


@attrs.define(slots=True, kw_only=True)
class Reflector:
    """Follows one collection and tells `handler`; never gives up on its own.

    `watch_seconds`: how long one watch is asked to last, drawn between this and
    twice this. `silence`: a stream that has shown heartbeats (bookmarks, one a
    minute) and then nothing for so long is dead. Where the right to watch is missing
    it lists now and then, where the right to list is missing it asks again: after
    `denied_wait`, then in growing steps up to `list_interval`. Since an API server
    that has just started denies what it allows a moment later, it asks sooner at
    first where it cannot do without, or has had the right before. `on_error` is
    called with every failure, in the reflector's thread. All times are seconds.
    With `whole_lists` the lists, in pages, are of whole objects even where
    `metadata_only` has the watch tell metadata alone.

    `synced` is set by the first complete list and stays. `error` is what is wrong
    now, None while all is well. `contact` is the client's monotonic time of the last
    sign of life, in seconds.
    """

    client: Client
    resource: Resource
    handler: Handler
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    whole_lists: bool = False
    page_size: int = 500
    streaming_lists: bool = True
    watch_seconds: float = 300.0
    silence: float = 150.0
    list_interval: float = 3600.0
    denied_wait: float = 60.0
    backoff: Backoff = Backoff(0.8, 30.0)  # noqa: RUF009 - frozen
    on_error: Callable[[ApiError], None] = lambda _: None

    synced: threading.Event = attrs.field(init=False, factory=threading.Event)
    error: ApiError | None = attrs.field(init=False, default=None)
    contact: float = attrs.field(init=False, default=0.0)
    _version: str = attrs.field(init=False, default="")
    _failures: int = attrs.field(init=False, default=0)
    _pages_next: bool = attrs.field(init=False, default=False)
    _wanted: bool = attrs.field(init=False, default=False)
    _watched: bool = attrs.field(init=False, default=False)
    _interrupted: Stop = attrs.field(init=False, factory=Stop)

    def run(self, stop: Stop) -> None:
        """List and watch until `stop` is set; returns within a second of that.

        An exception of the handler is let through.
        """
        while not stop.is_set():
            interrupted = self._interrupted = Stop()
            if self._wanted:
                self._wanted, self._version = False, ""
            with stop.calling(interrupted.set):
                wait = self._round(self.client.but(stop=interrupted))
                if wait:
                    self.client.clock.wait(interrupted, wait)

    def relist(self) -> None:
        """Ask for a new complete list at once, from any thread."""
        self._wanted = True
        self._interrupted.set()

    def _round(self, client: Client) -> float:
        """List if need be and watch once; return the seconds to wait before more."""
        try:
            if not self._version and not self._list(client):
                return 0.0
            self._watch(client)
        except Gone as error:
            self._version = ""
            return self._failed(client, error, at_once=True)
        except ApiError as error:
            if _denied(error):
                doubtful = self._watched or not self._version
                self._version = ""  # lists have to do, if they may be had
                self._failed(client, error)
                return self._denied_wait(doubtful=doubtful)
            return self._failed(client, error)
        return 0.0

    def _denied_wait(self, *, doubtful: bool) -> float:
        waits = [4.0**step for step in range(8)] if doubtful else []
        early = [wait for wait in waits if wait < self.denied_wait]
        if self._failures <= len(early):
            return early[self._failures - 1]
        grown = self.denied_wait * 2.0 ** min(self._failures - len(early) - 1, 32)
        return min(grown, self.list_interval) * random.uniform(0.9, 1.1)  # noqa: S311

    def _failed(
        self, client: Client, error: ApiError, *, at_once: bool = False
    ) -> float:
        if client.stop.is_set():
            return 0.0
        self.error = error
        self._failures += 1
        self.on_error(error)
        if at_once and self._failures == 1:
            return 0.0
        return max(self.backoff.seconds(self._failures), error.retry_after or 0.0)

    def _alive(self, client: Client) -> None:
        self.contact = client.clock.monotonic()
        self._failures = 0
        self.error = None

    def _list(self, client: Client) -> bool:
        """Get a complete list; return whether a watch has to follow."""
        mixed = self.metadata_only and self.whole_lists
        if self.streaming_lists and not self._pages_next and not mixed:
            try:
                self._watch(client, initial=True)
            except (Unreachable, BadAnswer):
                self._pages_next = not self._version
                raise
            except ApiError as error:
                if self._version or not (_denied(error) or _not_known(error)):
                    raise
                self.streaming_lists = False  # asked once; lists in pages from now on
            else:
                return False
        # A list may change under its pages until they expire: then in one piece.
        for limit in (self.page_size, 0):
            try:
                self._pages(client, limit)
                break
            except Gone:
                if not limit:
                    raise
        self._pages_next = False
        return True

    def _pages(self, client: Client, limit: int) -> None:
        metadata = ListMetadata()
        self.handler.replace_begin()
        for obj in client.list(
            self.resource,
            self.namespace,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            metadata_only=self.metadata_only and not self.whole_lists,
            limit=limit,
            metadata=metadata,
        ):
            self.handler.item(obj)
        self._complete(client, metadata.resource_version)

    def _complete(self, client: Client, version: str) -> None:
        self.handler.replace_end()
        self._version = version
        self.synced.set()
        self.error = None
        self.contact = client.clock.monotonic()

    def _watch(self, client: Client, *, initial: bool = False) -> None:
        seconds = self.watch_seconds * random.uniform(1, 2)  # noqa: S311 - to spread
        query = {
            **selectors(self.label_selector, self.field_selector),
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, round(seconds))),
        }
        if initial:
            query["sendInitialEvents"] = "true"
            query["resourceVersionMatch"] = "NotOlderThan"
        else:
            query["resourceVersion"] = self._version
        with client.watch(
            self.resource,
            self.namespace,
            query=query,
            read_timeout=client.timeout,
            metadata_only=self.metadata_only,
        ) as watch:
            if initial:
                self.handler.replace_begin()
            else:
                watch.patience(seconds + client.timeout)
                self.error = None
            self._watched = True
            started = self.contact = client.clock.monotonic()
            events = self._follow(client, watch, seconds, initial=initial)
        if client.clock.monotonic() - started >= 1.0:
            self._failures = 0
        elif not events:
            raise Unreachable(
                "the watch ended at once", verb="watch", resource=self.resource.plural
            )

    def _follow(
        self, client: Client, watch: Watch, seconds: float, *, initial: bool
    ) -> int:
        """Hand on the events of a stream; return how many there were."""
        events = 0
        for kind, obj in watch:
            events += 1
            if initial and kind == "BOOKMARK":
                if not _ends_initial_events(obj):
                    break  # a server that does not know streaming lists
                initial = False
                watch.patience(seconds + client.timeout)
                self._complete(client, obj["metadata"]["resourceVersion"])
                continue
            self._tell(kind, obj, initial=initial)
            if not initial:
                self._version = obj["metadata"]["resourceVersion"]
                self._alive(client)
            if kind == "BOOKMARK":
                watch.patience(self.silence)
        if initial:
            raise BadAnswer(
                "the streaming list ended early",
                verb="list",
                resource=self.resource.plural,
            )
        return events

    def _tell(self, kind: str, obj: JsonObject, *, initial: bool) -> None:
        if kind == "DELETED":
            self.handler.deleted(obj)
        elif initial:
            self.handler.item(obj)
        elif kind == "ADDED":
            self.handler.added(obj)
        elif kind == "MODIFIED":
            self.handler.modified(obj)


def _denied(error: ApiError) -> bool:
    """Whether the verb is not to be had: not permitted, or not served."""
    return isinstance(error, Forbidden) or error.status == 405


def _not_known(error: ApiError) -> bool:
    """Whether the server does not take the parameters."""
    return isinstance(error, Invalid | BadRequest) or error.status in {406, 415}


def _ends_initial_events(obj: JsonObject) -> bool:
    annotations = obj["metadata"].get("annotations") or {}
    return annotations.get(_INITIAL_END) == "true"
