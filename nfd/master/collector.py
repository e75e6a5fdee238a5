"""Garbage collection: deletes NodeFeatures and topologies of nodes that are gone.

Impure. Inside the master it uses what the master knows anyway; `nfd-gc` lists for
itself (spec/master.md section 4). Ours: an object goes only after a grace in which
its node was missing all the time, and after one more look for the Node; objects that
do not say whose they are stay.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Protocol

import attrs

from nfd.kube.client import Client
from nfd.kube.clock import Stop
from nfd.kube.errors import ApiError, Conflict, Forbidden, NotFound
from nfd.kube.reflector import Reflector
from nfd.kube.resources import NODEFEATURES, NODES, JsonObject, Resource
from nfd.master.guard import ObjectKey
from nfd.master.merging import node_of
from nfd.master.orphans import Orphans

TOPOLOGIES = Resource(
    "topology.node.k8s.io",
    "v1alpha2",
    "noderesourcetopologies",
    "NodeResourceTopology",
    namespaced=False,
)


class Counts(Protocol):
    """Who counts what was deleted and what was not."""

    def deleted(self, kind: str) -> None:
        """An object was deleted."""
        ...

    def not_deleted(self, kind: str, error: ApiError) -> None:
        """An object could not be deleted, or a list was not complete."""
        ...


@attrs.frozen(slots=True)
class Orphan:
    """An object to delete: this very one, not a successor."""

    resource: Resource
    key: ObjectKey
    uid: str
    node: str


class Collector:
    """Deletes orphans; call `collect` with each complete view."""

    def __init__(
        self,
        client: Client,
        counts: Counts,
        grace: float,
        *,
        may_delete: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client = client
        self._counts = counts
        self._may_delete = may_delete
        self._orphans: Orphans[tuple[str, ObjectKey, str]] = Orphans(grace)
        self._topology_orphans: Orphans[tuple[str, ObjectKey, str]] = Orphans(grace)
        self.denied: set[str] = set()  # kinds that we may not delete or list

    @property
    def waiting(self) -> bool:
        """Whether orphans have yet to have their grace."""
        both = ((NODEFEATURES, self._orphans), (TOPOLOGIES, self._topology_orphans))
        return any(len(o) for r, o in both if r.kind not in self.denied)

    def features(
        self, objects: Mapping[ObjectKey, tuple[str, str]], nodes: Collection[str]
    ) -> None:
        """Take in all NodeFeatures: key → (uid, node)."""
        self._collect(NODEFEATURES, self._orphans, objects, nodes)

    def topologies(self, nodes: Collection[str]) -> None:
        """List the topologies, which bear the names of their nodes."""
        if TOPOLOGIES.kind in self.denied:
            return
        try:
            objects = {
                ("", obj["metadata"]["name"]): (
                    obj["metadata"].get("uid", ""),
                    obj["metadata"]["name"],
                )
                for obj in self._client.list(TOPOLOGIES, metadata_only=True)
            }
        except NotFound:
            return  # nobody has defined them
        except Forbidden as error:
            self.denied.add(TOPOLOGIES.kind)
            self._failed(TOPOLOGIES.kind, error)
            return
        except ApiError as error:
            self._failed(TOPOLOGIES.kind, error)
            return
        self._collect(TOPOLOGIES, self._topology_orphans, objects, nodes)

    def _collect(
        self,
        resource: Resource,
        orphans: Orphans[tuple[str, ObjectKey, str]],
        objects: Mapping[ObjectKey, tuple[str, str]],
        nodes: Collection[str],
    ) -> None:
        named = {(uid, key, node): node for key, (uid, node) in objects.items()}
        now = self._client.clock.monotonic()
        for found in orphans.seen(named, nodes, now):
            uid, key, node = found
            if resource.kind in self.denied or not self._may_delete():
                return
            if self._delete(Orphan(resource, key, uid, node)):
                orphans.forget(found)

    def _delete(self, orphan: Orphan) -> bool:
        """Delete one orphan; tell whether it is done with."""
        kind = orphan.resource.kind
        try:
            if self._exists(orphan.node):
                return True  # it came back; the next view will tell
            namespace, name = orphan.key
            self._client.delete(orphan.resource, name, namespace, uid=orphan.uid)
        except (NotFound, Conflict):
            return True  # gone already, or another one of its name
        except Forbidden as error:
            self.denied.add(kind)
            self._failed(kind, error)
            return False
        except ApiError as error:
            self._failed(kind, error)
            return False
        self._counts.deleted(kind)
        return True

    def _failed(self, kind: str, error: ApiError) -> None:
        if not self._client.stop.is_set():
            self._counts.not_deleted(kind, error)

    def _exists(self, node: str) -> bool:
        """Ask for a Node by a list, which needs no right beyond the collector's."""
        selector = f"metadata.name={node}"
        found = self._client.list(NODES, field_selector=selector, metadata_only=True)
        return any(obj["metadata"]["name"] == node for obj in found)


class NodeNames:
    """A handler that keeps the names of all Nodes."""

    def __init__(self, gone: Callable[[], None] = lambda: None) -> None:
        self._gone = gone
        self._names: set[str] = set()
        self._listed: set[str] | None = None

    def __call__(self) -> frozenset[str]:
        """Return the names known now."""
        return frozenset(self._names)

    def replace_begin(self) -> None:
        """A list starts."""
        self._listed = set()

    def item(self, obj: JsonObject) -> None:
        """A Node is there."""
        names = self._names if self._listed is None else self._listed
        names.add(obj["metadata"]["name"])

    added = modified = item

    def replace_end(self) -> None:
        """The list is complete."""
        if self._listed is not None:
            self._names, self._listed = self._listed, None

    def deleted(self, obj: JsonObject) -> None:
        """A Node was deleted."""
        names = self._names if self._listed is None else self._listed
        names.discard(obj["metadata"]["name"])
        self._gone()


class Standalone:
    """`nfd-gc`: watches Nodes, lists the rest now and then, collects."""

    def __init__(  # noqa: PLR0913 - what its flags say
        self,
        client: Client,
        counts: Counts,
        *,
        interval: float,
        grace: float,
        page_size: int,
        on_error: Callable[[ApiError], None],
    ) -> None:
        self._client = client
        self._counts = counts
        self._interval = interval
        self._grace = min(grace, interval)
        self._page_size = page_size
        self._again = True
        self.nodes = NodeNames(self._look_again)
        self.feed = Reflector(
            client=client,
            resource=NODES,
            handler=self.nodes,
            metadata_only=True,
            on_error=on_error,
        )
        self.collector = Collector(client, counts, self._grace)

    @property
    def ready(self) -> bool:
        """Whether all Nodes are known."""
        return self.feed.synced.is_set()

    def _look_again(self) -> None:
        self._again = True

    def run(self, stop: Stop) -> None:
        """Collect until `stop` is set, once all Nodes are known.

        A pass that a deleted Node or an orphan in its grace asks for comes as soon as
        the grace is over, the others come at the interval.
        """
        clock = self._client.clock
        next_pass = clock.monotonic()
        while not clock.wait(stop, min(1.0, self._grace, self._interval)):
            if not self.ready:
                continue
            if self._again:
                self._again = False
                next_pass = min(next_pass, clock.monotonic())
            if clock.monotonic() >= next_pass:
                wait = self._grace if self.collect() else self._interval
                next_pass = clock.monotonic() + wait

    def collect(self) -> bool:
        """Do one pass; tell whether there are orphans still in their grace."""
        nodes = self.nodes()
        try:
            objects = dict(self._list())
        except NotFound:
            objects = {}
        except ApiError as error:
            if not self._client.stop.is_set():
                self._counts.not_deleted(NODEFEATURES.kind, error)
            return True
        self.collector.features(objects, nodes)
        self.collector.topologies(nodes)
        return self.collector.waiting

    def _list(self) -> Iterator[tuple[ObjectKey, tuple[str, str]]]:
        for obj in self._client.list(
            NODEFEATURES, limit=self._page_size, metadata_only=True
        ):
            meta = obj["metadata"]
            key = (meta.get("namespace", ""), meta["name"])
            yield key, (meta.get("uid", ""), node_of(meta))
