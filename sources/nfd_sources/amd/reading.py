"""From sysfs and KFD to what is said of each AMD GPU and partition.

Kernel: Documentation/gpu/amdgpu; the files are those that AMD's node labeller reads
(spec/gpu.md section 2.1).
"""

from collections.abc import Iterable, Sequence

from nfd.hostroot import NOT_THERE, HostRoot
from nfd_sources._pci import PciFunction
from nfd_sources._reading import Gaps, entries, read_folder
from nfd_sources.amd.kfd import KfdNode, read_nodes
from nfd_sources.amd.models import (
    VIRTUAL_FUNCTIONS,
    family_of_block,
    family_of_isa,
    marketing_name,
)

DEVICE, FIRMWARE, DRIVER = "amd.device", "amd.firmware", "amd.driver"
MODULE = "/sys/module/amdgpu"
PLATFORM = "/sys/devices/platform"
IDS = ("/usr/share/libdrm/amdgpu.ids", "/opt/amdgpu/share/libdrm/amdgpu.ids")

_FILES = (
    *("product_name", "revision", "mem_info_vram_total"),
    *("current_compute_partition", "current_memory_partition"),
    *("available_compute_partition", "available_memory_partition"),
)
_BLOCK = tuple(f"ip_discovery/die/0/GC/0/{p}" for p in ("major", "minor", "revision"))
_PARTITION = "amdgpu_xcp_"
_FIRMWARE_END = "_fw_version"
_MIB = 1 << 20


def read_driver(host: HostRoot, gaps: Gaps) -> dict[str, str] | None:
    """Read the versions of the driver, "" where it has none; None if not loaded."""
    with gaps.reading(DRIVER):
        if not host.is_dir(MODULE):
            return None
    errors: list[OSError] = []
    told = read_folder(host, MODULE, ("version", "srcversion"), errors)
    if errors:
        gaps.unread(DRIVER, "", errors)
    return {"version": "", "srcversion": ""} | told


def read_devices(
    host: HostRoot, functions: Sequence[PciFunction], gaps: Gaps
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return what is said of GPUs and partitions, and their firmware."""
    errors: list[OSError] = []
    bound = any(f.driver == "amdgpu" for f in functions)
    nodes = read_nodes(host, errors) if bound else {}
    if errors:
        gaps.unread(DEVICE, "kfd", errors)
    devices = []
    firmware = []
    for function in functions:
        device = _device(host, function, nodes, gaps)
        devices.append(device)
        if function.driver == "amdgpu":
            firmware += _firmware(host, function, gaps)
    if any("compute_partition" in d for d in devices):
        devices += _partitions(host, devices, nodes, gaps)
    devices.sort(key=lambda d: d["address"])
    return devices, firmware


def _device(
    host: HostRoot, function: PciFunction, nodes: dict[int, KfdNode], gaps: Gaps
) -> dict[str, str]:
    is_virtual = function.device in VIRTUAL_FUNCTIONS
    errors: list[OSError] = []
    try:
        is_virtual = is_virtual or host.readlink(f"{function.path}/physfn") is not None
    except OSError as error:
        errors.append(error)
    told = {
        "address": function.address,
        "kind": "gpu",
        "function": "vf" if is_virtual else "pf",
        "class": function.class_[:4],
        "device": function.device,
        "driver": function.driver,
    }
    if function.driver == "amdgpu":
        files = read_folder(host, function.path, (*_FILES, *_BLOCK), errors)
        minor = _render_minor(host, f"{function.path}/drm", errors)
        told |= _facts(files, nodes.get(minor))
        if not told.get("product_name"):
            revision = files.get("revision", "").removeprefix("0x").lower()
            told["product_name"] = _marketing_name(host, function.device, revision)
        if minor >= 0:
            told["render"] = str(minor)
    if errors:
        gaps.unread(DEVICE, function.address, errors)
    return {name: value for name, value in told.items() if value}


def _facts(files: dict[str, str], node: KfdNode | None) -> dict[str, str]:
    told = {
        "product_name": files.get("product_name", ""),
        "compute_partition": files.get("current_compute_partition", ""),
        "memory_partition": files.get("current_memory_partition", ""),
        "compute_partitions": files.get("available_compute_partition", ""),
        "memory_partitions": files.get("available_memory_partition", ""),
    }
    block = [files.get(name, "") for name in _BLOCK]
    if all(part.isdecimal() for part in block):
        told["family"] = family_of_block(*map(int, block))
    vram = files.get("mem_info_vram_total", "")
    if vram.isdecimal():
        told["vram"] = str(int(vram) // _MIB)
    return told | _of_node(node, told.get("family", ""))


def _of_node(node: KfdNode | None, family: str = "") -> dict[str, str]:
    if node is None:
        return {}
    told = {
        "family": family or family_of_isa(node.gfx_version),
        "simd_count": str(node.simd_count),
        "cu_count": str(node.cu_count) if node.cu_count else "",
    }
    if node.memory:
        told["vram"] = str(node.memory // _MIB)
    return told


def _render_minor(host: HostRoot, folder: str, errors: list[OSError]) -> int:
    """Return the number of the render device in a folder `drm`, -1 without one."""
    try:
        names = entries(host, folder) or []
    except OSError as error:
        errors.append(error)
        return -1
    for name in names:
        number = name.removeprefix("renderD")
        if number != name and number.isdecimal():
            return int(number)
    return -1


def _marketing_name(host: HostRoot, device: str, revision: str) -> str:
    for path in IDS:
        try:
            name = marketing_name(host.read(path), device, revision)
        except OSError:  # a name is nice to have: no table, no name
            continue
        if name:
            return name
    return ""


def _partitions(
    host: HostRoot,
    devices: Iterable[dict[str, str]],
    nodes: dict[int, KfdNode],
    gaps: Gaps,
) -> list[dict[str, str]]:
    """Return the partitions that KFD knows; the first of each GPU is the GPU itself."""
    parents = {d["address"]: d for d in devices}
    errors: list[OSError] = []
    found = []
    try:
        names = entries(host, PLATFORM) or []
    except OSError as error:
        names = []
        errors.append(error)
    for name in names:
        if not name.startswith(_PARTITION):
            continue
        minor = _render_minor(host, f"{PLATFORM}/{name}/drm", errors)
        node = nodes.get(minor)
        parent = parents.get(node.parent) if node is not None else None
        if node is None or parent is None:
            continue
        told = {
            **{k: v for k, v in parent.items() if k not in ("vram", "render")},
            **_of_node(node, parent.get("family", "")),
            "address": node.address,
            "kind": "partition",
            "parent": parent["address"],
            "render": str(minor),
        }
        found.append({key: value for key, value in told.items() if value})
    if errors:
        gaps.unread(DEVICE, "partitions", errors)
    return found


def _firmware(
    host: HostRoot, function: PciFunction, gaps: Gaps
) -> list[dict[str, str]]:
    folder = f"{function.path}/fw_version"
    errors: list[OSError] = []
    try:
        names = [n for n in host.listdir(folder) if n.endswith(_FIRMWARE_END)]
    except OSError as error:
        if error.errno not in NOT_THERE:
            gaps.unread(FIRMWARE, function.address, (error,))
        return []
    values = read_folder(host, folder, names, errors)
    if errors:
        gaps.unread(FIRMWARE, function.address, errors)
    return [
        {
            "address": function.address,
            "name": name.removesuffix(_FIRMWARE_END).upper(),
            "version": text,
        }
        for name, text in values.items()
        if text
    ]
