"""Leader election when the API server, the clock or a rival does not play along."""

import threading

import pytest

from nfd.errors import ConfigError
from nfd.kube.clock import Stop
from nfd.kube.errors import ApiError, Forbidden, NotLeader, ServerError, Unreachable
from nfd.kube.lease import LeaseElector
from nfd.kube.resources import LEASES
from tests.fakeapi import FakeApi, FakeClock, answer, hang, lost_answer, reset

NAME = "nfd-master.nfd.kubernetes.io"


class Candidate:
    """An elector with its own clock, and what it said."""

    def __init__(self, api: FakeApi, identity: str, **attributes: float) -> None:
        self.said: list[str] = []
        self.errors: list[ApiError] = []
        self.clock = FakeClock()
        self.elector = LeaseElector(
            client=api.client(clock=self.clock),
            name=NAME,
            namespace="nfd",
            identity=identity,
            on_started=lambda: self.said.append("started"),
            on_stopped=lambda: self.said.append("stopped"),
            on_error=self.errors.append,
            **attributes,
        )

    def step(self, after: float = 0.0) -> bool:
        self.clock.advance(after)
        self.elector.step()
        return self.elector.is_leader


@pytest.fixture
def one(api: FakeApi) -> Candidate:
    return Candidate(api, "one")


@pytest.fixture
def two(api: FakeApi) -> Candidate:
    return Candidate(api, "two")


def test_renewing_is_one_request(api: FakeApi, one: Candidate) -> None:
    assert one.step()
    api.requests.clear()
    assert one.step(after=2)
    assert one.step(after=2)

    assert [asked.verb for asked in api.requests] == ["update", "update"]
    assert one.said == ["started"]


def test_the_record_is_that_of_client_go(api: FakeApi, one: Candidate) -> None:
    one.step()
    spec = api.get(LEASES, NAME, "nfd")["spec"]

    assert spec["holderIdentity"] == "one"
    assert spec["leaseDurationSeconds"] == 15
    assert spec["leaseTransitions"] == 0
    assert spec["renewTime"] == spec["acquireTime"] == "2025-12-06T05:46:40.000000Z"


def test_it_stops_leading_by_the_clock_alone(one: Candidate) -> None:
    """Nothing has to run for it: a process that was paused does not lead."""
    one.step()
    one.clock.advance(9.99)
    one.elector.check()
    one.clock.advance(0.02)
    with pytest.raises(NotLeader, match=NAME):
        one.elector.check()
    assert one.elector.remaining() == 0


def test_time_counts_from_the_sending(api: FakeApi, one: Candidate) -> None:
    """An answer that took 4 s leaves 6 of 10 s."""
    api.admission.append(lambda _: one.clock.advance(4))
    one.step()

    assert one.elector.remaining() == 6.0


def test_nobody_leads_while_another_may(
    api: FakeApi, one: Candidate, two: Candidate
) -> None:
    one.step()
    assert not two.step()
    switch = api.fault(answer(500), times=None, user_agent=_agent(api))
    assert not one.step(after=11)
    assert one.said == ["started", "stopped"]
    assert isinstance(one.errors[0], ServerError)
    switch.lift()
    assert not two.step(after=14.9)
    assert two.step(after=0.2)
    assert not one.step()
    assert api.get(LEASES, NAME, "nfd")["spec"]["leaseTransitions"] == 1


def _agent(api: FakeApi) -> str:
    return api.requests[-1].user_agent


def test_a_rival_that_renews_is_never_overtaken(one: Candidate, two: Candidate) -> None:
    one.step()
    for _ in range(20):
        assert not two.step(after=2)
        assert one.step(after=2)


def test_clocks_of_machines_are_not_compared(one: Candidate, two: Candidate) -> None:
    """A rival whose wall clock is years ahead waits as long as any other."""
    one.step()
    two.clock.now += 1e9
    assert not two.step()
    assert not two.step(after=14)


def test_a_longer_duration_of_the_holder_is_respected(
    api: FakeApi, two: Candidate
) -> None:
    one = Candidate(api, "one", lease_duration=60.0)
    one.step()
    two.step()
    assert not two.step(after=59)
    assert two.step(after=2)


def test_its_own_lease_is_taken_up_again(api: FakeApi, one: Candidate) -> None:
    """After an outage without rivals it leads on, as the same holder."""
    one.step()
    switch = api.fault(reset(), times=None)
    assert not one.step(after=30)
    switch.lift()
    assert one.step()
    assert one.said == ["started", "stopped", "started"]
    assert api.get(LEASES, NAME, "nfd")["spec"]["leaseTransitions"] == 0


def test_a_renewal_whose_answer_was_lost(api: FakeApi, one: Candidate) -> None:
    """It happened, so the next one conflicts, looks and goes on."""
    one.step()
    api.fault(lost_answer(), verb="update")
    assert one.step(after=2)
    assert isinstance(one.errors[0], Unreachable)
    assert one.step(after=2)
    assert one.elector.remaining() == 10.0


def test_a_lease_that_was_deleted_is_made_again(api: FakeApi, one: Candidate) -> None:
    one.step()
    api.remove(LEASES, NAME, "nfd")
    assert one.step(after=2)
    assert api.get(LEASES, NAME, "nfd")["spec"]["holderIdentity"] == "one"


def test_a_holder_that_was_replaced_stops_at_once(api: FakeApi, one: Candidate) -> None:
    one.step()
    lease = api.get(LEASES, NAME, "nfd")
    lease["spec"]["holderIdentity"] = "two"
    api.put(LEASES, lease)
    assert not one.step(after=2)
    assert one.said == ["started", "stopped"]


def test_two_that_start_together(api: FakeApi, one: Candidate, two: Candidate) -> None:
    """The slower create is refused, and its sender waits."""
    api.fault(answer(404, "NotFound"), verb="get")
    one.step()
    api.fault(answer(404, "NotFound"), verb="get")
    assert not two.step()
    assert two.elector.holder == "one"


def test_a_missing_permission_is_told(api: FakeApi, one: Candidate) -> None:
    api.deny("create", "leases")
    assert not one.step()
    assert isinstance(one.errors[0], Forbidden)


def test_a_released_lease_is_free_at_once(
    api: FakeApi, one: Candidate, two: Candidate
) -> None:
    one.step()
    one.elector.release()
    assert not one.elector.is_leader
    assert two.step()
    one.elector.release()
    assert api.get(LEASES, NAME, "nfd")["spec"]["holderIdentity"] == "two"
    assert one.said == ["started", "stopped"]


def test_a_release_that_fails_is_told(api: FakeApi, one: Candidate) -> None:
    one.step()
    api.fault(answer(500), verb="update")
    one.elector.release()
    assert not one.elector.is_leader
    assert isinstance(one.errors[0], ServerError)


def test_running(api: FakeApi, one: Candidate) -> None:
    stop = Stop()
    one.clock.on_wait = lambda _: stop.set() if len(one.clock.waits) == 3 else None
    one.elector.run(stop)

    assert one.clock.waits == [2.0, 2.0, 2.0]
    assert len(api.asked(verb="update")) == 2


def test_stop_ends_a_step_that_hangs(api: FakeApi, one: Candidate) -> None:
    api.fault(hang())
    stop = Stop()
    thread = threading.Thread(target=one.elector.run, args=(stop,))
    thread.start()
    api.wait_for(lambda: len(api.requests) == 1)
    stop.set()
    thread.join(1.0)

    assert not thread.is_alive()
    assert one.errors == []


@pytest.mark.parametrize(
    ("durations", "key"),
    [
        ((10.0, 10.0, 2.0), "leaderElection.leaseDuration"),
        ((15.0, 2.4, 2.0), "leaderElection.renewDeadline"),
        ((15.0, 10.0, 0.0), "leaderElection.renewDeadline"),
    ],
)
def test_durations_that_cannot_work(
    api: FakeApi, durations: tuple[float, float, float], key: str
) -> None:
    lease, renew, retry = durations
    with pytest.raises(ConfigError, match=key):
        Candidate(
            api, "one", lease_duration=lease, renew_deadline=renew, retry_period=retry
        )
