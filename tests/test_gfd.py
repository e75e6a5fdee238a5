"""The command gpu-feature-discovery: settings, passes, outputs (gpu.md 1.5, 1.7)."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nfd.cli import gfd as command
from nfd.cli.goflags import FlagSet
from nfd.errors import ConfigError, NfdError, UsageError
from nfd.gfd.agent import Agent
from nfd.gfd.publishing import FileOutput, ObjectOutput, Output, StreamOutput
from nfd.gfd.settings import GfdSettings, make, of_file
from nfd.kube.clock import Stop
from nfd.kube.resources import NODEFEATURES, PODS
from nfd_sources.nvml.library import NvmlError
from tests import tiny
from tests.fakeapi.server import FakeApi
from tests.sources.nvml.fakes import (
    FakeDevice,
    FakeNvml,
    FakeSession,
    gpu_host,
    live_root,
    placed,
)

GONE = NvmlError("DRIVER_NOT_LOADED", "Driver Not Loaded")
MODEL = FakeDevice()
RELOAD = "reload"


class Log:
    """Keeps events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def info(self, event: str, **fields: Any) -> None:
        self.events.append((event, fields))

    warning = error = info


class Script(Stop):
    """Instead of waiting takes the next step; after the last one it ends the run.

    A step that returns RELOAD is as a SIGHUP.
    """

    def __init__(self, stop: Stop, *steps: Callable[[], object]) -> None:
        super().__init__()
        self._end = stop
        self._steps = list(steps)
        self.waited: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        if self._steps:
            if self._steps.pop(0)() == RELOAD:
                self.set()
        else:
            self._end.set()
        return True


class Rig:
    """An agent over fake GPUs, writing a file."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "gfd"
        self.host = gpu_host(folder / "host", placed([MODEL]))
        self.log = Log()
        self.settings = GfdSettings(
            output_file=str(self.file), use_node_feature_api=False, no_timestamp=True
        )
        self.stop = Stop()

    def run(self, *steps: Callable[[], None], **settings: Any) -> int:
        values = {
            field: getattr(self.settings, field)
            for field in ("output_file", "use_node_feature_api", "no_timestamp")
        }
        self.settings = GfdSettings(**(values | settings))
        script = Script(self.stop, *steps)
        agent = Agent(
            lambda: self.settings, output, self.host, tiny.registry(FakeNvml), self.log
        )
        return agent.run(self.stop, script)

    def lines(self) -> dict[str, str]:
        text = self.file.read_text()
        return dict(line.split("=", 1) for line in text.splitlines())


def output(settings: GfdSettings) -> Output:
    return FileOutput(settings.output_file)


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(FakeNvml, "answer", FakeSession(placed([MODEL])))
    return Rig(tmp_path)


def test_oneshot(rig: Rig) -> None:
    assert rig.run(oneshot=True) == 0
    assert rig.lines()["nvidia.com/gpu.product"] == "MOCKMODEL"
    assert list(rig.lines()) == sorted(rig.lines())
    assert rig.file.stat().st_mode & 0o777 == 0o644
    assert sorted(p.name for p in rig.file.parent.iterdir()) == ["gfd", "host"]


def test_unchanged_content_is_not_written(rig: Rig) -> None:
    """Neither is the timestamp, which is that of the start."""
    written: list[int] = []

    def note() -> None:
        written.append(rig.file.stat().st_mtime_ns)
        os.utime(rig.file, ns=(1, 1))

    assert (
        rig.run(
            note,
            lambda: written.append(rig.file.stat().st_mtime_ns),
            no_timestamp=False,
        )
        == 0
    )
    assert written[1] == 1
    assert "nvidia.com/gfd.timestamp" in rig.lines()


def test_file_stays_when_stopped(rig: Rig) -> None:
    """k8s-device-plugin#796: labels once went with every restart."""
    rig.run()
    assert rig.file.exists()
    rig.stop = Stop()
    rig.run(remove_on_exit=True)
    assert not rig.file.exists()


def test_init_error_ends_the_run_if_wanted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.run(oneshot=True)
    monkeypatch.setattr(FakeNvml, "answer", GONE)

    assert rig.run(fail_on_init_error=True) == 1
    assert rig.lines()["nvidia.com/gpu.count"] == "1"


def test_init_error_is_tried_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """No labels, then labels, then the last ones while the driver is away."""
    seen: list[dict[str, str]] = []

    def then(answer: FakeSession | NvmlError) -> Callable[[], None]:
        def step() -> None:
            seen.append(rig.lines())
            FakeNvml.answer = answer

        return step

    monkeypatch.setattr(FakeNvml, "answer", GONE)
    there = FakeSession(placed([MODEL]))

    assert rig.run(then(there), then(GONE), then(GONE), fail_on_init_error=False) == 0
    first, second, third = seen
    assert first == {}
    assert second["nvidia.com/gpu.count"] == "1"
    assert third == second == rig.lines()


def test_labels_go_with_the_gpu(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.run(oneshot=True)
    monkeypatch.setattr(FakeNvml, "answer", GONE)
    rig.host = live_root(rig.file.parent)

    assert rig.run(oneshot=True, fail_on_init_error=False) == 0
    assert rig.lines() == {}


def test_bad_combination_is_fatal(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    in_mig_mode = FakeSession(placed([FakeDevice(mig=True)]))
    monkeypatch.setattr(FakeNvml, "answer", in_mig_mode)
    sharing = {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}

    assert rig.run(sharing=sharing, fail_on_init_error=False) == 1
    assert "MIG mode" in str(rig.log.events[-1])


def test_reload(rig: Rig) -> None:
    """SIGHUP: settings are read again; bad ones change nothing."""
    single = GfdSettings(
        output_file=str(rig.file), no_timestamp=True, mig_strategy="single"
    )
    loads: list[GfdSettings | ConfigError] = [
        rig.settings,
        single,
        ConfigError("version: 'v2' is not known"),
    ]

    def load() -> GfdSettings:
        answer = loads.pop(0)
        if isinstance(answer, ConfigError):
            raise answer
        return answer

    script = Script(rig.stop, lambda: RELOAD, lambda: RELOAD)
    agent = Agent(load, output, rig.host, tiny.registry(FakeNvml), rig.log)

    assert agent.run(rig.stop, script) == 0
    assert rig.lines()["nvidia.com/mig.strategy"] == "single"
    assert script.waited == [60.0, 60.0, 60.0]
    events = [event for event, _ in rig.log.events]
    assert "reloaded" in events
    assert "settings stay as they were" in events


def test_infinite_interval(rig: Rig) -> None:
    script = Script(rig.stop)
    settings = GfdSettings(output_file=str(rig.file), sleep_interval=None)
    Agent(lambda: settings, output, rig.host, tiny.registry(FakeNvml), rig.log).run(
        rig.stop, script
    )

    assert script.waited == [None]


def test_unwritable_file_is_tried_again(rig: Rig) -> None:
    missing = str(rig.file.parent / "missing" / "gfd")
    assert rig.run(output_file=missing) == 0
    assert rig.log.events[-1][0] == "pass failed"
    rig.stop = Stop()
    assert rig.run(output_file=missing, oneshot=True) == 1


def parse(*words: str, **environ: str) -> GfdSettings:
    parsed = FlagSet("gfd", command.FLAGS).parse(words)
    return command.load_settings(parsed, environ)


def test_defaults() -> None:
    in_cluster = parse(KUBERNETES_SERVICE_HOST="10.0.0.1")

    assert in_cluster == GfdSettings()
    assert parse() == GfdSettings(use_node_feature_api=False)


def test_precedence(tmp_path: Path) -> None:
    """The command line beats the environment, which beats the file."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "version: v1\n"
        "flags:\n"
        "  migStrategy: mixed\n"
        "  failOnInitError: false\n"
        "  gfd: {sleepInterval: 2m, noTimestamp: true, oneshot: true}\n"
        "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}\n"
    )
    settings = parse(
        "--sleep-interval=infinite",
        "-o",
        "",
        CONFIG_FILE=str(file),
        GFD_MIG_STRATEGY="single",
        MIG_STRATEGY="mixed",
        GFD_SLEEP_INTERVAL="3s",
        GFD_ONESHOT="false",
    )

    assert settings.mig_strategy == "single"
    assert settings.sleep_interval is None
    assert settings.output_file == ""
    assert settings.oneshot is False
    assert settings.fail_on_init_error is False
    assert settings.no_timestamp is True
    assert settings.sharing["timeSlicing"]["resources"][0]["replicas"] == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version: v2\n", "'v2' is not known"),
        ("[]\n", "no map"),
        (
            "version: v1\nflags: {gfd: {sleepInterval: soon}}\n",
            "flags.gfd.sleepInterval",
        ),
        ("version: v1\nflags: {failOnInitError: maybe}\n", "true or false"),
        ("version: v1\nflags: [1]\n", "expected a map"),
    ],
)
def test_wrong_files(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        of_file(text)


@pytest.mark.parametrize(
    "values",
    [
        {"mig_strategy": "bogus"},
        {"device_discovery_strategy": "vfio"},
        {"device_discovery_strategy": "bogus"},
    ],
)
def test_wrong_choices(values: dict[str, str]) -> None:
    """An error whatever failOnInitError says."""
    with pytest.raises(ConfigError):
        make([values, {"fail_on_init_error": False}])


def test_wrong_environment(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="GFD_ONESHOT"):
        parse(GFD_ONESHOT="perhaps")
    with pytest.raises(ConfigError, match="No such file"):
        parse("--config-file", str(tmp_path / "none"))


def test_stream(capsys: pytest.CaptureFixture[str]) -> None:
    StreamOutput().publish({"b": "2", "a": "1"})
    StreamOutput().remove()

    assert capsys.readouterr().out == "a=1\nb=2\n"
    assert not StreamOutput().holds_labels()


PRODUCT = {"nvidia.com/gpu.product": "A100"}


def pod(owner: str) -> dict[str, Any]:
    owners: list[Mapping[str, Any]] = []
    if owner:
        owners = [
            {
                "apiVersion": "apps/v1",
                "kind": owner,
                "name": "gfd",
                "uid": "u-owner",
                "controller": True,
            }
        ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "gfd-x",
            "namespace": "nfd",
            "uid": "u-pod",
            "ownerReferences": owners,
        },
    }


@pytest.mark.parametrize(
    ("name", "owner", "expected"),
    [
        ("", "DaemonSet", []),
        ("gfd-x", "DaemonSet", ["DaemonSet", "Pod"]),
        ("gfd-x", "", []),
        ("gfd-x", "ReplicaSet", []),
        ("missing", "DaemonSet", []),
    ],
)
def test_owners(name: str, owner: str, expected: list[str]) -> None:
    with FakeApi() as api:
        api.put(PODS, pod(owner))
        made = ObjectOutput(api.client(), "nfd", "n1", name)

        assert made.publish(PRODUCT)
        found = api.get(NODEFEATURES, "nvidia-features-for-n1", "nfd")
    owners = found["metadata"].get("ownerReferences") or []

    assert [o["kind"] for o in owners] == expected
    assert found["metadata"]["labels"] == {"nfd.node.kubernetes.io/node-name": "n1"}
    assert found["spec"]["labels"] == PRODUCT


def test_object_is_written_on_change_only() -> None:
    with FakeApi() as api:
        made = ObjectOutput(api.client(), "nfd", "n1")

        assert not made.holds_labels()
        assert made.publish(PRODUCT)
        assert not made.publish(PRODUCT)
        assert made.publish({**PRODUCT, "nvidia.com/gpu.count": "2"})
        assert made.holds_labels()
        made.remove()
        made.remove()
        assert not made.holds_labels()


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--version"], {}) == 0
    assert "gpu-feature-discovery" in capsys.readouterr().out
    assert command.main(["--nonsense"], {}) == 2
    assert command.main(["--help"], {}) == 0
    assert "-mig-strategy" in capsys.readouterr().out


def test_node_name_is_needed() -> None:
    with pytest.raises(ConfigError, match="NODE_NAME"):
        command._output(GfdSettings(), "", Stop())


def test_errors_of_files(tmp_path: Path) -> None:
    with pytest.raises(NfdError, match="missing/gfd"):
        FileOutput(str(tmp_path / "missing/gfd")).publish({})


def test_process(tmp_path: Path) -> None:
    """The installed command without a GPU: waits, and ends on SIGTERM with 0."""
    root = tmp_path / "root"
    (root / "sys/bus/pci/devices").mkdir(parents=True)
    file = tmp_path / "gfd"
    program = Path(sys.executable).parent / "gpu-feature-discovery"
    if not program.exists():
        pytest.skip("gpu-feature-discovery is not installed; run pip install -e .")
    command_line = [str(program), "--fail-on-init-error=false", "-o", str(file)]
    environ = {**os.environ, "NFD_HOST_ROOT": str(root)}
    with subprocess.Popen(
        command_line, env=environ, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        log = process.stderr.readline()  # of the first pass
        process.send_signal(signal.SIGTERM)
        log += process.stderr.read()

    assert process.returncode == 0, log
    assert file.read_text().startswith("nvidia.com/gfd.timestamp="), log
