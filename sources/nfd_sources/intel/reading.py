"""From sysfs to what is said of each Intel accelerator.

Kernel: Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon, sysfs-driver-habanalabs
and the attributes of i915 (`gt/gt<n>`, `lmem_total_bytes`) and xe (`tile<n>`,
`physical_vram_size_bytes`).
"""

from collections.abc import Sequence

from nfd.hostroot import HostRoot
from nfd_sources._pci import PciFunction
from nfd_sources._pcitable import device_of
from nfd_sources._reading import Gaps, entries, read_folder
from nfd_sources.intel.table import GAUDI, GPU_CLASSES

DEVICE, HABANA = "intel.device", "intel.habana"
_ACCEL = "/sys/class/accel"
_HABANA_MODULE = "/sys/module/habanalabs"
_DMI = "/sys/class/dmi/id"
_GPU_FILES = ("numa_node", "sriov_numvfs")


def read_devices(
    host: HostRoot, functions: Sequence[PciFunction], gaps: Gaps
) -> list[dict[str, str]]:
    """Return the instances; of GPUs also card, tiles, memory and NUMA node."""
    found = []
    for function in functions:
        device = device_of(function)
        if device.get("class") in GPU_CLASSES and function.driver in ("i915", "xe"):
            errors: list[OSError] = []
            device |= _gpu(host, function, errors)
            if errors:
                gaps.unread(DEVICE, function.address, errors)
        found.append(device)
    return found


def _gpu(
    host: HostRoot, function: PciFunction, errors: list[OSError]
) -> dict[str, str]:
    told = {}
    files = read_folder(host, function.path, _GPU_FILES, errors)
    numa = files.get("numa_node", "")
    if numa.isdecimal():
        told["numa_node"] = numa
    if host_has_vfs(files.get("sriov_numvfs", "")):
        told["vfs"] = files["sriov_numvfs"]
    cards = _names(host, f"{function.path}/drm", errors, "card")
    if cards:
        told["card"] = cards[0].removeprefix("card")
        told |= _memory(host, function, cards[0], errors)
    return told


def host_has_vfs(text: str) -> bool:
    """Tell whether a function has virtual ones, which are used in its place."""
    return text.isdecimal() and int(text) > 0


def _memory(
    host: HostRoot, function: PciFunction, card: str, errors: list[OSError]
) -> dict[str, str]:
    """Return the number of tiles and the memory of each, in bytes."""
    if function.driver == "xe":
        folder, prefix, file = function.path, "tile", "physical_vram_size_bytes"
    else:
        folder, prefix, file = f"{function.path}/drm/{card}/gt", "gt", "addr_range"
    tiles = _names(host, folder, errors, prefix)
    told = {}
    if tiles:
        told["tiles"] = str(len(tiles))
        size = read_folder(host, f"{folder}/{tiles[0]}", (file,), errors).get(file, "")
        number = _number(size)
        if number:
            told["tile_memory"] = str(number)
    if "tile_memory" not in told and function.driver == "i915":
        drm = f"{function.path}/drm/{card}"
        total = read_folder(host, drm, ("lmem_total_bytes",), errors)
        number = _number(total.get("lmem_total_bytes", ""))
        if number:
            told["tile_memory"] = str(number // max(len(tiles), 1))
    return told


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return 0


def _names(
    host: HostRoot, folder: str, errors: list[OSError], prefix: str
) -> list[str]:
    """List entries that are `prefix` and a number, by number."""
    try:
        names = entries(host, folder) or []
    except OSError as error:
        errors.append(error)
        return []
    numbered = [n for n in names if n.removeprefix(prefix).isdecimal()]
    return sorted(
        (n for n in numbered if n.startswith(prefix)),
        key=lambda n: int(n.removeprefix(prefix)),
    )


def read_habana(
    host: HostRoot, functions: Sequence[PciFunction], gaps: Gaps
) -> dict[str, str]:
    """Return what is told of Gaudi cards: driver, firmware, machine."""
    cards = [f for f in functions if f.vendor == GAUDI]
    if not cards:
        return {}
    errors: list[OSError] = []
    told = {}
    version = read_folder(host, _HABANA_MODULE, ("version",), errors).get("version")
    if version:
        told["driver"] = version
    first = read_folder(host, cards[0].path, ("revision",), errors).get("revision", "")
    if first:
        told["revision"] = first.removeprefix("0x")
    for name in _names(host, _ACCEL, errors, "accel"):
        files = read_folder(
            host,
            f"{_ACCEL}/{name}/device",
            ("fw_os_ver", "device_type", "armcp_ver", "cpucp_ver"),
            errors,
        )
        firmware = files.get("cpucp_ver") or files.get("armcp_ver")
        candidates = {
            "type": files.get("device_type"),
            "fw.os": files.get("fw_os_ver"),
            "fw.version": firmware,
        }
        told |= {key: value for key, value in candidates.items() if value}
        break
    dmi = read_folder(host, _DMI, ("sys_vendor", "product_name"), errors)
    told |= {key: value for key, value in dmi.items() if value}
    if errors:
        gaps.unread(HABANA, "", errors)
    return told
