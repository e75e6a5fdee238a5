"""`nfd-worker` from the command line: flags, exit statuses, and the chart's pod."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog

from nfd import agentlog
from nfd._version import __version__
from nfd.cli import worker
from nfd.cli.goflags import FlagSet
from nfd.cli.worker import FLAGS, main, overrides
from nfd.kube.resources import NODEFEATURES, NODES
from nfd.labels import FEATURE_NS
from tests.cluster.skipping import skip_where_unavailable
from tests.deploy.chart import only, render
from tests.fakeapi import FakeApi
from tests.worker.rig import fence

NAME, NAMESPACE = "n1", "nfd"
SRIOV = f"{FEATURE_NS}/network-sriov.capable"


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Put back what a worker changes in its process."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    signals = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)}
    yield
    agentlog.configure("nfd")
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    for number, handler in signals.items():
        signal.signal(number, handler)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as server:
        server.node(NAME)
        server.admission.append(fence)
        yield server


@pytest.fixture
def kubeconfig(api: FakeApi, tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": api.url}}],
                "contexts": [
                    {"name": "x", "context": {"cluster": "c", "namespace": NAMESPACE}}
                ],
                "current-context": "x",
            }
        )
    )
    return str(path)


def run(*words: str, **environ: str) -> int:
    return main(words, environ)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["-version"], 0, f"nfd-worker {__version__}\n"),
        (["-h"], 0, "Usage of nfd-worker:"),
        (["-nope"], 2, "there is no flag -nope"),
        (["positional"], 2, "unknown command line argument: positional"),
        (["-oneshot", "-config="], 1, "KUBERNETES_SERVICE_HOST"),
        (["-config=", "-owner-refs=job"], 1, "ownerRefs"),
        (["-config=", "-options={core: [}"], 1, "-options"),
        (["-config=", "-publish=x"], 1, "publish"),
        (["-config=", "-log-format=xml"], 1, "-log-format"),
        (["-config=", "-publish=none", "-oneshot", "-root=/nope"], 1, "/nope"),
        (["-config=", "-publish=file", "-oneshot"], 1, "publishFile"),
    ],
)
def test_exit_statuses(
    words: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == status

    told = capsys.readouterr()
    assert said in (told.out if status == 0 else told.err)


def test_missing_node_name_is_said_before_any_request(
    api: FakeApi, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """H47 (d)."""
    assert run("-oneshot", "-config=", f"-kubeconfig={kubeconfig}") == 1

    assert "NODE_NAME: not set" in capsys.readouterr().err
    assert api.requests == []


def test_only_given_flags_override() -> None:
    """As upstream's own test of its command line has it."""
    flags = FlagSet("nfd-worker", FLAGS)

    assert overrides(flags.parse(["-oneshot"])) == {}
    words = ["-no-publish", "-owner-refs=ds,node", "-feature-sources=cpu"]
    words += ["-label-sources=a,b,c", "-publish=nodefeature,node"]
    assert overrides(flags.parse(words)) == {
        "noPublish": True,
        "ownerRefs": ["ds", "node"],
        "featureSources": ["cpu"],
        "labelSources": ["a", "b", "c"],
        "publish": ["nodefeature", "node"],
    }
    assert overrides(flags.parse(["-owner-refs="])) == {"ownerRefs": []}


def test_oneshot_labels_and_publishes_and_prune_takes_it_back(
    api: FakeApi, kubeconfig: str, host_dir: Path
) -> None:
    words = [f"-kubeconfig={kubeconfig}", "-config=", "-publish=nodefeature,node"]
    words.append(f"-root={host_dir / 'sriov-server'}")

    assert run("-oneshot", *words, NODE_NAME=NAME, POD_UID="u") == 0

    assert api.get(NODES, NAME)["metadata"]["labels"][SRIOV] == "true"
    found = api.get(NODEFEATURES, NAME, NAMESPACE)
    assert found["spec"]["labels"][SRIOV] == "true"
    assert found["metadata"]["annotations"] == {
        "nfd.node.kubernetes.io/worker.pod.uid": "u",
        "nfd.node.kubernetes.io/worker.version": __version__,
    }
    assert run("-prune", *words, NODE_NAME=NAME) == 0
    assert api.all(NODEFEATURES) == []
    assert not api.get(NODES, NAME)["metadata"].get("labels")


def test_oneshot_that_cannot_publish_is_an_error(
    api: FakeApi, kubeconfig: str, host_dir: Path
) -> None:
    api.deny("create", "nodefeatures")
    words = [f"-kubeconfig={kubeconfig}", "-config=", "-owner-refs="]
    words.append(f"-root={host_dir / 'empty-root'}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nfd.worker.controller.PATIENCE", 0.1)
        assert run("-oneshot", *words, NODE_NAME=NAME) == 1


def test_no_publish_needs_no_cluster(host_dir: Path) -> None:
    """Better than upstream's, which demands a client to do nothing with."""
    words = ["-oneshot", "-no-publish", "-config=", f"-root={host_dir / 'empty-root'}"]

    assert run(*words) == 0


def environment_of(
    container: Mapping[str, Any], fields: Mapping[str, str]
) -> dict[str, str]:
    """The variables of a container, as a kubelet fills them in."""
    return {
        each["name"]: each.get("value")
        or fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
        for each in container["env"]
    }


def mounted(
    container: Mapping[str, Any], spec: Mapping[str, Any], host: Path, at: Path
) -> None:
    """Put the folders of a host where the container has its mounts, below `at`."""
    volumes = {v["name"]: v for v in spec["volumes"]}
    for mount in container["volumeMounts"]:
        path = volumes[mount["name"]].get("hostPath", {}).get("path")
        source = host / str(path).strip("/")
        if path and source.exists() and mount["mountPath"].startswith("/host-"):
            place = at / mount["mountPath"].strip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, place, symlinks=True)
            else:
                shutil.copy(source, place)


def test_the_charts_pod(
    api: FakeApi, kubeconfig: str, host_dir: Path, tmp_path: Path
) -> None:
    """Exactly the arguments, environment and mounts of the DaemonSet do it.

    Upstream's image has the same, so that ours can replace it there.
    """
    with skip_where_unavailable("helm"):
        manifests = render()
    spec = only(manifests, "DaemonSet", "-worker")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["command"] == ["nfd-worker"]
    mounted(container, spec, host_dir / "sriov-server", tmp_path)
    environment = environment_of(
        container,
        {"spec.nodeName": NAME, "metadata.name": "pod", "metadata.uid": "u"},
    )
    words = [*container["args"], f"-kubeconfig={kubeconfig}", "-oneshot"]

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from nfd.cli.worker import main; sys.exit(main())",
            *words,
        ],
        env={
            **environment,
            "NFD_HOST_ROOT": f"{tmp_path}/host-",  # as our image sets it
            "PATH": os.environ["PATH"],
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert api.get(NODES, NAME)["metadata"]["labels"][SRIOV] == "true"
    assert SRIOV in api.get(NODEFEATURES, NAME, NAMESPACE)["spec"]["labels"]


@pytest.mark.parametrize(
    "words",
    [
        # The arguments of upstream's manifests, chart and test jobs.
        [
            "-feature-gates=NodeFeatureGroupAPI=false",
            "-owner-refs=pod,ds",
            "-port=8080",
        ],
        ["-oneshot", "-owner-refs=node"],
        ["--no-publish", "--v=2", "-logtostderr=true", "-vmodule="],
    ],
)
def test_arguments_of_upstream_are_understood(words: list[str]) -> None:
    assert not isinstance(FlagSet("nfd-worker", FLAGS).parse_or_exit(words), int)


def test_help_imports_no_worker() -> None:
    code = (
        "import sys; from nfd.cli.worker import main; main(['-version']);"
        "print([m for m in ('structlog', 'nfd.worker', 'http.client') if m in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-1] == "[]"
    assert worker.PROGRAM in done.stdout


HEAVY = (
    "rich",
    "prometheus_client",
    "urllib3",
    "kubernetes",
    "email.message",
    "yaml",
    "re2",
    "http.server",
)


def test_import_budget_of_the_worker() -> None:
    """What a worker without a configuration file never loads."""
    code = (
        "import sys; import nfd.cli.worker, nfd.worker.start; from nfd import registry;"
        "r = registry.installed(); [r.load(n) for n in r.names];"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"


HANGING = """
import sys, threading
from nfd_sources.pci import PciSource
PciSource.discover = lambda *_: (print("hangs", flush=True), threading.Event().wait(60))
from nfd.cli.worker import main
sys.exit(main())
"""


@pytest.mark.parametrize("code", [HANGING, HANGING.replace("PciSource.discover", "x")])
def test_a_stop_ends_it_within_two_seconds(code: str, host_dir: Path) -> None:
    """Also while a source hangs, which no thread of Python can be made to leave."""
    words = ["-publish=none", "-config=", "-port=0", f"-root={host_dir / 'empty-root'}"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        hangs = code == HANGING
        stream = process.stdout if hangs else process.stderr
        wanted = "hangs" if hangs else "labels found"
        while wanted not in (line := stream.readline()):
            assert line, "ended too early"
        start = time.monotonic()
        process.send_signal(signal.SIGTERM)

        assert process.wait(5) == 0
        assert time.monotonic() - start < 2
