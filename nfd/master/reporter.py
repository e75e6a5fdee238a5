"""Tells the cluster what the master found: statuses, notes, Events, demand, holds.

Impure, one thread, paced: nothing here holds up the labelling of nodes, and the same
thing is written once. Each right may be missing; then that part is left out, and
readiness says so (DESIGN section 6).
"""

import datetime as dt
import threading
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec

from nfd.kube.client import Client
from nfd.kube.clock import Stop
from nfd.kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from nfd.kube.events import EventRecorder, Reference
from nfd.kube.resources import (
    CONFIGMAPS,
    LEASES,
    NODEFEATURERULES,
    NODEFEATURES,
    JsonObject,
)
from nfd.master.controller import Controller
from nfd.master.demand import demand_of
from nfd.master.evaluate import Evaluation
from nfd.master.feeds import rules_of
from nfd.master.guard import ObjectKey
from nfd.master.holds import Incidents, annotate, told
from nfd.master.plan import NodePlan, Step
from nfd.master.tally import Tally, with_times
from nfd.publish.demand import CONFIGMAP, Demand
from nfd.publish.nodefeature import REFUSED
from nfd.rules.load import Loaded

P = ParamSpec("P")

_PERIOD = 1.0  # seconds between two looks
_QUIET = 10.0  # seconds between two rounds of statuses and notes
_PATIENCE = 60.0  # seconds that statuses wait for a quiet moment
_NOTE_PAUSE = 0.1  # seconds between two notes on NodeFeatures
_MOST_EVENTS = 20  # about NodeFeatures, a round


class Reporter:
    """An observer that tells the cluster; `run` does the writing."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        lease: str,
        recorder: EventRecorder,
        *,
        on_error: Callable[[ApiError], None],
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._lease = lease
        self._events = recorder
        self._on_error = on_error
        self._lock = threading.Lock()
        self._tally = Tally()
        self._dirty = False
        self._dirty_since = self._flushed = float("-inf")
        self._demand: Demand | None = None  # as last written or found right
        self._rules_dirty = False
        self._incidents = Incidents()
        self._told_holds: frozenset[str] | None = None
        self._denied: set[str] = set()  # parts that rights are missing for
        self._told_problems: dict[ObjectKey, str] = {}
        self.group_demand: Callable[[], Demand] = Demand
        self.controller: Controller

    # --- Observer -----------------------------------------------------------------

    def rules_loaded(self, loaded: Mapping[str, Loaded]) -> None:
        """Statuses and demand follow."""
        del loaded
        with self._lock:
            self._rules_dirty = True
            self._mark_dirty()

    def planned(self, evaluation: Evaluation, plan: NodePlan) -> None:
        """Note what the evaluation says."""
        del plan
        with self._lock:
            if self._tally.note(evaluation):
                self._mark_dirty()

    def wrote(self, plan: NodePlan, step: Step) -> None:
        """Nothing to tell."""

    def failed(self, node: str, error: ApiError, failures: int, /) -> None:
        """Nothing to tell."""

    def trouble(self, error: ApiError) -> None:
        """Nothing to tell."""

    def matched(self) -> Mapping[str, int]:
        """Return how many nodes each rule object matches."""
        with self._lock:
            return self._tally.matched()

    def _mark_dirty(self) -> None:
        if not self._dirty:
            self._dirty = True
            self._dirty_since = self._client.clock.monotonic()

    # --- work ---------------------------------------------------------------------

    def run(self, stop: Stop) -> None:
        """Work until `stop` is set."""
        while not self._client.clock.wait(stop, _PERIOD):
            self.round(stop)

    def round(self, stop: Stop) -> None:
        """Look once whether there is something to tell; tell it if we lead."""
        controller = self.controller
        if not controller.synced or not controller.is_leader:
            return
        if not controller.settings.publish:
            return
        self._tell_holds()
        self._write_demand()
        if self._statuses_are_due():
            self._flushed = self._client.clock.monotonic()
            with self._lock:
                self._dirty = False
                with controller.changing() as fleet:
                    self._tally.keep(fleet.nodes)
                statuses = self._tally.statuses(controller.loaded)
                notes = self._tally.object_notes()
                ignored = self._tally.ignored()
            self._write_statuses(statuses, stop)
            self._write_notes(notes, stop)
            self._tell_problems(ignored)

    def _statuses_are_due(self) -> bool:
        now = self._client.clock.monotonic()
        with self._lock:
            waited = now - self._dirty_since
            if not self._dirty or now - self._flushed < _QUIET:
                return False
        return waited >= _PATIENCE or self.controller.idle

    def _allowed(
        self, part: str, work: Callable[P, None], *args: P.args, **more: P.kwargs
    ) -> bool:
        """Do a part of the work unless a right for it is known to be missing."""
        if part in self._denied or not self.controller.is_leader:
            return False
        try:
            work(*args, **more)
        except Forbidden as error:
            self._denied.add(part)
            self._on_error(error)
        except ApiError as error:
            self._on_error(error)
        else:
            return True
        return False

    # --- rules ----------------------------------------------------------------------

    def _write_statuses(
        self, statuses: Mapping[str, dict[str, Any]], stop: Stop
    ) -> None:
        for name, status in statuses.items():
            if stop.is_set():
                return
            about = self.controller.rule_feed.about.get(name)
            if about is None:
                continue
            new = with_times(
                status, about.status, about.generation, now_text(self._client)
            )
            if new == about.status:
                continue
            self._tell_conditions(name, about.uid, about.status, new)
            patch = {**dict.fromkeys(about.status, None), **new}
            self._allowed("rule status", self._patch_status, name, patch)

    def _patch_status(self, name: str, status: JsonObject) -> None:
        try:
            self._client.merge_patch(
                NODEFEATURERULES, name, {"status": status}, subresource="status"
            )
        except NotFound:
            # The rule is gone, or the definitions are upstream's, without a status.
            if "nodefeaturerules/status" not in self._client.served(NODEFEATURERULES):
                self._denied.add("rule status")

    def _tell_conditions(
        self, name: str, uid: str, before: Mapping[str, Any], new: Mapping[str, Any]
    ) -> None:
        """Tell of each condition that turned bad."""
        known = {
            c["type"]: (c["status"], c["message"])
            for c in before.get("conditions") or ()
        }
        for condition in new["conditions"]:
            state = (condition["status"], condition["message"])
            bad = condition["status"] == (
                "True" if condition["type"] == "Conflict" else "False"
            )
            if bad and known.get(condition["type"]) != state:
                about = Reference(NODEFEATURERULES, name, uid=uid)
                self._events.record(
                    about, "Warning", condition["reason"], condition["message"]
                )

    # --- NodeFeatures -----------------------------------------------------------------

    def _write_notes(self, notes: Mapping[ObjectKey, str], stop: Stop) -> None:
        """Bring the note of refusals on NodeFeatures up to date."""
        noted = dict(self.controller.feature_feed.noted)
        known = self.controller.fleet.features.objects
        due: dict[ObjectKey, str | None] = {
            key: text for key, text in notes.items() if noted.get(key) != text
        }
        due |= {key: None for key in noted if key not in notes and key in known}
        told = 0
        for key, text in due.items():
            if stop.is_set() or "refusals" in self._denied:
                return
            self._allowed("refusals", self._write_note, key, text)
            if text and told < _MOST_EVENTS:
                told += 1
                self._tell_feature(key, "OutputRefused", f"refused: {text}")
            self._client.clock.wait(stop, _NOTE_PAUSE)

    def _write_note(self, key: ObjectKey, text: str | None) -> None:
        patch: JsonObject = {"metadata": {"annotations": {REFUSED: text}}}
        try:
            self._client.merge_patch(NODEFEATURES, key[1], patch, key[0])
        except NotFound:
            return

    def _tell_problems(self, ignored: Mapping[ObjectKey, str]) -> None:
        """Tell of objects that cannot be used, or do not count."""
        with self.controller.changing() as fleet:
            problems = {**ignored, **fleet.problems}
        new = [k for k, text in problems.items() if self._told_problems.get(k) != text]
        for key in new[:_MOST_EVENTS]:
            self._tell_feature(key, "NotUsed", problems[key])
            self._told_problems[key] = problems[key]
        for key in self._told_problems.keys() - problems.keys():
            del self._told_problems[key]

    def _tell_feature(self, key: ObjectKey, reason: str, message: str) -> None:
        stored = self.controller.fleet.features.get(key)
        uid = stored.uid if stored is not None else ""
        about = Reference(NODEFEATURES, key[1], key[0], uid)
        self._events.record(about, "Warning", reason, message)

    # --- demand -----------------------------------------------------------------------

    def _write_demand(self) -> None:
        with self._lock:
            dirty, self._rules_dirty = self._rules_dirty, False
        if not self._namespace:
            return
        rules = [
            r for found in self.controller.loaded.values() for r in rules_of(found)
        ]
        if not dirty and self._demand is not None:
            return
        demand = demand_of(rules) | self.group_demand()
        if demand != self._demand:
            self._allowed("demand", self._put_demand, demand)

    def demand_changed(self) -> None:
        """The rules of groups changed."""
        with self._lock:
            self._rules_dirty = True

    def _put_demand(self, demand: Demand) -> None:
        try:
            found = self._client.get(CONFIGMAPS, CONFIGMAP, self._namespace)
        except NotFound:
            found = {
                "apiVersion": CONFIGMAPS.api_version,
                "kind": CONFIGMAPS.kind,
                "metadata": {"name": CONFIGMAP, "namespace": self._namespace},
            }
        if found.get("data") != demand.to_data():
            found["data"] = demand.to_data()
            try:
                if found["metadata"].get("resourceVersion"):
                    self._client.update(CONFIGMAPS, found)
                else:
                    self._client.create(CONFIGMAPS, found)
            except (AlreadyExists, Conflict):
                self.demand_changed()  # somebody else wrote it: look again
                return
        self._demand = demand

    # --- holds ------------------------------------------------------------------------

    def _tell_holds(self) -> None:
        """Keep the Lease's word on what is held up to date, and look for answers.

        The first round clears what an earlier master may have left there.
        """
        if not self._namespace:
            return
        self._incidents.update(self.controller.held())
        opened = self._incidents.open
        if self._told_holds != frozenset(opened):
            about = Reference(LEASES, self._lease, self._namespace)
            for incident in opened.values():
                self._events.record(about, "Warning", "RemovalsHeld", incident.reason)
            if self._allowed("holds", self._annotate, opened):
                self._told_holds = frozenset(opened)
        if opened:
            self._allowed("confirmations", self._look_for_confirmation)

    def _annotate(self, opened: Mapping[str, Any]) -> None:
        annotate(self._client, self._namespace, self._lease, told(opened))

    def _look_for_confirmation(self) -> None:
        try:
            lease = self._client.get(LEASES, self._lease, self._namespace)
        except NotFound:
            return
        notes = lease["metadata"].get("annotations") or {}
        for cause in self._incidents.confirmed(notes):
            self.controller.confirm(cause)


def now_text(client: Client) -> str:
    """Return the time as the API writes it."""
    time = dt.datetime.fromtimestamp(client.clock.wall(), dt.UTC)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
