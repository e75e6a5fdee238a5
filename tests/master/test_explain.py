"""`nfd explain KEY --node NAME` on the fake API server."""

import json
from pathlib import Path

import pytest

from nfd.cli import main
from nfd.features import Features
from nfd.kube.resources import NODEFEATURERULES, NODEFEATURES, NODES
from nfd.labels import FEATURE_NS
from nfd.publish.nodefeature import STALE
from tests.cli.test_fleet import kubeconfig_of
from tests.fakeapi.server import FakeApi
from tests.master.agents import ours, running
from tests.master.test_controller import RULE
from tests.master.test_fleet import feature


def explained(
    api: FakeApi, folder: Path, capsys: pytest.CaptureFixture[str], key: str
) -> tuple[int, dict[str, list[str]]]:
    path = folder / "kubeconfig"
    path.write_text(kubeconfig_of(api))
    words = ["explain", key, "--node", "n1", "--kubeconfig", str(path), "-o", "json"]
    status = main(words)
    facts: dict[str, list[str]] = json.loads(capsys.readouterr().out)["facts"]
    return status, facts


def test_label_of_a_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rule, features read, writer, tracking; the NodeFeature and its staleness."""
    with FakeApi() as api:
        api.node("n1", {"host": "n1"})
        made = feature("n1")
        made["metadata"]["annotations"][STALE] = '{"pci":"2026-01-01T00:00:00Z"}'
        api.put(NODEFEATURES, made)
        api.put(NODEFEATURERULES, RULE)
        with running(api):
            api.wait_for(lambda: "gpu" in ours(api, "n1"))

        status, facts = explained(api, tmp_path, capsys, "gpu")

    assert status == 0
    assert facts["on the node"] == ["'true'"]
    assert facts["rule"] == ["'gpu' of NodeFeatureRule gpu"]
    assert facts["reads"] == ["pci.device"]
    assert facts["written by"] == ["nfd-master"]
    assert facts["tracked"] == ["yes, in nfd.node.kubernetes.io/feature-labels"]
    assert facts["NodeFeature"] == ['nfd/n1, stale: {"pci":"2026-01-01T00:00:00Z"}']


def test_absent_label_names_the_term_that_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeApi() as api:
        api.node("n1", {"host": "n1"})
        other = Features.of(instances={"pci.device": [{"vendor": "8086"}]})
        api.put(NODEFEATURES, feature("n1", {}, other))
        api.put(NODEFEATURERULES, RULE)

        status, facts = explained(api, tmp_path, capsys, f"{FEATURE_NS}/gpu")

    assert status == 1
    assert facts["wanted"] == ["by nobody"]
    assert facts["rule"] == ["'gpu' of gpu: no"]
    assert any("vendor In 10de: is '8086'" in line for line in facts["because"])


def test_key_held_by_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who holds it, with which value, and what will become of it."""
    with FakeApi() as api:
        api.node("n1", {"host": "n1"})
        node = api.get(NODES, "n1")
        node["metadata"]["labels"][f"{FEATURE_NS}/a"] = "theirs"
        api.put(NODES, node, manager="somebody")
        api.put(NODEFEATURES, feature("n1"))

        status, facts = explained(api, tmp_path, capsys, "a")

    assert status == 0
    assert facts["wanted"] == ["'1'"]
    assert facts["from"] == ["NodeFeature nfd/n1"]
    assert facts["held by"] == ["somebody: 'theirs', which will be taken over"]
