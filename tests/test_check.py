"""Whether programs find the labels they need, and profiles as configuration."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import nfd
from nfd.check import check
from nfd.cli import main
from nfd.config.worker import decode_tree, with_profiles
from nfd.custom import config_rules_of
from nfd.discovery import Discovery
from nfd.errors import NfdError, UsageError
from nfd.profile import (
    Wanted,
    load_profiles,
    parse_profile,
    profile_config,
    profile_names,
    unite,
)
from nfd.registry import installed

FEATURE = "feature.node.kubernetes.io"
GPU_NODE = {
    f"{FEATURE}/pci-10de.present": "true",
    f"{FEATURE}/kernel-version.full": "6.8.0",
    f"{FEATURE}/system-os_release.ID": "ubuntu",
    f"{FEATURE}/system-os_release.VERSION_ID": "24.04",
}
CAPTURES = {
    "x86-nvidia-dgx-a100": {
        "gpu-operator": "broken",  # the capture has no os-release and no kernel version
        "nvidia-device-plugin": "ok",
        "nvidia-dra-driver": "ok",
        "amd": "not needed",
    },
    "x86-amd-ryzen1600-desktop": {"gpu-operator": "not needed", "amd": "broken"},
    "x86-dell-r910-ib-numa": {"gpu-operator": "not needed", "amd": "not needed"},
}


def verdicts(
    labels: Mapping[str, str], found: Discovery | None = None
) -> dict[str, str]:
    features = None if found is None else found.features
    return {
        profile.name: check(profile, labels, features).verdict
        for profile in load_profiles(profile_names())
    }


def labels_of(found: Discovery) -> dict[str, str]:
    return {key: label.value for key, label in found.labels.items()}


def test_there_are_profiles() -> None:
    assert {"gpu-operator", "network-operator", "amd", "intel"} <= set(profile_names())


@pytest.mark.parametrize("name", profile_names())
def test_profiles_fit_the_sources(name: str) -> None:
    """What a profile says exists: devices, settings, and rules that are valid."""
    (profile,) = load_profiles([name])
    config = with_profiles(None, [name], installed())

    assert profile.needs
    assert all(need.without and need.made_by for need in profile.needs)
    assert bool(profile.hardware) == bool(profile.devices) == bool(profile.signs)
    assert config.warnings == ()
    assert config_rules_of(config.custom) is not None
    assert decode_tree(profile.config, installed()).warnings == ()


@pytest.mark.parametrize("lost", sorted(GPU_NODE))
def test_gpu_operator_breaks_without_any_of_its_labels(lost: str) -> None:
    labels = {key: value for key, value in GPU_NODE.items() if key != lost}
    (profile,) = load_profiles(["gpu-operator"])
    result = check(profile, {**labels, "nvidia.com/gpu.product": "A100"})

    assert check(profile, GPU_NODE).verdict == "ok"
    assert result.verdict == "broken"
    assert [str(n.need.any_of[0].key) for n in result.missing] == [lost]


@pytest.mark.parametrize("key", ["pci-10de_2237.present", "pci-0302_10de_2237.present"])
def test_other_shapes_do_not_count(key: str) -> None:
    """gpu-operator#78 and others: a sign of a GPU, but not a label that is read."""
    labels = {**GPU_NODE, f"{FEATURE}/{key}": "true"}
    del labels[f"{FEATURE}/pci-10de.present"]

    assert verdicts(labels)["gpu-operator"] == "broken"


def test_values_are_exact() -> None:
    assert verdicts({**GPU_NODE, f"{FEATURE}/pci-10de.present": "True"})[
        "gpu-operator"
    ] == ("broken")


def test_class_and_vendor_is_not_enough_for_the_device_plugin() -> None:
    labels = {f"{FEATURE}/pci-0302_10de.present": "true"}

    assert verdicts(labels)["nvidia-device-plugin"] == "broken"
    assert verdicts(labels)["nvidia-dra-driver"] == "ok"


@pytest.mark.parametrize("name", CAPTURES)
def test_captures(name: str, shared_dir: Path) -> None:
    found = nfd.scan(shared_dir / "hosts" / f"{name}.tar.xz")
    told = verdicts(labels_of(found), found)

    assert CAPTURES[name].items() <= told.items()


def test_recorded_hosts(host_dir: Path) -> None:
    gpus = nfd.scan(host_dir / "gpu-server-a100")
    none = nfd.scan(host_dir / "vm-without-gpu")
    audio = nfd.scan(host_dir / "nvidia-audio-desktop")
    amd = nfd.scan(host_dir / "mi300x-server")

    assert verdicts(labels_of(gpus), gpus)["gpu-operator"] == "ok"
    assert verdicts(labels_of(gpus), gpus)["network-operator"] == "ok"
    assert set(verdicts(labels_of(none), none).values()) == {"not needed"}
    assert verdicts(labels_of(audio), audio)["gpu-operator"] == "not needed"
    assert verdicts(labels_of(amd), amd)["amd"] == "ok"


def test_wanted() -> None:
    labels = {"a/x": "1", "a/y": "2"}

    assert Wanted.of("a/*").found_in(labels) == ["a/x=1", "a/y=2"]
    assert Wanted.of("a/*=2").found_in(labels) == ["a/y=2"]
    assert Wanted.of("a/x=2").found_in(labels) == []
    assert str(Wanted.of("a/x=")) == "a/x="


def test_unknown_and_wrong_profiles() -> None:
    with pytest.raises(UsageError, match="there are amd"):
        load_profiles(["nonsense"])
    with pytest.raises(NfdError, match="profile x"):
        parse_profile("summary: x\nneeds: [{consumer: c}]\n", "x")


def test_union_of_profiles() -> None:
    """Two operators no longer fight over one configuration."""
    profiles = load_profiles(["gpu-operator", "network-operator"])
    pci = profile_config(profiles)["sources"]["pci"]

    assert {"02", "0200", "0207", "0300", "0302"} == set(pci["deviceClassWhitelist"])
    assert unite([1, 2], [2, 3]) == [1, 2, 3]


def test_profiles_add_to_a_configuration() -> None:
    """What the user has set stays; a single format becomes one of several."""
    tree: dict[str, Any] = {
        "sources": {
            "pci": {
                "deviceClassWhitelist": ["0c03"],
                "deviceLabelFields": ["class", "vendor", "device"],
            },
            "custom": [{"name": "own", "labels": {"x": "y"}}],
        }
    }
    classes = installed()
    names = ["nvidia-device-plugin", "intel"]
    config = with_profiles(decode_tree(tree, classes), names, classes)
    pci = config.sources["pci"]

    assert pci.device_class_whitelist == ("0c03", "02", "03")
    assert pci.device_label_fields is None
    assert pci.device_label_formats == ("class,vendor,device", "vendor")
    assert [rule["name"] for rule in config.custom] == ["own", "intel sgx"]


def test_defaults_need_nothing() -> None:
    config = with_profiles(None, ["gpu-operator"], installed())

    assert config.sources["pci"].device_label_formats == ("class,vendor", "vendor")


def test_scan_with_a_profile(
    host_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A narrow configuration breaks the operator, the profile mends it."""
    narrow = "{sources: {pci: {deviceLabelFields: [device], deviceClassWhitelist: []}}}"
    arguments = [
        "scan",
        "--root",
        str(host_dir / "gpu-server-a100"),
        "--options",
        narrow,
    ]
    main(arguments)
    without = capsys.readouterr().out
    main([*arguments, "--profile", "gpu-operator"])
    with_profile = capsys.readouterr().out

    assert "pci-" not in without
    assert f"{FEATURE}/pci-10de.present=true\n" in with_profile


def test_command_on_hosts(host_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = str(host_dir / "gpu-server-a100")
    narrow = "{sources: {pci: {deviceLabelFields: [device]}}}"

    assert main(["check", "--root", root, "--profile", "gpu-operator,amd"]) == 0
    told = capsys.readouterr().out
    assert "gpu-operator: ok" in told
    assert "amd: not needed, no sign of an AMD GPU" in told
    assert main(["check", "--root", root, "--options", narrow]) == 1
    told = capsys.readouterr().out
    assert "MISSING  node labelling" in told
    assert "is not configured" in told


def test_command_on_manifests(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = [
        {"kind": "Node", "metadata": {"name": "good", "labels": GPU_NODE}},
        {"kind": "Node", "metadata": {"name": "plain"}},
    ]
    file = tmp_path / "nodes.json"
    file.write_text(json.dumps({"kind": "List", "items": nodes}))

    assert main(["check", "--node", str(file), "-o", "json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert {r["profile"]: r["verdict"] for r in plain["good"]}["gpu-operator"] == "ok"
    assert {r["verdict"] for r in plain["plain"]} == {"not needed"}
    monkeypatch.setattr("sys.stdin", io.StringIO("kind: Pod\n"))
    assert main(["check", "--node", "-"]) == 1
    assert "holds no Node" in capsys.readouterr().err
    assert main(["check", "--node", str(file), "--root", "/"]) == 2
