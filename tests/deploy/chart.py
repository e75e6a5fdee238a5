"""The chart as the real helm renders it."""

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cluster.api import documents
from tests.cluster.tools import tools

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "node-feature-discovery"
NAMESPACE = "nfd"
RELEASE = "nfd"

Manifest = dict[str, Any]


class RenderError(Exception):
    """helm refused the values; the message is helm's."""


def render(
    values: Mapping[str, Any] | None = None,
    *,
    kubernetes: str = "1.36.3",
    release: str = RELEASE,
    namespace: str = NAMESPACE,
) -> list[Manifest]:
    """Render the chart for one version of Kubernetes, hooks included.

    Raises:
        RenderError: the values are refused.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values or {}, file)
        file.flush()
        done = subprocess.run(
            [
                *(str(tools()["helm"]), "template", release, str(CHART)),
                *("--namespace", namespace, "--kube-version", kubernetes),
                *("--values", file.name),
            ],
            check=False,
            capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        raise RenderError(done.stderr)
    return list(documents(done.stdout))


def only(manifests: list[Manifest], kind: str, suffix: str = "") -> Manifest:
    """Return the one manifest of a kind whose name ends so."""
    found = [
        manifest
        for manifest in manifests
        if manifest["kind"] == kind and manifest["metadata"]["name"].endswith(suffix)
    ]
    assert len(found) == 1, [manifest["metadata"]["name"] for manifest in found]
    return found[0]


def containers(manifests: list[Manifest]) -> list[tuple[str, Manifest, Manifest]]:
    """List (object name, pod spec, container) of every workload."""
    return [
        (manifest["metadata"]["name"], pod, container)
        for manifest in manifests
        if (pod := manifest.get("spec", {}).get("template", {}).get("spec"))
        for container in pod["containers"]
    ]


def rules(
    manifests: list[Manifest], account: str
) -> list[tuple[str, list[str], dict[str, Any]]]:
    """List (kind of role, verbs, rule) of every rule that an account is given."""
    roles = {
        (manifest["kind"], manifest["metadata"]["name"]): manifest
        for manifest in manifests
        if manifest["kind"] in ("Role", "ClusterRole")
    }
    return [
        (reference["kind"], rule["verbs"], rule)
        for manifest in manifests
        if manifest["kind"].endswith("RoleBinding")
        and account in [subject["name"] for subject in manifest["subjects"]]
        for reference in [manifest["roleRef"]]
        for rule in roles[reference["kind"], reference["name"]]["rules"]
    ]
