"""The labels of GPU feature discovery from the features of this source; pure.

Names, values and the order in which parts overwrite each other: spec/gpu.md sections
1.2 and 1.3. Labels for each model, and `gpu.mixed`, are ours.
"""

from collections.abc import Iterable, Mapping, Sequence

from nfd.errors import ConfigError
from nfd.features import Attributes, Features
from nfd.source import LabelValue
from nfd_sources._sanitize import fit, hyphenated
from nfd_sources.nvml.groups import Group, groups_of, label_names
from nfd_sources.nvml.mig import resource_name
from nfd_sources.nvml.settings import VENDOR_PREFIX, NvmlSettings, Sharing

DEVICE, MIG, DRIVER = "nvml.device", "nvml.mig", "nvml.driver"
VGPU, MACHINE, AGENT = "nvml.vgpu", "nvml.machine", "nvml.agent"

_MIG_ATTRIBUTES = (
    *("memory", "multiprocessors", "slices.gi", "slices.ci"),
    *("engines.copy", "engines.decoder", "engines.encoder", "engines.jpeg"),
    "engines.ofa",
)
_MODES = {"0300": "graphics", "0302": "compute"}
_OF_ONE_MODEL = ("gpu.product", "gpu.memory")


class _Labels:
    """Collects labels with their provenance; later ones overwrite."""

    def __init__(self) -> None:
        self.made: dict[str, LabelValue] = {}

    def add(
        self,
        values: Mapping[str, object],
        feature: str,
        element: str = "",
        why: str = "",
    ) -> None:
        for name, value in values.items():
            self.made[VENDOR_PREFIX + name] = LabelValue(
                str(value), feature, element, why
            )


def labels(features: Features, settings: NvmlSettings) -> dict[str, LabelValue]:
    """Return all labels.

    Raises:
        ConfigError: MPS is configured for GPUs in MIG mode.

    """
    made = _Labels()
    devices = features.instances.get(DEVICE, ())
    groups = groups_of(devices)
    agent = features.attributes.get(AGENT, {})
    if "started" in agent:
        made.add({"gfd.timestamp": agent["started"]}, AGENT, "started")
    if groups:
        _of_host(made, features)
        compute = [g for g in groups if g.is_compute]
        _modes(made, settings, [d for g in compute or groups for d in g.devices])
        _of_models(made, groups)
        _of_primary(made, groups[0], settings)
        migs = features.instances.get(MIG, ())
        _of_mig(made, [g for g in groups if g.in_mig_mode], migs, groups, settings)
        if len(compute) > 1:
            made.add({"gpu.mixed": "true"}, DEVICE, why="more than one compute model")
            if settings.mixed_models == "omit":
                for name in _OF_ONE_MODEL:
                    made.made.pop(VENDOR_PREFIX + name, None)
    vgpu = features.attributes.get(VGPU, {})
    made.add({f"vgpu.{name}": value for name, value in vgpu.items()}, VGPU)
    return made.made


def _of_host(made: _Labels, features: Features) -> None:
    machine = features.attributes.get(MACHINE, {}).get("product_name", "")
    if machine:
        made.add({"gpu.machine": fit(machine)}, MACHINE, "product_name")
    driver = features.attributes.get(DRIVER, {})
    if "version" in driver:
        major, minor, revision = (
            driver.get(f"version.{part}", "") for part in ("major", "minor", "revision")
        )
        made.add(
            {
                "cuda.driver-version.major": major,
                "cuda.driver-version.minor": minor,
                "cuda.driver-version.revision": revision,
                "cuda.driver-version.full": driver["version"],
                "cuda.driver.major": major,
                "cuda.driver.minor": minor,
                "cuda.driver.rev": revision,
            },
            DRIVER,
            "version",
        )
    if "cuda" in driver:
        major, minor = driver.get("cuda.major", ""), driver.get("cuda.minor", "")
        made.add(
            {
                "cuda.runtime-version.major": major,
                "cuda.runtime-version.minor": minor,
                "cuda.runtime-version.full": driver["cuda"],
                "cuda.runtime.major": major,
                "cuda.runtime.minor": minor,
            },
            DRIVER,
            "cuda",
        )


def _modes(
    made: _Labels, settings: NvmlSettings, devices: Sequence[Attributes]
) -> None:
    """Add what is said of all GPUs together: MIG, MPS, mode and fabric."""
    capable = {d["mig.capable"] for d in devices if "mig.capable" in d}
    if capable:
        made.add({"mig.capable": "true" if "true" in capable else "false"}, DEVICE)
    in_mig_mode = [d for d in devices if d.get("mig.enabled") == "true"]
    uses_mps = settings.sharing.strategy == "mps"
    if uses_mps and in_mig_mode:
        address = in_mig_mode[0].get("address", "a GPU")
        raise ConfigError(
            f"sources.nvml.sharing.mps: {address} is in MIG mode, which excludes MPS"
        )
    made.add({"mps.capable": "true" if uses_mps else "false"}, DEVICE, why="sharing")
    modes = {_MODES.get(d.get("class", ""), "unknown") for d in devices}
    mode = modes.pop() if len(modes) == 1 else "unknown"
    made.add({"gpu.mode": mode}, DEVICE, why="class of the PCI functions")
    fabrics = {
        (d["fabric.cluster"], d.get("fabric.clique", ""))
        for d in devices
        if "fabric.cluster" in d
    }
    if len(fabrics) == 1:
        made.add({"gpu.clique": ".".join(fabrics.pop())}, DEVICE)


def _of_models(made: _Labels, groups: Sequence[Group]) -> None:
    names = label_names(groups)
    for group in groups:
        name = f"gpu.{names[group.model]}"
        values = {f"{name}.count": len(group.devices)}
        if group.memory:
            values[f"{name}.memory"] = group.memory
        made.add(values, DEVICE, _first(group.devices), f"model {group.model}")


def _first(devices: Sequence[Attributes]) -> str:
    return devices[0].get("address", "")


def _of_primary(made: _Labels, group: Group, settings: NvmlSettings) -> None:
    sharing = settings.sharing
    if group.in_mig_mode == len(group.devices):
        replicas, strategy = 0, "none"  # MIG devices are no resource `gpu`
    else:
        replicas, strategy = sharing.of("gpu")
    values: dict[str, object] = {
        "gpu.product": _product((group.model,), replicas, sharing),
        "gpu.count": len(group.devices),
        "gpu.replicas": replicas,
        "gpu.sharing-strategy": strategy,
    }
    if group.memory:
        values["gpu.memory"] = group.memory
    major, minor, family = group.compute
    if major:
        values |= {
            "gpu.family": family,
            "gpu.compute.major": major,
            "gpu.compute.minor": minor,
        }
    made.add(values, DEVICE, _first(group.devices), "the primary model")


def _product(parts: Iterable[str], replicas: int, sharing: Sharing) -> str:
    words = [hyphenated(part) for part in parts]
    if replicas > 1 and not sharing.renamed:
        words.append("SHARED")
    return fit("-".join(words))


def _of_mig(
    made: _Labels,
    mig_groups: Sequence[Group],
    migs: Sequence[Attributes],
    groups: Sequence[Group],
    settings: NvmlSettings,
) -> None:
    strategy = settings.mig_strategy
    if strategy == "none":
        return
    made.add({"mig.strategy": strategy}, DEVICE, why=f"migStrategy is {strategy}")
    if not mig_groups:
        return
    profiles = _by_profile(migs)
    if strategy == "mixed":
        for profile, listed in sorted(profiles.items()):
            resource = f"mig-{resource_name(profile)}"
            _of_profile(made, resource, resource, listed, settings.sharing)
        return
    parents = {m["parent"] for m in migs}
    in_mig_mode = [d for g in mig_groups for d in g.devices if _is_divided(d)]
    whole = any(
        not _is_divided(d)
        for g in groups
        if g.is_compute or g.in_mig_mode
        for d in g.devices
    )
    empty = any(d.get("address", "") not in parents for d in in_mig_mode)
    if whole or empty or len(profiles) != 1:
        values = {
            "gpu.product": fit(f"{hyphenated(mig_groups[0].model)}-MIG-INVALID"),
            "gpu.count": 0,
            "gpu.replicas": 0,
            "gpu.sharing-strategy": "",
            "gpu.memory": 0,
        }
        why = "migStrategy single needs one profile on all GPUs"
        made.add(values, MIG, "", why)
        return
    ((_, listed),) = profiles.items()
    _of_profile(made, "gpu", "gpu", listed, settings.sharing)


def _is_divided(device: Attributes) -> bool:
    return device.get("mig.enabled") == "true"


def _by_profile(migs: Iterable[Attributes]) -> dict[str, list[Attributes]]:
    found: dict[str, list[Attributes]] = {}
    for mig in migs:
        found.setdefault(mig["profile"], []).append(mig)
    return found


def _of_profile(
    made: _Labels,
    prefix: str,
    resource: str,
    listed: Sequence[Attributes],
    sharing: Sharing,
) -> None:
    replicas, strategy = sharing.of(resource)
    products = [m["product"] for m in listed]
    product = min(products, key=lambda p: (-products.count(p), p))
    first = next(m for m in listed if m["product"] == product)
    profile = resource_name(first["profile"])
    values: dict[str, object] = {
        "product": _product((product, f"MIG-{profile}"), replicas, sharing),
        "count": len(listed),
        "replicas": replicas,
        "sharing-strategy": strategy,
    }
    values |= {name: first[name] for name in _MIG_ATTRIBUTES if name in first}
    made.add(
        {f"{prefix}.{name}": value for name, value in values.items()},
        MIG,
        first.get("parent", ""),
        f"profile {first['profile']}",
    )


# Beginning of a label's name → what it needs.
_NEEDS = (
    ("gfd.timestamp", "the setting timestamp is off"),
    ("gpu.clique", "no GPU is on a fabric, or they are on different ones"),
    ("gpu.mixed", "all compute cards are of one model"),
    ("gpu.product", "mixedModels is omit, and there are several compute models"),
    ("gpu.memory", "NVML tells no memory, or mixedModels is omit"),
    ("gpu.family", "NVML tells no compute capability"),
    ("gpu.compute.", "NVML tells no compute capability"),
    ("gpu.multiprocessors", "it needs migStrategy single and MIG devices"),
    ("gpu.slices.", "it needs migStrategy single and MIG devices"),
    ("gpu.engines.", "it needs migStrategy single and MIG devices"),
    ("mig.strategy", "migStrategy is none"),
    ("mig-", "it needs migStrategy mixed and MIG devices of that profile"),
    ("mig.capable", "no GPU tells its MIG mode"),
    ("cuda.", "NVML tells no version"),
    ("vgpu.", "this is no guest of a vGPU host, or it cannot be told"),
    ("gpu.", "no GPU is of that model"),
)


def why_not(name: str, features: Features) -> str:
    """Say what a label lacks, and what could not be read."""
    reason = "no label of this source has that name"
    short = name.removeprefix(VENDOR_PREFIX)
    if not features.instances.get(DEVICE) and not short.startswith(("vgpu.", "gfd.")):
        reason = "NVML sees no GPU"
    else:
        for beginning, need in _NEEDS:
            if short.startswith(beginning):
                reason = need
                break
    gaps = [f"{element} ({why})" for element, why in sorted(features.notes.items())]
    return f"{reason}; not known: {', '.join(gaps)}" if gaps else reason
