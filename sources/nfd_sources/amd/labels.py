"""The labels of AMD's node labeller, current and legacy; pure.

Names and values: spec/gpu.md section 2.1. One value: `<name>=<value>`; several:
`<name>.<value>=<count>` for each, and no plain one.
"""

from collections.abc import Callable, Iterable, Mapping

from nfd.features import Attributes, Features
from nfd.source import LabelValue
from nfd_sources._sanitize import distinct, fit, label_text
from nfd_sources.amd.models import MODELS

DEVICE, FIRMWARE, DRIVER = "amd.device", "amd.firmware", "amd.driver"
PREFIX, LEGACY_PREFIX = "amd.com/gpu.", "beta.amd.com/gpu."
_LEGACY_FIRMWARE = (
    *("VCE", "UVD", "MC", "ME", "PFP", "CE", "RLC", "MEC", "SMC", "SDMA0"),
)
_GIB = 1024  # MiB
_LONGEST_KEY = 63


def _vram(device: Attributes) -> str:
    """Return `<n>G`, to the nearest GiB, or `<n>M` for less than half of one."""
    if "vram" not in device:
        return ""
    mebibytes = int(device["vram"])
    rounded = (mebibytes + _GIB // 2) // _GIB
    return f"{rounded}G" if rounded else f"{mebibytes}M"


def _product(device: Attributes) -> str:
    name = device.get("product_name", "")
    return fit(label_text(name.replace(" ", "_").replace("(", "").replace(")", "")), 63)


def _partition(device: Attributes) -> str:
    parts = (device.get("compute_partition"), device.get("memory_partition"))
    return "_".join(part.lower() for part in parts if part) if all(parts) else ""


# Name of the label → its value for one device, "" for none.
OF_DEVICE: Mapping[str, Callable[[Attributes], str]] = {
    "family": lambda d: d.get("family", ""),
    "device-id": lambda d: d.get("device", ""),
    "product-name": _product,
    "vram": _vram,
    "simd-count": lambda d: d.get("simd_count", ""),
    "cu-count": lambda d: d.get("cu_count", ""),
    "compute-memory-partition": _partition,
}
OF_DRIVER: Mapping[str, str] = {
    "driver-version": "version",
    "driver-src-version": "srcversion",
}
OF_SUPPORT: Mapping[str, str] = {
    "compute-partitioning-supported": "compute_partitions",
    "memory-partitioning-supported": "memory_partitions",
}
NAMES = (*OF_DEVICE, *OF_DRIVER, *OF_SUPPORT)


def labels(
    features: Features, wanted: Iterable[str], *, legacy: bool
) -> dict[str, LabelValue]:
    """Return presence by function and model, and the wanted labels of the labeller."""
    devices = features.instances.get(DEVICE, ())
    made = _presence(devices)
    driven = [d for d in devices if d.get("driver") == "amdgpu"]
    if not driven:
        return made
    for name in wanted:
        if name in OF_DEVICE:
            values = [(OF_DEVICE[name](d), d["address"]) for d in driven]
            found = [(value, where) for value, where in values if value]
            made |= _spread(name, found, legacy=legacy)
        elif name in OF_DRIVER and DRIVER in features.attributes:
            version = features.attributes[DRIVER].get(OF_DRIVER[name], "")
            made[PREFIX + name] = LabelValue(version, DRIVER, OF_DRIVER[name])
            if legacy and version:
                made |= _counted(LEGACY_PREFIX + name, version, len(driven), DRIVER)
                made[LEGACY_PREFIX + name] = made[PREFIX + name]
        elif name in OF_SUPPORT:
            supported = any(OF_SUPPORT[name] in d for d in driven)
            value = LabelValue("true" if supported else "false", DEVICE)
            made[PREFIX + name] = value
            if legacy:
                made[LEGACY_PREFIX + name] = value
    if legacy:
        made |= _firmware(features.instances.get(FIRMWARE, ()))
    return made


def _presence(devices: Iterable[Attributes]) -> dict[str, LabelValue]:
    made: dict[str, LabelValue] = {}
    for device in devices:
        kind = "vgpu" if device.get("function") == "vf" else "gpu"
        model = MODELS.get(device.get("device", ""))
        for name in (kind, model):
            if name and name not in made:
                made[name] = LabelValue(
                    "true", DEVICE, device["address"], f"class {device.get('class')}"
                )
    return made


def _spread(
    name: str, values: list[tuple[str, str]], *, legacy: bool
) -> dict[str, LabelValue]:
    made: dict[str, LabelValue] = {}
    counts: dict[str, int] = {}
    for value, _ in values:
        counts[value] = counts.get(value, 0) + 1
    if len(counts) == 1:
        plain = LabelValue(*values[0][:1], DEVICE, values[0][1])
        made[PREFIX + name] = plain
        if legacy:
            made[LEGACY_PREFIX + name] = plain
    for value, count in sorted(counts.items()):
        if len(counts) > 1:
            made |= _counted(PREFIX + name, value, count, DEVICE)
        if legacy:
            made |= _counted(LEGACY_PREFIX + name, value, count, DEVICE)
    return made


def _counted(stem: str, value: str, count: int, feature: str) -> dict[str, LabelValue]:
    """Return `<stem>.<value>`; a key that would be too long ends in a hash."""
    prefix, _, name = stem.partition("/")
    room = _LONGEST_KEY - len(name) - 1
    word = value if len(value) <= room else distinct(value, value, room)
    return {f"{prefix}/{name}.{word}": LabelValue(str(count), feature, value)}


def _firmware(firmware: Iterable[Attributes]) -> dict[str, LabelValue]:
    counts: dict[str, int] = {}
    for part in firmware:
        name = "SDMA0" if part["name"] == "SDMA" else part["name"]
        if name in _LEGACY_FIRMWARE:
            try:
                version = int(part["version"], 0)
            except ValueError:
                continue
            key = f"{LEGACY_PREFIX}firmware.{name}.fw.{version}"
            counts[key] = counts.get(key, 0) + 1
    return {key: LabelValue(str(n), FIRMWARE) for key, n in sorted(counts.items())}


def why_not(
    name: str, features: Features, wanted: Iterable[str], *, legacy: bool
) -> str:
    """Say what a label lacks, and what could not be read."""
    devices = features.instances.get(DEVICE, ())
    short = name.removeprefix(LEGACY_PREFIX).removeprefix(PREFIX)
    reason = "no device tells it"
    if "/" not in name:
        reason = "no such GPU is on the PCI bus"
    elif not any(d.get("driver") == "amdgpu" for d in devices):
        reason = "no GPU is bound to the driver amdgpu"
    elif name.startswith(LEGACY_PREFIX) and not legacy:
        reason = "the setting legacyLabels is off"
    elif short in NAMES and short not in wanted:
        reason = f"{short} is not in the setting labels"
    elif short in OF_DEVICE and any(OF_DEVICE[short](d) for d in devices):
        reason = f"devices differ: see {name}.<value>"
    gaps = [f"{element} ({why})" for element, why in sorted(features.notes.items())]
    return f"{reason}; not known: {', '.join(gaps)}" if gaps else reason
