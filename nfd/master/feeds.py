"""Handlers of the master's reflectors: they hand objects to the fleet."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

from nfd.kube.resources import JsonObject
from nfd.master.fleet import Fleet
from nfd.rules.load import Loaded, load_document
from nfd.rules.model import Rule

Changing: TypeAlias = Callable[[], AbstractContextManager[Fleet]]
Now: TypeAlias = Callable[[], float]


def rules_of(loaded: Loaded) -> tuple[Rule, ...]:
    """Return the rules of one object that could be read."""
    return tuple(rule for obj in loaded.objects for rule in obj.rules)


class FeatureFeed:
    """Hands NodeFeatures to the fleet."""

    def __init__(self, changing: Changing, now: Now) -> None:
        self._changing = changing
        self._now = now

    def replace_begin(self) -> None:
        """A list starts."""
        with self._changing() as fleet:
            fleet.feature_list_begin()

    def item(self, obj: JsonObject) -> None:
        """An object is there, or changed."""
        with self._changing() as fleet:
            fleet.feature_put(obj)

    added = modified = item

    def replace_end(self) -> None:
        """The list is complete."""
        with self._changing() as fleet:
            fleet.feature_list_end(self._now())

    def deleted(self, obj: JsonObject) -> None:
        """The API server said that an object was deleted."""
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


class RuleFeed:
    """Reads rule objects; the controller takes them over as a whole."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._listed: dict[str, Loaded] | None = None
        self.loaded: dict[str, Loaded] = {}

    def replace_begin(self) -> None:
        """A list starts."""
        self._listed = {}

    def item(self, obj: JsonObject) -> None:
        """An object is there, or changed."""
        name = obj["metadata"]["name"]
        found = load_document(obj, f"NodeFeatureRule {name}")
        if self._listed is not None:
            self._listed[name] = found
        else:
            self.loaded = {**self.loaded, name: found}
            self._changed()

    added = modified = item

    def replace_end(self) -> None:
        """The list is complete."""
        if self._listed is not None:
            self.loaded, self._listed = self._listed, None
        self._changed()

    def deleted(self, obj: JsonObject) -> None:
        """The API server said that an object was deleted."""
        name = obj["metadata"]["name"]
        if self._listed is not None:
            self._listed.pop(name, None)
        self.loaded = {n: found for n, found in self.loaded.items() if n != name}
        self._changed()
