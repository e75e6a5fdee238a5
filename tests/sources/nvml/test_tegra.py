"""Tegra chips: the GPU is no PCI device, and CUDA tells of it instead of NVML."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from nfd.discovery import run_source
from nfd.hostroot import HostRoot
from nfd_sources.nvml import NvmlSettings, NvmlSource
from nfd_sources.nvml.library import NvmlError, Session
from tests.sources.nvml.conftest import Build
from tests.sources.nvml.fakes import (
    FakeDevice,
    FakeNvml,
    FakeSession,
    live_root,
    texts,
)

ORIN = {
    "cuda.driver-version.full": "unknown.unknown.unknown",
    "cuda.driver-version.major": "unknown",
    "cuda.driver-version.minor": "unknown",
    "cuda.driver-version.revision": "unknown",
    "cuda.driver.major": "unknown",
    "cuda.driver.minor": "unknown",
    "cuda.driver.rev": "unknown",
    "cuda.runtime-version.full": "12.6",
    "cuda.runtime-version.major": "12",
    "cuda.runtime-version.minor": "6",
    "cuda.runtime.major": "12",
    "cuda.runtime.minor": "6",
    "gpu.Orin.count": "1",
    "gpu.Orin.memory": "30697",
    "gpu.compute.major": "8",
    "gpu.compute.minor": "7",
    "gpu.count": "1",
    "gpu.family": "ampere",
    "gpu.machine": "unknown",
    "gpu.memory": "30697",
    "gpu.mode": "unknown",
    "gpu.product": "Orin",
    "gpu.replicas": "1",
    "gpu.sharing-strategy": "none",
    "mig.capable": "false",
    "mps.capable": "false",
    "vgpu.present": "false",
}


@pytest.fixture
def jetson(tmp_path: Path, build: Build) -> Iterable[HostRoot]:
    """A host that calls itself a Tegra, with the stub as its libcuda."""
    folder = tmp_path / "usr/lib/aarch64-linux-gnu/tegra"
    folder.mkdir(parents=True)
    build("cudastub.c", "libcuda.so.1", folder)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/nv_tegra_release").write_text("# R36 (release)\n")
    with live_root(tmp_path) as host:
        yield host


class Jetson(FakeNvml):
    """NVML is what `answer` says, CUDA is real."""

    def _connect(self, paths: Iterable[str]) -> Session:
        return super()._connect(["libnvidia-ml.so.1", *paths])


def test_without_nvml(jetson: HostRoot) -> None:
    settings = NvmlSettings(driver_root="/")
    source = Jetson()
    result = run_source(jetson, source, settings)

    assert result.features.unknown == {}
    assert texts(source.labels(result.features, settings)) == ORIN


@pytest.mark.parametrize("name", ["Orin (nvgpu)", "NVIDIA Thor"])
def test_nvml_knows_its_name_only(jetson: HostRoot, name: str) -> None:
    source = Jetson()
    source.answer = FakeSession([FakeDevice(name, errors={"memory": "UNKNOWN"})])
    result = run_source(jetson, source, NvmlSettings(driver_root="/"))
    (device,) = result.features.instances["nvml.device"]

    assert device["name"] == "Orin"
    assert source.answer.closed


def test_cuda_that_does_not_start(
    jetson: HostRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDASTUB", "999")
    result = run_source(jetson, Jetson(), NvmlSettings(driver_root="/"))

    assert (result.status, result.not_ready) == ("absent", True)
    assert "CUDA error 999" in result.error


def test_family_of_the_chip(tmp_path: Path) -> None:
    family = tmp_path / "sys/devices/soc0/family"
    family.parent.mkdir(parents=True)
    for text, tried in (("Tegra\n", 1), ("Amlogic\n", 0)):
        family.write_text(text)
        source = FakeNvml()
        source.answer = NvmlError("DRIVER_NOT_LOADED")
        with live_root(tmp_path) as host:
            run_source(host, source)

        assert source.asked == tried


def test_plain_arm_servers_are_not_asked(tmp_path: Path) -> None:
    result = run_source(live_root(tmp_path), NvmlSource())

    assert result.error == "no NVIDIA GPU on the PCI bus"
