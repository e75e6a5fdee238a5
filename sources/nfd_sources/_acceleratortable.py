"""The table of the source `accelerators`: data.

Specification: spec/gpu.md sections 2.1 and 2.4. PCI vendor and device ids are those
of the public PCI ID database.
"""

from nfd.labels import FEATURE_NS
from nfd_sources._pcitable import Row

_AMD_NIC, _AMD_NIC_SUBSYSTEM = "1dd8", ("5201",)
_FURIOSA_FAMILIES = {
    "0000": ("warboy", "warboy"),
    "0001": ("rngd", "rngd"),
}

ROWS = (
    Row(
        _AMD_NIC,
        {f"{FEATURE_NS}/amd-nic": "true"},
        devices=("1002",),
        subsystems=_AMD_NIC_SUBSYSTEM,
        modules=("ionic",),
    ),
    Row(
        _AMD_NIC,
        {f"{FEATURE_NS}/amd-vnic": "true"},
        devices=("1003",),
        subsystems=_AMD_NIC_SUBSYSTEM,
        modules=("ionic",),
    ),
    Row(
        "1eff",
        {
            "rebellions.ai/npu.present": "true",
            "rebellions.ai/npu.count": "{count}",
        },
        classes=("1200",),
    ),
    Row(
        "1eff",
        {
            "rebellions.ai/driver-version.full": "{version}",
            "rebellions.ai/driver-version.major": "{version.major}",
            "rebellions.ai/driver-version.minor": "{version.minor}",
            "rebellions.ai/driver-version.patch": "{version.patch}",
        },
        classes=("1200",),
        modules=("rebellions",),
    ),
    Row(
        "1ed2",
        {
            "furiosa.ai/npu.count": "{count}",
            "furiosa.ai/npu.family": "{family}",
            "furiosa.ai/npu.product": "{product}",
        },
        classes=("1200",),
        products=_FURIOSA_FAMILIES,
    ),
    Row(
        "1e3e",
        {
            "iluvatar.com/gpu.present": "true",
            "iluvatar.com/gpu.count": "{count}",
        },
        classes=("03", "12"),
    ),
)
