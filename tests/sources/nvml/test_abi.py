"""The real binding, nvidia-ml-py, over a library of ours that is built from C.

The stub's structures are those of NVML's header; what it answers stands in a file.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nfd.discovery import SourceResult, run_source
from nfd_sources.nvml import NvmlSettings, NvmlSource
from nfd_sources.nvml.binding import connect
from nfd_sources.nvml.library import NvmlError
from tests.sources.nvml.conftest import Build
from tests.sources.nvml.fakes import live_root, texts

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")

STUB = "libnvidia-ml-stub.so.1"
A100 = """\
device
name NVIDIA A100-SXM4-40GB
uuid GPU-{slot}
bus 00000000:{slot}:00.0
memory 42505273344
cc 8 0
"""
SYSTEM = "driver 550.54.15\ncuda 12040\n"
MIG_1G, MIG_2G = (
    "migdevice 0 0 4864 14 1 1 1 0 0 0 0\n",
    "migdevice 1 1 9856 28 2 2 2 1 0 0 0\n",
)


@pytest.fixture(scope="session")
def library(build: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stub, built."""
    folder = tmp_path_factory.mktemp("nvmlstub")
    return build("nvmlstub.c", "libnvidia-ml.so.1", folder)


class Machine:
    """A running host whose driver is the stub."""

    def __init__(self, folder: Path, library: Path, description: Path) -> None:
        self.folder = folder
        self._library = library
        self._description = description
        self.place = folder / "usr/lib64" / STUB
        self.place.parent.mkdir(parents=True)
        self.host = live_root(folder)

    def install(self) -> None:
        shutil.copy(self._library, self.place)

    def uninstall(self) -> None:
        self.place.unlink()

    def describe(self, text: str) -> None:
        self._description.write_text(text)

    def gpus(self, *slots: str) -> None:
        for slot in slots:
            path = self.folder / f"sys/bus/pci/devices/0000:{slot}:00.0"
            path.mkdir(parents=True)
            (path / "vendor").write_text("0x10de\n")
            (path / "class").write_text("0x030200\n")
            (path / "config").write_bytes(bytes(256))

    def run(self, **settings: str) -> SourceResult:
        made = NvmlSettings(driver_root="/", **settings)  # type: ignore[arg-type] # words
        return run_source(self.host, NvmlSource(), made)

    def labels(self, **settings: str) -> dict[str, str]:
        result = self.run(**settings)
        assert result.status == "ok", result.error
        made = NvmlSettings(**settings)  # type: ignore[arg-type] # words
        return texts(NvmlSource().labels(result.features, made))


@pytest.fixture
def machine(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    # Another name, lest the driver of the machine be found when the stub is missing.
    monkeypatch.setattr("nfd_sources.nvml.reading.SONAME", STUB)
    monkeypatch.setenv("NVMLSTUB", str(tmp_path / "description"))
    return Machine(tmp_path / "host", library, tmp_path / "description")


def test_plain_gpus(machine: Machine) -> None:
    machine.gpus("07", "0f")
    machine.install()
    machine.describe(
        SYSTEM
        + A100.format(slot="0F")
        + "fabric 3 0 000102030405060708090a0b0c0d0e0f 5\nc2c 1\nmig 0\n"
        + A100.format(slot="07")
        + "fabric 3 0 000102030405060708090a0b0c0d0e0f 5\nmig 0\n"
    )
    result = machine.run()
    first, second = result.features.instances["nvml.device"]
    labels = machine.labels()

    assert result.features.unknown == {}
    assert (first["address"], second["address"]) == ("0000:07:00.0", "0000:0f:00.0")
    assert (first["uuid"], first["memory"]) == ("GPU-07", "40536")
    assert (second["c2c"], "c2c" in first) == ("true", False)
    assert labels["gpu.count"] == "2"
    assert labels["gpu.product"] == "NVIDIA-A100-SXM4-40GB"
    assert labels["gpu.family"] == "ampere"
    assert labels["gpu.mode"] == "compute"
    assert labels["gpu.clique"] == "00010203-0405-0607-0809-0a0b0c0d0e0f.5"
    assert labels["cuda.driver-version.full"] == "550.54.15"
    assert labels["cuda.runtime-version.full"] == "12.4"
    assert labels["mig.capable"] == "true"


@pytest.mark.parametrize(
    "fabric",
    [
        "2 0 000102030405060708090a0b0c0d0e0f 5",
        "3 1 000102030405060708090a0b0c0d0e0f 5",
        "3 0 00000000000000000000000000000000 5",
    ],
    ids=["in progress", "failed", "no cluster"],
)
def test_no_clique_before_the_fabric_is_there(machine: Machine, fabric: str) -> None:
    machine.gpus("07")
    machine.install()
    machine.describe(SYSTEM + A100.format(slot="07") + f"fabric {fabric}\n")

    assert "gpu.clique" not in machine.labels()


def test_fabric_of_old_drivers(machine: Machine) -> None:
    machine.gpus("07")
    machine.install()
    machine.describe(
        SYSTEM
        + A100.format(slot="07")
        + "fabric 3 0 000102030405060708090a0b0c0d0e0f 5\n"
        + "error nvmlDeviceGetGpuFabricInfoV 13\n"
    )

    assert machine.labels()["gpu.clique"].endswith("0e0f.5")


def test_mixed_mig(machine: Machine) -> None:
    machine.gpus("07", "0f")
    machine.install()
    machine.describe(
        SYSTEM
        + A100.format(slot="07")
        + f"mig 1\n{MIG_1G}{MIG_2G}{MIG_1G}{MIG_1G}"
        + A100.format(slot="0f")
        + "mig 0\n"
    )
    labels = machine.labels(mig_strategy="mixed")

    assert labels["gpu.count"] == "2"
    assert labels["mig-1g.5gb.count"] == "3"
    assert labels["mig-1g.5gb.product"] == "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"
    assert labels["mig-1g.5gb.multiprocessors"] == "14"
    assert labels["mig-2g.10gb.memory"] == "9856"
    assert labels["mig-2g.10gb.engines.copy"] == "2"
    assert labels["mig-2g.10gb.engines.decoder"] == "1"
    assert labels["mig-2g.10gb.slices.gi"] == "2"
    assert machine.labels(mig_strategy="single")["gpu.product"].endswith("MIG-INVALID")


@pytest.mark.parametrize(
    ("profiles", "name"),
    [("7 0", "1g.5gb+me"), ("2 0", "1c.3g.20gb"), ("13 0", "1g.5gb-me")],
)
def test_shapes(machine: Machine, profiles: str, name: str) -> None:
    memory = 19968 if profiles.startswith("2") else 4864
    machine.gpus("07")
    machine.install()
    machine.describe(
        SYSTEM
        + A100.format(slot="07")
        + f"mig 1\nmigdevice {profiles} {memory} 14 1 1 1 0 0 0 0\n"
    )
    (found,) = machine.run().features.instances["nvml.mig"]

    assert found["profile"] == name
    assert found["uuid"] == "MIG-GPU-07-1"


def test_one_bad_mig_device(machine: Machine) -> None:
    machine.gpus("07")
    machine.install()
    machine.describe(
        SYSTEM
        + A100.format(slot="07")
        + f"mig 1\n{MIG_1G}migdevice 99 0 4864 14 1 1 1 0 0 0 0\n"
    )
    result = machine.run()

    assert len(result.features.instances["nvml.mig"]) == 1
    assert "unknown GPU instance profile" in result.features.unknown["nvml.mig"]


def test_broken_devices(machine: Machine) -> None:
    """Errors by call: a lost GPU, and one that does not answer everything."""
    machine.gpus("07", "0f", "47")
    machine.install()
    machine.describe(
        SYSTEM
        + A100.format(slot="07")
        + "error nvmlDeviceGetHandleByIndex_v2 15\n"
        + A100.format(slot="0f")
        + "error nvmlDeviceGetMemoryInfo 3\nerror nvmlDeviceGetUUID 999\n"
        + A100.format(slot="47")
    )
    result = machine.run()
    notes = result.features.notes
    labels = machine.labels()

    assert labels["gpu.count"] == "2"
    assert labels["gpu.memory"] == "40536"
    assert "GPU_IS_LOST" in notes["nvml.device/index 0"]
    assert "UNKNOWN" in notes["nvml.device/0000:0f:00.0"]
    assert labels["mig.capable"] == "false"


@pytest.mark.parametrize(
    ("code", "name"),
    [(9, "DRIVER_NOT_LOADED"), (18, "LIB_RM_VERSION_MISMATCH"), (4, "NO_PERMISSION")],
)
def test_driver_refuses(machine: Machine, code: int, name: str) -> None:
    machine.gpus("07")
    machine.install()
    machine.describe(f"error nvmlInitWithFlags {code}\n")
    result = machine.run()

    assert (result.status, result.not_ready) == ("absent", True)
    assert name in result.error


def test_library_comes_and_goes(machine: Machine) -> None:
    """H54 through the binding: the same process sees each state."""
    machine.gpus("07")
    machine.describe(SYSTEM + A100.format(slot="07"))
    for _ in range(2):
        missing = machine.run()
        machine.install()
        there = machine.labels()
        machine.uninstall()
        gone = machine.run()

        assert (missing.status, missing.not_ready) == ("absent", True)
        assert there["gpu.count"] == "1"
        assert (gone.status, gone.not_ready) == ("absent", True)
    machine.install()
    machine.describe("driver 560.28\ncuda 12060\n" + A100.format(slot="07"))

    assert machine.labels()["cuda.driver-version.minor"] == "28"


def test_others_keep_their_session(machine: Machine) -> None:
    """A program that uses pynvml itself is not disturbed."""
    import pynvml  # noqa: PLC0415 - optional

    machine.gpus("07")
    machine.install()
    machine.describe(SYSTEM + A100.format(slot="07"))
    before = (pynvml.nvmlLib, dict(pynvml._nvmlGetFunctionPointer_cache))
    machine.labels()

    assert before == (pynvml.nvmlLib, dict(pynvml._nvmlGetFunctionPointer_cache))


def test_file_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("text")
    with pytest.raises(NvmlError, match="libnvidia-ml") as caught:
        connect([str(tmp_path / "libnvidia-ml.so.1")])

    assert caught.value.code == "LIBRARY_NOT_FOUND"


MEASURE = """
import sys
from nfd.hostroot import HostRoot
from nfd_sources.nvml import NvmlSettings, NvmlSource
source = NvmlSource()
with HostRoot(sys.argv[1], live=True) as host:
    try:
        source.labels(source.discover(host, NvmlSettings(driver_root="/")), NvmlSettings())
    except Exception as error:
        print(type(error).__name__)
print("pynvml" in sys.modules)
"""


@pytest.mark.parametrize(
    ("gpus", "expected"), [((), "NotPresentError\nFalse\n"), (("07",), "True\n")]
)
def test_imported_with_gpus_only(
    machine: Machine, gpus: tuple[str, ...], expected: str
) -> None:
    machine.gpus(*gpus)
    machine.install()
    machine.place.rename(machine.place.with_name("libnvidia-ml.so.1"))
    machine.describe(SYSTEM + A100.format(slot="07"))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(machine.folder)],
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == expected
