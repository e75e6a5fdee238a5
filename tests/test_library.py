"""The library as a program uses it; mypy checks this file as a user's code."""

from pathlib import Path

import pytest

import nfd
from nfd.config.worker import load
from nfd.errors import ConfigError, HostError
from tests import tiny

NS = "feature.node.kubernetes.io"


def gpu_addresses(root: str) -> list[str]:
    """List the addresses of NVIDIA devices: the example of docs/library.md."""
    found: nfd.Discovery = nfd.scan(root, sources=["pci"])
    features: nfd.Features = found.features
    return [
        device["address"]
        for device in features.instances.get("pci.device", ())
        if device["vendor"] == "10de"
    ]


def test_example(host_dir: Path) -> None:
    assert gpu_addresses(str(host_dir / "gpu-server-a100"))
    assert gpu_addresses(str(host_dir / "empty-root")) == []


def test_typed_results(host_dir: Path) -> None:
    found = nfd.scan(host_dir / "gpu-server-a100")

    label: nfd.Label = found.labels[f"{NS}/pci-10de.present"]
    made: nfd.Provenance = label.provenance
    result: nfd.SourceResult = found.results["pci"]
    assert (label.value, made.source, made.feature) == ("true", "pci", "pci.device")
    assert result.status == "ok"
    assert found.failed == ()


def test_configuration_as_data(host_dir: Path) -> None:
    found = nfd.scan(
        host_dir / "gpu-server-a100",
        sources="pci",
        config={"sources": {"pci": {"deviceLabelFormats": ["vendor"], "x": 1}}},
    )

    assert f"{NS}/pci-10de.present" in found.labels
    assert not any("pci-0302" in key for key in found.labels)
    assert any("sources.pci.x: unknown key" in text for text in found.warnings)


def test_decoded_configuration_and_own_sources(tmp_path: Path) -> None:
    registry = tiny.registry(tiny.TinySource)
    config = load(registry, file="sources: {tiny: {names: [a]}}")
    with tiny.host(tmp_path, {"/etc/tiny": "x"}) as host:
        found = nfd.scan(host, config=config, registry=registry)

    assert list(found.labels) == [f"{NS}/tiny-a"]


def test_worker_rules_of_the_configuration(host_dir: Path) -> None:
    rule = {
        "name": "gpus",
        "labels": {"example.com/gpu": "yes"},
        "matchFeatures": [
            {"feature": "pci.device", "matchExpressions": {"vendor": "10de"}}
        ],
    }

    found = nfd.scan(
        host_dir / "gpu-server-a100", config={"sources": {"custom": [rule]}}
    )

    label = found.labels["example.com/gpu"]
    assert (label.value, label.provenance.rule) == ("yes", "gpus")


def test_rules_need_the_label_source_custom(host_dir: Path) -> None:
    root = host_dir / "gpu-server-a100"

    with_rules = nfd.scan(root).labels
    without = nfd.scan(root, config={"core": {"labelSources": ["all", "-custom"]}})

    assert "rdma.capable" in with_rules
    assert "rdma.capable" not in without.labels


def test_rule_files_of_the_host(tmp_path: Path) -> None:
    folder = "/etc/kubernetes/node-feature-discovery/custom.d"
    files = {
        f"{folder}/a.yaml": "- name: always\n  labels: {x.io/always: 'true'}\n",
        f"{folder}/b.yaml": "- nonsense: 1\n",
    }
    with tiny.host(tmp_path, files) as host:
        found = nfd.scan(host, sources="pci")

    assert found.labels["x.io/always"].value == "true"
    assert any("b.yaml" in text for text in found.warnings)


def test_errors_are_nfd_errors(tmp_path: Path) -> None:
    with pytest.raises(HostError):
        nfd.scan(tmp_path / "missing")
    with pytest.raises(ConfigError, match=r"^core\.noPublish: "):
        nfd.scan(tmp_path, config={"core": {"noPublish": "maybe"}})
    with pytest.raises(nfd.NfdError):
        nfd.scan(tmp_path, config={"sources": {"custom": [{"matchFeatures": 5}]}})


def test_names_are_there_and_others_are_not() -> None:
    for name in dir(nfd):
        assert getattr(nfd, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        getattr(nfd, "nope")  # noqa: B009 - mypy would see through nfd.nope
