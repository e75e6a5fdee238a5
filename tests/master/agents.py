"""Masters on the fake API server, as the agent puts them together."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from nfd.kube.clock import Stop
from nfd.kube.resources import NODES
from nfd.labels import FEATURE_NS
from nfd.master.agent import Agent
from nfd.master.options import Options
from tests.fakeapi.server import FakeApi

NOWHERE = "/nonexistent/nfd-master.conf"


@attrs.define
class Lines:
    """A logger that remembers."""

    lines: list[tuple[str, str, Mapping[str, Any]]] = attrs.field(factory=list)
    bound: Mapping[str, Any] = attrs.field(factory=dict)

    def bind(self, **more: Any) -> "Lines":
        return Lines(self.lines, {**self.bound, **more})

    def __getattr__(self, level: str) -> Callable[..., None]:
        return lambda event, **more: self.lines.append(
            (level, event, {**self.bound, **more})
        )

    def events(self, event: str) -> list[Mapping[str, Any]]:
        return [more for _, said, more in self.lines if said == event]


@attrs.define
class Running:
    """A master that runs, and how to stop it."""

    agent: Agent
    log: Lines
    stop: Stop
    thread: threading.Thread

    def end(self) -> None:
        self.stop.set()
        self.thread.join(20)
        assert not self.thread.is_alive()


def start(api: FakeApi, *, options: str = "", **more: Any) -> Running:
    """Start a master in the namespace `nfd`, with `-options` if given."""
    stop = Stop()
    log = Lines()
    client = api.client(more.pop("component", "master"), stop=stop)
    given: dict[str, Any] = {"namespace": "nfd", "config": NOWHERE, "port": 0, **more}
    made = Options(options=options, **given)
    agent = Agent(made, client, log)
    thread = threading.Thread(target=agent.run, args=(stop,))
    thread.start()
    return Running(agent, log, stop, thread)


@contextmanager
def running(api: FakeApi, *, options: str = "", **more: Any) -> Iterator[Running]:
    """Run a master while the block runs."""
    found = start(api, options=options, **more)
    try:
        yield found
    finally:
        found.end()


def config_file(folder: Path, text: str) -> str:
    path = folder / "nfd-master.conf"
    path.write_text(text)
    return str(path)


def ours(api: FakeApi, name: str) -> dict[str, str]:
    """Return the feature labels of a Node, short."""
    labels = api.get(NODES, name)["metadata"].get("labels") or {}
    return {
        k.removeprefix(f"{FEATURE_NS}/"): v
        for k, v in labels.items()
        if k.startswith(f"{FEATURE_NS}/")
    }
