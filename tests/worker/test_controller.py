"""The loop of the worker, with its threads, on the fake API server."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from prometheus_client.parser import text_string_to_metric_families

from nfd.config.worker import decode_tree
from nfd.errors import ConfigError
from nfd.kube.clock import Stop
from nfd.kube.resources import CONFIGMAPS, NODEFEATURES, NODES
from nfd.labels import FEATURE_NS
from nfd.publish.demand import CONFIGMAP
from nfd.publish.nodefeature import STALE, TRIMMED
from nfd.registry import Registry, installed
from nfd.worker import run_once
from nfd.worker.controller import Worker
from nfd.worker.settings import Options, load_settings
from tests import tiny
from tests.fakeapi import FakeApi, FakeClock, answer
from tests.worker.rig import Facts, FlakySource, Log, fence, tree

NAME, NAMESPACE = "n1", "nfd"
A, B = (f"{FEATURE_NS}/flaky-{name}" for name in "ab")
MADE = f"{FEATURE_NS}/made"
RULE = {"name": "r", "labels": {MADE: "true"}}


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as server:
        server.node(NAME)
        server.admission.append(fence)
        yield server


@pytest.fixture(autouse=True)
def facts() -> Facts:
    FlakySource.facts = Facts()
    return FlakySource.facts


@attrs.define
class Running:
    """A worker in a thread of the test."""

    worker: Worker
    api: FakeApi
    log: Log
    config: Path
    host: Path
    stop: Stop
    errors: list[BaseException]

    def labels(self) -> Mapping[str, str]:
        """The labels of the NodeFeature."""
        found = self.api.all(NODEFEATURES, NAMESPACE)
        return found[0]["spec"]["labels"] if found else {}

    def wait_labels(self, *wanted: str) -> None:
        self.api.wait_for(lambda: set(self.labels()) == set(wanted))

    def wait_node(self, *wanted: str) -> None:
        def keys() -> set[str]:
            return set(self.api.get(NODES, NAME)["metadata"].get("labels") or {})

        self.api.wait_for(lambda: keys() == set(wanted))

    def look(self) -> None:
        """Have it look at everything, as a poll does."""
        self.config.write_text(self.config.read_text() + "\n# again")

    def ready(self) -> tuple[int, str]:
        told = self.worker.readyz()
        return told.status, told.body


def write_config(path: Path, **core: Any) -> None:
    path.write_text(json.dumps({"core": {"sleepInterval": "1h", **core}}))


def make(
    api: FakeApi,
    folder: Path,
    stop: Stop,
    log: Log,
    registry: Registry,
    **core: Any,
) -> tuple[Worker, Path]:
    config = folder / "conf" / "nfd-worker.conf"
    if not config.exists():
        config.parent.mkdir()
        write_config(config, **core)
    options = Options(
        node=NAME, namespace=NAMESPACE, pod_uid="u", config_file=str(config)
    )
    client = api.client("worker", stop=stop, field_manager="nfd-worker")
    worker = Worker(
        options,
        load_settings(options, registry),
        tree(folder / "host"),
        registry,
        client,
        log=log,
    )
    return worker, config


@contextmanager
def running(
    api: FakeApi, folder: Path, registry: Registry | None = None, **core: Any
) -> Iterator[Running]:
    stop, log = Stop(), Log()
    registry = registry or tiny.registry(FlakySource)
    core = {"publish": "nodefeature,node", **core}
    worker, config = make(api, folder, stop, log, registry, **core)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            worker.run(stop)
        except BaseException as error:  # noqa: BLE001 - told to the test
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield Running(worker, api, log, config, folder / "host", stop, errors)
    finally:
        stop.set()
        thread.join(5)
    assert not thread.is_alive()
    assert errors == []


def test_labels_come_and_go_with_the_facts(
    api: FakeApi, tmp_path: Path, facts: Facts
) -> None:
    with running(api, tmp_path) as r:
        r.wait_labels(A, B)
        r.wait_node(A, B)
        facts.names = {"b"}
        r.look()

        r.wait_labels(B)
        r.wait_node(B)


def test_failed_source_keeps_its_labels_also_over_a_restart(
    api: FakeApi, tmp_path: Path, facts: Facts
) -> None:
    """H54 in small: marked stale, told once, and gone only on proof."""
    with running(api, tmp_path) as r:
        r.wait_labels(A, B)
    facts.error = "the disk is ill"

    with running(api, tmp_path) as r:
        api.wait_for(
            lambda: (
                STALE
                in api.get(NODEFEATURES, NAME, NAMESPACE)["metadata"]["annotations"]
            )
        )
        r.wait_labels(A, B)
        r.wait_node(A, B)
        said = r.log.warnings("source flaky")
        assert said[-1] == "/sys/x: the disk is ill; its last good features stay"
        assert len(said) <= 2  # once before it is known what was published
        api.wait_for(lambda: r.ready()[0] == 200)
        assert "the disk is ill" in r.ready()[1]

        facts.error, facts.names = "", {"a"}
        r.look()
        r.wait_labels(A)
        r.wait_node(A)
        api.wait_for(
            lambda: (
                STALE
                not in api.get(NODEFEATURES, NAME, NAMESPACE)["metadata"]["annotations"]
            )
        )


def test_failing_first_pass_of_a_new_node_publishes_nothing_false(
    api: FakeApi, tmp_path: Path, facts: Facts
) -> None:
    """The set is called unknown, so that no rule takes it for absent."""
    facts.error = "no"
    with running(api, tmp_path) as r:
        api.wait_for(lambda: bool(api.all(NODEFEATURES, NAMESPACE)))

        notes = api.get(NODEFEATURES, NAME, NAMESPACE)["metadata"]["annotations"]
        assert json.loads(notes[STALE]) == {"flaky.found": ""}
        assert r.labels() == {}


def test_configuration_is_reloaded_and_a_bad_one_keeps_the_old(
    api: FakeApi, tmp_path: Path
) -> None:
    with running(api, tmp_path) as r:
        r.wait_labels(A, B)
        text = json.dumps(
            {"core": {"publish": "nodefeature,node"}, "sources": {"custom": [RULE]}}
        )
        r.config.write_text(text)
        r.wait_labels(A, B, MADE)

        r.config.write_text("core: [")
        api.wait_for(lambda: bool(r.log.warnings("configuration file")))
        r.config.write_text("core: [ # still")
        (said,) = set(r.log.warnings("configuration file"))
        assert "the old one stays" in said
        assert "the old one stays" in r.ready()[1]
        assert "nfd_worker_configuration_errors_total" in r.worker.status.metrics().body
        assert set(r.labels()) == {A, B, MADE}

        r.config.write_text(text.replace(MADE, "other.made"))
        r.wait_labels(A, B, "other.made")
        assert "configuration file" not in r.ready()[1]


def test_rule_files_are_reloaded_and_a_bad_one_keeps_its_rules(
    api: FakeApi, tmp_path: Path
) -> None:
    with running(api, tmp_path) as r:
        r.wait_labels(A, B)
        folder = r.host / "etc/kubernetes/node-feature-discovery/custom.d"
        folder.mkdir(parents=True)
        (folder / "x.yaml").write_text(json.dumps([RULE]))
        r.wait_labels(A, B, MADE)

        (folder / "x.yaml").write_text("- name: [")
        api.wait_for(lambda: bool(r.log.warnings("warning")))
        assert set(r.labels()) == {A, B, MADE}

        (folder / "x.yaml").unlink()
        r.wait_labels(A, B)


def test_rule_file_that_is_bad_at_the_start(
    api: FakeApi, tmp_path: Path, facts: Facts
) -> None:
    """Nobody knows what is in it: labels of rules stay until it can be read."""
    folder = tmp_path / "host/etc/kubernetes/node-feature-discovery/custom.d"
    folder.mkdir(parents=True)
    (folder / "x.yaml").write_text(json.dumps([RULE]))
    with running(api, tmp_path) as r:
        r.wait_labels(A, B, MADE)
    (folder / "x.yaml").write_text("- name: [")
    facts.names = {"b"}

    with running(api, tmp_path) as r:
        r.wait_labels(B, MADE)
        r.wait_node(B, MADE)
        (folder / "x.yaml").write_text("[]")
        r.wait_labels(B)
        r.wait_node(B)


def test_rule_that_became_wrong_keeps_its_labels(api: FakeApi, tmp_path: Path) -> None:
    """Until it is mended or deleted; the reason is told."""
    folder = tmp_path / "host/etc/kubernetes/node-feature-discovery/custom.d"
    folder.mkdir(parents=True)
    found = {"matchFeatures": [{"feature": "flaky.found"}]}
    wrong = {**RULE, **found, "labelsTemplate": "{{ index . 1 2 }}"}
    with running(api, tmp_path) as r:
        (folder / "x.yaml").write_text(json.dumps([RULE]))
        r.wait_labels(A, B, MADE)
        (folder / "x.yaml").write_text(json.dumps([wrong]))
        api.wait_for(lambda: "rule r" in str(r.log.said))
        assert set(r.labels()) == {A, B, MADE}
        (folder / "x.yaml").unlink()
        r.wait_labels(A, B)


def test_features_d_is_watched(api: FakeApi, tmp_path: Path) -> None:
    """A folder that is not there at the start; upstream then never looks again."""
    folder = tmp_path / "host/etc/kubernetes/node-feature-discovery/features.d"
    with running(api, tmp_path, installed(), featureSources=["local"]) as r:
        api.wait_for(lambda: bool(api.all(NODEFEATURES, NAMESPACE)))
        folder.mkdir(parents=True)
        (folder / "mine").write_text("mine=1\n")
        r.wait_labels("mine")
        r.wait_node(f"{FEATURE_NS}/mine")
        (folder / "mine").unlink()

        r.wait_labels()
        r.wait_node()


def test_only_touched_sources_run_again(
    api: FakeApi, tmp_path: Path, facts: Facts
) -> None:
    with running(api, tmp_path) as r:
        r.wait_labels(A, B)
        before = facts.runs
        r.worker._look(())
        assert facts.runs == before
        r.worker._look({"flaky"})
        assert facts.runs == before + 1


def test_own_object_is_watched_and_put_back(api: FakeApi, tmp_path: Path) -> None:
    with running(api, tmp_path) as r:
        r.wait_labels(A, B)
        api.wait_for(lambda: api.watches.open == 2)
        api.remove(NODEFEATURES, NAME, NAMESPACE)

        r.wait_labels(A, B)


def test_idle_worker_asks_for_nothing(
    api: FakeApi, tmp_path: Path, facts: Facts
) -> None:
    with running(api, tmp_path) as r:
        r.wait_labels(A, B)
        r.wait_node(A, B)
        api.wait_for(
            lambda: r.worker.publisher is not None and r.worker.publisher.up_to_date
        )
        api.wait_for(lambda: api.watches.open == 2)
        before, runs = len(api.requests), facts.runs
        for _ in range(10):
            r.worker._look(None)

        assert facts.runs == runs + 10
        assert len(api.requests) == before


def test_bulky_sets_are_trimmed_to_what_rules_use(
    api: FakeApi, tmp_path: Path, facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demand is followed; without it everything is published."""
    monkeypatch.setattr("nfd.publish.demand.BULKY", ("flaky.found",))

    def found() -> set[str]:
        objects = api.all(NODEFEATURES, NAMESPACE)
        sets = objects[0]["spec"]["features"]["flags"] if objects else {}
        return set(sets.get("flaky.found", {}).get("elements", ()))

    def demand(*names: str) -> None:
        metadata = {"name": CONFIGMAP, "namespace": NAMESPACE}
        api.put(
            CONFIGMAPS,
            {"metadata": metadata, "data": {"flaky.found": "\n".join(names)}},
        )

    facts.names = {"a", "b", "c"}
    demand("a", "z")
    with running(api, tmp_path) as r:
        api.wait_for(lambda: found() == {"a"})
        demand("a", "b")
        api.wait_for(lambda: found() == {"a", "b"})
        notes = api.get(NODEFEATURES, NAME, NAMESPACE)["metadata"]["annotations"]
        assert json.loads(notes[TRIMMED]) == {"flaky.found": ["a", "b"]}
        api.remove(CONFIGMAPS, CONFIGMAP, NAMESPACE)
        api.wait_for(lambda: found() == {"a", "b", "c"})
        assert len(r.labels()) == 3


def test_trimmed_memory_is_no_memory(
    api: FakeApi, tmp_path: Path, facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart a trimmed set of a failed source is unknown, not short."""
    monkeypatch.setattr("nfd.publish.demand.BULKY", ("flaky.found",))
    metadata = {"name": CONFIGMAP, "namespace": NAMESPACE}
    api.put(CONFIGMAPS, {"metadata": metadata, "data": {"flaky.found": "a"}})
    with running(api, tmp_path) as r:
        r.wait_labels(A, B)
    facts.error = "no"

    with running(api, tmp_path) as r:
        api.wait_for(
            lambda: (
                "flaky.found"
                in api.get(NODEFEATURES, NAME, NAMESPACE)["metadata"][
                    "annotations"
                ].get(STALE, "")
            )
        )
        r.wait_labels(A, B)
        r.wait_node(A, B)


def test_readiness_and_metrics(api: FakeApi, tmp_path: Path, facts: Facts) -> None:
    facts.error = "sick"
    switch = api.fault(answer(403, "Forbidden"), times=None, resource="nodefeatures")
    with running(api, tmp_path) as r:
        api.wait_for(lambda: bool(r.log.warnings("NodeFeature")))
        api.wait_for(lambda: r.worker.status.seen is not None)
        assert r.ready()[0] == 503
        assert "nothing has been published yet" in r.ready()[1]
        assert "nodefeatures" in r.ready()[1]
        families = {
            f.name: f
            for f in text_string_to_metric_families(r.worker.status.metrics().body)
        }
        assert "nfd_worker_build_info" in families
        duration = families["nfd_worker_feature_discovery_duration_seconds"]
        assert {s.labels["node"] for s in duration.samples} == {NAME}
        (up,) = families["nfd_worker_source_up"].samples
        assert (up.labels, up.value) == ({"source": "flaky"}, 0)
        switch.lift()


def test_file_mode_needs_no_api_server(tmp_path: Path, facts: Facts) -> None:
    target = tmp_path / "labels"
    config = {"core": {"publish": ["file"], "publishFile": str(target)}}
    registry = tiny.registry(FlakySource)

    def once() -> None:
        worker = Worker(
            Options(), decode_tree(config, registry), tree(tmp_path / "host"), registry,
            None, log=Log(),
        )  # fmt: skip
        assert worker.run_once(Stop()) is not None

    once()
    assert target.read_text() == f"{A}=true\n{B}=true\n"
    facts.error = "sick"
    once()
    assert target.read_text() == f"{A}=true\n{B}=true\n"


def test_missing_node_name_is_said_before_anything_is_asked(
    api: FakeApi, tmp_path: Path
) -> None:
    """H47 (d)."""
    registry = tiny.registry(FlakySource)
    with pytest.raises(ConfigError, match="NODE_NAME"):
        Worker(
            Options(namespace="x"), decode_tree({}, registry), tree(tmp_path), registry,
            api.client(), log=Log(),
        )  # fmt: skip

    assert api.requests == []


def test_run_once_as_a_library(api: FakeApi, host_dir: Path) -> None:
    seen = run_once(
        api.client(field_manager="nfd-worker"),
        NAME,
        NAMESPACE,
        root=str(host_dir / "sriov-server"),
    )

    assert seen is not None
    published = api.get(NODEFEATURES, NAME, NAMESPACE)["spec"]["labels"]
    assert published == {k: v.value for k, v in seen.labels.items()}
    assert f"{FEATURE_NS}/network-sriov.capable" in published


def test_run_once_gives_up_in_time(api: FakeApi, host_dir: Path) -> None:
    api.deny("create", "nodefeatures")
    client = api.client(clock=FakeClock())

    assert run_once(client, NAME, NAMESPACE, root=str(host_dir / "empty-root")) is None
