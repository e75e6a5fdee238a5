"""Large hosts and values that are too long."""

import json
import runpy
from pathlib import Path

import nfd
from nfd.features import Features
from nfd.labels import FEATURE_NS
from tests.conftest import ROOT
from tests.sources.roots import make_root

BULKY = {"kernel.config", "kernel.enabledmodule", "kernel.loadedmodule"}
BUDGET = 128 << 10  # bytes, for what is left when the master asks for no bulky set


def size(features: Features) -> int:
    return len(json.dumps(features.to_spec(), separators=(",", ":")))


def test_server_with_256_virtual_functions(tmp_path: Path) -> None:
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
    host.write(str(tmp_path))
    features = nfd.scan(tmp_path / "large").features

    assert len(features.instances["pci.device"]) == 256
    assert len(features.attributes["kernel.config"]) == 9000
    assert len(features.flags["kernel.enabledmodule"]) == 650
    assert size(features.only(set(features.keys()) - BULKY)) < BUDGET < size(features)


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
