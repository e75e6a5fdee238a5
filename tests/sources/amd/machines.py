"""Made-up machines with AMD GPUs, laid out as the kernel does."""

from collections.abc import Mapping
from pathlib import Path

import attrs

from nfd.hostroot import HostRoot
from tests.sources.roots import Link, make_root

PCI = "/sys/bus/pci/devices"
KFD = "/sys/class/kfd/kfd/topology/nodes"
MIB = 1 << 20
Files = dict[str, str | bytes | None]


@attrs.frozen
class Gpu:
    """A GPU; each partition beyond the first has a render device of its own."""

    bus: int = 5
    device: str = "74a1"
    pci_class: str = "120000"
    product: str = "AMD Instinct MI300X OAM"
    mib: int = 196592  # of one partition
    simds: int = 1216  # of one partition
    gfx: int = 90402
    compute: str = "SPX"
    memory: str = "NPS1"
    partitions: int = 1
    driver: str = "amdgpu"
    render: int = 128
    files: Mapping[str, str] = attrs.field(factory=dict)


def gpu_files(gpu: Gpu, node: int) -> Files:
    address = f"0000:{gpu.bus:02x}:00.0"
    path = f"{PCI}/{address}"
    files: Files = {
        f"{path}/vendor": "0x1002\n",
        f"{path}/device": f"0x{gpu.device}\n",
        f"{path}/class": f"0x{gpu.pci_class}\n",
        f"{path}/driver": Link(f"../../../bus/pci/drivers/{gpu.driver}"),
    }
    if gpu.driver != "amdgpu":
        return files
    files[f"{path}/drm/renderD{gpu.render}/dev"] = "226:128\n"
    files[f"{path}/drm/card0/dev"] = "226:0\n"
    if gpu.product:
        files[f"{path}/product_name"] = f"{gpu.product}\n"
    if gpu.compute:
        files[f"{path}/current_compute_partition"] = f"{gpu.compute}\n"
        files[f"{path}/available_compute_partition"] = "SPX, DPX, QPX, CPX\n"
        files[f"{path}/current_memory_partition"] = f"{gpu.memory}\n"
        files[f"{path}/available_memory_partition"] = "NPS1, NPS4\n"
    files |= {f"{path}/{name}": text for name, text in gpu.files.items()}
    for part in range(gpu.partitions):
        minor = gpu.render + part
        files |= {
            f"{KFD}/{node + part}/properties": (
                f"simd_count {gpu.simds}\nsimd_per_cu 4\n"
                f"location_id {gpu.bus << 8 | part}\ndomain 0\n"
                f"drm_render_minor {minor}\ngfx_target_version {gpu.gfx}\n"
            ),
            f"{KFD}/{node + part}/mem_banks/0/properties": (
                f"heap_type 1\nsize_in_bytes {gpu.mib * MIB}\n"
            ),
        }
        if part:
            xcp = f"/sys/devices/platform/amdgpu_xcp_{node + part}"
            files[f"{xcp}/drm/renderD{minor}/dev"] = f"226:{minor}\n"
    return files


def machine(folder: Path, *gpus: Gpu, files: Files | None = None) -> HostRoot:
    """Make a host with these GPUs, a CPU node, and the module amdgpu."""
    tree: Files = {
        f"{KFD}/0/properties": "cpu_cores_count 64\nsimd_count 0\n",
        "/sys/module/amdgpu/srcversion": "C0FFEE\n",
        "/sys/module/amdgpu/version": "6.7.0\n",
        "/sys/devices/platform/pcspkr": None,
    }
    node, render = 1, 128
    for number, gpu in enumerate(gpus):
        placed = attrs.evolve(gpu, bus=gpu.bus + 0x10 * number, render=render)
        tree |= gpu_files(placed, node)
        node, render = node + gpu.partitions, render + gpu.partitions
    return make_root(folder, tree | (files or {}))
