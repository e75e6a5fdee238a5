"""Ten thousand events and faults on the fake server: not one wrong removal.

`make chaos` tells the same story to a real control plane (tests/cluster/chaos.py).
"""

import random
from collections.abc import Mapping
from typing import Any

from nfd.features import Features
from nfd.kube.resources import NODEFEATURERULES, NODEFEATURES, NODES
from nfd.labels import FEATURE_NS
from tests.fakeapi.faults import Asked, answer, dropped, empty_list, lost_answer, reset
from tests.fakeapi.server import FakeApi
from tests.master.agents import Running, ours, start
from tests.master.test_fleet import GPU, feature
from tests.master.truth import Truth

EVENTS = 10_000
CALM = 200  # events between two moments in which everything is as wanted
NODE_COUNT = 40
OPTIONS = (
    "removalGuard: {listInterval: 400ms, editHold: 500ms}\n"
    "garbageCollection: {grace: 300ms}\ninformerPageSize: 15\nresyncPeriod: 2s"
)
RULE_LABELS = ("gpu", "ruled")
LISTED = ("nodes", "nodefeatures", "nodefeaturerules")


class Storm:
    """A cluster that changes all the time, and what is true of it."""

    def __init__(self, api: FakeApi, seed: int) -> None:
        self.api = api
        self.draw = random.Random(seed)
        self.truth = Truth.of(api)
        self.labels: dict[str, dict[str, str]] = {}
        self.gpus: dict[str, bool] = {}
        self.rule_label = "gpu"
        self.events = 0
        self.emptied: list[Asked] = []
        for i in range(NODE_COUNT):
            name = f"n{i}"
            api.node(name, {"host": name})
            self.labels[name], self.gpus[name] = {"keep": "1", "a": "1"}, True
            self.publish(name)
        self.put_rule("gpu")
        self.master = self.start()

    def start(self) -> Running:
        return start(self.api, options=OPTIONS)

    def node(self) -> str:
        return f"n{self.draw.randrange(NODE_COUNT)}"

    def wanted(self, name: str) -> dict[str, str]:
        ruled = {self.rule_label: "true"} if self.gpus[name] else {}
        return {**self.labels[name], **ruled}

    def tell(self, names: Any) -> None:
        for name in names:
            self.truth.change(name, self.wanted(name))

    # --- events ----------------------------------------------------------------------

    def publish(self, name: str) -> None:
        self.tell([name])
        content = GPU if self.gpus[name] else Features()
        self.api.put(NODEFEATURES, feature(name, self.labels[name], content))

    def relabel(self) -> None:
        name = self.node()
        keys = self.draw.sample("abcdef", self.draw.randint(1, 4))
        self.labels[name] = {k: str(self.draw.randint(0, 3)) for k in sorted(keys)}
        self.labels[name]["keep"] = "1"
        self.publish(name)

    def plug(self) -> None:
        name = self.node()
        self.gpus[name] = not self.gpus[name]
        self.publish(name)

    def touch(self) -> None:
        """A change that means nothing."""
        name = self.node()
        obj = self.api.get(NODEFEATURES, name, "nfd")
        obj["metadata"].setdefault("annotations", {})["x"] = str(self.events)
        self.api.put(NODEFEATURES, obj)

    def lose(self) -> None:
        """Somebody deletes a NodeFeature; its worker puts it back."""
        name = self.node()
        self.truth.change(name, {})
        self.api.remove(NODEFEATURES, name, "nfd")
        self.publish(name)

    def tamper(self) -> None:
        name = self.node()
        node = self.api.get(NODES, name)
        node["metadata"]["labels"][f"{FEATURE_NS}/a"] = "tampered"
        self.api.put(NODES, node, manager="somebody")

    def heartbeat(self) -> None:
        name = self.node()
        node = self.api.get(NODES, name)
        node["metadata"].setdefault("annotations", {})["beat"] = str(self.events)
        self.api.put(NODES, node, manager="kubelet")

    def renew(self) -> None:
        name = self.node()
        self.api.remove(NODES, name)
        self.api.node(name, {"host": name})

    def put_rule(self, label: str) -> None:
        self.rule_label = label
        self.tell(self.labels)
        term = {
            "feature": "pci.device",
            "matchExpressions": {"vendor": {"op": "In", "value": ["10de"]}},
        }
        rule = {"name": "r", "labels": {label: "true"}, "matchFeatures": [term]}
        made: Mapping[str, Any] = {"metadata": {"name": "r"}, "spec": {"rules": [rule]}}
        self.api.put(NODEFEATURERULES, made)

    def edit(self) -> None:
        self.put_rule(self.draw.choice(RULE_LABELS))

    # --- faults ------------------------------------------------------------------------

    def break_something(self) -> None:
        api, draw = self.api, self.draw
        status = draw.choice([409, 429, 500, 503, 422])
        retry = 0.01 if status == 429 else None
        fault = draw.choice(
            [
                lambda: api.fault(
                    answer(status, retry_after=retry), verb="patch", times=3
                ),
                lambda: api.fault(lost_answer(), verb="patch", times=2),
                lambda: api.fault(reset(), times=2),
                lambda: api.fault(dropped(), verb="watch", times=2),
                lambda: api.fault(answer(410, "Expired"), verb="list"),
                api.end_watches,
                api.compact,
                api.cut_connections,
                self.empty_list,
                self.toggle_streaming,
            ]
        )
        fault()

    def empty_list(self) -> None:
        """One list shows nothing; the one after it is whole again."""
        self.api.streaming_lists = False
        for resource in self.draw.sample(LISTED, self.draw.randint(1, len(LISTED))):
            self.api.fault(
                empty_list(),
                verb="list",
                resource=resource,
                when=self.follows_a_whole_list,
            )
        self.api.compact()
        self.api.end_watches()

    def follows_a_whole_list(self, asked: Asked) -> bool:
        """Two empty lists in a row would be proof."""
        lists = [
            a
            for a in self.api.requests
            if a.verb == "list" and a.resource == asked.resource and a is not asked
        ]
        if "continue" in asked.query or (lists and lists[-1] in self.emptied):
            return False
        self.emptied.append(asked)
        return True

    def toggle_streaming(self) -> None:
        self.api.streaming_lists = not self.api.streaming_lists

    def restart(self) -> None:
        self.master.end()
        self.master = self.start()

    def different(self) -> list[str]:
        """Return nodes that are not as wanted; what somebody else added may stay."""
        found = []
        for name in self.labels:
            wanted, has = self.wanted(name), ours(self.api, name)
            extra = {k: v for k, v in has.items() if k not in wanted}
            if has != wanted | extra or set(extra.values()) - {"tampered"}:
                found.append(name)
        return found

    def caught_up(self) -> bool:
        """Tell whether the master has seen the newest of everything.

        Nodes may be as wanted while news of a short absence is still on its way.
        """
        newest = {
            (obj["metadata"]["namespace"], obj["metadata"]["name"]): obj["metadata"][
                "resourceVersion"
            ]
            for obj in self.api.all(NODEFEATURES)
        }
        with self.master.agent.controller.changing() as fleet:
            seen = {k: f.version for k, f in fleet.features.objects.items()}
            rules = [r.labels for listed in fleet._rules.values() for r in listed]
        return newest == seen and rules == [{self.rule_label: "true"}]

    def calm(self) -> None:
        """Wait until everything is as wanted: from here on removals are judged."""
        for switch in self.api._switches:
            switch.lift()
        self.api.wait_for(lambda: not self.different() and self.caught_up(), 60)
        assert self.master.agent.controller.wait_idle(60)
        # A request whose sender gave up is still on its way.
        self.api.wait_for(lambda: not self.api.in_flight, 60)
        self.truth.settle()

    def run(self, count: int) -> None:
        often = [self.relabel, self.touch, self.heartbeat, self.plug]
        seldom = [self.lose, self.tamper, self.renew]
        while self.events < count:
            self.events += 1
            if self.events % 100 == 1:
                self.break_something()
            elif self.events % 1000 == 2:
                self.restart()
            elif self.events % 450 == 0:
                self.edit()
            elif self.draw.random() < 0.9:
                self.draw.choice(often)()
            else:
                self.draw.choice(seldom)()
            if self.events % CALM == 0:
                self.calm()


def test_ten_thousand_events_and_not_one_wrong_removal() -> None:
    """Wrong: the label was wanted at every moment since all was as wanted."""
    with FakeApi() as api:
        storm = Storm(api, seed=7)
        try:
            storm.run(EVENTS)
        finally:
            storm.master.end()
        truth = storm.truth

    assert truth.wrong == [], truth.evidence
    assert truth.foreign == []
    assert truth.removals > 100


def test_the_oracle_sees_a_wrong_removal() -> None:
    """A label that was wanted all the time, taken by somebody."""
    with FakeApi() as api:
        truth = Truth.of(api)
        api.node("n0", {f"{FEATURE_NS}/a": "1", f"{FEATURE_NS}/b": "1", "host": "n0"})
        truth.change("n0", {"a": "1", "b": "1"})
        truth.change("n0", {"a": "1"})
        node = api.get(NODES, "n0")
        node["metadata"]["labels"] = {}
        api.client().update(NODES, node)

    assert truth.wrong == [("n0", f"{FEATURE_NS}/a")]
    assert truth.foreign == [("n0", "host")]


def test_the_oracle_asks_for_every_moment() -> None:
    """A label wanted since a moment ago: the master may still act on the news before.

    It reads rules and NodeFeatures from two streams, so it may even have set it first.
    """
    with FakeApi() as api:
        truth = Truth.of(api)
        api.node("n0", {f"{FEATURE_NS}/a": "1", f"{FEATURE_NS}/b": "1"})
        truth.change("n0", {"b": "1"})
        truth.settle()
        truth.change("n0", {"a": "1", "b": "1"})
        node = api.get(NODES, "n0")
        node["metadata"]["labels"] = {}
        api.client().update(NODES, node)

    assert truth.wrong == [("n0", f"{FEATURE_NS}/b")]
