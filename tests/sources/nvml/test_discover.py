"""What cannot be asked costs only itself; a driver may come and go."""

import errno
from pathlib import Path

import attrs
import pytest

from nfd.discovery import SourceResult, run_source
from nfd.errors import NfdError, NotPresentError, NotReadyError
from nfd.features import Features
from nfd.hostroot import HostRoot, Recorder
from nfd.worker.memory import Remembered, read_back_features, recall
from nfd_sources.nvml import NvmlSettings, NvmlSource
from nfd_sources.nvml.library import NvmlError
from tests.sources.nvml.fakes import (
    FakeDevice,
    FakeNvml,
    FakeSession,
    discover,
    gpu_host,
    live_root,
    placed,
    texts,
)
from tests.sources.roots import failing, make_root

A100 = FakeDevice("NVIDIA A100-SXM4-80GB", 81920)
GONE = NvmlError("LIBRARY_NOT_FOUND", "libnvidia-ml.so.1: no such file")


def device(folder: Path, gpu: FakeDevice) -> dict[str, str]:
    (found,) = discover(folder, gpu).instances["nvml.device"]
    return dict(found)


def test_what_is_said_of_a_gpu(tmp_path: Path) -> None:
    gpu = attrs.evolve(A100, clique=("c0ffee", 7), chip_link=True)

    assert device(tmp_path, gpu) == {
        "address": "0000:01:00.0",
        "uuid": "GPU-1",
        "name": "NVIDIA A100-SXM4-80GB",
        "kind": "compute",
        "class": "0302",
        "memory": "81920",
        "compute.major": "8",
        "compute.minor": "0",
        "family": "ampere",
        "mig.capable": "true",
        "mig.enabled": "false",
        "fabric.cluster": "c0ffee",
        "fabric.clique": "7",
        "c2c": "true",
        "health": "ok",
    }


def test_unified_memory(tmp_path: Path) -> None:
    """GB10 and others answer NOT_SUPPORTED: no memory, no complaint."""
    gb10 = FakeDevice("NVIDIA GB10", cc=(12, 1), errors={"memory": "NOT_SUPPORTED"})
    features = discover(tmp_path, gb10)
    labels = texts(NvmlSource().labels(features, NvmlSettings()))

    assert features.unknown == {}
    assert labels["gpu.family"] == "blackwell"
    assert not [name for name in labels if name.endswith("memory")]


def test_one_bad_device_of_eight(tmp_path: Path) -> None:
    """H53: labels from seven, and the first one is named."""
    listed = placed([A100] * 8)
    bad = NvmlError("UNKNOWN", "Unknown Error")
    session = FakeSession([bad, *listed[1:]])
    features = discover(tmp_path, *[A100] * 8, session=session)
    labels = texts(NvmlSource().labels(features, NvmlSettings()))

    assert labels["gpu.count"] == "7"
    assert labels["gpu.product"] == "NVIDIA-A100-SXM4-80GB"
    assert features.notes["nvml.device/index 0"] == "Unknown Error"
    assert "index 0" in features.unknown["nvml.device"]


@pytest.mark.parametrize(
    ("method", "lost"),
    [
        ("memory", {"memory"}),
        ("uuid", {"uuid"}),
        ("compute_capability", {"compute.major", "compute.minor", "family"}),
        ("mig_enabled", {"mig.capable", "mig.enabled"}),
        ("bus_id", {"address", "class"}),
        ("name", {"name"}),
        ("c2c", {"c2c"}),
    ],
)
def test_one_bad_question(tmp_path: Path, method: str, lost: set[str]) -> None:
    good = device(tmp_path / "good", A100)
    bad = attrs.evolve(A100, errors={method: "GPU_IS_LOST"})
    features = discover(tmp_path / "bad", bad)
    (found,) = features.instances["nvml.device"]

    assert dict(found) == {k: v for k, v in good.items() if k not in lost} | {
        "health": "degraded"
    }
    assert "nvml.device" in features.unknown


def test_bad_versions_cost_only_themselves(tmp_path: Path) -> None:
    listed = placed([A100])
    errors = {"driver_version": "UNKNOWN", "cuda_version": "NOT_SUPPORTED"}
    features = discover(tmp_path, A100, session=FakeSession(listed, errors=errors))
    labels = texts(NvmlSource().labels(features, NvmlSettings()))

    assert not [name for name in labels if name.startswith("cuda.")]
    assert labels["gpu.count"] == "1"
    assert set(features.unknown) == {"nvml.driver"}


def test_odd_version_is_refused(tmp_path: Path) -> None:
    session = FakeSession(placed([A100]), version="1.2.3.4")
    features = discover(tmp_path, A100, session=session)

    assert "version" not in features.attributes["nvml.driver"]
    assert "2 or 3 parts" in features.notes["nvml.driver/version"]


def test_no_count_is_a_failure(tmp_path: Path) -> None:
    session = FakeSession([], errors={"device_count": "UNKNOWN"})
    with pytest.raises(NfdError, match="number of GPUs") as caught:
        discover(tmp_path, A100, session=session)

    assert not isinstance(caught.value, NotPresentError)
    assert session.closed


def test_no_access_to_the_device_files(tmp_path: Path) -> None:
    """NVML then sees nothing, while the bus has GPUs bound to the driver."""
    with pytest.raises(NotReadyError, match="device files"):
        discover(tmp_path, A100, session=FakeSession([]))


def test_gpus_passed_through(tmp_path: Path) -> None:
    """All GPUs belong to vfio-pci: NVML sees none, and there are no device labels."""
    source = FakeNvml()
    source.answer = FakeSession([])
    host = gpu_host(tmp_path, placed([A100]))
    driver = tmp_path / "sys/bus/pci/devices/0000:01:00.0/driver"
    driver.unlink()
    driver.symlink_to("../../../bus/pci/drivers/vfio-pci")
    features = source.discover(host, NvmlSettings())

    assert texts(source.labels(features, NvmlSettings())) == {"vgpu.present": "false"}


def test_nothing_is_asked_without_a_gpu(tmp_path: Path) -> None:
    """An audio function alone is no GPU."""
    source = FakeNvml()
    files = {"vendor": "0x10de", "class": "0x040300", "device": "0x228e"}
    base = "/sys/bus/pci/devices/0000:09:00.1"
    host = make_root(tmp_path, {f"{base}/{k}": v for k, v in files.items()})
    with pytest.raises(NotPresentError, match="no NVIDIA GPU") as caught:
        source.discover(host, NvmlSettings())

    assert not isinstance(caught.value, NotReadyError)
    assert source.asked == 0


def test_asked_for_without_a_gpu_on_the_bus(tmp_path: Path) -> None:
    """As on WSL, where the GPU is no PCI device."""
    source = FakeNvml()
    source.answer = FakeSession(placed([A100]))
    host = live_root(tmp_path)
    features = source.discover(host, NvmlSettings(always=True))

    assert len(features.instances["nvml.device"]) == 1
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/dxg").touch()
    assert source.discover(host, NvmlSettings()).instances == features.instances


def test_captures_have_no_nvml(tmp_path: Path) -> None:
    gpu_host(tmp_path, placed([A100])).close()
    source = FakeNvml()
    with pytest.raises(NotPresentError, match="capture"):
        source.discover(HostRoot(str(tmp_path), live=False), NvmlSettings())

    assert source.asked == 0


def test_captures_replay_what_was_recorded(tmp_path: Path) -> None:
    """A capture of a GPU node makes the labels of that node anywhere."""
    source = FakeNvml()
    source.answer = FakeSession(placed([A100, A100]))
    gpu_host(tmp_path, placed([A100, A100])).close()
    recorder = Recorder()
    with live_root(tmp_path, record=recorder) as host:
        live = run_source(host, source).features
    (tmp_path / ".nfd").mkdir()
    (tmp_path / ".nfd/nvml").write_text(recorder.facts["nvml"])
    with HostRoot(str(tmp_path), live=False) as host:
        replayed = run_source(host, NvmlSource())
        (tmp_path / ".nfd/nvml").write_text("{")
        broken = run_source(host, NvmlSource())

    assert replayed.features == live
    assert source.asked == 1
    assert broken.status == "failed"
    assert "/.nfd/nvml" in broken.error


def test_unreadable_vendor_is_no_absence(tmp_path: Path) -> None:
    host = gpu_host(tmp_path, placed([A100]))
    vendor = "/sys/bus/pci/devices/0000:01:00.0/vendor"
    result = run_source(failing(host, vendor, number=errno.EIO), NvmlSource())

    assert result.status == "ok"
    assert "nvml.device" in result.features.unknown


def passes(
    source: FakeNvml, host: HostRoot, memory: dict[str, Remembered], now: float
) -> tuple[SourceResult, dict[str, Remembered], dict[str, float]]:
    known = {"nvml": ("nvml.device", "nvml.mig", "nvml.driver")}
    after = recall(
        {"nvml": run_source(host, source)}, memory, known_sets=known, now=now
    )
    return after.results["nvml"], dict(after.memory), dict(after.stale)


def test_driver_comes_and_goes(tmp_path: Path) -> None:
    """H54: missing, then there, then gone again, without a restart and with one."""
    source = FakeNvml()
    session = FakeSession(placed([A100]))
    with gpu_host(tmp_path, placed([A100])) as host:
        source.answer = GONE
        first, memory, stale = passes(source, host, {}, 1.0)

        assert (first.status, first.features, stale) == ("absent", Features(), {})
        assert "no such file" in first.error

        source.answer = session
        second, memory, stale = passes(source, host, memory, 2.0)

        assert second.status == "ok"
        assert session.closed

        source.answer = GONE
        third, memory, stale = passes(source, host, memory, 3.0)

        assert third.status == "failed"
        assert third.features == second.features
        assert stale == {"nvml": 2.0}

        read_back = read_back_features(third.features, stale, 4.0)
        fourth, _, stale = passes(source, host, read_back, 5.0)

        assert fourth.features == second.features
        assert stale == {"nvml": 2.0}


def test_gpu_gone_from_the_bus_is_forgotten(tmp_path: Path) -> None:
    source = FakeNvml()
    source.answer = FakeSession(placed([A100]))
    with gpu_host(tmp_path / "with", placed([A100])) as host:
        _, memory, _ = passes(source, host, {}, 1.0)
    with gpu_host(tmp_path / "without", []) as host:
        result, memory, _ = passes(source, host, memory, 2.0)

    assert result.status == "absent"
    assert memory == {}
