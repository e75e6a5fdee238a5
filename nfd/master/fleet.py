"""The master's picture of the cluster, and what is to be written next.

A state machine: events and the time go in, plans come out; nothing here does I/O or
waits. The controller feeds it under one lock. Holds: DESIGN section 6.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from nfd.errors import NfdError
from nfd.master.evaluate import Evaluation, Evaluator, Timed
from nfd.master.guard import (
    EDIT,
    LOST,
    EditGuard,
    GuardLimits,
    HeldCause,
    ObjectKey,
    causes,
)
from nfd.master.merging import (
    Scope,
    about_object,
    newest_write,
    node_of,
    published_labels,
)
from nfd.master.nodes import NodeStore
from nfd.master.plan import NodePlan, owns_anything, plan
from nfd.master.presence import Presence
from nfd.master.queue import BEGUN, CHANGED, NEW, RESYNC, Queue, Urgency
from nfd.master.settling import Settling
from nfd.master.state import NodeState, Tracking, Wanted
from nfd.master.store import FeatureStore
from nfd.master.taints import may_lift
from nfd.publish.ownership import NODE_NAME_LABEL, Hold
from nfd.rules.model import Rule
from nfd.rules.policy import Policy
from nfd.rules.sets import Sets

STARTUP_TAINTS = (
    "startup-taint.cluster-autoscaler.kubernetes.io/nfd",
    "nfd.node.kubernetes.io/startup",
)


@attrs.frozen(slots=True)
class FleetConfig:
    """What governs planning; any change of it is an edit."""

    policy: Policy = attrs.field(factory=Policy)
    scope: Scope = attrs.field(factory=lambda: Scope(""))
    tracking: Tracking = attrs.field(factory=Tracking.of)
    allow_overwrite: bool = True
    startup_taints: frozenset[str] = frozenset(STARTUP_TAINTS)
    limits: GuardLimits = GuardLimits()  # noqa: RUF009 - frozen


@attrs.frozen(slots=True)
class Considered:
    """What is wanted of a Node, with all reasons, and the plan to get there."""

    evaluation: Evaluation
    plan: NodePlan


class Fleet:
    """NodeFeatures, rules and Nodes of a cluster; plans the writes of each Node."""

    def __init__(self, config: FleetConfig, timed: Timed | None = None) -> None:
        self.config = config
        self._timed = timed
        self.features = FeatureStore()
        self.nodes = NodeStore()
        self.queue = Queue()
        self.problems: dict[ObjectKey, str] = {}  # objects that cannot be used
        self.presence = Presence(config.limits)
        self.edits = EditGuard(config.limits)
        self._rules: dict[str, tuple[Rule, ...]] = {}
        self._evaluator = self._evaluate_with()
        self._node_listing: set[str] | None = None
        self._synced = {"features": False, "nodes": False, "rules": False}
        self._no_nodes_since: float | None = None  # the time of an empty list
        self.settling = Settling()
        self.rules_confirmed = True  # by a second list, where one was asked for
        self._waiting: set[str] = set()  # nodes with removals that wait
        self._edit_left: set[str] = set()  # nodes not yet planned since an edit

    # --- NodeFeatures -------------------------------------------------------

    def feature_list_begin(self) -> None:
        """A list of NodeFeatures starts."""
        self.presence.list_begin()

    def feature_put(self, obj: Mapping[str, Any]) -> None:
        """Take in a NodeFeature, from a list or a watch."""
        meta = obj["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        returned = self.presence.shown(key)
        version = meta.get("resourceVersion", "")
        known = self.features.get(key)
        if known is not None and version and known.version == version:
            if returned:
                self.queue.add(known.node, CHANGED)
            return
        node = node_of(meta)
        if not node:
            self.problems[key] = f"no label {NODE_NAME_LABEL}: it speaks for no node"
            return
        spec = obj.get("spec") or {}
        before_keys = self._keys_before(key)
        try:
            stored, before = self.features.put(
                key,
                node,
                uid=meta.get("uid", ""),
                features=spec.get("features") or {},
                labels=published_labels(spec.get("labels")),
                about=about_object(meta),
                created=meta.get("creationTimestamp") or "",
                published=newest_write(meta),
                version=version,
            )
        except (NfdError, TypeError, KeyError, AttributeError, ValueError) as error:
            # The last good content goes on counting.
            self.problems[key] = f"{type(error).__name__}: {error}"
            self.presence.unreadable(key, node)
            return
        self.problems.pop(key, None)
        returned = self.presence.read(key, node) or returned
        if before is not None and before.same_content(stored) and not returned:
            return
        self.settling.changed(self._evaluator, node, before_keys)
        if before is not None and before.node != node:
            self._stopped_speaking(before.node)
            self.queue.add(before.node, CHANGED)
        self.queue.add(node, CHANGED)

    def feature_deleted(self, obj: Mapping[str, Any], now: float) -> None:
        """Take in a deletion that the watch delivered (H43: any shape of object)."""
        obj = obj.get("obj") or obj  # a tombstone wraps the last state
        meta = obj.get("metadata") or {}
        key = (meta.get("namespace", ""), meta.get("name", ""))
        self.problems.pop(key, None)
        stored = self.features.get(key)
        self.presence.deleted(key, stored.node if stored else None, now)

    def feature_list_end(self, now: float) -> None:
        """A list of NodeFeatures is complete: what it lacks is missing."""
        self._synced["features"] = True
        known = {key: stored.node for key, stored in self.features.objects.items()}
        for node in self.presence.list_end(known, self._silent_nodes(), now):
            self.queue.add(node, CHANGED)
        first = self.presence.first_list
        grace = self.config.limits.list_interval
        if first is not None and now - first >= grace and self.rules_confirmed:
            self._settle(now)

    def _silent_nodes(self) -> Iterator[str]:
        """Yield the nodes that were silent at the start; later ones show when planned.

        They carry things of ours while nobody speaks for them.
        """
        if self.synced and not self.settling.done:
            yield from filter(self._is_silent, self.nodes)

    def _is_silent(self, name: str) -> bool:
        if name in self.features.nodes:
            return False  # before the Node is unpacked
        node = self.nodes.get(name)
        return node is not None and owns_anything(node, self.config.tracking)

    def _stopped_speaking(self, node: str) -> None:
        """An object stopped to speak for a node, and that is proven."""
        if node in self.nodes and node not in self.features.nodes:
            self.presence.proven(node)

    def _keys_before(self, key: ObjectKey) -> set[str]:
        """Until settled: what the node of an object gets before a change of it."""
        stored = self.features.get(key)
        if stored is None:
            return set()
        return self.settling.wanted(self._evaluator, stored.node)

    # --- Nodes --------------------------------------------------------------

    def node_list_begin(self) -> None:
        """A list of Nodes starts."""
        self._node_listing = set()

    def node_put(self, obj: Mapping[str, Any]) -> None:
        """Take in a Node from a list or a watch, whole or its metadata."""
        if self._node_listing is not None:
            self._node_listing.add(obj["metadata"]["name"])
        self.node_read(obj)

    def node_read(self, obj: Mapping[str, Any]) -> None:
        """Take in a Node that was read alone: that does not make it part of a list."""
        before = self.nodes.version(obj["metadata"]["name"])
        created = before is None or before[0] != obj["metadata"]["uid"]
        self._node_state(obj, NEW if created else CHANGED)

    def _node_state(self, obj: Mapping[str, Any], urgency: Urgency) -> None:
        node = NodeState.from_object(obj)
        if self.nodes.put(node):
            self.queue.add(node.name, urgency)

    def node_written(self, obj: Mapping[str, Any]) -> None:
        """Take in the answer to a write, unless a watch has told of a later state."""
        known = self.nodes.version(obj["metadata"]["name"])
        if known is None or known[0] != obj["metadata"]["uid"]:
            return
        versions = (known[1], obj["metadata"].get("resourceVersion", ""))
        if all(v.isdigit() for v in versions) and int(versions[0]) > int(versions[1]):
            return
        self._node_state(obj, BEGUN)

    def node_missing(self, name: str, uid: str) -> None:
        """Forget a Node that a request did not find, but no successor of it."""
        known = self.nodes.version(name)
        if known is not None and known[0] == uid:
            self.node_deleted(name)

    def node_deleted(self, name: str) -> None:
        """Forget a Node; what its objects held is no longer of any matter."""
        self.nodes.drop(name)
        self.queue.discard(name)
        self._waiting.discard(name)
        self.settling.forget(name)
        self.presence.forget(name)
        self._edit_left.discard(name)
        self.edits.would_lose(name, ())

    def node_list_end(self, now: float) -> None:
        """A list of Nodes is complete."""
        listed = self._node_listing if self._node_listing is not None else set()
        self._node_listing = None
        for name in [n for n in self.nodes if n not in listed]:
            self.node_deleted(name)
        self._synced["nodes"] = True
        self._no_nodes_since = None if listed else now
        self._note_first(now)

    def tracks_whole(self) -> bool:
        """Whether any Node tracks taints or resources, which metadata do not show."""
        tracking = self.config.tracking
        return any(
            tracking.resources in node.annotations
            or tracking.taints in node.annotations
            for node in map(self.nodes.get, self.nodes)
            if node is not None
        )

    # --- rules and configuration ---------------------------------------------

    def rules_put(self, rules: Mapping[str, Sequence[Rule]], now: float) -> None:
        """Take in all rules: name of the object → its rules; ordered by name."""
        self._rules = {name: tuple(listed) for name, listed in sorted(rules.items())}
        first = not self._synced["rules"]
        self._synced["rules"] = True
        self._edited(now, first=first)
        self._note_first(now)

    def configure(self, config: FleetConfig, now: float) -> None:
        """Take in a new configuration."""
        self.config = config
        self.presence.losses.limits = config.limits
        self.edits.limits = config.limits
        self._edited(now, first=not self.synced)

    def _edited(self, now: float, *, first: bool) -> None:
        if self.synced and not first:
            self.settling.edited(self._evaluator)
        self._evaluator = self._evaluate_with()
        if not first:
            self.edits.edited(now)
            self._edit_left = set(self.nodes)
        self.resync(CHANGED)

    def _evaluate_with(self) -> Evaluator:
        rules = [r for listed in self._rules.values() for r in listed]
        config = self.config
        return Evaluator(self.features, rules, config.policy, config.scope, self._timed)

    def resync(self, urgency: Urgency = RESYNC) -> None:
        """Look at every node again."""
        for name in self.nodes:
            self.queue.add(name, urgency)

    # --- time ----------------------------------------------------------------

    @property
    def synced(self) -> bool:
        """Whether all first lists are complete; nothing may be written before."""
        return all(self._synced.values())

    def _note_first(self, now: float) -> None:
        """The first complete list counts for nodes that became known after it."""
        if self.synced and not self.settling.done:
            self.presence.silences(self._silent_nodes(), now)
            self.presence.first_list_counts(self.features.objects, now)

    def wants_list(self, now: float) -> bool:
        """Whether another complete list of NodeFeatures is due.

        To prove something, or because the first one was empty: new Nodes, which have
        nothing to lose, would never be labelled if it was wrong.
        """
        presence, interval = self.presence, self.config.limits.list_interval
        if not self.synced or now - presence.last_list < interval:
            return False
        doubtful = self._waiting or presence.losses.unproven or presence.empty
        if not self.settling.done and not doubtful:
            self._settle(now)
        return not self.settling.done or presence.losses.unproven

    def wants_nodes(self, now: float) -> bool:
        """Whether Nodes are to be listed again: the last list was empty.

        That is believed where nobody speaks for any node.
        """
        since = self._no_nodes_since
        if since is None or not self.features.nodes:
            return False
        return now - since >= self.config.limits.list_interval

    def _settle(self, now: float) -> None:
        """The second list is in: what is not wanted now was not lost on the way."""
        if self.settling.done:
            return
        self.settling.end()
        waiting = self._waiting - self.presence.silent()
        if waiting:
            self.edits.edited(now)
            self._edit_left = set(waiting)
            for name in waiting:
                self.queue.add(name, CHANGED)

    def tick(self, now: float) -> None:
        """Let proven losses and held edits take effect when their time has come."""
        if not self.synced:
            return
        nodes = self.nodes
        for key, node in self.presence.due(now, len(nodes), nodes.__contains__):
            before = self._keys_before(key)
            self.features.drop(key)
            self._stopped_speaking(node)
            self.settling.changed(self._evaluator, node, before)
            self.queue.add(node, CHANGED)
        self._count_edit(now)
        for name in self.edits.due(now):
            self.queue.add(name, CHANGED)

    def _count_edit(self, now: float) -> bool:
        """Count the losers of an edit once all are known; tell whether it may go on."""
        if not self.edits.holding:
            return True
        if self._edit_left or not self.edits.counted(now, len(self.nodes)):
            return False
        for name in sorted(self._waiting):
            self.queue.add(name, CHANGED)
        return True

    def held(self, now: float) -> tuple[HeldCause, ...]:
        """Return what is held back, and why."""
        lost = self.presence.losses.held(now, len(self.nodes))
        return causes([lost, self.edits.held()])

    def confirm(self, cause: str, now: float) -> int:
        """Let what is held for a cause go on; return how many nodes that concerns."""
        if cause == LOST:
            return self.presence.losses.confirm(now)
        if cause == EDIT:
            nodes = self.edits.confirm()
            for name in nodes:
                self.queue.add(name, CHANGED)
            return len(nodes)
        return 0

    # --- planning -------------------------------------------------------------

    def evaluate(self, name: str) -> Evaluation:
        """Return what is wanted of a node, with all reasons."""
        return self._evaluator.node(name)

    def sets_of(self, name: str) -> Sets | None:
        """Return the feature sets of a node; None where nobody speaks for it."""
        return self._evaluator.sets_of(name)

    def plan(self, name: str, now: float) -> NodePlan:
        """Plan the writes of one Node; an empty plan when there is nothing to do."""
        return self.consider(name, now).plan

    def consider(self, name: str, now: float) -> Considered:
        """Evaluate and plan one Node."""
        evaluation = self.evaluate(name)
        node = self.nodes.get(name)
        if node is None or not self.synced:
            return Considered(evaluation, NodePlan(name))
        wanted = evaluation.wanted()
        if self._is_silent(name):
            # It was not there for a while, or a list did not show it and its objects.
            self.presence.silences([name], now)
        unproven = self._unproven(name)
        if self.edits.holding:
            free = attrs.evolve(wanted, hold=_both(wanted.hold, unproven))
            loses = self._plan(node, free).removals
            self.edits.would_lose(name, [r.key for r in loses])
            self._edit_left.discard(name)
            if not self._count_edit(now):
                unproven = Hold(everything=True)
        wanted = attrs.evolve(wanted, hold=_both(wanted.hold, unproven))
        planned = self._plan(node, wanted)
        if planned.held:
            self._waiting.add(name)
        else:
            self._waiting.discard(name)
        lift = self.config.startup_taints
        about = self.features.about
        if not planned and may_lift(node, lift, evaluation.heard.objects, about):
            planned = self._plan(node, attrs.evolve(wanted, lift=lift))
        return Considered(evaluation, planned)

    def _plan(self, node: NodeState, wanted: Wanted) -> NodePlan:
        return plan(
            node,
            wanted,
            self.config.tracking,
            allow_overwrite=self.config.allow_overwrite,
        )

    def _unproven(self, name: str) -> Hold:
        """Hold removals that lack proof.

        After a start, or when objects are lost or have content that cannot be read.
        """
        if self.presence.uncertain(name):
            return Hold(everything=True)
        if self.settling.done:
            return Hold()
        return Hold(everything=True, proven=self.settling.proven(self._evaluator, name))

    def may_hide_startup_taint(self, name: str) -> bool:
        """Tell whether a Node that somebody speaks for was never seen whole.

        New Nodes show their taints in the answer to the first write; some need none.
        """
        return (
            bool(self.config.startup_taints)
            and name in self.features.nodes
            and self.nodes.is_partial(name)
        )


def _both(left: Hold, right: Hold) -> Hold:
    if left.everything and right.everything:
        proven = left.proven & right.proven
    else:
        proven = left.proven if left.everything else right.proven
    return Hold(left.everything or right.everything, left.keys | right.keys, proven)
