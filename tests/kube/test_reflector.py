"""The reflector under every fault; `tests/kube/behaviour.py` has its plain course."""

import threading
from collections.abc import Callable
from typing import Self

import pytest

from nfd.kube import errors
from nfd.kube.clock import Stop
from nfd.kube.reflector import Reflector
from nfd.kube.resources import NODES
from nfd.kube.retry import NO_RETRY, Backoff
from tests.fakeapi import (
    FakeApi,
    FakeClock,
    Fault,
    answer,
    dropped,
    empty_list,
    garbage,
    half_open,
    hang,
    reset,
    truncated,
)
from tests.kube.recording import Recording, running

QUICK = Backoff(0.01, 0.02)
LISTED = ["begin", "item n1", "item n2", "end"]


class Following:
    """A reflector on Nodes n1 and n2, and what it said."""

    def __init__(self, api: FakeApi, **attributes: object) -> None:
        self.api = api
        self.seen = Recording()
        self.errors: list[errors.ApiError] = []
        self.stop = Stop()
        options: dict[str, object] = {
            "client": api.client(retry=NO_RETRY, timeout=10.0),
            "streaming_lists": False,
            "backoff": QUICK,
            **attributes,
        }
        self.reflector = Reflector(
            resource=NODES,
            handler=self.seen,
            on_error=self.errors.append,
            **options,  # type: ignore[arg-type] # the test's keywords
        )

    def __enter__(self) -> Self:
        self._running = running(self.reflector, self.stop)
        self._running.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.__exit__(None, None, None)

    def wait_for_watch(self) -> None:
        self.api.wait_for(lambda: self.api.watches.open == 1)

    def asked(self) -> list[tuple[str, int]]:
        return [(asked.verb, asked.status) for asked in self.api.requests]


@pytest.fixture
def api(api: FakeApi) -> FakeApi:
    api.node("n1")
    api.node("n2")
    return api


def test_refused_streaming_lists_fall_back_to_pages(api: FakeApi) -> None:
    api.streaming_lists = False
    with Following(api, streaming_lists=True, page_size=1) as following:
        assert following.seen.wait_for("end") == LISTED
        following.wait_for_watch()
        following.reflector.relist()
        api.wait_for_requests(3, verb="watch")

    assert following.errors == []
    verbs = [asked.verb for asked in api.requests]
    assert verbs == ["watch", "list", "list", "watch", "list", "list", "watch"]


@pytest.mark.parametrize("status", [400, 403, 405, 406, 422])
def test_any_refusal_of_a_streaming_list_leads_to_pages(
    api: FakeApi, status: int
) -> None:
    api.fault(answer(status), verb="watch")
    with Following(api, streaming_lists=True) as following:
        assert following.seen.wait_for("end") == LISTED

    assert following.errors == []


def test_a_server_too_old_for_streaming_lists(api: FakeApi) -> None:
    """It ignores the parameters, sends objects and never says that these are all."""
    api.store.ends_initial_events = False
    with Following(api, streaming_lists=True) as following:
        following.seen.wait_for("item n2")
        api.bookmark()
        log = following.seen.wait_for("end")

    assert ["begin", "item n1", "item n2", *LISTED] == log


@pytest.mark.parametrize(
    "fault", [truncated(150), dropped(), reset(), garbage(), answer(500)], ids=repr
)
def test_a_broken_streaming_list_is_no_list(api: FakeApi, fault: Fault) -> None:
    api.fault(fault, verb="watch")
    with Following(api, streaming_lists=True) as following:
        log = following.seen.wait_for("end")

    assert log[-4:] == LISTED
    assert len(following.errors) == 1


@pytest.mark.parametrize(
    "fault",
    [truncated(150), reset(), garbage(), answer(500), answer(429, retry_after=0)],
    ids=repr,
)
def test_a_broken_list_is_started_again(api: FakeApi, fault: Fault) -> None:
    api.fault(fault, verb="list")
    with Following(api) as following:
        log = following.seen.wait_for("end")

        assert log[-4:] == LISTED
        assert log.count("begin") == 2
        assert following.reflector.error is None
    assert len(following.errors) == 1


def test_a_list_that_hangs(api: FakeApi) -> None:
    """H38b: nothing is complete until a whole list came."""
    api.fault(hang(), verb="list")
    client = api.client(retry=NO_RETRY, timeout=0.1)
    with Following(api, client=client) as following:
        log = following.seen.wait_for("end")

    assert ["begin", *LISTED] == log
    assert isinstance(following.errors[0], errors.Unreachable)


def test_pages_that_expire(api: FakeApi) -> None:
    """H38a: page 2 answers 410; the whole list is asked for in one piece."""
    api.fault(answer(410, "Expired"), when=lambda asked: "continue" in asked.query)
    with Following(api, page_size=1) as following:
        log = following.seen.wait_for("end")

    assert ["begin", "item n1", *LISTED] == log
    assert following.errors == []


def test_a_list_that_is_empty_once(api: FakeApi) -> None:
    """H38c: what is missing is not said to be deleted, and the next list shows it."""
    api.fault(empty_list(), verb="list")
    with Following(api) as following:
        assert following.seen.wait_for("end") == ["begin", "end"]
        following.reflector.relist()
        log = following.seen.wait_for("end", times=2)

    assert ["begin", "end", *LISTED] == log


def test_objects_that_went_between_lists_are_missing_not_deleted(api: FakeApi) -> None:
    with Following(api) as following:
        following.wait_for_watch()
        api.fault(answer(500), verb="watch", times=1)
        api.fault(answer(410, "Expired"), verb="watch", times=1)
        api.cut_connections()
        api.remove(NODES, "n2")
        log = following.seen.wait_for("end", times=2)

    assert [*LISTED, "begin", "item n1", "end"] == log


def test_a_watch_goes_on_where_it_was_cut(api: FakeApi) -> None:
    """H38d: a dropped watch costs no list, and loses nothing."""
    api.fault(dropped(), verb="watch")
    with Following(api) as following:
        following.wait_for_watch()
        api.node("n3")
        following.seen.wait_for("added n3")
        switch = api.fault(answer(500), verb="watch", times=None)
        api.cut_connections()
        api.remove(NODES, "n1")
        api.node("n2", {"a": "1"})
        api.wait_for(lambda: switch.hits > 1)
        switch.lift()
        log = following.seen.wait_for("modified n2")
        assert following.reflector.error is None

    assert [*LISTED, "added n3", "deleted n1", "modified n2"] == log
    assert len(api.asked(verb="list")) == 1


def test_a_version_that_is_too_old_leads_to_a_list(api: FakeApi) -> None:
    with Following(api) as following:
        following.wait_for_watch()
        switch = api.fault(answer(500), verb="watch", times=None)
        api.cut_connections()
        api.node("n3")
        api.compact()
        api.wait_for(lambda: switch.hits > 1)
        switch.lift()
        log = following.seen.wait_for("end", times=2)
        following.wait_for_watch()

    assert [*LISTED, "begin", "item n1", "item n2", "item n3", "end"] == log
    assert any(isinstance(error, errors.Gone) for error in following.errors)


def test_versions_that_are_always_too_old_are_no_busy_loop(api: FakeApi) -> None:
    api.fault(answer(410, "Expired"), verb="watch", times=None)
    following: Following
    clock = FakeClock(
        on_wait=lambda _: following.stop.set() if len(clock.waits) == 3 else None
    )
    client = api.client(retry=NO_RETRY, clock=clock)
    backoff = Backoff(1.0, 10.0, draw=lambda: 1.0)
    following = Following(api, client=client, backoff=backoff)
    following.reflector.run(following.stop)

    assert clock.waits == [2.0, 4.0, 8.0]


def test_a_watch_that_ends_by_its_time_is_no_error(api: FakeApi) -> None:
    with Following(api) as following:
        following.wait_for_watch()
        api.end_watches()
        api.wait_for_requests(2, verb="watch")

    assert following.errors == []
    assert len(api.asked(verb="list")) == 1


def test_bookmarks_move_the_version_on(api: FakeApi) -> None:
    with Following(api) as following:
        following.wait_for_watch()
        api.put(NODES, {"metadata": {"name": "n3"}})
        following.seen.wait_for("added n3")
        version = api.store.version
        api.bookmark()
        api.end_watches()
        api.wait_for_requests(2, verb="watch")

    last = api.asked(verb="watch")[-1]
    assert str(version) == last.query["resourceVersion"]


def test_a_half_open_stream_is_noticed(api: FakeApi) -> None:
    with Following(api, silence=0.1) as following:
        following.wait_for_watch()
        api.bookmark()
        api.wait_for_requests(2, verb="watch")
        api.node("n3")
        following.seen.wait_for("added n3")

    assert isinstance(following.errors[0], errors.Unreachable)
    assert len(api.asked(verb="list")) == 1


def test_a_half_open_streaming_list_is_noticed(api: FakeApi) -> None:
    api.fault(half_open(), verb="watch")
    client = api.client(retry=NO_RETRY, timeout=0.1)
    with Following(api, streaming_lists=True, client=client) as following:
        assert ["begin", *LISTED] == following.seen.wait_for("end")


def test_without_the_right_to_watch_it_lists_now_and_then(api: FakeApi) -> None:
    api.deny("watch", "nodes")
    following: Following
    clock = FakeClock(
        on_wait=lambda _: following.stop.set() if len(clock.waits) == 4 else None
    )
    client = api.client(retry=NO_RETRY, clock=clock)
    following = Following(api, client=client, denied_wait=60.0, list_interval=200.0)
    following.reflector.run(following.stop)

    assert following.seen.log == LISTED * 4
    assert clock.waits == pytest.approx([60, 120, 200, 200], rel=0.1)
    expected = "watch nodes at the cluster scope"
    assert isinstance(following.errors[0], errors.Forbidden)
    assert expected == following.errors[0].missing_permission


def test_without_the_right_to_list_it_asks_seldom(api: FakeApi) -> None:
    api.deny("list", "nodes")
    following: Following
    clock = FakeClock(
        on_wait=lambda _: following.stop.set() if len(clock.waits) == 6 else None
    )
    client = api.client(retry=NO_RETRY, clock=clock)
    following = Following(api, client=client, denied_wait=77.0)
    following.reflector.run(following.stop)

    assert clock.waits == pytest.approx([1, 4, 16, 64, 77, 154], rel=0.1)
    assert not following.reflector.synced.is_set()
    assert isinstance(following.reflector.error, errors.Forbidden)


def test_a_server_that_has_just_started_is_asked_soon_again(api: FakeApi) -> None:
    """It denies a watch that it allowed before, until it has read its roles."""
    clock = FakeClock(on_wait=lambda _: api.denials.clear())
    client = api.client(retry=NO_RETRY, clock=clock)
    with Following(api, client=client, denied_wait=3600.0) as following:
        following.wait_for_watch()
        api.deny("watch", "nodes")
        api.node("n3")  # an event, so that the end is an ordinary one
        following.seen.wait_for("added n3")
        api.end_watches()
        api.node("n4")
        following.seen.wait_for("item n4")

    assert clock.waits == [1.0]


def test_a_right_that_is_given_later_is_used(api: FakeApi) -> None:
    denial = api.deny("watch", "nodes")
    with Following(api, denied_wait=0.01) as following:
        following.seen.wait_for("end", times=2)
        api.denials.remove(denial)
        following.wait_for_watch()
        api.node("n3")
        following.seen.wait_for("added n3")
        assert following.reflector.error is None


def test_a_watch_that_is_refused_once_is_tried_again(api: FakeApi) -> None:
    """400 and 422 are no missing right: it does not fall back to lists for long."""
    api.fault(answer(400, "BadRequest"), verb="watch")
    with Following(api) as following:
        following.wait_for_watch()

    assert len(api.asked(verb="list")) == 1


def test_a_server_that_asks_for_time_gets_it(api: FakeApi) -> None:
    api.fault(answer(429, retry_after=44), verb="list")
    following: Following
    clock = FakeClock(on_wait=lambda _: following.stop.set())
    client = api.client(retry=NO_RETRY, clock=clock)
    following = Following(api, client=client)
    following.reflector.run(following.stop)

    assert clock.waits == [44.0]


def test_failures_in_a_row_are_backed_off(api: FakeApi) -> None:
    api.fault(answer(500), times=None)
    following: Following
    clock = FakeClock(
        on_wait=lambda _: following.stop.set() if len(clock.waits) == 6 else None
    )
    client = api.client(retry=NO_RETRY, clock=clock)
    backoff = Backoff(1.0, 10.0, draw=lambda: 1.0)
    following = Following(api, client=client, backoff=backoff)
    following.reflector.run(following.stop)

    assert clock.waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert following.seen.log == ["begin"] * 6


@pytest.mark.parametrize(
    "prepare",
    [
        lambda _: None,
        lambda api: api.fault(hang(), verb="list"),
        lambda api: api.fault(hang(), verb="watch"),
        lambda api: api.fault(half_open(), verb="watch"),
    ],
    ids=["watching", "list hangs", "watch hangs", "half open"],
)
@pytest.mark.parametrize("streaming", [True, False])
def test_stop_ends_it_within_a_second(
    api: FakeApi, prepare: Callable[[FakeApi], object], *, streaming: bool
) -> None:
    prepare(api)
    with Following(api, streaming_lists=streaming):
        api.wait_for(lambda: len(api.requests) > 0)


def test_relist_works_while_a_list_hangs(api: FakeApi) -> None:
    api.fault(hang(), verb="list")
    with Following(api) as following:
        api.wait_for(lambda: len(api.requests) == 1)
        following.reflector.relist()
        following.seen.wait_for("end")

    assert following.errors == []


def test_an_exception_of_the_handler_comes_through(api: FakeApi) -> None:
    following = Following(api)
    following.seen.replace_end = lambda: 1 / 0  # type: ignore[assignment, method-assign] # a bug
    with pytest.raises(ZeroDivisionError):
        following.reflector.run(following.stop)


def test_its_state_tells_what_is_wrong(api: FakeApi) -> None:
    clock = FakeClock()
    following = Following(api, client=api.client(retry=NO_RETRY, clock=clock))
    assert not following.reflector.synced.is_set()
    thread = threading.Thread(target=following.reflector.run, args=(following.stop,))
    thread.start()
    following.wait_for_watch()
    assert following.reflector.synced.is_set()
    assert clock.now == following.reflector.contact
    following.stop.set()
    thread.join(5)
