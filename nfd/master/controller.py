"""Where the master's threads meet: reflectors feed the fleet, the loop plans.

One lock guards the `Fleet`. Reflector threads take events in, the loop plans one
Node at a time and hands its first step to a thread of `Writers`.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import attrs

from nfd.kube.client import Client
from nfd.kube.clock import Stop
from nfd.kube.errors import ApiError, Forbidden
from nfd.kube.lease import LeaseElector
from nfd.kube.reflector import Reflector
from nfd.kube.resources import NODEFEATURERULES, NODEFEATURES, NODES
from nfd.master.evaluate import Evaluation, Timed
from nfd.master.feeds import FeatureFeed, NodeFeed, RuleFeed, rules_of
from nfd.master.fleet import Considered, Fleet, FleetConfig
from nfd.master.guard import HeldCause
from nfd.master.plan import NodePlan
from nfd.master.queue import CHANGED, RESYNC
from nfd.master.writing import Listener, Writers
from nfd.rules.load import Loaded

_TICK = 1.0  # seconds between two looks at the clock


@attrs.frozen(slots=True)
class ControllerConfig:
    """How the controller works; what it wants is in `FleetConfig`."""

    writers: int = 10
    resync_period: float = 3600.0  # seconds; 0: never
    page_size: int = 200
    publish: bool = True


class Observer(Listener, Protocol):
    """Whoever wants to know: logs, metrics, events, status. Called with no lock."""

    def rules_loaded(self, loaded: Mapping[str, Loaded]) -> None:
        """All rule objects were read again: name → what was read."""
        ...

    def planned(self, evaluation: Evaluation, plan: NodePlan) -> None:
        """A Node was evaluated; the plan may be empty."""
        ...

    def trouble(self, error: ApiError) -> None:
        """A list or watch failed; it goes on by itself."""
        ...


class Controller:
    """Keeps the Nodes of a cluster as rules and NodeFeatures want them."""

    def __init__(  # noqa: PLR0913 - what it is put together from
        self,
        client: Client,
        config: FleetConfig,
        observer: Observer,
        *,
        settings: ControllerConfig = ControllerConfig(),
        elector: LeaseElector | None = None,
        timed: Timed | None = None,
    ) -> None:
        self.fleet = Fleet(config, timed)
        self.settings = settings
        self.observer = observer
        self.loaded: dict[str, Loaded] = {}
        self._client = client.but(field_manager=config.tracking.manager)
        self._elector = elector
        self._changed = threading.Condition()
        self._blind = False  # Nodes may not be watched: look before planning
        self._rules_dirty = False
        self._rules_taken = False
        self._resync_at = self._relist_at = self._tick_at = 0.0
        self._threads: list[threading.Thread] = []
        self.rule_feed = RuleFeed(
            self._rules_changed,
            now=self._now,
            interval=lambda: self.fleet.config.limits.list_interval,
        )
        self.fleet.rules_confirmed = False
        self._lists_wanted = 0  # of rules, before NodeFeatures are listed again
        self._features_wanted = False
        self._rules = self._reflector(NODEFEATURERULES, self.rule_feed)
        self.feature_feed = FeatureFeed(self.changing, self._now, self._heard_of)
        self._features = self._reflector(NODEFEATURES, self.feature_feed)
        nodes = NodeFeed(self.changing, self._now, self._look_whole)
        self._nodes = self._reflector(NODES, nodes, metadata_only=True)
        self._nodes.whole_lists = bool(config.startup_taints)
        self._writers = Writers(
            self._client,
            settings.writers,
            self._changed,
            self.changing,
            observer,
            brief=self._metadata_say_enough,
            elector=elector,
        )

    # --- running ----------------------------------------------------------------

    def run(self, stop: Stop) -> None:
        """Work until `stop` is set; returns when all threads have ended.

        Raises:
            Exception: Whatever a thread of ours failed of; all are stopped first.

        """
        errors: list[BaseException] = []

        def guarded(work: Callable[[], None]) -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - raised in `run`
                errors.append(error)
                stop.set()
                self._wake()

        def start(name: str, work: Callable[[], None]) -> None:
            thread = threading.Thread(
                target=guarded, args=(work,), name=name, daemon=True
            )
            self._threads.append(thread)
            thread.start()

        start("nfd-rules", lambda: self._rules.run(stop))
        start("nfd-features", lambda: self._features.run(stop))
        start("nfd-nodes", lambda: self._run_nodes(stop))
        for number in range(self._writers.count):
            start(f"nfd-writer-{number}", lambda: self._writers.run(stop))
        with stop.calling(self._wake):
            self._resync_at = self._now() + self.settings.resync_period
            guarded(lambda: self._loop(stop))
        self._writers.end()
        for thread in self._threads:
            thread.join()
        if errors:
            raise errors[0]

    @property
    def synced(self) -> bool:
        """Whether every first list is complete."""
        with self._changed:
            return self.fleet.synced

    @property
    def is_leader(self) -> bool:
        """Whether this master may write."""
        return self._elector is None or self._elector.is_leader

    def held(self) -> tuple[HeldCause, ...]:
        """Return what the removal guard holds back."""
        with self._changed:
            return self.fleet.held(self._now())

    def confirm(self, cause: str) -> int:
        """Let a held cause go on; return how many nodes that concerns."""
        with self.changing() as fleet:
            return fleet.confirm(cause, self._now())

    def configure(self, config: FleetConfig, settings: ControllerConfig) -> None:
        """Take in a new configuration; the number of writers stays."""
        with self.changing() as fleet:
            self.settings = settings
            self._nodes.whole_lists = bool(config.startup_taints)
            fleet.configure(config, self._now())

    @contextlib.contextmanager
    def changing(self) -> Iterator[Fleet]:
        """Hold the lock to read or change the fleet, then wake the loop."""
        with self._changed:
            yield self.fleet
            if self.fleet.synced:  # before, nobody could do anything about it
                self._changed.notify_all()

    def wait_idle(self, seconds: float) -> bool:
        """Wait until nothing is left to plan or write; tell whether that is so."""
        with self._changed:
            return self._changed.wait_for(self._is_idle, seconds)

    @property
    def idle(self) -> bool:
        """Whether nothing is left to plan or write."""
        with self._changed:
            return self._is_idle()

    def _is_idle(self) -> bool:
        left = len(self.fleet.queue) or self._rules_dirty
        return self.fleet.synced and not left and self._writers.idle

    def _now(self) -> float:
        return self._client.clock.monotonic()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _reflector(
        self, resource: Any, handler: Any, *, metadata_only: bool = False
    ) -> Reflector:
        return Reflector(
            client=self._client,
            resource=resource,
            handler=handler,
            metadata_only=metadata_only,
            page_size=self.settings.page_size,
            on_error=self._trouble,
            list_interval=self.settings.resync_period or 3600.0,
        )

    def _trouble(self, error: ApiError) -> None:
        if isinstance(error, Forbidden) and error.verb == "watch":
            self._blind = self._blind or error.resource == NODES.plural
        self.observer.trouble(error)

    def _heard_of(self, node: str) -> None:
        """News came about a node; its Node may be another one by now."""
        if self._blind:
            with self._changed:
                self._writers.unsure.add(node)

    def _run_nodes(self, stop: Stop) -> None:
        """Watch Nodes, once the rules say whether whole ones are needed."""
        with self._changed:
            self._changed.wait_for(lambda: self._rules_taken or stop.is_set())
        self._nodes.run(stop)

    # --- the loop -----------------------------------------------------------------

    def _loop(self, stop: Stop) -> None:
        while not stop.is_set():
            if self._rules_dirty:
                self._take_rules()
            with self._changed:
                self._pass_time(self._now())
                publish = self.settings.publish
                considered = self._next(publish=publish)
                if considered is None and not self._rules_dirty:
                    self._changed.notify_all()
                    self._changed.wait(self._pause())
            if considered is not None:
                self.observer.planned(considered.evaluation, considered.plan)
                if considered.plan and publish:
                    self._writers.write(considered.plan)

    def _pass_time(self, now: float) -> None:
        for name in self._writers.due(now):
            self.fleet.queue.add(name, CHANGED)
        if now < self._tick_at:
            return
        self._tick_at = now + _TICK / 4
        self.fleet.tick(now)
        period = self.settings.resync_period
        if period > 0 and now >= self._resync_at:
            self._resync_at = now + period
            self.fleet.resync(RESYNC)
        if self._lists_wanted:
            self._go_on_listing()
        elif now >= self._relist_at:
            self._ask_for_lists(now)

    def _ask_for_lists(self, now: float) -> None:
        """Ask for another list of rules, then of NodeFeatures, where proof needs it.

        One list of rules proves no more than one of NodeFeatures. Nodes are listed
        again where a list showed none.
        """
        next_lists = now + self.fleet.config.limits.list_interval
        if self.fleet.wants_nodes(now):
            self._relist_at = next_lists
            self._nodes.relist()
        features = self.fleet.wants_list(now)
        if features or self.rule_feed.unproven:
            self._relist_at = next_lists
            self._lists_wanted = self.rule_feed.lists + 1
            self._features_wanted = features
            self._rules.relist()

    def _go_on_listing(self) -> None:
        """Once the rules were listed and taken in, have NodeFeatures listed."""
        if self.rule_feed.lists >= self._lists_wanted and not self._rules_dirty:
            self._lists_wanted = 0
            self.fleet.rules_confirmed = True
            if self._features_wanted:
                self._features.relist()

    def _pause(self) -> float:
        due = self._writers.next_due
        return _TICK if due is None else max(0.01, min(_TICK, due - self._now()))

    def _next(self, *, publish: bool) -> Considered | None:
        """Plan the next Node; None when there is none or all writers are busy."""
        if not self.fleet.synced or not self.is_leader:
            return None
        now = self._now()
        writers, fleet = self._writers, self.fleet
        while writers.free:
            name = fleet.queue.pop(writers.taken(now))
            if name is None:
                return None
            if self._blind and (name in writers.unsure or name not in fleet.nodes):
                writers.look(name)
                continue
            considered = fleet.consider(name, now)
            if publish and considered.plan:
                writers.take(name)
            elif publish and fleet.may_hide_startup_taint(name):
                writers.look(name)
            return considered
        return None

    def _metadata_say_enough(self, name: str) -> bool:
        return self._nodes.metadata_only and not self.fleet.nodes.is_partial(name)

    # --- rules ------------------------------------------------------------------------

    def _rules_changed(self) -> None:
        with self._changed:
            self._rules_dirty = True
            self._changed.notify_all()

    def _take_rules(self) -> None:
        with self._changed:
            self._rules_dirty = False
            self._rules_taken = True
            self.loaded = dict(self.rule_feed.loaded)
            rules = {name: rules_of(found) for name, found in self.loaded.items()}
            self.fleet.rules_put(rules, self._now())
            self._changed.notify_all()
        self._look_whole()
        self.observer.rules_loaded(self.loaded)

    def _look_whole(self) -> None:
        """Watch whole Nodes from now on where rules or tracking need it."""
        with self._changed:
            if not self._nodes.metadata_only or not self._needs_whole_nodes():
                return
            self._nodes.metadata_only = False
        self._nodes.relist()

    def _needs_whole_nodes(self) -> bool:
        policy = self.fleet.config.policy
        rules = (rule for found in self.loaded.values() for rule in rules_of(found))
        return self.fleet.tracks_whole() or any(
            (rule.taints and policy.enable_taints) or rule.extended_resources
            for rule in rules
        )
