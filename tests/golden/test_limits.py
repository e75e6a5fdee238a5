"""Large hosts and values that are too long."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

import nfd
from nfd.config.worker import CoreConfig, load
from nfd.labels import FEATURE_NS
from nfd.master.demand import demand_of
from nfd.publish.demand import Demand
from nfd.publish.nodefeature import Identity, build, read_back
from nfd.registry import installed
from nfd.rules.load import load_text
from nfd.rules.output import execute
from nfd.rules.policy import Policy
from nfd.worker.results import Result, publication
from tests.conftest import ROOT
from tests.sources.roots import make_root

BUDGET = 128 << 10  # bytes (case H65)
RULES = """
- name: option
  labels: {option: "true"}
  matchFeatures:
  - {feature: kernel.config, matchExpressions: {OPTION_8999: {op: In, value: ["y"]}}}
- name: modules
  labelsTemplate: "{{ range .kernel.loadedmodule }}{{ .Name }}=true{{ end }}"
  matchFeatures:
  - {feature: kernel.loadedmodule, matchExpressions: {module_249: {op: Exists}}}
- name: no-such-option
  labels: {none: "true"}
  matchFeatures:
  - {feature: kernel.config, matchExpressions: {OPTION_9000: {op: DoesNotExist}}}
- name: functions
  labelsTemplate: "vfs={{ len .pci.device }}"
  matchFeatures:
  - {feature: pci.device, matchExpressions: {driver: {op: In, value: [iavf]}}}
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> nfd.Discovery:
    """A server with 9,000 kernel options, 250 modules, 256 virtual functions."""
    folder = tmp_path_factory.mktemp("hosts")
    host = runpy.run_path(str(ROOT / "fixtures" / "hosttree.py"))["HostTree"]("large")
    host.kernel(
        "6.1.0",
        config="\n".join(f"CONFIG_OPTION_{n}=y" for n in range(9000)),
        modules=" ".join(f"module_{n}" for n in range(250)),
        builtin=" ".join(f"drivers/builtin_{n}" for n in range(400)),
    )
    for number in range(256):
        path = host.pci(
            f"0000:b1:{number // 8:02x}.{number % 8}",
            "020000 8086:1889 8086:0000",
            "iavf",
            numa=0,
            group=number,
        )
        host.net(f"ens9f0v{number}", path)
    host.write(str(folder))
    return nfd.scan(folder / "large")


def published(
    found: nfd.Discovery, core: CoreConfig, demand: Demand | None
) -> dict[str, Any]:
    """Build the NodeFeature that a worker writes."""
    result = Result(found.features, found.labels)
    said = publication("node-1", result, core, demand)
    return build(said, Identity("nfd", "1"), ())


def size(made: dict[str, Any]) -> int:
    return len(json.dumps(made, separators=(",", ":")))


def test_a_large_server_is_found_whole(large: nfd.Discovery) -> None:
    features = large.features

    assert len(features.instances["pci.device"]) == 256
    assert len(features.attributes["kernel.config"]) == 9000
    assert len(features.flags["kernel.enabledmodule"]) == 650


def test_a_large_server_fits_and_its_rules_match(large: nfd.Discovery) -> None:
    """Case H65: the worker publishes of the bulky sets what the rules read."""
    rules = load_text(RULES, "rules.yaml").rules
    whole = published(large, CoreConfig(), None)
    small = published(large, CoreConfig(), demand_of(rules))
    expected = execute(rules, large.features, Policy())

    assert size(small) < BUDGET < size(whole)
    assert len(expected.labels) == 4
    assert expected.to_plain() == (
        execute(rules, read_back(small).features, Policy()).to_plain()
    )
    for key in ("pci.device", "network.device"):
        instances = small["spec"]["features"]["instances"]

        assert len(instances[key]["elements"]) == 256


def test_sets_that_are_not_to_be_published(large: nfd.Discovery) -> None:
    """Case H65: spaces do not matter, and labels do not change."""
    text = 'core: {noPublishFeatures: [" pci.device ", "kernel.*"]}'
    core = load(installed(), file=text).core
    made = published(large, core, None)
    keys = {k for kind in made["spec"]["features"].values() for k in kind}

    assert "pci.device" not in keys
    assert not any(key.startswith("kernel.") for key in keys)
    assert "network.device" in keys
    assert {k: v.value for k, v in large.labels.items()} == made["spec"]["labels"]


def test_release_too_long_for_a_label_is_refused_with_the_reason(
    tmp_path: Path,
) -> None:
    release = "6.8.0-" + 70 * "x"
    make_root(tmp_path, {"/proc/sys/kernel/osrelease": release})
    found = nfd.scan(tmp_path, sources="kernel")
    (refusal,) = found.refused

    assert refusal.key == f"{FEATURE_NS}/kernel-version.full"
    assert "76 characters" in refusal.reason
    assert found.features.attributes["kernel.version"]["full"] == release
    assert found.labels[f"{FEATURE_NS}/kernel-version.major"].value == "6"


def test_invalid_value_of_features_d_is_refused_with_the_reason(
    tmp_path: Path,
) -> None:
    folder = "/etc/kubernetes/node-feature-discovery/features.d"
    make_root(tmp_path, {f"{folder}/a": "bad=a b\ngood=1\n"})
    found = nfd.scan(tmp_path, sources="local")

    assert list(found.labels) == ["good"]
    assert [refusal.key for refusal in found.refused] == ["bad"]
