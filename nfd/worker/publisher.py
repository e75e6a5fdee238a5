"""Publishes the newest result to the API server, in a thread of its own.

The order is that of DESIGN section 6: additions to the Node, then the NodeFeature,
then removals from the Node. A target that fails is tried again later, with what is
newest then; it holds up neither the other target nor the looking.
"""

import threading
from collections.abc import Callable

from nfd.config.worker import CoreConfig
from nfd.errors import NfdError
from nfd.kube.client import Client
from nfd.kube.clock import Stop
from nfd.kube.errors import Forbidden
from nfd.kube.reflector import Reflector
from nfd.metrics_text import Counts
from nfd.publish.nodefeature import SIZE_BUDGET, Publication, largest_sets
from nfd.worker.demand import DemandFeed
from nfd.worker.nodeplan import prefixed
from nfd.worker.own_node import OwnLabels
from nfd.worker.own_nodefeature import OwnNodeFeature
from nfd.worker.owners import Resolved, resolve
from nfd.worker.pace import Repairs, Target
from nfd.worker.results import NODE, OBJECT, Published, Result, Self, publication
from nfd.worker.troubles import Troubles

_OUTSIDE = "labels outside core.labelNamespaces"
_DEMAND_WAIT = 2.0  # seconds that the first write waits for the demand
_RECHECK = 3600.0  # seconds between two looks at a NodeFeature that is not watched


class Publisher:
    """Brings NodeFeature and Node to the newest result; threads may share it.

    `read_back` is called with what an earlier worker left at each place before that
    is written; nothing is written before a result is submitted.
    """

    def __init__(  # noqa: PLR0913 - what a worker's parts share
        self,
        client: Client,
        me: Self,
        targets: tuple[str, ...],
        core: CoreConfig,
        *,
        troubles: Troubles,
        read_back: Callable[[Published], None] = lambda _: None,
        demand: DemandFeed | None = None,
    ) -> None:
        self._client = client
        self._me = me
        self._core = core
        self._troubles = troubles
        self._read_back = read_back
        self._demand = demand
        self._changed = threading.Condition()
        self._version = 0
        self._result: Result | None = None
        self._poked = False
        self._started = client.clock.monotonic()
        self._owners: Resolved | None = None
        self._repair_wanted = False
        self._repairs = Repairs()
        self._repair_at = 0.0
        self._reading_object = Target("reading the NodeFeature")
        self._reading_node = Target("reading the Node")
        self._additions, self._removals = Target(NODE), Target(NODE)
        self._features = Target(OBJECT)
        self._look_again_at = 0.0
        self.watching: Reflector | None = None  # of the NodeFeature
        self.writes = Counts("target", targets)
        self.failures = Counts("target", targets)
        self.size = 0  # bytes of the NodeFeature
        self.object: OwnNodeFeature | None = None
        self._labels: OwnLabels | None = None
        if OBJECT in targets:
            self.object = OwnNodeFeature(client, me.identity, me.node, self._edited)
        if NODE in targets:
            self._labels = OwnLabels(
                client, me.node, trust_unfenced=core.trust_unfenced
            )

    # --- from other threads -----------------------------------------------------------

    def submit(self, result: Result) -> bool:
        """Take in the newest result; tell whether it differs from the one before."""
        with self._changed:
            if result == self._result:
                return False
            self._result = result
            self._version += 1
            self._poke()
        return True

    def configure(self, core: CoreConfig) -> None:
        """Take in a configuration; the targets stay."""
        with self._changed:
            if core == self._core:
                return
            if core.owner_refs != self._core.owner_refs:
                self._owners = None
            if self._labels is not None:
                self._labels.narrowed = ""
            self._core = core
        self.again()

    def again(self) -> None:
        """Publish the newest result again, as other things than it have changed."""
        with self._changed:
            self._version += 1
            self._poke()

    @property
    def up_to_date(self) -> bool:
        """Whether every target has the newest result."""
        with self._changed:
            return self._result is not None and all(
                t.done == self._version for t in self._targets()
            )

    @property
    def has_published(self) -> bool:
        """Whether the NodeFeature, else the Node, has had some result."""
        return self._features.ever if self.object else self._removals.ever

    def _targets(self) -> list[Target]:
        node = [self._additions, self._removals] if self._labels else []
        return node + ([self._features] if self.object else [])

    def _edited(self) -> None:
        with self._changed:
            self._repair_wanted = True
            self._poke()

    def _poke(self) -> None:
        with self._changed:
            self._poked = True
            self._changed.notify_all()

    # --- the thread -----------------------------------------------------------------

    def run(self, stop: Stop) -> None:
        """Publish until `stop` is set."""
        with stop.calling(self._poke):
            while not stop.is_set():
                wait = self.attempt()
                with self._changed:
                    self._changed.wait_for(lambda: self._poked or stop.is_set(), wait)
                    self._poked = False

    def attempt(self) -> float | None:
        """Do what is due; return the seconds until more is, None: not by itself."""
        now = self._client.clock.monotonic()
        waits = [self._learn(now)]
        if self.object is not None and not self._reading_object.ever:
            return waits[0]
        with self._changed:
            version, result, core = self._version, self._result, self._core
        if result is None:
            return waits[0]
        if self._demand is not None and not self._demand.known.is_set():
            wait = self._started + _DEMAND_WAIT - now
            if wait > 0:
                return wait
        waits += [self._look_again(now, core), self._repair(now)]
        node_known = self._labels is not None and self._reading_node.ever
        if node_known:
            waits.append(self._publish_labels(result, core, self._additions, version))
        if self.object is not None:
            waits.append(self._publish_object(result, core, version))
        ready = self._additions.done == version and (
            self.object is None or self._features.done == version
        )
        if node_known and ready:
            waits.append(self._publish_labels(result, core, self._removals, version))
        with self._changed:
            if version != self._version:
                return 0.0
        return min((w for w in waits if w is not None), default=None)

    def _learn(self, now: float) -> float | None:
        """Read what is published; return the seconds to wait where that fails.

        The NodeFeature does not wait for the Node.
        """
        learned = []
        if self.object is not None:
            own = self.object
            learned.append(
                self._ask(self._reading_object, now, lambda: Published(own.read()))
            )
        if self._labels is not None and not self._reading_object.failures:
            labels = self._labels
            learned.append(
                self._ask(
                    self._reading_node,
                    now,
                    lambda: Published(node_labels=labels.read()),
                )
            )
        found = [each for each in learned if each is not None]
        if found:
            self._look_again_at = now
            obj = next((each.obj for each in found if each.obj), None)
            self._read_back(Published(obj, found[-1].node_labels))
        waits = [
            t.wait(1, now)
            for t in (self._reading_object, self._reading_node)
            if t.failures
        ]
        return min((w for w in waits if w is not None), default=None)

    def _ask(
        self, target: Target, now: float, read: Callable[[], Published]
    ) -> Published | None:
        """Read what one target has, once."""
        if not target.due(1, now):
            return None
        grave = target is self._reading_object or self.object is None
        try:
            published = read()
        except NfdError as error:
            if self._client.stop.is_set():
                return None
            target.failed(error, now)
            self._troubles.begin(target.name, str(error), grave=grave)
            return None
        target.succeeded(1)
        self._troubles.end(target.name)
        return published

    def _publish_labels(
        self, result: Result, core: CoreConfig, target: Target, version: int
    ) -> float | None:
        assert self._labels is not None
        labels = self._labels
        wanted = {key: label.value for key, label in result.labels.items()}
        if self._me.auto_prefix:
            wanted = prefixed(wanted)

        def write() -> bool:
            wrote = labels.apply(
                wanted, core.label_namespaces, removals=target is self._removals
            )
            self._troubles.settle(
                "label",
                {
                    c.key: f"left to {c.manager or 'others'}, who set it to"
                    f" {c.found!r}; this worker wants {c.wanted!r}"
                    for c in wrote.yielded
                },
            )
            self._troubles.settle(
                "namespaces", {"of labels": labels.narrowed} if labels.narrowed else {}
            )
            left = ", ".join(wrote.outside)
            if left and self.object is None:  # no master will write them
                self._troubles.begin(_OUTSIDE, f"not written: {left}", optional=True)
            else:
                self._troubles.end(_OUTSIDE)
            return wrote.changed

        what = "publishing to the Node"
        return self._try(target, version, what, write, grave=self.object is None)

    def _publish_object(
        self, result: Result, core: CoreConfig, version: int
    ) -> float | None:
        assert self.object is not None
        obj = self.object

        def write() -> bool:
            wanted = None if self._demand is None else self._demand.demand
            said = publication(self._me.node, result, core, wanted)
            if self._owners is None or self._owners.problems:
                uid = "" if self._labels is None else self._labels.uid
                self._owners = resolve(
                    core.owner_refs, self._me.node, self._me.pod, self._client, uid
                )
                self._troubles.settle("owner", self._owners.problems)
            wrote = obj.write(said, self._owners.owners)
            self.size = wrote.size
            self._warn(said, wrote.size, wrote.owners_refused)
            return wrote.changed

        what = "publishing the NodeFeature"
        return self._try(self._features, version, what, write, grave=True)

    def _warn(self, said: Publication, size: int, owners_refused: str) -> None:
        if owners_refused:
            self._troubles.begin("owners of the NodeFeature", owners_refused)
        if size <= SIZE_BUDGET:
            self._troubles.end("size of the NodeFeature")
            return
        largest = ", ".join(
            f"{key} ({count} bytes)"
            for key, count in largest_sets(said.trimmed.features)
        )
        self._troubles.begin(
            "size of the NodeFeature",
            f"over {SIZE_BUDGET} bytes; the largest sets are {largest}",
        )

    def _try(
        self,
        target: Target,
        version: int,
        what: str,
        write: Callable[[], bool],
        *,
        grave: bool,
    ) -> float | None:
        now = self._client.clock.monotonic()
        if not target.due(version, now):
            return target.wait(version, now)
        try:
            changed = write()
        except NfdError as error:
            if self._client.stop.is_set():
                return None
            target.failed(error, now)
            self.failures.add(target.name)
            self._troubles.begin(what, str(error), grave=grave)
            return max(0.0, target.not_before - now)
        target.succeeded(version)
        if changed:
            self.writes.add(target.name)
        self._troubles.end(what)
        return None

    # --- what others do to it -----------------------------------------------------------

    def _repair(self, now: float) -> float | None:
        """Have the NodeFeature put back where others changed it, but not for ever."""
        with self._changed:
            wanted = self._repair_wanted
        if self.object is None:
            return None
        what = "NodeFeature of this node"
        if not wanted:
            if self._repairs.quiet(now):
                self._troubles.end(what)
            return None
        if self._features.done != self._version or self.object.as_written:
            with self._changed:
                self._repair_wanted = False
            return None
        wait = self._repair_at - now
        if wait <= 0:
            wait = self._repairs.take(now)
        if wait > 0 or self._repairs.strained:
            other = self.object.foreign
            by = f"the worker of pod {other}" if other else "others"
            self._troubles.begin(
                what, f"changed again and again by {by}; put back only now and then"
            )
        if wait > 0:
            self._repair_at = now + wait
            return wait
        with self._changed:
            self._repair_wanted = False
        # An owner that is gone would have it deleted again and again.
        self._owners = None
        if self._labels is not None:
            self._labels.forget()
        self._features.done = self._additions.done = self._removals.done = 0
        return None

    def _look_interval(self, core: CoreConfig) -> float:
        """Return the seconds between two looks at what is not watched, 0 for never."""
        if self.object is None:
            return core.node_refresh.seconds
        watching = self.watching
        denied = watching is None or isinstance(watching.error, Forbidden)
        return _RECHECK if denied else 0.0

    def _look_again(self, now: float, core: CoreConfig) -> float | None:
        """Read what is not watched, now and then."""
        interval = self._look_interval(core)
        if interval <= 0:
            return None
        if now < self._look_again_at + interval:
            return self._look_again_at + interval - now
        self._look_again_at = now
        try:
            if self.object is not None:
                self.object.read()
                if not self.object.as_written:
                    self._edited()
            elif self._labels is not None:
                self._labels.read()
                self._additions.done = self._removals.done = 0
        except NfdError as error:
            if self._client.stop.is_set():
                return None
            self._troubles.begin("looking at what is published", str(error))
        else:
            self._troubles.end("looking at what is published")
        return interval
