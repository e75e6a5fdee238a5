"""The stream of a watch: what happened since, then what happens."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from tests.fakeapi import refusals
from tests.fakeapi.answers import bookmark, event, initial_events, shown, wanted
from tests.fakeapi.faults import Asked
from tests.fakeapi.routes import Route
from tests.fakeapi.store import Change, Store


@attrs.define
class Watches:
    """What tests do to all open watches at once."""

    store: Store
    bookmarks: int = 0
    endings: int = 0
    open: int = 0

    def bookmark(self) -> None:
        """Send a bookmark on every watch that allows them."""
        with self.store.changed:
            self.bookmarks += 1
            self.store.changed.notify_all()

    def end(self) -> None:
        """End every watch, as a server does after its time-out."""
        with self.store.changed:
            self.endings += 1
            self.store.changed.notify_all()

    def stream(
        self, route: Route, asked: Asked, gone: Callable[[], bool]
    ) -> Iterator[bytes]:
        """Yield lines until the time-out, `end`, or `gone` says the reader left."""
        query = asked.query
        partial = "as=PartialObjectMetadata" in asked.headers.get("accept", "")
        marks = query.get("allowWatchBookmarks") == "true"
        deadline = time.monotonic() + float(query.get("timeoutSeconds") or 1800)
        matching = wanted(query)
        bookmarks, endings = self.bookmarks, self.endings
        first, version = initial_events(self.store, route, query, partial=partial)
        yield from first
        while True:
            with self.store.changed:
                news = self._since(route, version)
                if news is None:
                    oldest = self.store.compacted
                    status = refusals.expired_version(version, oldest).body()
                    yield event("ERROR", status)
                    return
                version = max(version, self.store.version)
                marked, bookmarks = bookmarks != self.bookmarks, self.bookmarks
                left = deadline - time.monotonic()
                ended = endings != self.endings or left <= 0 or gone()
                if not (news or ended or marked):
                    # In slices, so that a reader that left is noticed.
                    self.store.changed.wait(min(left, 0.25))
                    continue
            for change in news:
                yield from _line(change, matching, partial=partial)
            if marks and (marked or ended):
                yield bookmark(route.resource, version, partial=partial)
            if ended:
                return

    def _since(self, route: Route, version: int) -> list[Change] | None:
        if version < self.store.compacted:
            return None
        found: list[Change] = []
        for change in reversed(self.store.history):
            if change.version <= version:
                break
            where = change.new["metadata"].get("namespace", "")
            if change.resource == route.resource and (
                not route.namespace or where == route.namespace
            ):
                found.append(change)
        return found[::-1]


def _line(
    change: Change, matching: Callable[[dict[str, Any]], bool], *, partial: bool
) -> Iterator[bytes]:
    """An object that leaves the selection is deleted for this watch."""
    now = change.type != "DELETED" and matching(change.new)
    before = change.old is not None and matching(change.old)
    if now:
        kind = "MODIFIED" if before else "ADDED"
    elif before:
        kind = "DELETED"
    else:
        return
    yield event(kind, shown(change.new, partial=partial))
