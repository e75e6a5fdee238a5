"""Names of MIG profiles; pure. Source: spec/gpu.md section 1.3."""

import math
from collections.abc import Mapping

# GPU instance profile (NVML_GPU_INSTANCE_PROFILE_*) → slices, attribute.
GPU_INSTANCE_PROFILES: Mapping[int, tuple[int, str]] = {
    0: (1, ""),
    1: (2, ""),
    2: (3, ""),
    3: (4, ""),
    4: (7, ""),
    5: (8, ""),
    6: (6, ""),
    7: (1, "+me"),
    8: (2, "+me"),
    9: (1, ""),
    10: (1, "+gfx"),
    11: (2, "+gfx"),
    12: (4, "+gfx"),
    13: (1, "-me"),
    14: (2, "-me"),
    15: (1, "+me.all"),
    16: (2, "+me.all"),
    17: (3, "+gfx"),
}
# Compute instance profile (NVML_COMPUTE_INSTANCE_PROFILE_*) → slices.
COMPUTE_INSTANCE_PROFILES: Mapping[int, int] = {
    0: 1,
    1: 2,
    2: 3,
    3: 4,
    4: 7,
    5: 8,
    6: 6,
    7: 1,
    8: 7,
}
_EIGHTHS = 8
_MIB, _GIB = 1 << 20, 1 << 30


def profile_name(
    compute_slices: int,
    gpu_slices: int,
    attribute: str,
    memory_mib: int,
    total_bytes: int,
) -> str:
    """Return the name of a profile, as `1g.5gb`, `1c.3g.20gb` or `1g.10gb+me`."""
    compute = "" if compute_slices == gpu_slices else f"{compute_slices}c."
    return f"{compute}{gpu_slices}g.{_gigabytes(memory_mib, total_bytes)}gb{attribute}"


def _gigabytes(memory_mib: int, total_bytes: int) -> int:
    """Return the nominal size: eighths of the GPU, in whole GiB, halves rounded up."""
    if total_bytes <= 0:
        return math.floor(memory_mib * _MIB / _GIB + 0.5)
    eighths = -(-_EIGHTHS * memory_mib * _MIB // total_bytes)
    gibibytes = -(-total_bytes // _GIB)
    return math.floor(eighths * gibibytes / _EIGHTHS + 0.5)


def resource_name(profile: str) -> str:
    """Return the profile as it stands in resources and labels: `1g.5gb.me`."""
    return profile.replace("+", ".")
