"""Dashboard and alerts use metrics that the agents have, and the manual names all."""

import json
import re
from pathlib import Path

import yaml
from prometheus_client import CollectorRegistry

from nfd.master.metrics import CollectionMetrics, Figures, Metrics
from nfd.worker.status import Status
from nfd.worker.troubles import Troubles

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "monitoring"
NAME = re.compile(r"\bnfd_(?:master|gc)_\w+")


def served() -> set[str]:
    registry = CollectorRegistry()
    CollectionMetrics(registry, build_info=True)
    families = [*Metrics(Figures).registry.collect(), *registry.collect()]
    names = set()
    for family in families:
        if family.type == "counter":
            names.add(f"{family.name}_total")
        elif family.type == "histogram":
            names |= {family.name, f"{family.name}_bucket"}
        else:
            names.add(family.name)
    return names


def test_alerts_use_what_is_served() -> None:
    rules = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["spec"]["groups"]
    expressions = [rule["expr"] for group in rules for rule in group["rules"]]

    used = {name for text in expressions for name in NAME.findall(text)}

    assert used
    assert used <= served()


def test_alerts_about_workers_use_what_is_served() -> None:
    status = Status(node="n", troubles=Troubles(None, lambda: 0.0), publisher=None)
    known = re.findall(r"# TYPE (\S+)", status.metrics().body)
    used = re.findall(r"\bnfd_worker_\w+", (FOLDER / "alerts.yaml").read_text())

    assert used
    assert set(used) <= set(known)


def test_chart_has_the_same_alerts() -> None:
    chart = ROOT / "deploy" / "helm" / "node-feature-discovery" / "alerts.yaml"

    assert chart.read_text() == (FOLDER / "alerts.yaml").read_text()


def test_dashboard_uses_what_is_served() -> None:
    board = json.loads((FOLDER / "grafana-master.json").read_text())
    expressions = [t["expr"] for panel in board["panels"] for t in panel["targets"]]

    used = {name for text in expressions for name in NAME.findall(text)}

    assert used <= served()
    assert len(board["panels"]) == len({p["id"] for p in board["panels"]})


def test_manual_names_every_metric() -> None:
    manual = (ROOT / "docs" / "master.md").read_text()

    missing = {n for n in served() if n.removesuffix("_bucket") not in manual}

    assert missing == set()
