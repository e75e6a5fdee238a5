"""NodeFeatureGroups: which nodes match, in a status of bounded size.

Rules of a group see only each other; any rule that matches makes a node a member
(spec/master.md section 3). Ours: only nodes that changed are looked at again, a node
whose features are unknown keeps its membership, and a status that would outgrow
etcd's limit is cut, which a condition says.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nfd.kube.client import Client
from nfd.kube.clock import Stop
from nfd.kube.errors import ApiError, Forbidden, NotFound
from nfd.kube.reflector import Reflector
from nfd.kube.resources import NODEFEATUREGROUPS, JsonObject
from nfd.master.controller import Controller
from nfd.master.demand import demand_of
from nfd.master.evaluate import Evaluation
from nfd.master.feeds import RuleFeed, rules_of
from nfd.master.plan import NodePlan, Step
from nfd.master.reporter import now_text
from nfd.master.tally import Condition, valid_condition, with_times
from nfd.publish.demand import Demand
from nfd.rules.engine import evaluate_all
from nfd.rules.load import Loaded
from nfd.rules.model import Rule
from nfd.rules.sets import Sets

LIMIT = 1 << 20  # bytes of names in one status; etcd takes 1.5 MiB as a whole
_ENTRY = len('{"name":""},')
_PERIOD = 1.0  # seconds between two looks


def member(
    rules: Sequence[Rule], sets: Sets, node: str, before: str | None
) -> str | None:
    """Return the name under which a node is a member, None where it is none.

    The name is what the node's own features say (`system.name`, `nodename`).
    """
    results, _ = evaluate_all(rules, sets)
    if any(result.matched for result in results):
        names = sets.attributes.get("system.name") or {}
        return names.get("nodename") or node
    if any(result.outcome == "unknown" for result in results):
        return before
    return None


def status_of(
    names: Iterable[str], found: Loaded, limit: int = LIMIT
) -> dict[str, Any]:
    """Return the status of a group; the names in their order, cut at `limit` bytes."""
    listed: list[dict[str, str]] = []
    size = 0
    everyone = list(dict.fromkeys(names))
    for name in everyone:
        size += len(name.encode()) + _ENTRY
        if size > limit:
            break
        listed.append({"name": name})
    if len(listed) == len(everyone):
        cut = Condition("Truncated", "False", "Complete", "all members are listed")
    else:
        said = f"{len(listed)} of {len(everyone)} members are listed"
        cut = Condition("Truncated", "True", "TooMany", said)
    return {"conditions": [valid_condition(found), cut], "nodes": listed}


class Groups:
    """An observer that keeps the groups of one namespace up to date."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        *,
        on_error: Callable[[ApiError], None],
        demand_changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._on_error = on_error
        self._demand_changed = demand_changed
        self._lock = threading.Lock()
        self._dirty: set[str] = set()
        self._changed = True
        self._members: dict[str, dict[str, str]] = {}  # group → node → name
        self._evaluated: dict[str, Loaded] = {}
        self._denied = False
        self.feed = RuleFeed(self._groups_changed, "NodeFeatureGroup")
        self.reflector = Reflector(
            client=client,
            resource=NODEFEATUREGROUPS,
            handler=self.feed,
            namespace=namespace,
            on_error=on_error,
        )
        self.controller: Controller

    # --- Observer -------------------------------------------------------------------

    def rules_loaded(self, loaded: Mapping[str, Loaded]) -> None:
        """Groups do not see rules."""

    def planned(self, evaluation: Evaluation, plan: NodePlan) -> None:
        """Look at the node again."""
        del plan
        with self._lock:
            self._dirty.add(evaluation.node)

    def wrote(self, plan: NodePlan, step: Step) -> None:
        """Nothing to do."""

    def failed(self, node: str, error: ApiError, failures: int, /) -> None:
        """Nothing to do."""

    def trouble(self, error: ApiError) -> None:
        """Nothing to do."""

    def _groups_changed(self) -> None:
        with self._lock:
            self._changed = True
        self._demand_changed()

    def demand(self) -> Demand:
        """Return what the rules of all groups read."""
        return demand_of(
            r for found in self.feed.loaded.values() for r in rules_of(found)
        )

    # --- work -----------------------------------------------------------------------

    def run(self, stop: Stop) -> None:
        """Work until `stop` is set."""
        while not self._client.clock.wait(stop, _PERIOD):
            if self.controller.synced and self.controller.is_leader:
                self.round(stop)

    def round(self, stop: Stop) -> None:
        """Evaluate what changed and write the statuses that differ."""
        with self._lock:
            if not self._changed and not self._dirty:
                return
            dirty, self._dirty = self._dirty, set()
            self._changed = False
        loaded = dict(self.feed.loaded)
        for name in self._members.keys() - loaded.keys():
            del self._members[name]
        with self.controller.changing() as fleet:
            everyone = sorted(fleet.nodes)
        for name, found in loaded.items():
            if stop.is_set():
                return
            anew = self._evaluated.get(name) is not found
            if anew:
                before = (self.feed.about[name].status or {}).get("nodes") or ()
                self._members[name] = {n["name"]: n["name"] for n in before}
            self._evaluate(name, found, everyone if anew else sorted(dirty))
            members = self._members[name]
            for gone in members.keys() - set(everyone):
                del members[gone]
            self._evaluated[name] = found
            self._write(name, status_of((members[n] for n in sorted(members)), found))

    def _evaluate(self, group: str, found: Loaded, nodes: Iterable[str]) -> None:
        rules = rules_of(found)
        members = self._members[group]
        for node in nodes:
            with self.controller.changing() as fleet:
                sets = fleet.sets_of(node)
                name = (
                    None
                    if sets is None
                    else member(rules, sets, node, members.get(node))
                )
            if name is None:
                members.pop(node, None)
            else:
                members[node] = name

    def _write(self, name: str, status: Mapping[str, Any]) -> None:
        about = self.feed.about.get(name)
        if about is None or self._denied:
            return
        before = about.status
        new = with_times(status, before, about.generation, now_text(self._client))
        # Upstream's definition has no conditions: there the server drops them.
        compared = {k: v for k, v in new.items() if k in before} if before else new
        if compared == before:
            return
        patch: JsonObject = {"status": new}
        try:
            self._client.merge_patch(
                NODEFEATUREGROUPS, name, patch, self._namespace, subresource="status"
            )
        except NotFound:
            return  # the group is gone
        except Forbidden as error:
            self._denied = True
            self._on_error(error)
        except ApiError as error:
            self._on_error(error)
            self._groups_changed()  # try again
