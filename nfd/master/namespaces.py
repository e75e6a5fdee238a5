"""Which namespaces a label selector selects, kept up to date by a reflector."""

import threading
from collections.abc import Callable, Mapping

from nfd.kube.client import Client
from nfd.kube.resources import NAMESPACES, JsonObject
from nfd.master.config import MasterConfig, Selector


class Namespaces:
    """The labels of all namespaces; `changed` is called after each news."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._labels: dict[str, Mapping[str, str]] = {}
        self._listed: dict[str, Mapping[str, str]] | None = None

    def selected(self, selector: Selector) -> frozenset[str]:
        """Return the names of those that a selector selects."""
        with self._lock:
            return frozenset(
                name
                for name, labels in self._labels.items()
                if selector.matches(labels)
            )

    def replace_begin(self) -> None:
        """A list starts."""
        self._listed = {}

    def item(self, obj: JsonObject) -> None:
        """A namespace is there, or changed."""
        meta = obj["metadata"]
        labels = meta.get("labels") or {}
        if self._listed is not None:
            self._listed[meta["name"]] = labels
            return
        with self._lock:
            self._labels[meta["name"]] = labels
        self._changed()

    added = modified = item

    def replace_end(self) -> None:
        """The list is complete; one that shows no namespace at all is not believed."""
        listed, self._listed = self._listed, None
        if listed:
            with self._lock:
                self._labels = listed
        self._changed()

    def deleted(self, obj: JsonObject) -> None:
        """A namespace was deleted."""
        name = obj["metadata"]["name"]
        if self._listed is not None:
            self._listed.pop(name, None)
        with self._lock:
            self._labels.pop(name, None)
        self._changed()


def selected_now(client: Client, config: MasterConfig) -> Callable[[str], bool] | None:
    """Return what selects namespaces, read once; None where all count."""
    selector = config.restrictions.selector
    if selector is None:
        return None
    names = frozenset(
        obj["metadata"]["name"]
        for obj in client.list(NAMESPACES, metadata_only=True)
        if selector.matches(obj["metadata"].get("labels") or {})
    )
    return names.__contains__
