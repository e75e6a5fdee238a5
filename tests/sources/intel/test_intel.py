"""Intel GPUs and accelerators, Gaudi cards (spec/gpu.md sections 2.2 and 2.3)."""

from pathlib import Path

import pytest

from nfd.errors import NotPresentError
from nfd.hostroot import HostRoot
from nfd.labels import value_problem
from nfd_sources.intel import _CLASSES, _VENDORS, IntelSettings, IntelSource
from nfd_sources.intel.table import ROWS
from tests.sources.roots import Link, make_root

PCI = "/sys/bus/pci/devices"
NS = "intel.feature.node.kubernetes.io"
SOURCE = IntelSource()
Files = dict[str, str | bytes | None]


def pci(
    address: str, class_: str, device: str, driver: str = "", vendor: str = "8086"
) -> Files:
    path = f"{PCI}/{address}"
    files: Files = {
        f"{path}/vendor": f"0x{vendor}\n",
        f"{path}/class": f"0x{class_}\n",
        f"{path}/device": f"0x{device}\n",
    }
    if driver:
        files[f"{path}/driver"] = Link(f"../../../bus/pci/drivers/{driver}")
    return files


def module(*names: str) -> Files:
    return {f"/sys/module/{name}/parameters": None for name in names}


def labels(host: HostRoot, *, legacy: bool = False) -> dict[str, str]:
    settings = IntelSettings(legacy_labels=legacy)
    made = SOURCE.labels(SOURCE.discover(host, settings), settings)
    for label in made.values():
        assert value_problem(label.value) == ""
    return {key: label.value for key, label in made.items()}


@pytest.mark.parametrize(
    ("class_", "device", "modules", "name"),
    [
        ("030000", "56c0", ("i915",), "gpu"),
        ("038000", "0bd5", ("xe",), "gpu"),
        ("120000", "643e", ("intel_vpu",), "npu"),
        ("0b4000", "4940", ("intel_qat", "vfio_pci"), "qat"),
        ("088000", "0b25", ("idxd",), "dsa"),
        ("088000", "0cfe", ("idxd",), "iaa"),
        ("0b4000", "2710", ("dlb2",), "dlb"),
        ("120000", "09c4", ("intel_fpga_pci",), "fpga-arria10"),
    ],
)
def test_presence_needs_device_and_module(
    tmp_path: Path, class_: str, device: str, modules: tuple[str, ...], name: str
) -> None:
    files = pci("0000:3a:00.0", class_, device)
    with_all = labels(make_root(tmp_path / "all", files | module(*modules)))
    without = labels(make_root(tmp_path / "less", files | module(*modules[1:])))

    assert with_all[f"{NS}/{name}"] == "true"
    assert f"{NS}/{name}" not in without


def test_modules_from_lists(tmp_path: Path) -> None:
    """Where /sys/module does not tell: loaded, and built in with another spelling."""
    files = {
        **pci("0000:3a:00.0", "0b4000", "4940"),
        "/proc/modules": "intel_qat 1 0 - Live 0x0\n",
        "/proc/sys/kernel/osrelease": "6.8.0\n",
        "/lib/modules/6.8.0/modules.builtin": "kernel/drivers/vfio/pci/vfio-pci.ko\n",
    }

    assert labels(make_root(tmp_path, files)) == {f"{NS}/qat": "true"}


def test_gpus_by_id(tmp_path: Path) -> None:
    """Counts are those of each id, not of the first device."""
    host = make_root(
        tmp_path,
        {
            **pci("0000:3a:00.0", "038000", "56c0", "i915"),
            **pci("0000:3b:00.0", "038000", "56c0", "i915"),
            **pci("0000:3c:00.0", "038000", "56c1", "i915"),
            **module("i915"),
        },
    )

    assert labels(host) == {
        f"{NS}/gpu": "true",
        "gpu.intel.com/device-id.0380-56c0.present": "true",
        "gpu.intel.com/device-id.0380-56c0.count": "2",
        "gpu.intel.com/device-id.0380-56c1.present": "true",
        "gpu.intel.com/device-id.0380-56c1.count": "1",
        "gpu.intel.com/product": "Flex_170",
        "gpu.intel.com/family": "Flex_Series",
        "gpu.intel.com/device.count": "2",
    }


def test_arc_has_a_family_only(tmp_path: Path) -> None:
    host = make_root(
        tmp_path, pci("0000:03:00.0", "030000", "56a0", "i915") | module("i915")
    )
    made = labels(host)

    assert made["gpu.intel.com/family"] == "A_Series"
    assert "gpu.intel.com/product" not in made


def gpu(number: int, driver: str, **more: str) -> Files:
    address = f"0000:{0x30 + number:02x}:00.0"
    files = pci(address, "038000", "0bd5", driver)
    files[f"{PCI}/{address}/drm/card{number}/dev"] = "226:0\n"
    files |= {f"{PCI}/{address}/{name}": text for name, text in more.items()}
    return files


def test_numbers(tmp_path: Path) -> None:
    """Two tiles of 64 GiB by xe, one GPU by i915, a function that has virtual ones."""
    tile = "physical_vram_size_bytes"
    host = make_root(
        tmp_path,
        {
            **gpu(
                0,
                "xe",
                numa_node="1",
                **{f"tile{n}/{tile}": "0x1000000000" for n in (0, 1)},
            ),
            **gpu(
                1,
                "i915",
                numa_node="0",
                **{"drm/card1/gt/gt0/addr_range": "0x400000000"},
            ),
            **gpu(2, "i915", numa_node="0", sriov_numvfs="4"),
            **module("xe", "i915"),
        },
    )
    made = labels(host, legacy=True)

    assert made["gpu.intel.com/tiles"] == "3"
    assert made["gpu.intel.com/millicores"] == "2000"
    assert made["gpu.intel.com/gpu-numbers"] == "0.1"
    assert made["gpu.intel.com/numa-gpu-map"] == "0-1_1-0"
    assert made["gpu.intel.com/memory.max"] == str((2 << 36) + (1 << 34))
    assert "gpu.intel.com/tiles" not in labels(host)


def test_long_lists_are_spread(tmp_path: Path) -> None:
    """27 GPUs: pieces of 63 characters, each further one begins with Z."""
    files: Files = dict(module("i915"))
    for number in range(27):
        files |= gpu(number, "i915")
    made = labels(make_root(tmp_path, files), legacy=True)
    whole = ".".join(str(n) for n in range(27))
    first, second = (made[f"gpu.intel.com/gpu-numbers{end}"] for end in ("", "2"))

    assert first + second.removeprefix("Z") == whole


def test_gaudi(tmp_path: Path) -> None:
    card = f"{PCI}/0000:33:00.0"
    host = make_root(
        tmp_path,
        {
            **pci("0000:33:00.0", "120000", "1020", "habanalabs", vendor="1da3"),
            **pci("0000:34:00.0", "120000", "1020", "habanalabs", vendor="1da3"),
            f"{card}/revision": "0x01\n",
            "/sys/module/habanalabs/version": "1.16.0-94aac46\n",
            "/sys/class/accel/accel0/device/device_type": "GAUDI2\n",
            "/sys/class/accel/accel0/device/fw_os_ver": "Linux gaudi2 5.10\n",
            "/sys/class/dmi/id/sys_vendor": "Supermicro\n",
            "/sys/class/dmi/id/product_name": "SYS-820GH-TNR2\n",
        },
    )

    assert labels(host) == {
        f"{NS}/gaudi": "true",
        "habana.ai/device.count": "2",
        "habana.ai/device.family": "gaudi",
        "habana.ai/device.id": "1020",
        "habana.ai/device.name": "gaudi2",
        "habana.ai/device.revision": "01",
        "habana.ai/device.type": "GAUDI2",
        "habana.ai/driver.version": "1.16.0",
        "habana.ai/driver.hash": "94aac46",
        "habana.ai/fw.os": "Linux_gaudi2_5.10",
        "habana.ai/sys.vendor": "Supermicro",
        "habana.ai/product.name": "SYS-820GH-TNR2",
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{NS}/qat", "the kernel has no module intel_qat, vfio_pci"),
        (f"{NS}/dsa", "no device of vendor 8086 (0b25, 11fb, 1212)"),
        ("gpu.intel.com/tiles", "no device of vendor 8086 (0300, 0380)"),
        ("habana.ai/device.count", "no Gaudi card"),
        (f"{NS}/nonsense", "no row of the table"),
    ],
)
def test_why_not(tmp_path: Path, name: str, expected: str) -> None:
    host = make_root(tmp_path, pci("0000:3a:00.0", "0b4000", "4940"))
    features = SOURCE.discover(host, IntelSettings())

    assert expected in SOURCE.why_not(name, features, IntelSettings())


def test_other_devices_are_none(tmp_path: Path) -> None:
    host = make_root(tmp_path, pci("0000:00:1f.0", "060100", "1b81"))
    with pytest.raises(NotPresentError, match="no Intel"):
        SOURCE.discover(host, IntelSettings())


def test_the_gate_lets_every_row_through() -> None:
    """What is read is what the table is about."""
    assert {row.vendor for row in ROWS} == set(_VENDORS)
    for row in ROWS:
        assert all(c.startswith(_CLASSES) for c in row.classes)
