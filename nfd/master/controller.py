"""The master's one impure module: reflectors feed the fleet, writers carry out plans.

One lock guards the `Fleet`. Reflector threads take events in, the loop plans one
Node at a time and hands its first step to a writer thread; the answer of the API
server is the Node's new state, and planning goes on from there.
"""

import contextlib
import functools
import heapq
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import attrs

from nfd.kube import patch
from nfd.kube.client import Client
from nfd.kube.clock import Stop
from nfd.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound, NotLeader
from nfd.kube.lease import LeaseElector
from nfd.kube.reflector import Reflector
from nfd.kube.resources import (
    NODEFEATURERULES,
    NODEFEATURES,
    NODES,
    JsonObject,
)
from nfd.kube.retry import NO_RETRY, Backoff
from nfd.master.evaluate import Evaluation, Timed
from nfd.master.feeds import FeatureFeed, NodeFeed, RuleFeed, rules_of
from nfd.master.fleet import Considered, Fleet, FleetConfig
from nfd.master.guard import HeldCause
from nfd.master.plan import NodePlan, Step
from nfd.master.queue import CHANGED, RESYNC
from nfd.rules.load import Loaded

_TICK = 1.0  # seconds between two looks at the clock
_MANY_OPERATIONS = 12


@attrs.frozen(slots=True)
class ControllerConfig:
    """How the controller works; what it wants is in `FleetConfig`."""

    writers: int = 10
    resync_period: float = 3600.0  # seconds; 0: never
    page_size: int = 200
    publish: bool = True


class Observer(Protocol):
    """Whoever wants to know: logs, metrics, events, status. Called with no lock."""

    def rules_loaded(self, loaded: Mapping[str, Loaded]) -> None:
        """All rule objects were read again: name → what was read."""
        ...

    def planned(self, evaluation: Evaluation, plan: NodePlan) -> None:
        """A Node was evaluated; the plan may be empty."""
        ...

    def wrote(self, plan: NodePlan, step: Step) -> None:
        """A step was written."""
        ...

    def failed(self, node: str, error: ApiError, failures: int, /) -> None:
        """A write failed; it will be tried again."""
        ...

    def trouble(self, error: ApiError) -> None:
        """A list or watch failed; it goes on by itself."""
        ...


@attrs.frozen(slots=True)
class _Job:
    """What a writer does for one Node."""

    node: str
    work: Callable[[], None]


@attrs.define(slots=True)
class _Blocked:
    failures: int = 0
    until: float = 0.0


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
        self._busy: set[str] = set()
        self._blocked: dict[str, _Blocked] = {}
        self._later: list[tuple[float, str]] = []
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._blind = False  # Nodes may not be watched: look before planning
        self._unsure: set[str] = set()
        self._rules_dirty = False
        self._rules_taken = False
        self._backoff = Backoff(0.2, 60.0)
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
        for number in range(self.settings.writers):
            start(f"nfd-writer-{number}", lambda: self._write_jobs(stop))
        with stop.calling(self._wake):
            self._resync_at = self._now() + self.settings.resync_period
            guarded(lambda: self._loop(stop))
        for _ in range(self.settings.writers):
            self._jobs.put(None)
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
        left = len(self.fleet.queue) or self._busy or self._rules_dirty
        return self.fleet.synced and not left

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
                self._unsure.add(node)

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
                job = self._next()
                if job is None and not self._rules_dirty:
                    self._changed.notify_all()
                    self._changed.wait(self._pause())
            if job is not None:
                self._carry_out(job)

    def _pass_time(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            _, name = heapq.heappop(self._later)
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

        One list of rules proves no more than one of NodeFeatures.
        """
        features = self.fleet.wants_list(now)
        if features or self.rule_feed.unproven:
            self._relist_at = now + self.fleet.config.limits.list_interval
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
        if not self._later:
            return _TICK
        return max(0.01, min(_TICK, self._later[0][0] - self._now()))

    def _next(self) -> Considered | None:
        """Plan the next Node; None when there is none or all writers are busy."""
        if not self.fleet.synced or not self.is_leader:
            return None
        now = self._now()
        while len(self._busy) < self.settings.writers:
            name = self.fleet.queue.pop(self._busy | self._blocked_now(now))
            if name is None:
                return None
            if self._blind and (name in self._unsure or name not in self.fleet.nodes):
                self._busy.add(name)
                self._jobs.put(_Job(name, functools.partial(self._look_before, name)))
                continue
            considered = self.fleet.consider(name, now)
            if not self.settings.publish:
                return considered
            if considered.plan:
                self._busy.add(name)
            elif self.fleet.may_hide_startup_taint(name):
                self._busy.add(name)
                self._jobs.put(_Job(name, functools.partial(self._look_before, name)))
            return considered
        return None

    def _carry_out(self, considered: Considered) -> None:
        self.observer.planned(considered.evaluation, considered.plan)
        if considered.plan and self.settings.publish:
            plan, step = considered.plan, considered.plan.steps[0]
            self._jobs.put(_Job(plan.node, functools.partial(self._write, plan, step)))

    def _blocked_now(self, now: float) -> set[str]:
        return {n for n, b in self._blocked.items() if b.until > now}

    # --- writing --------------------------------------------------------------------

    def _write_jobs(self, stop: Stop) -> None:
        while (job := self._jobs.get()) is not None:
            if not stop.is_set():
                job.work()
            with self._changed:
                self._busy.discard(job.node)
                self._changed.notify_all()

    def _look_before(self, name: str) -> None:
        """Look at a Node that may have changed unseen, then have it planned."""
        with self._changed:
            self._unsure.discard(name)
        try:
            node = self._client.get(NODES, name)
        except NotFound:
            with self.changing() as fleet:
                fleet.node_deleted(name)
        except ApiError as error:
            with self._changed:
                self._unsure.add(name)
            self._try_later(name, error)
        else:
            with self.changing() as fleet:
                fleet.node_put(node)
                fleet.queue.add(name, CHANGED)

    def _write(self, planned: NodePlan, step: Step) -> None:
        name = planned.node
        try:
            answer = self._send(name, step)
        except NotLeader:
            self._try_later(name, None)
        except NotFound:
            with self.changing() as fleet:
                fleet.node_missing(name, planned.uid)
        except (Conflict, Invalid) as error:
            # The Node is not as we thought; look at it, and plan again.
            self._look_again(planned, error)
        except ApiError as error:
            self._try_later(name, error)
        else:
            with self.changing() as fleet:
                self._blocked.pop(name, None)
                fleet.node_written(answer)
            self.observer.wrote(planned, step)

    def _send(self, name: str, step: Step) -> JsonObject:
        """Write one step; the answer is no larger than what is not known needs it."""
        client = self._fenced()
        if step.target == "status":
            return client.json_patch(NODES, name, step.operations, subresource="status")
        brief = (
            self._nodes.metadata_only
            and not self.fleet.nodes.is_partial(name)
            and all(op["path"].startswith("/metadata/") for op in step.operations)
        )
        # Eighty labels cost the API server a quarter less as a merge patch.
        if len(step.operations) > _MANY_OPERATIONS:
            merged = patch.as_merge(step.operations)
            if merged is not None:
                return client.strategic_patch(NODES, name, merged, metadata_only=brief)
        return client.json_patch(NODES, name, step.operations, metadata_only=brief)

    def _fenced(self) -> Client:
        """Return a client whose requests end before anybody else may lead.

        Raises:
            NotLeader: The Lease is not held.

        """
        elector = self._elector
        if elector is None:
            return self._client
        elector.check()
        spare = elector.lease_duration - elector.renew_deadline
        timeout = min(self._client.timeout, elector.remaining() + spare)
        return self._client.but(retry=NO_RETRY, timeout=timeout)

    def _look_again(self, planned: NodePlan, error: ApiError) -> None:
        name = planned.node
        try:
            node = self._client.get(NODES, name)
        except NotFound:
            with self.changing() as fleet:
                fleet.node_missing(name, planned.uid)
            return
        except ApiError as second:
            self._try_later(name, second)
            return
        with self.changing() as fleet:
            if node["metadata"]["uid"] == planned.uid:
                fleet.node_written(node)
            else:
                fleet.node_put(node)
        self._try_later(name, error)

    def _try_later(self, name: str, error: ApiError | None) -> None:
        with self._changed:
            blocked = self._blocked.setdefault(name, _Blocked())
            blocked.failures += 1
            wait = self._backoff.seconds(blocked.failures)
            if error is not None and error.retry_after:
                wait = max(wait, error.retry_after)
            if isinstance(error, Forbidden):
                wait = max(wait, 10.0)
            blocked.until = self._now() + wait
            heapq.heappush(self._later, (blocked.until, name))
            failures = blocked.failures
        if error is not None and not self._client.stop.is_set():
            self.observer.failed(name, error, failures)

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
