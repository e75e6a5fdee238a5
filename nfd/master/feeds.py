"""Handlers of the master's reflectors: they hand objects to the fleet."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import Any, TypeAlias

import attrs

from nfd.kube.resources import JsonObject
from nfd.master.fleet import Fleet
from nfd.master.guard import ObjectKey
from nfd.master.merging import node_of
from nfd.publish.nodefeature import REFUSED
from nfd.rules.load import Loaded, load_document
from nfd.rules.model import Rule

Changing: TypeAlias = Callable[[], AbstractContextManager[Fleet]]
Now: TypeAlias = Callable[[], float]


def rules_of(loaded: Loaded) -> tuple[Rule, ...]:
    """Return the rules of one object that could be read."""
    return tuple(rule for obj in loaded.objects for rule in obj.rules)


class FeatureFeed:
    """Hands NodeFeatures to the fleet.

    `noted` holds the refusals that stand on objects: (namespace, name) → text.
    `heard_of` is called with the node of each object that changes, before it counts.
    """

    def __init__(
        self,
        changing: Changing,
        now: Now,
        heard_of: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._changing = changing
        self._now = now
        self._heard_of = heard_of
        self.noted: dict[ObjectKey, str] = {}

    def replace_begin(self) -> None:
        """A list starts."""
        with self._changing() as fleet:
            fleet.feature_list_begin()

    def item(self, obj: JsonObject) -> None:
        """An object is there, or changed."""
        meta = obj["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        note = (meta.get("annotations") or {}).get(REFUSED)
        if note:
            self.noted[key] = note
        else:
            self.noted.pop(key, None)
        with self._changing() as fleet:
            fleet.feature_put(obj)

    def added(self, obj: JsonObject) -> None:
        """An object was created, or changed."""
        self._heard_of(node_of(obj["metadata"]))
        self.item(obj)

    modified = added

    def replace_end(self) -> None:
        """The list is complete."""
        with self._changing() as fleet:
            fleet.feature_list_end(self._now())

    def deleted(self, obj: JsonObject) -> None:
        """The API server said that an object was deleted."""
        meta = obj.get("metadata") or {}
        self.noted.pop((meta.get("namespace", ""), meta.get("name", "")), None)
        with self._changing() as fleet:
            fleet.feature_deleted(obj, self._now())


class NodeFeed:
    """Hands Nodes to the fleet; `listed` is called after each complete list."""

    def __init__(
        self, changing: Changing, now: Now, listed: Callable[[], None]
    ) -> None:
        self._changing = changing
        self._now = now
        self._listed = listed

    def replace_begin(self) -> None:
        """A list starts."""
        with self._changing() as fleet:
            fleet.node_list_begin()

    def item(self, obj: JsonObject) -> None:
        """An object is there, or changed."""
        with self._changing() as fleet:
            fleet.node_put(obj)

    added = modified = item

    def replace_end(self) -> None:
        """The list is complete."""
        with self._changing() as fleet:
            fleet.node_list_end(self._now())
        self._listed()

    def deleted(self, obj: JsonObject) -> None:
        """The API server said that an object was deleted."""
        with self._changing() as fleet:
            fleet.node_deleted(obj["metadata"]["name"])


@attrs.frozen(slots=True)
class RuleAbout:
    """What a rule object is beside its rules: for its status and events."""

    uid: str
    generation: int
    status: Mapping[str, Any]
    digest: bytes  # of the spec


class RuleFeed:
    """Reads rule objects; the controller takes them over as a whole.

    What leaves the spec as it was, a write of the status above all, is no change:
    the rules stay the very same objects, and so do the results kept of them. An object
    that a list does not show goes when a second one, `interval()` seconds later, does
    not show it either; `unproven` asks for that list, and for one more where the first
    one is empty. `lists` counts complete ones.
    """

    def __init__(
        self,
        changed: Callable[[], None],
        kind: str = "NodeFeatureRule",
        *,
        now: Now = lambda: 0.0,
        interval: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._changed = changed
        self._kind = kind
        self._now = now
        self._interval = interval
        self._missing: dict[str, float] = {}
        self.lists = 0
        self._listed: set[str] | None = None
        self._complete = False
        self._dirty = False
        self.loaded: dict[str, Loaded] = {}
        self.about: dict[str, RuleAbout] = {}

    def replace_begin(self) -> None:
        """A list starts."""
        self._listed = set()

    def item(self, obj: JsonObject) -> None:
        """An object is there, or changed."""
        meta = obj["metadata"]
        name = meta["name"]
        spec = json.dumps(obj.get("spec"), sort_keys=True).encode()
        about = RuleAbout(
            meta.get("uid", ""),
            meta.get("generation") or 0,
            obj.get("status") or {},
            blake2b(spec, digest_size=16).digest(),
        )
        before = self.about.get(name)
        self._missing.pop(name, None)
        self.about = {**self.about, name: about}
        if before is None or (before.uid, before.digest) != (about.uid, about.digest):
            found = load_document({"kind": self._kind, **obj}, f"{self._kind} {name}")
            self.loaded = {**self.loaded, name: found}
            self._dirty = True
        if self._listed is not None:
            self._listed.add(name)
        else:
            self._tell()

    added = modified = item

    def replace_end(self) -> None:
        """The list is complete."""
        listed, self._listed = self._listed, None
        now = self._now()
        for name in self.loaded.keys() - (listed or set()):
            if now - self._missing.setdefault(name, now) >= self._interval():
                self._forget(name)
        self._dirty = self._dirty or not self._complete
        self._complete = True
        self._tell()
        self.lists += 1  # only now, when whoever waits for it has been told

    def deleted(self, obj: JsonObject) -> None:
        """The API server said that an object was deleted."""
        name = obj["metadata"]["name"]
        self._forget(name)
        if self._listed is not None:
            self._listed.discard(name)
        else:
            self._tell()

    @property
    def unproven(self) -> bool:
        """Whether another list is wanted: an object is missing, or the first is empty."""
        return bool(self._missing) or (self.lists == 1 and not self.loaded)

    def _forget(self, name: str) -> None:
        self._missing.pop(name, None)
        self._dirty = self._dirty or name in self.loaded
        self.loaded = {n: found for n, found in self.loaded.items() if n != name}
        self.about = {n: about for n, about in self.about.items() if n != name}

    def _tell(self) -> None:
        if self._dirty and self._complete:
            self._dirty = False
            self._changed()
