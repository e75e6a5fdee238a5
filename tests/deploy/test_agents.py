"""What the chart and the overlays hand to the agents is what they read."""

import re
from typing import Any

import attrs
import pytest
import yaml

from nfd.cli import gc, gfd, master, worker
from nfd.cli.goflags import FlagSet, Parsed
from nfd.config import worker as worker_config
from nfd.config.worker import WorkerConfig
from nfd.master import config as master_config
from nfd.master.merging import TrustRule
from nfd.profile import profile_names
from nfd.registry import installed
from nfd.worker import settings
from tests.deploy.chart import CHART, ROOT, Manifest, containers, only, render
from tests.deploy.matrix import RENDERED, rendered

pytestmark = pytest.mark.usefixtures("helm")

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
FLAGS: dict[str, FlagSet] = {
    "nfd-master": master.FLAGS,
    "nfd-worker": FlagSet(worker.PROGRAM, worker.FLAGS),
    "nfd-gc": gc.FLAGS,
    "gpu-feature-discovery": FlagSet(gfd.PROGRAM, gfd.FLAGS),
}
HOST_ROOT = "NFD_HOST_ROOT"


@attrs.frozen
class Started:
    """A container as its program sees it."""

    name: str
    program: str
    parsed: Parsed
    environ: dict[str, str]
    mounts: dict[str, Manifest]  # by path
    text: str | None  # of the configuration file that is mounted


@pytest.fixture(params=RENDERED, scope="module")
def started(request: pytest.FixtureRequest) -> list[Started]:
    """Every container; an argument that its program refuses is an error here."""
    manifests = rendered(request.param)
    return [
        _start(manifests, name, pod, container)
        for name, pod, container in containers(manifests)
    ]


def test_masters_start(started: list[Started]) -> None:
    for each in (s for s in started if s.program == "nfd-master"):
        options = master.options_of(each.parsed, each.environ)
        loaded = master_config.load(file=each.text, overrides=options.overrides)

        assert loaded.warnings == ()
        master_config.check_instance(options.instance)
        assert options.node_name or each.parsed["prune"]


def test_workers_start(started: list[Started]) -> None:
    for each in (s for s in started if s.program == "nfd-worker"):
        config = _worker_config(each)
        options = settings.Options(
            node=each.environ["NODE_NAME"],
            namespace="of-the-account",
            pod_name=each.environ["POD_NAME"],
            pod_uid=each.environ["POD_UID"],
        )

        assert config.warnings == ()
        settings.check(config.core, options)
        assert settings.targets_of(config.core)


def test_collectors_start(started: list[Started]) -> None:
    for each in (s for s in started if s.program == "nfd-gc"):
        assert each.parsed["gc-interval"].seconds > 0
        assert each.text is None


def test_gpu_labellers_start(started: list[Started]) -> None:
    """They write the folder that is mounted, and keep labels while a driver restarts."""
    for each in (s for s in started if s.program == "gpu-feature-discovery"):
        made = gfd.load_settings(each.parsed, each.environ)
        folder, _, _ = made.output_file.rpartition("/")

        assert not made.use_node_feature_api
        assert not made.fail_on_init_error
        assert not each.mounts[folder].get("readOnly")


def test_host_is_where_the_programs_look(started: list[Started]) -> None:
    """Below the prefix that the image names, or else in the container itself."""
    image = (ROOT / "deploy" / "image" / "Containerfile").read_text()
    (default,) = re.findall(rf"^ENV .*{HOST_ROOT}=(\S+)", image, re.MULTILINE)

    for each in started:
        if each.program in {"nfd-worker", "gpu-feature-discovery"}:
            root = each.environ.get(HOST_ROOT, default)
            assert root == "/" or f"{root}sys" in each.mounts


def test_ports_are_the_probes(started: list[Started]) -> None:
    for each in started:
        if each.program.startswith("nfd-") and not each.parsed.values.get("oneshot"):
            assert each.parsed["port"] == 8080


def test_master_reads_its_configuration() -> None:
    allow = {"namespaces": ["a-*"], "labels": ["b.example/*"]}
    values = {
        "startupTaints": ["c.example/new"],
        "trust": {"enforce": True, "allow": [allow]},
        "master": {"config": {"removalGuard": {"lostNodes": 7}}},
    }

    loaded = master_config.load(file=_file(values, "master"))

    assert loaded.warnings == ()
    assert loaded.config.startup_taints == ("c.example/new",)
    assert loaded.config.removal_guard.lost_nodes == 7
    assert loaded.config.trust.enforce
    assert loaded.config.trust.allow == (
        TrustRule(namespaces=("a-*",), labels=("b.example/*",)),
    )


def test_worker_reads_its_configuration() -> None:
    values = {
        "labelNamespaces": ["a.example"],
        "worker": {"config": {"sources": {"pci": {"deviceClassWhitelist": ["03"]}}}},
    }

    loaded = worker_config.load(installed(), file=_file(values, "worker"))

    assert loaded.warnings == ()
    assert loaded.core.label_namespaces == ("a.example",)


def test_profiles_are_united_with_the_configuration() -> None:
    """What two operators want, and what the user wants, side by side."""
    values = {
        "profiles": ["gpu-operator", "network-operator"],
        "worker": {"config": {"sources": {"pci": {"deviceClassWhitelist": ["12"]}}}},
    }

    loaded = worker_config.load(installed(), file=_file(values, "worker"))

    pci = loaded.sources["pci"]
    assert {"0200", "0302", "12"} <= set(pci.device_class_whitelist)
    assert "vendor" in pci.device_label_formats


def test_schema_knows_every_profile() -> None:
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())

    assert schema["properties"]["profiles"]["items"] == {"enum": [*profile_names()]}


def test_defaults_are_the_agents() -> None:
    """A component that runs without the chart does the same."""
    assert tuple(VALUES["labelNamespaces"]) == worker_config.DEFAULT_NAMESPACES
    assert tuple(VALUES["startupTaints"]) == master_config.MasterConfig().startup_taints
    assert tuple(VALUES["worker"]["ownerRefs"]) == worker_config.DEFAULT_OWNERS


def _start(
    manifests: list[Manifest], name: str, pod: Manifest, container: Manifest
) -> Started:
    (program,) = container["command"]
    parsed = FLAGS[program].parse(container["args"])
    mounts = {m["mountPath"].rstrip("/"): m for m in container.get("volumeMounts", ())}
    return Started(
        name,
        program,
        parsed,
        {e["name"]: e.get("value", "a-field") for e in container.get("env", ())},
        mounts,
        _config_file(manifests, pod, mounts, parsed.values.get("config", "")),
    )


def _config_file(
    manifests: list[Manifest], pod: Manifest, mounts: dict[str, Manifest], path: str
) -> str | None:
    """Return what is mounted where a program looks for its configuration."""
    folder, _, file = path.rpartition("/")
    mount = mounts.get(folder)
    if mount is None:
        return None
    (volume,) = (v for v in pod["volumes"] if v["name"] == mount["name"])
    found = only(manifests, "ConfigMap", volume["configMap"]["name"])
    return str(found["data"][file])


def _worker_config(each: Started) -> WorkerConfig:
    overrides = worker.overrides(each.parsed)
    return worker_config.load(installed(), file=each.text, overrides=overrides)


def _file(values: dict[str, Any], component: str) -> str:
    configuration = only(render(values), "ConfigMap", f"-{component}-conf")
    return str(configuration["data"][f"nfd-{component}.conf"])
