"""What the chart hands to the agents is what they read."""

from typing import Any

import pytest
import yaml

from nfd.config import worker as worker_config
from nfd.master import config as master_config
from nfd.master.merging import TrustRule
from nfd.registry import installed
from tests.deploy.chart import CHART, only, render

pytestmark = pytest.mark.usefixtures("helm")

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())


def _file(values: dict[str, Any], component: str) -> str:
    configuration = only(render(values), "ConfigMap", f"-{component}-conf")
    return str(configuration["data"][f"nfd-{component}.conf"])


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


def test_defaults_are_the_agents() -> None:
    """A component that runs without the chart does the same."""
    assert tuple(VALUES["labelNamespaces"]) == worker_config.DEFAULT_NAMESPACES
    assert tuple(VALUES["startupTaints"]) == master_config.MasterConfig().startup_taints
    assert tuple(VALUES["worker"]["ownerRefs"]) == worker_config.DEFAULT_OWNERS
