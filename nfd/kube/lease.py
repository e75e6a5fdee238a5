"""Leader election by a Lease, fenced: a leader stops before anyone else may start.

The record is that of client-go (coordination.k8s.io/v1), so that both can compete
for one Lease. Time is measured on this machine alone; nothing compares clocks.
"""

import datetime as dt
from collections.abc import Callable, Mapping

import attrs

from nfd.errors import ConfigError
from nfd.kube.client import Client
from nfd.kube.clock import Stop
from nfd.kube.errors import AlreadyExists, ApiError, Conflict, NotFound, NotLeader
from nfd.kube.resources import LEASES, JsonObject
from nfd.kube.retry import NO_RETRY


@attrs.define(slots=True, kw_only=True)
class LeaseElector:
    """Tries to hold a Lease, and says for how long it certainly does.

    Leading ends `renew_deadline` seconds after the last renewal was *sent*. Others
    wait `lease_duration` after they saw it stored, so the difference is what
    remains for a request that was on its way. `on_started` and `on_stopped` are
    called in the elector's thread, `on_error` with every failed request.

    Raises:
        ConfigError: Not `lease_duration` > `renew_deadline` > 1.2 `retry_period` > 0.

    """

    client: Client
    name: str
    namespace: str
    identity: str
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    on_started: Callable[[], None] = lambda: None
    on_stopped: Callable[[], None] = lambda: None
    on_error: Callable[[ApiError], None] = lambda _: None

    _lease: JsonObject | None = attrs.field(init=False, default=None)
    _seen: tuple[object, ...] = attrs.field(init=False, default=())
    _seen_at: float = attrs.field(init=False, default=0.0)
    _until: float = attrs.field(init=False, default=float("-inf"))
    _led: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        if not self.lease_duration > self.renew_deadline:
            raise ConfigError("leaderElection.leaseDuration: not above renewDeadline")
        if not self.renew_deadline > 1.2 * self.retry_period > 0:
            raise ConfigError(
                "leaderElection.renewDeadline: not above 1.2 times retryPeriod, or"
                " retryPeriod is not above 0"
            )

    def run(self, stop: Stop) -> None:
        """Compete until `stop` is set; after a loss it competes again.

        The Lease is left to expire, for the work may still be ending: see `release`.
        """
        while not stop.is_set():
            self.step(stop)
            self.client.clock.wait(stop, self.retry_period)
        self._note()

    def step(self, stop: Stop | None = None) -> None:
        """Try once to take or renew the Lease."""
        left = self.remaining()
        timeout = left if left > 0 else self.renew_deadline
        client = self.client.but(
            timeout=min(timeout, self.client.timeout),
            retry=NO_RETRY,
            stop=stop or self.client.stop,
        )
        try:
            self._try(client)
        except ApiError as error:
            if not client.stop.is_set():
                self.on_error(error)
        self._note()

    def remaining(self) -> float:
        """Return for how many seconds the Lease is certainly held; 0 if it is not."""
        return max(0.0, self._until - self.client.clock.monotonic())

    @property
    def is_leader(self) -> bool:
        """Whether the Lease is held now, by the clock and not by the last event."""
        return self.remaining() > 0

    def check(self) -> None:
        """Guard a write.

        Raises:
            NotLeader: The Lease is not held.

        """
        if not self.is_leader:
            raise NotLeader(f"lease {self.namespace}/{self.name} is not held")

    @property
    def holder(self) -> str:
        """Identity of the holder as last seen, "" if nobody's."""
        return str(_spec(self._lease).get("holderIdentity") or "")

    @property
    def annotations(self) -> Mapping[str, str]:
        """The Lease's annotations as last seen, at most a renewal old."""
        return ((self._lease or {}).get("metadata") or {}).get("annotations") or {}

    def release(self) -> None:
        """Give the Lease up, so that another may take it at once.

        Call it when all work has ended. Does nothing when it is not held.
        """
        if not self.is_leader or self._lease is None:
            return
        self._until = float("-inf")
        self._note()
        released = {"holderIdentity": "", "leaseDurationSeconds": 1}
        client = self.client.but(retry=NO_RETRY, stop=Stop(), timeout=1.0)
        try:
            client.update(LEASES, _with(self._lease, released))
        except ApiError as error:
            self.on_error(error)

    def _note(self) -> None:
        if self._led != self.is_leader:
            self._led = not self._led
            (self.on_started if self._led else self.on_stopped)()

    def _try(self, client: Client) -> None:
        if self._lease is None or not self.is_leader:
            self._look(client)
        try:
            self._take(client)
        except (Conflict, NotFound):
            # Someone wrote it meanwhile (an annotation, or a rival), or deleted it.
            self._look(client)
            self._take(client)

    def _look(self, client: Client) -> None:
        try:
            self._observe(client, client.get(LEASES, self.name, self.namespace))
        except NotFound:
            self._lease = None

    def _observe(self, client: Client, lease: JsonObject) -> None:
        self._lease = lease
        spec = _spec(lease)
        record = (
            spec.get("holderIdentity"),
            spec.get("renewTime"),
            spec.get("leaseTransitions"),
        )
        if record != self._seen:
            self._seen, self._seen_at = record, client.clock.monotonic()
        if self.holder != self.identity:
            self._until = float("-inf")

    def _take(self, client: Client) -> None:
        sent = client.clock.monotonic()
        now = _micro_time(client.clock.wall())
        mine: dict[str, object] = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": round(self.lease_duration),
            "renewTime": now,
        }
        if self._lease is None:
            first = {**mine, "acquireTime": now, "leaseTransitions": 0}
            metadata = {"name": self.name, "namespace": self.namespace}
            made = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": metadata,
                "spec": first,
            }
            try:
                lease = client.create(LEASES, made)
            except AlreadyExists:
                self._look(client)
                return
        else:
            if self.holder != self.identity:
                if self.holder and not self._expired(sent):
                    return
                transitions = _spec(self._lease).get("leaseTransitions") or 0
                mine |= {"acquireTime": now, "leaseTransitions": transitions + 1}
            lease = client.update(LEASES, _with(self._lease, mine))
        self._until = sent + self.renew_deadline
        self._observe(client, lease)

    def _expired(self, now: float) -> bool:
        theirs = _spec(self._lease).get("leaseDurationSeconds") or 0
        return now - self._seen_at >= max(self.lease_duration, theirs)


def _spec(lease: JsonObject | None) -> JsonObject:
    return (lease or {}).get("spec") or {}


def _with(lease: JsonObject, spec: Mapping[str, object]) -> JsonObject:
    return {**lease, "spec": {**_spec(lease), **spec}}


def _micro_time(wall: float) -> str:
    time = dt.datetime.fromtimestamp(wall, dt.UTC)
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
