"""The same host gives the same output, whatever hash seed and order of folders."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import nfd
from tests.golden.test_hosts import HOSTS, answer
from tests.sources.roots import WatchedTree

PROGRAM = """
import json, sys, nfd
plain = nfd.scan(sys.argv[1]).to_plain(features=True)
print(json.dumps([plain["labels"], plain["features"]]))
"""
SEEDS = 50
AT_ONCE = 5


@pytest.mark.parametrize("name", HOSTS)
def test_order_of_folders(name: str, host_dir: Path) -> None:
    with nfd.HostRoot.open(str(host_dir / name)) as host:
        expected = json.dumps(answer(nfd.scan(host)))
    for seed in range(3):
        with nfd.HostRoot.open(str(host_dir / name)) as host:
            host._tree = WatchedTree(host._tree, shuffle=random.Random(seed))

            assert expected == json.dumps(answer(nfd.scan(host)))


def test_hash_seeds(host_dir: Path, tmp_path: Path) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE"
    }
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path)  # compile once, not 50 times
    command = (sys.executable, "-c", PROGRAM, str(host_dir / "hybrid-laptop"))
    outputs = set()
    for first in range(0, SEEDS, AT_ONCE):
        running = [
            subprocess.Popen(
                command,
                env={**environment, "PYTHONHASHSEED": str(seed)},
                stdout=subprocess.PIPE,
            )
            for seed in range(first, first + AT_ONCE)
        ]
        for process in running:
            output, _ = process.communicate()

            assert process.returncode == 0
            outputs.add(output)

    assert len(outputs) == 1
