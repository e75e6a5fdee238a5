"""The topology of AMD's compute driver, /sys/class/kfd/kfd/topology.

Kernel: drivers/gpu/drm/amd/amdkfd/kfd_topology.c writes these files, `name value` a
line.
"""

from collections.abc import Mapping

import attrs

from nfd.hostroot import NOT_THERE, HostRoot
from nfd_sources._reading import entries

NODES = "/sys/class/kfd/kfd/topology/nodes"


@attrs.frozen(slots=True)
class KfdNode:
    """One GPU, or one partition of one."""

    render_minor: int  # drm_render_minor
    address: str  # PCI address: of domain and location_id
    simd_count: int
    simd_per_cu: int
    gfx_version: int  # gfx_target_version: major * 10000 + minor * 100 + stepping
    memory: int  # bytes, mem_banks/0/properties; 0 if unknown

    @property
    def cu_count(self) -> int:
        """Compute units."""
        return self.simd_count // self.simd_per_cu if self.simd_per_cu else 0

    @property
    def parent(self) -> str:
        """The address of the whole GPU: partitions are numbered by function."""
        return f"{self.address.rpartition('.')[0]}.0"


def read_nodes(host: HostRoot, errors: list[OSError]) -> dict[int, KfdNode]:
    """Return the GPU nodes by render minor; the first of two with one minor counts."""
    nodes: dict[int, KfdNode] = {}
    try:
        numbers = entries(host, NODES) or []
    except OSError as error:
        errors.append(error)
        return nodes
    for number in sorted(numbers, key=lambda n: (len(n), n)):
        node = _read_node(host, f"{NODES}/{number}", errors)
        if node is not None:
            nodes.setdefault(node.render_minor, node)
    return nodes


def _read_node(host: HostRoot, folder: str, errors: list[OSError]) -> KfdNode | None:
    properties = _read(host, f"{folder}/properties", errors)
    if not properties.get("simd_count"):
        return None  # a CPU
    bank = _read(host, f"{folder}/mem_banks/0/properties", errors)
    return make_node(properties, bank)


def _read(host: HostRoot, path: str, errors: list[OSError]) -> dict[str, int]:
    try:
        return parse_properties(host.read(path))
    except OSError as error:
        if error.errno not in NOT_THERE:
            errors.append(error)
        return {}


def parse_properties(text: str) -> dict[str, int]:
    """Read lines of a name and a whole number; others are passed over."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if value.strip().isdecimal():
            found[name] = int(value)
    return found


def make_node(properties: Mapping[str, int], bank: Mapping[str, int]) -> KfdNode:
    """Make a node of its properties and those of its first memory bank."""
    location = properties.get("location_id", 0)
    bus, device, function = location >> 8 & 0xFF, location >> 3 & 0x1F, location & 7
    domain = properties.get("domain", 0)
    return KfdNode(
        properties.get("drm_render_minor", 0),
        f"{domain:04x}:{bus:02x}:{device:02x}.{function}",
        properties["simd_count"],
        properties.get("simd_per_cu", 0),
        properties.get("gfx_target_version", 0),
        bank.get("size_in_bytes", 0),
    )
