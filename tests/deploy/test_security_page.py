"""docs/security.md lists the rights that the chart gives, no more and no fewer."""

import re
from typing import Any

import pytest

from tests.deploy.chart import ROOT, Manifest, render, rules

pytestmark = pytest.mark.usefixtures("helm")

NAME = "nfd-node-feature-discovery"
COMPONENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "master": (NAME, {}),
    "worker (`nodefeature,node`)": (f"{NAME}-worker", {}),
    "worker (`nodefeature`)": (f"{NAME}-worker", {"publish": "nodefeature"}),
    "worker (`node`)": (f"{NAME}-worker", {"publish": "node"}),
    "gc": (f"{NAME}-gc", {"gc": {"enable": True}}),
    "prune": (f"{NAME}-prune", {}),
}


def test_rights_are_the_charts() -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    rows = set(
        re.findall(r"^\| [^|]+ \| (?:cluster|namespace) \|.*\|$", text, re.MULTILINE)
    )

    assert rows == {
        row
        for component, (account, values) in COMPONENTS.items()
        for row in _rows(component, render(values), account)
    }


def _rows(component: str, manifests: list[Manifest], account: str) -> list[str]:
    return [
        f"| {component} | {'cluster' if kind == 'ClusterRole' else 'namespace'} "
        f"| {_resources(rule)} | {', '.join(verbs)} |"
        for kind, verbs, rule in rules(manifests, account)
    ]


def _resources(rule: Manifest) -> str:
    names = ", ".join(rule["resources"])
    only = ", ".join(f"`{name}`" for name in rule.get("resourceNames", []))
    return f"{names} {only}".strip()
