"""Two thousand passes of everything that goes wrong, and workers killed at any point."""

import gc
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from nfd.config.worker import decode_tree
from nfd.hostroot import HostRoot
from nfd.kube.resources import NODEFEATURES, NODES
from nfd.kube.transport import Response, Transport
from nfd.worker.look import Looker
from nfd.worker.recollection import recollect
from nfd.worker.results import Result
from tests import tiny
from tests.fakeapi import FakeApi, Fault, answer, garbage, lost_answer, reset, truncated
from tests.worker.rig import (
    NAME,
    NAMESPACE,
    Facts,
    FlakySource,
    Rig,
    fence,
    key,
    rig,
    tree,
)

PASSES = 2000
FAULTS: tuple[Fault, ...] = (
    answer(403, "Forbidden"),
    answer(404, "NotFound"),
    answer(409, "Conflict"),
    answer(422, "Invalid"),
    answer(429, "TooManyRequests", retry_after=3),
    answer(500, "InternalError"),
    reset(),
    lost_answer(),
    truncated(20),
    garbage(),
)
NAMES = ("a", "b", "c", "d")
REGISTRY = tiny.registry(FlakySource)


class Killed(BaseException):
    """The process is gone."""


@attrs.define
class Mortal:
    """A transport whose process is killed before or after the n-th request."""

    inner: Transport
    left: int
    sent: bool

    def request(self, method: str, path: str, **rest: Any) -> Response:
        self.left -= 1
        if self.left == 0 and not self.sent:
            raise Killed
        response = self.inner.request(method, path, **rest)
        if self.left == 0:
            response.read()
            raise Killed
        return response

    def close(self) -> None:
        self.inner.close()


def keys(names: set[str]) -> set[str]:
    return {key(f"flaky-{name}") for name in names}


def published(api: FakeApi) -> tuple[set[str], set[str]]:
    """The labels of the Node and of the NodeFeature."""
    objects = api.all(NODEFEATURES, NAMESPACE)
    return (
        set(api.get(NODES, NAME)["metadata"].get("labels") or {}),
        set(objects[0]["spec"]["labels"]) if objects else set(),
    )


@attrs.define
class Life:
    """One worker process; `last_good` is what it last saw for certain."""

    rig: Rig
    looker: Looker
    known: bool = False
    last_good: set[str] | None = None

    def one_pass(self) -> None:
        """Look, and publish what may be published by now."""
        r, facts = self.rig, FlakySource.facts
        if not facts.error:
            self.last_good = set(facts.names)
        seen = self.looker.look(r.clock.wall())
        if not self.known:
            self._attempt()
        while r.back:
            names = [s.name for s in self.looker.plan.sources]
            back = recollect(r.back.pop(), names, r.clock.wall())
            self.looker.remember(back.memory, back.labels)
            seen = self.looker.look(r.clock.wall(), ())
            self.known = True
        if self.known:
            r.publisher.submit(Result.of(seen))
            self._attempt()
        r.clock.advance(61)

    def _attempt(self) -> None:
        for _ in range(5):
            wait = self.rig.publisher.attempt()
            if wait is None or wait > 0:
                return

    def proves(self, gone: set[str]) -> bool:
        """Whether it has seen that none of these labels is a fact any more."""
        if not gone:
            return True
        return self.last_good is not None and not gone & keys(self.last_good)


@contextmanager
def life(api: FakeApi, host: HostRoot, kill: Mortal | None = None) -> Iterator[Life]:
    """A new process on the same node."""

    def wrap(transport: Transport) -> Transport:
        if kill is None:
            return transport
        kill.inner = transport
        return kill

    with rig(api=api, wrap=wrap) as r:
        yield Life(r, Looker(host, REGISTRY, decode_tree({}, REGISTRY)))


def shake(dice: random.Random, facts: Facts, api: FakeApi) -> None:
    """Change something, or break something."""
    if dice.random() < 0.3:
        facts.names = {name for name in NAMES if dice.random() < 0.6}
    facts.error = "ill" if dice.random() < 0.3 else ""
    api._switches.clear()
    if dice.random() < 0.4:
        api.fault(dice.choice(FAULTS), times=dice.randint(1, 3))


def checked_pass(each: Life, api: FakeApi) -> None:
    before = published(api)
    try:
        each.one_pass()
    finally:
        for had, has in zip(before, published(api), strict=True):
            assert each.proves(had - has), (had - has, each.last_good)
        del api.requests[:]


def heal(api: FakeApi, host: HostRoot) -> None:
    """With nothing broken any more, the labels are right."""
    api._switches.clear()
    FlakySource.facts.error = ""
    with life(api, host) as each:
        each.one_pass()
    right = keys(FlakySource.facts.names)
    assert published(api) == (right, right)


def test_soak(tmp_path: Path) -> None:
    """No label goes unproven, in the end all are right, and memory stays flat."""
    dice = random.Random(6)
    FlakySource.facts = facts = Facts()
    with FakeApi() as api, tree(tmp_path) as host:
        api.node(NAME)
        api.admission.append(fence)
        objects = []
        left = PASSES
        while left > 0:
            with life(api, host) as each:
                for _ in range(min(left, 250)):
                    left -= 1
                    shake(dice, facts, api)
                    checked_pass(each, api)
                    del each.rig.log.said[:]
                api.compact()  # the server may remember, the worker may not
                gc.collect()
                objects.append(len(gc.get_objects()))
        heal(api, host)

    assert max(objects[2:]) < min(objects[2:]) * 1.1


def test_killed_at_any_point_loses_nothing(tmp_path: Path) -> None:
    """Before and after each of its first requests; the next one goes on."""
    dice = random.Random(9)
    FlakySource.facts = facts = Facts()
    with FakeApi() as api, tree(tmp_path) as host:
        api.node(NAME)
        api.admission.append(fence)
        for number in range(120):
            shake(dice, facts, api)
            api._switches.clear()
            mortal = Mortal(api.client().transport, 1 + number % 8, number % 3 == 0)
            with life(api, host, mortal) as each:
                try:
                    checked_pass(each, api)
                except Killed:
                    continue
        heal(api, host)
