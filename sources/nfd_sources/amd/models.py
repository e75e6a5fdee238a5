"""What is known of AMD's GPUs by their numbers: data; pure.

Families are those of the kernel's `include/uapi/drm/amdgpu_drm.h`, found from the
version of the graphics block as `amdgpu_discovery.c` does.
"""

from collections.abc import Mapping

# PCI device ids of virtual functions, as guests see them.
VIRTUAL_FUNCTIONS = frozenset(
    (
        *("7410", "74b5", "74b6", "74b9", "74bc", "74bd", "75b0", "75b3", "75b8"),
        *("7461", "73ae"),
    )
)
# PCI device ids → the label that AMD's operator gives the model.
MODELS: Mapping[str, str] = {
    **dict.fromkeys(("740f", "7410"), "gpu-mi210"),
    **dict.fromkeys(("74a1", "74a9", "74b5", "74bd"), "gpu-mi300x"),
}
GPU_CLASSES = ("0300", "0302", "0380", "1200")

# Version of the graphics block, /ip_discovery/die/0/GC → family.
_BY_BLOCK: Mapping[tuple[int, int, int], str] = {
    **dict.fromkeys([(9, 1, 0), (9, 2, 2), (9, 3, 0)], "RV"),
    (10, 3, 1): "VGH",
    (10, 3, 3): "YC",
    (10, 3, 6): "GC_10_3_6",
    (10, 3, 7): "GC_10_3_7",
    **dict.fromkeys([(11, 0, 1), (11, 0, 4)], "GC_11_0_1"),
}
_BY_MAJOR_MINOR: Mapping[tuple[int, int], str] = {
    (11, 0): "GC_11_0_0",
    (11, 5): "GC_11_5_0",
    (12, 0): "GC_12_0_0",
}
_BY_MAJOR: Mapping[int, str] = {9: "AI", 10: "NV"}

# Version of the instruction set, as in gfx90a → family, where the block is not told.
_BY_ISA: Mapping[tuple[int, int, int], str] = {
    (7, 0, 0): "KV",
    (7, 0, 1): "CI",
    (8, 0, 1): "CZ",
    **dict.fromkeys([(9, 0, 2), (9, 0, 9), (9, 0, 12)], "RV"),
    (10, 3, 3): "VGH",
    (10, 3, 5): "YC",
    (10, 3, 6): "GC_10_3_6",
    (11, 0, 3): "GC_11_0_1",
}
_ISA_BY_MAJOR: Mapping[int, str] = {6: "SI", 7: "CI", 8: "VI", 9: "AI", 10: "NV"}


def family_of_block(major: int, minor: int, revision: int) -> str:
    """Return the family of a graphics block's version, "" if unknown."""
    return (
        _BY_BLOCK.get((major, minor, revision))
        or _BY_MAJOR_MINOR.get((major, minor))
        or _BY_MAJOR.get(major, "")
    )


def family_of_isa(gfx_version: int) -> str:
    """Return the family of KFD's gfx_target_version, "" if unknown."""
    major, minor, step = (
        gfx_version // 10000,
        gfx_version // 100 % 100,
        gfx_version % 100,
    )
    return (
        _BY_ISA.get((major, minor, step))
        or _BY_MAJOR_MINOR.get((major, minor))
        or _ISA_BY_MAJOR.get(major, "")
    )


def marketing_name(table: str, device: str, revision: str) -> str:
    """Find a name in libdrm's amdgpu.ids: lines of `device, revision, name`."""
    for line in table.splitlines():
        parts = [part.strip() for part in line.split(",", 2)]
        if len(parts) != 3 or parts[0].lower() != device:
            continue
        if parts[1].lower().rjust(2, "0") == revision.rjust(2, "0"):
            return parts[2]
    return ""
