"""Follows the ConfigMap that says which elements of bulky features rules use."""

import threading
from collections.abc import Callable

from nfd.kube.client import Client
from nfd.kube.errors import ApiError
from nfd.kube.reflector import Reflector
from nfd.kube.resources import CONFIGMAPS, JsonObject
from nfd.kube.retry import Backoff
from nfd.publish.demand import CONFIGMAP, Demand

_DENIED_WAIT = 3600.0  # seconds until the right is asked for again


class DemandFeed:
    """What a `Reflector` of that one ConfigMap tells.

    `demand` is None while it cannot be read or is not there: then everything is
    wanted. `known` is set by the first answer, whatever it is.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self.demand: Demand | None = None
        self.known = threading.Event()
        self._changed = changed
        self._listed: Demand | None = None
        self._told: Callable[[ApiError | None], None] = lambda _: None

    def reflector(
        self,
        client: Client,
        namespace: str,
        told: Callable[[ApiError | None], None],
    ) -> Reflector:
        """Return what follows the ConfigMap, for a thread to run.

        `told` is called with every failure, and with None when a list is complete.
        """
        self._told = told

        def failed(error: ApiError) -> None:
            self.known.set()
            told(error)

        return Reflector(
            client=client,
            resource=CONFIGMAPS,
            handler=self,
            namespace=namespace,
            field_selector=f"metadata.name={CONFIGMAP}",
            backoff=Backoff(0.8, 120.0),
            denied_wait=_DENIED_WAIT,
            on_error=failed,
        )

    def read(self, client: Client, namespace: str) -> None:
        """Ask once, where nothing follows; without the right everything is wanted."""
        try:
            self._listed = None
            self.item(client.get(CONFIGMAPS, CONFIGMAP, namespace))
        except ApiError:
            self._listed = None  # missing, or not to be had: no reason to fail
        self.replace_end()

    def replace_begin(self) -> None:
        """A list starts."""
        self._listed = None

    def item(self, obj: JsonObject) -> None:
        """The list shows the ConfigMap."""
        self._listed = Demand.from_data(obj.get("data") or {})

    def replace_end(self) -> None:
        """The list was complete."""
        self._told(None)
        self._set(self._listed)

    def added(self, obj: JsonObject) -> None:
        """The ConfigMap was created."""
        self.modified(obj)

    def modified(self, obj: JsonObject) -> None:
        """The ConfigMap changed."""
        self._set(Demand.from_data(obj.get("data") or {}))

    def deleted(self, obj: JsonObject) -> None:
        """The ConfigMap was deleted."""
        del obj
        self._set(None)

    def _set(self, demand: Demand | None) -> None:
        before, self.demand = self.demand, demand
        first = not self.known.is_set()
        self.known.set()
        if first or demand != before:
            self._changed()
