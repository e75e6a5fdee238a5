"""The built image: `make image` builds it, unpacks it and runs these."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.image.inside import Inside

ROOT = Path(__file__).parents[2]
HOST = ROOT / "fixtures" / "hosts" / "gpu-server-a100"
GPU = "feature.node.kubernetes.io/pci-10de.present"

pytestmark = pytest.mark.image


@pytest.fixture
def image(tmp_path: Path) -> Inside:
    folder = os.environ.get("NFD_IMAGE_ROOT")
    if not folder:
        pytest.skip("needs NFD_IMAGE_ROOT, an unpacked image: run `make image`")
    if os.geteuid() != 0:
        pytest.skip("needs root, for mounts")
    return Inside(Path(folder).resolve(), tmp_path)


def test_files(image: Inside) -> None:
    """Bytecode, rights, links, libraries, commands, size."""
    done = subprocess.run(
        ["python3", str(ROOT / "deploy/image/check.py"), str(image.image)],
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout


def test_bill_of_materials(image: Inside) -> None:
    path = image.image / "usr/share/node-feature-discovery.cdx.json"
    bill = json.loads(path.read_text())
    names = {component["name"] for component in bill["components"]}

    assert {"libc6", "attrs", "google-re2", "PyYAML", "urllib3"} <= names
    assert all("hashes" in component for component in bill["components"])


def test_scan_of_a_mounted_host(image: Inside) -> None:
    """By NFD_HOST_ROOT=/host- alone."""
    done = image.run("nfd", "scan", "-o", "json", host=HOST)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["labels"][GPU] == "true"


def test_worker_once(image: Inside) -> None:
    done = image.run(
        *("nfd-worker", "-oneshot", "-publish=file", "-publish-file=/out/labels"),
        host=HOST,
        environment={"NODE_NAME": "node-1"},
    )

    assert done.returncode == 0, done.stderr
    assert GPU in (image.out / "labels").read_text()


def test_check(image: Inside) -> None:
    """It looks at the machine that runs it, so only its form is known."""
    done = image.run("nfd", "check", "-o", "json", host=HOST)

    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)


@pytest.mark.parametrize(
    "words",
    [
        ("nfd-master", "-version"),
        ("nfd-worker", "-version"),
        ("nfd-gc", "-version"),
        ("nfd", "version"),
        ("gpu-feature-discovery", "--version"),
        ("kubectl-nfd", "--help"),
    ],
)
def test_commands_start(image: Inside, words: tuple[str, ...]) -> None:
    done = image.run(*words, host=HOST)

    assert done.returncode == 0, done.stderr
    assert done.stdout + done.stderr


def test_libraries_load(image: Inside) -> None:
    """What agents import lazily is there, with the C libraries behind it."""
    code = (
        "import ssl, lzma, ctypes, structlog, urllib3, prometheus_client, pynvml, re2\n"
        "import yaml\n"
        "assert yaml.CSafeLoader\n"
        "print(ssl.OPENSSL_VERSION)"
    )
    done = image.run("python3", "-I", "-W", "error", "-c", code)

    assert done.returncode == 0, done.stderr


def test_device_events_are_heard(image: Inside) -> None:
    """Found without ldconfig or a compiler, which the image does not have."""
    code = (
        "from nfd.worker.events import kernel_monitor\n"
        "print(kernel_monitor(['pci']).fileno())"
    )
    done = image.run("python3", "-I", "-c", code)

    assert done.returncode == 0, done.stderr


def test_nothing_is_compiled_again(image: Inside) -> None:
    """Python says of every module that its bytecode served."""
    done = image.run("python3", "-I", "-v", "-c", "import nfd.cli.scan", host=HOST)
    loaded = [line for line in done.stderr.splitlines() if "code object from" in line]

    assert loaded
    assert [line for line in loaded if not line.endswith(".pyc'")] == []
