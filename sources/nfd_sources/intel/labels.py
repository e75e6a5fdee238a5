"""The labels of Intel's rules and of the Gaudi labeller; pure.

Names and values: spec/gpu.md sections 2.2 and 2.3.
"""

from collections.abc import Mapping, Sequence

from nfd.features import Attributes, Features
from nfd.source import LabelValue
from nfd_sources._pcitable import labels_of, matches, missing_modules
from nfd_sources._sanitize import fit, label_text
from nfd_sources.intel.table import (
    GAUDI,
    GAUDI_NAMES,
    PRODUCTS,
    ROWS,
)

DEVICE, MODULE, HABANA = "intel.device", "intel.module", "intel.habana"
PREFIX, HABANA_PREFIX = "gpu.intel.com/", "habana.ai/"
_PIECE = 63
_CONTINUED = "Z"  # begins each further piece of a value


def labels(features: Features, *, legacy: bool) -> dict[str, LabelValue]:
    """Return presence, counts by device id, products, and the legacy numbers."""
    devices = features.instances.get(DEVICE, ())
    modules = features.attributes.get(MODULE, {})
    made = labels_of(ROWS, features, "intel")
    gpu_row = ROWS[0]
    gpus = [d for d in devices if matches(gpu_row, d)]
    if gpus and not missing_modules(gpu_row, modules):
        made |= _by_id(gpus)
        made |= _product(gpus)
        if legacy:
            made |= _numbers([g for g in gpus if "card" in g and "vfs" not in g])
    gaudi = [d for d in devices if d.get("vendor") == GAUDI]
    if gaudi:
        made |= _habana(gaudi, features.attributes.get(HABANA, {}))
    return made


def _by_id(gpus: Sequence[Attributes]) -> dict[str, LabelValue]:
    counts: dict[str, list[Attributes]] = {}
    for gpu in gpus:
        if "device" in gpu:
            counts.setdefault(f"{gpu['class']}-{gpu['device']}", []).append(gpu)
    made = {}
    for name, listed in sorted(counts.items()):
        where = listed[0]["address"]
        for end, value in (("present", "true"), ("count", str(len(listed)))):
            made[f"{PREFIX}device-id.{name}.{end}"] = LabelValue(value, MODULE, where)
    return made


def _product(gpus: Sequence[Attributes]) -> dict[str, LabelValue]:
    """Name the most numerous product, then the lower device id."""
    known = [g["device"] for g in gpus if g.get("device") in PRODUCTS]
    if not known:
        return {}
    most = min(known, key=lambda d: (-known.count(d), d))
    product, family = PRODUCTS[most]
    made = {f"{PREFIX}family": LabelValue(family, MODULE, most)}
    if product:
        made[f"{PREFIX}product"] = LabelValue(product, MODULE, most)
        count = str(known.count(most))
        made[f"{PREFIX}device.count"] = LabelValue(count, MODULE, most)
    return made


def _numbers(gpus: Sequence[Attributes]) -> dict[str, LabelValue]:
    """Return the labels of the hook of old: GPU aware scheduling reads them."""
    gpus = sorted(gpus, key=lambda g: int(g["card"]))
    if not gpus:
        return {}
    tiles = sum(int(g.get("tiles", 1)) for g in gpus)
    memory = sum(int(g.get("tile_memory", 0)) * int(g.get("tiles", 1)) for g in gpus)
    by_node: dict[str, list[str]] = {}
    for gpu in gpus:
        by_node.setdefault(gpu.get("numa_node", "0"), []).append(gpu["card"])
    nodes = "_".join(
        f"{node}-{'.'.join(cards)}" for node, cards in sorted(by_node.items())
    )
    values = {
        "tiles": str(tiles),
        "millicores": str(1000 * len(gpus)),
        **_pieces("gpu-numbers", ".".join(g["card"] for g in gpus)),
        **_pieces("numa-gpu-map", nodes),
    }
    if memory:
        values["memory.max"] = str(memory)
    return {PREFIX + name: LabelValue(value, MODULE) for name, value in values.items()}


def _pieces(name: str, value: str) -> dict[str, str]:
    """Spread a value that is too long over `name`, `name2` and so on."""
    made = {name: value[:_PIECE]}
    rest = value[_PIECE:]
    while rest:
        made[f"{name}{len(made) + 1}"] = _CONTINUED + rest[: _PIECE - 1]
        rest = rest[_PIECE - 1 :]
    return made


def _habana(
    gaudi: Sequence[Attributes], told: Mapping[str, str]
) -> dict[str, LabelValue]:
    driver, _, digest = told.get("driver", "").partition("-")
    first = gaudi[0]
    device = first.get("device", "")
    values = {
        "device.count": str(len(gaudi)),
        "device.family": "gaudi",
        "device.id": device,
        "device.name": GAUDI_NAMES.get(device, ""),
        "device.revision": told.get("revision", ""),
        "device.type": told.get("type", ""),
        "driver.version": driver,
        "driver.hash": digest,
        "fw.version": told.get("fw.version", ""),
        "fw.os": told.get("fw.os", ""),
        "sys.vendor": told.get("sys_vendor", ""),
        "product.name": told.get("product_name", ""),
    }
    return {
        HABANA_PREFIX + name: LabelValue(
            fit(label_text(value)), HABANA if told else DEVICE, first["address"]
        )
        for name, value in values.items()
        if value
    }
