"""AMD GPUs, partitions and their labels (spec/gpu.md section 2.1)."""

import errno
import tarfile
from pathlib import Path

import pytest

from nfd.errors import NotPresentError
from nfd.hostroot import HostRoot
from nfd.labels import key_problem, value_problem
from nfd_sources.amd import AmdSettings, AmdSource
from nfd_sources.amd.kfd import KfdNode, parse_properties, read_nodes
from nfd_sources.amd.models import family_of_block, family_of_isa, marketing_name
from tests.sources.amd.machines import Gpu, machine
from tests.sources.roots import failing, make_root

SOURCE = AmdSource()


def labels(host: HostRoot, *, legacy: bool = False) -> dict[str, str]:
    settings = AmdSettings(legacy_labels=legacy)
    features = SOURCE.discover(host, settings)
    made = SOURCE.labels(features, settings)
    for key, label in made.items():
        assert key_problem(key) == ""
        assert value_problem(label.value) == ""
    return {key: label.value for key, label in made.items()}


def test_whole_gpus(tmp_path: Path) -> None:
    """Eight MI300X in SPX mode: one value of everything."""
    assert labels(machine(tmp_path, *[Gpu()] * 8)) == {
        "gpu": "true",
        "gpu-mi300x": "true",
        "amd.com/gpu.family": "AI",
        "amd.com/gpu.device-id": "74a1",
        "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
        "amd.com/gpu.driver-version": "6.7.0",
        "amd.com/gpu.driver-src-version": "C0FFEE",
        "amd.com/gpu.vram": "192G",
        "amd.com/gpu.simd-count": "1216",
        "amd.com/gpu.cu-count": "304",
        "amd.com/gpu.compute-memory-partition": "spx_nps1",
        "amd.com/gpu.compute-partitioning-supported": "true",
        "amd.com/gpu.memory-partitioning-supported": "true",
    }


def test_partitions(tmp_path: Path) -> None:
    """CPX makes eight of each: all count, with their own memory and units."""
    cpx = Gpu(compute="CPX", memory="NPS4", partitions=8, mib=49152, simds=152)
    host = machine(tmp_path, cpx, cpx)
    made = labels(host, legacy=True)
    devices = SOURCE.discover(host, AmdSettings()).instances["amd.device"]

    assert len(devices) == 16
    assert [d["address"] for d in devices[:3]] == [
        "0000:05:00.0",
        "0000:05:00.1",
        "0000:05:00.2",
    ]
    assert devices[1]["parent"] == "0000:05:00.0"
    assert made["amd.com/gpu.vram"] == "48G"
    assert made["amd.com/gpu.cu-count"] == "38"
    assert made["amd.com/gpu.compute-memory-partition"] == "cpx_nps4"
    assert made["beta.amd.com/gpu.compute-memory-partition.cpx_nps4"] == "16"


def test_partition_types_are_counted(tmp_path: Path) -> None:
    """A node partitioned unevenly tells how many there are of each type."""
    dpx = Gpu(compute="DPX", partitions=2, mib=98304, simds=608)
    made = labels(machine(tmp_path, Gpu(), dpx))

    assert made["amd.com/gpu.compute-memory-partition.spx_nps1"] == "1"
    assert made["amd.com/gpu.compute-memory-partition.dpx_nps1"] == "2"
    assert "amd.com/gpu.compute-memory-partition" not in made
    assert made["amd.com/gpu.vram.192G"] == "1"
    assert made["amd.com/gpu.vram.96G"] == "2"
    assert made["amd.com/gpu.product-name"] == "AMD_Instinct_MI300X_OAM"


def test_mixed_models_and_legacy(tmp_path: Path) -> None:
    mi210 = Gpu(
        device="740f", pci_class="038000", product="AMD Instinct MI210", gfx=90010
    )
    made = labels(machine(tmp_path, Gpu(), mi210, Gpu()), legacy=True)

    assert made["gpu-mi210"] == made["gpu-mi300x"] == "true"
    assert made["amd.com/gpu.device-id.74a1"] == "2"
    assert made["amd.com/gpu.device-id.740f"] == "1"
    assert "amd.com/gpu.device-id" not in made
    assert made["beta.amd.com/gpu.family"] == "AI"
    assert made["beta.amd.com/gpu.family.AI"] == "3"
    assert made["beta.amd.com/gpu.device-id.74a1"] == "2"


def test_bad_character_costs_nothing(tmp_path: Path) -> None:
    """ROCm/k8s-device-plugin#218: a slash once lost every label."""
    made = labels(machine(tmp_path, Gpu(product="Radeon RX 7900 XT/7900 XTX (OEM)")))

    assert made["amd.com/gpu.product-name"] == "Radeon_RX_7900_XT_7900_XTX_OEM"
    assert made["amd.com/gpu.vram"] == "192G"


def test_long_names_fit(tmp_path: Path) -> None:
    one, two = (Gpu(product="Radeon " * 9 + end) for end in ("A", "B"))
    made = labels(machine(tmp_path, one, two), legacy=True)

    assert len([k for k in made if k.startswith("amd.com/gpu.product-name.")]) == 2


def test_apu(tmp_path: Path) -> None:
    """No product name and no partitions; the name comes from libdrm's table."""
    apu = Gpu(
        device="1681",
        pci_class="030000",
        product="",
        mib=512,
        simds=24,
        gfx=100305,
        compute="",
        files={"revision": "0xc8"},
    )
    ids = {"/usr/share/libdrm/amdgpu.ids": "1.0.0\n1681,\tC8,\tAMD Radeon 680M\n"}
    made = labels(machine(tmp_path, apu, files=dict(ids)))

    assert made["amd.com/gpu.family"] == "YC"
    assert made["amd.com/gpu.product-name"] == "AMD_Radeon_680M"
    assert made["amd.com/gpu.vram"] == "1G"
    assert made["amd.com/gpu.compute-partitioning-supported"] == "false"
    assert "amd.com/gpu.compute-memory-partition" not in made


@pytest.mark.parametrize(
    ("mib", "expected"),
    [(16368, "16G"), (196592, "192G"), (1536, "2G"), (512, "1G"), (256, "256M")],
)
def test_memory_is_rounded_honestly(tmp_path: Path, mib: int, expected: str) -> None:
    assert labels(machine(tmp_path, Gpu(mib=mib)))["amd.com/gpu.vram"] == expected


def test_virtual_function(tmp_path: Path) -> None:
    """In a guest the device id tells; driver or not, the operators are told."""
    vf = Gpu(device="74b5", driver="vfio-pci")
    assert labels(machine(tmp_path, vf)) == {"vgpu": "true", "gpu-mi300x": "true"}


def test_no_driver(tmp_path: Path) -> None:
    """H57: no amd.com labels, no failure; presence alone brings the driver."""
    files = {"vendor": "0x1002", "device": "0x74a1", "class": "0x120000"}
    base = "/sys/bus/pci/devices/0000:05:00.0"
    host = make_root(tmp_path, {f"{base}/{k}": v for k, v in files.items()})

    assert labels(host) == {"gpu": "true", "gpu-mi300x": "true"}


def test_audio_is_no_gpu(tmp_path: Path) -> None:
    files = {"vendor": "0x1002", "device": "0xab28", "class": "0x040300"}
    base = "/sys/bus/pci/devices/0000:09:00.1"
    host = make_root(tmp_path, {f"{base}/{k}": v for k, v in files.items()})
    with pytest.raises(NotPresentError, match="no AMD GPU"):
        SOURCE.discover(host, AmdSettings())


def test_firmware(tmp_path: Path) -> None:
    files = {
        "fw_version/mec_fw_version": "0x000000b1\n",
        "fw_version/sdma_fw_version": "0x00000018\n",
        "fw_version/odd_fw_version": "text\n",
    }
    host = machine(tmp_path, Gpu(files=files), Gpu(files=files))
    made = labels(host, legacy=True)

    assert made["beta.amd.com/gpu.firmware.MEC.fw.177"] == "2"
    assert made["beta.amd.com/gpu.firmware.SDMA0.fw.24"] == "2"
    assert not [key for key in labels(host) if "firmware" in key]


def test_one_unreadable_file(tmp_path: Path) -> None:
    path = "/sys/bus/pci/devices/0000:05:00.0/product_name"
    host = failing(machine(tmp_path, Gpu(), Gpu()), path, number=errno.EIO)
    features = SOURCE.discover(host, AmdSettings())
    made = SOURCE.labels(features, AmdSettings())

    assert "0000:05:00.0" in features.unknown["amd.device"]
    assert made["amd.com/gpu.product-name"].value == "AMD_Instinct_MI300X_OAM"
    assert made["amd.com/gpu.vram"].value == "192G"


def test_chosen_labels(tmp_path: Path) -> None:
    settings = AmdSettings(labels=("vram",))
    features = SOURCE.discover(machine(tmp_path, Gpu()), settings)

    assert set(SOURCE.labels(features, settings)) == {
        "gpu",
        "gpu-mi300x",
        "amd.com/gpu.vram",
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vgpu", "no such GPU"),
        ("amd.com/gpu.family", "devices differ"),
        ("amd.com/gpu.vram", "not in the setting labels"),
        ("beta.amd.com/gpu.family", "legacyLabels is off"),
        ("amd.com/gpu.nonsense", "no device tells it"),
    ],
)
def test_why_not(tmp_path: Path, name: str, expected: str) -> None:
    host = machine(tmp_path, Gpu(), Gpu(gfx=110000))
    settings = AmdSettings(labels=("family",))
    features = SOURCE.discover(host, settings)

    assert expected in SOURCE.why_not(name, features, settings)


def test_why_not_without_the_driver(tmp_path: Path) -> None:
    features = SOURCE.discover(machine(tmp_path, Gpu(driver="vfio-pci")), AmdSettings())
    answer = SOURCE.why_not("amd.com/gpu.vram", features, AmdSettings())

    assert answer == "no GPU is bound to the driver amdgpu"


def test_families() -> None:
    assert family_of_block(9, 4, 3) == "AI"
    assert family_of_block(9, 3, 0) == "RV"
    assert family_of_block(10, 3, 7) == "GC_10_3_7"
    assert family_of_block(11, 0, 2) == "GC_11_0_0"
    assert family_of_block(11, 0, 4) == "GC_11_0_1"
    assert family_of_block(12, 0, 1) == "GC_12_0_0"
    assert family_of_block(20, 0, 0) == ""
    assert family_of_isa(90402) == "AI"
    assert family_of_isa(90012) == "RV"
    assert family_of_isa(80003) == "VI"
    assert family_of_isa(100300) == "NV"
    assert family_of_isa(110501) == "GC_11_5_0"


def test_marketing_names() -> None:
    table = (
        "# comment\n74A1,\t00,\tAMD Instinct MI300X\n74A1,\t01,\tOther, with comma\n"
    )

    assert marketing_name(table, "74a1", "0") == "AMD Instinct MI300X"
    assert marketing_name(table, "74a1", "01") == "Other, with comma"
    assert marketing_name(table, "74a2", "00") == ""


def test_properties() -> None:
    assert parse_properties("a 1\nb x\n\nc 2\n") == {"a": 1, "c": 2}


@pytest.fixture(scope="module")
def topologies(shared_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive = shared_dir / "hosts" / "amd-kfd.tar.xz"
    if not archive.exists():
        pytest.skip(f"no {archive}")
    folder = tmp_path_factory.mktemp("kfd")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / "amd-kfd"


@pytest.mark.parametrize(
    ("name", "count", "expected"),
    [
        ("single-vega", 2, KfdNode(128, "0000:19:00.0", 256, 4, 0, 17163091968)),
        ("mi210-xgmi-pcie", 8, KfdNode(128, "0000:63:00.0", 416, 4, 90010, 0)),
        ("mi300-cpx", 63, KfdNode(128, "0000:05:00.0", 152, 4, 90402, 0)),
        ("mi308", 32, KfdNode(128, "0000:0a:00.0", 80, 4, 90402, 51539607552)),
    ],
)
def test_real_topologies(
    topologies: Path, name: str, count: int, expected: KfdNode
) -> None:
    """Published captures: nodes that are no GPUs are left out."""
    errors: list[OSError] = []
    with HostRoot(str(topologies / name)) as host:
        nodes = read_nodes(host, errors)

    assert not errors
    assert len(nodes) == count
    assert nodes[128] == expected
    if name == "mi300-cpx":
        assert nodes[135].address == "0000:05:00.7"
        assert nodes[135].parent == "0000:05:00.0"
        assert nodes[135].cu_count == 38
