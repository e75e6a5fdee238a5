"""Carries out plans, one Node at a time, in a few threads; a refused one waits.

The answer of the API server is the Node's new state and goes back into the fleet,
which plans on from there.
"""

import functools
import heapq
import queue
from collections.abc import Callable
from threading import Condition
from typing import Protocol

import attrs

from nfd.kube import patch
from nfd.kube.client import Client
from nfd.kube.clock import Stop
from nfd.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound, NotLeader
from nfd.kube.lease import LeaseElector
from nfd.kube.resources import NODES, JsonObject
from nfd.kube.retry import NO_RETRY, Backoff
from nfd.master.feeds import Changing
from nfd.master.plan import NodePlan, Step
from nfd.master.queue import CHANGED

_MANY_OPERATIONS = 12


class Listener(Protocol):
    """Whoever wants to know what became of a write. Called with no lock."""

    def wrote(self, plan: NodePlan, step: Step) -> None:
        """A step was written."""
        ...

    def failed(self, node: str, error: ApiError, failures: int, /) -> None:
        """A write failed; it will be tried again."""
        ...


@attrs.frozen(slots=True)
class _Job:
    """What a thread does for one Node."""

    node: str
    work: Callable[[], None]


@attrs.define(slots=True)
class _Blocked:
    failures: int = 0
    until: float = 0.0


class Writers:
    """The threads that write Nodes; all but `run` is called under the fleet's lock.

    `changed` is that lock, signalled when a Node is done; `changing` holds it to
    change the fleet. `brief` tells whether the metadata of a Node say enough.
    """

    def __init__(  # noqa: PLR0913 - what they share with the controller
        self,
        client: Client,
        count: int,
        changed: Condition,
        changing: Changing,
        listener: Listener,
        *,
        brief: Callable[[str], bool],
        elector: LeaseElector | None = None,
    ) -> None:
        self.count = count
        self.unsure: set[str] = set()  # to be looked at before they are planned
        self._client = client
        self._changed = changed
        self._changing = changing
        self._listener = listener
        self._brief = brief
        self._elector = elector
        self._busy: set[str] = set()
        self._blocked: dict[str, _Blocked] = {}
        self._later: list[tuple[float, str]] = []
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._backoff = Backoff(0.2, 60.0)

    # --- what the controller asks ---------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._busy

    @property
    def free(self) -> bool:
        """Whether one more Node can be taken on."""
        return len(self._busy) < self.count

    def taken(self, now: float) -> set[str]:
        """Return the Nodes that are under way, or refused and not yet due again."""
        return self._busy | {n for n, b in self._blocked.items() if b.until > now}

    def due(self, now: float) -> list[str]:
        """Take the Nodes whose time to be tried again has come."""
        names = []
        while self._later and self._later[0][0] <= now:
            names.append(heapq.heappop(self._later)[1])
        return names

    @property
    def next_due(self) -> float | None:
        """When the next Node is due."""
        return self._later[0][0] if self._later else None

    def take(self, name: str) -> None:
        """Count a Node as under way; `write` has to follow."""
        self._busy.add(name)

    def write(self, plan: NodePlan) -> None:
        """Have the first step of a plan for a Node written that was taken."""
        work = functools.partial(self._write, plan, plan.steps[0])
        self._jobs.put(_Job(plan.node, work))

    def look(self, name: str) -> None:
        """Have a Node read whole, and planned with what it shows."""
        self._busy.add(name)
        self._jobs.put(_Job(name, functools.partial(self._look, name)))

    def end(self) -> None:
        """Have every thread return once it is done with what it does."""
        for _ in range(self.count):
            self._jobs.put(None)

    # --- the threads ------------------------------------------------------------------

    def run(self, stop: Stop) -> None:
        """Work as one of `count` threads until `end` is called."""
        while (job := self._jobs.get()) is not None:
            if not stop.is_set():
                job.work()
            with self._changed:
                self._busy.discard(job.node)
                self._changed.notify_all()

    def _look(self, name: str) -> None:
        with self._changed:
            self.unsure.discard(name)
        try:
            node = self._client.get(NODES, name)
        except NotFound:
            with self._changing() as fleet:
                fleet.node_deleted(name)
        except ApiError as error:
            with self._changed:
                self.unsure.add(name)
            self._try_later(name, error)
        else:
            with self._changing() as fleet:
                fleet.node_read(node)
                fleet.queue.add(name, CHANGED)

    def _write(self, planned: NodePlan, step: Step) -> None:
        name = planned.node
        try:
            answer = self._send(name, step)
        except NotLeader:
            self._try_later(name, None)
        except NotFound:
            with self._changing() as fleet:
                fleet.node_missing(name, planned.uid)
        except (Conflict, Invalid) as error:
            # The Node is not as we thought; look at it, and plan again.
            self._look_again(planned, error)
        except ApiError as error:
            self._try_later(name, error)
        else:
            with self._changing() as fleet:
                self._blocked.pop(name, None)
                fleet.node_written(answer)
            self._listener.wrote(planned, step)

    def _send(self, name: str, step: Step) -> JsonObject:
        """Write one step; the answer is no larger than what is not known needs it."""
        client = self._fenced()
        if step.target == "status":
            return client.json_patch(NODES, name, step.operations, subresource="status")
        in_metadata = all(op["path"].startswith("/metadata/") for op in step.operations)
        brief = in_metadata and self._brief(name)
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
            with self._changing() as fleet:
                fleet.node_missing(name, planned.uid)
            return
        except ApiError as second:
            self._try_later(name, second)
            return
        with self._changing() as fleet:
            if node["metadata"]["uid"] == planned.uid:
                fleet.node_written(node)
            else:
                fleet.node_read(node)
        self._try_later(name, error)

    def _try_later(self, name: str, error: ApiError | None) -> None:
        with self._changed:
            now = self._client.clock.monotonic()
            blocked = self._blocked.setdefault(name, _Blocked())
            blocked.failures += 1
            wait = self._backoff.seconds(blocked.failures)
            if error is not None and error.retry_after:
                wait = max(wait, error.retry_after)
            if isinstance(error, Forbidden):
                wait = max(wait, 10.0)
            blocked.until = now + wait
            heapq.heappush(self._later, (blocked.until, name))
            failures = blocked.failures
        if error is not None and not self._client.stop.is_set():
            self._listener.failed(name, error, failures)
