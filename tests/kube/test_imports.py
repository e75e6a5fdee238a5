"""What importing costs: the worker's budget does not include other people's code."""

import json
import subprocess
import sys

import pytest

HEAVY = {"kubernetes", "prometheus_client", "requests", "structlog", "urllib3", "yaml"}
LAYERS = {"nfd.cli", "nfd.master", "nfd.publish", "nfd.rules", "nfd.worker"}


@pytest.mark.parametrize(
    "module",
    ["connect", "http_transport", "reflector", "lease", "events", "patch", "config"],
)
def test_nothing_heavy_is_imported(module: str) -> None:
    script = (
        f"import json, sys, nfd.kube.{module}; print(json.dumps(list(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    loaded = set(json.loads(run.stdout))

    assert set() == loaded & (HEAVY | LAYERS)
