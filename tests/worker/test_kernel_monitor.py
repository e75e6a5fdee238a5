"""The kernel's device events, by pyudev on the running machine."""

import subprocess
import sys

import pytest

CODE = """
import os, subprocess, sys

def refuse(*args, **kwargs):
    sys.exit("a program is run")

subprocess.Popen = os.posix_spawn = os.fork = refuse
from nfd.worker.events import kernel_monitor
print(kernel_monitor(["pci"]).fileno())
"""


def test_it_is_set_up_without_running_a_program() -> None:
    """Neither ldconfig nor a compiler, by which ctypes would search for libudev."""
    pytest.importorskip("pyudev", reason="pyudev is not installed")
    done = subprocess.run(
        [sys.executable, "-c", CODE], check=False, capture_output=True, text=True
    )
    if "libudev.so.1" in done.stderr:
        pytest.skip("libudev is not installed")

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
