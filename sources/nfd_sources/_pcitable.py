"""Labels from a table: devices on the PCI bus, and modules of the kernel, to labels.

A row matches when a device of it is there and every one of its modules is loaded or
built in. Values of labels may hold fields in braces: `count`, the number of devices;
`product` and `family` of the most numerous device id; `version` and its parts, of
the row's first module. A label with a field that is not known is left out.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from nfd.errors import ConfigError
from nfd.features import Attributes, Features
from nfd.hostroot import HostRoot
from nfd.source import LabelValue
from nfd_sources._pci import PciFunction
from nfd_sources._reading import Gaps

_FIELD = re.compile(r"\{([a-z_.]+)\}")
_PARTS = ("major", "minor", "patch")
_CLASS_DIGITS = 4


class Row(NamedTuple):
    """One row; an empty tuple sets no condition."""

    vendor: str  # four hex digits
    labels: Mapping[str, str]
    classes: tuple[str, ...] = ()  # beginnings of the class
    devices: tuple[str, ...] = ()
    subsystems: tuple[str, ...] = ()  # subsystem device ids
    modules: tuple[str, ...] = ()  # each with alternatives: "i915|xe"
    products: Mapping[str, tuple[str, str]] = {}  # device → product, family


def row_of(plain: Mapping[str, Any], path: str) -> Row:
    """Read a row of a configuration file, whose keys are the names of the fields.

    Raises:
        ConfigError: A key is unknown, or a value has the wrong shape.

    """
    unknown = sorted(plain.keys() - set(Row._fields) - {"products"})
    if unknown:
        raise ConfigError(f"{path}.{unknown[0]}: unknown key")
    vendor, labels = plain.get("vendor"), plain.get("labels")
    if not isinstance(vendor, str) or not isinstance(labels, Mapping):
        raise ConfigError(f"{path}: needs a text 'vendor' and a map 'labels'")
    classes, devices, subsystems, modules = (
        _texts(plain.get(key) or (), f"{path}.{key}")
        for key in ("classes", "devices", "subsystems", "modules")
    )
    texts = {str(key): str(value) for key, value in labels.items()}
    number = vendor.lower().removeprefix("0x")
    return Row(number, texts, classes, devices, subsystems, modules)


def _texts(value: Any, path: str) -> tuple[str, ...]:
    if isinstance(value, str) or not all(isinstance(v, str) for v in value):
        raise ConfigError(f"{path}: {value!r} is not allowed here, expected texts")
    return tuple(v.lower().removeprefix("0x") for v in value)


def device_of(function: PciFunction) -> dict[str, str]:
    """Return the instance of a function, without what is not known."""
    told = {
        "address": function.address,
        "vendor": function.vendor,
        "class": function.class_[:_CLASS_DIGITS],
        "device": function.device,
        "subsystem_device": function.more.get("subsystem_device", "")
        .removeprefix("0x")
        .lower(),
        "driver": function.driver,
    }
    return {name: value for name, value in told.items() if value}


def matches(row: Row, device: Attributes) -> bool:
    """Tell whether a device is one of the row."""
    return (
        device.get("vendor") == row.vendor
        and (not row.classes or device.get("class", "").startswith(row.classes))
        and (not row.devices or device.get("device", "") in row.devices)
        and (not row.subsystems or device.get("subsystem_device", "") in row.subsystems)
    )


def read_modules(
    host: HostRoot, rows: Iterable[Row], key: str, gaps: Gaps
) -> dict[str, str]:
    """Return those modules of the rows that the kernel has, with their versions.

    A module without a version has "". Sources: /sys/module, and for modules that are
    not there /proc/modules and modules.builtin.
    """
    names = {name for row in rows for text in row.modules for name in text.split("|")}
    found: dict[str, str] = {}
    for name in sorted(names):
        with gaps.reading(key, name):
            if host.is_dir(f"/sys/module/{name}"):
                found[name] = host.read_optional(f"/sys/module/{name}/version") or ""
    missing = names - found.keys()
    if missing:
        with gaps.reading(key):
            found |= dict.fromkeys(missing & _listed(host), "")
    return dict(sorted(found.items()))


def _listed(host: HostRoot) -> set[str]:
    loaded = host.read_optional("/proc/modules") or ""
    names = {line.partition(" ")[0] for line in loaded.splitlines()}
    release = host.read_optional("/proc/sys/kernel/osrelease") or ""
    for folder in ("/lib/modules", "/usr/lib/modules"):
        builtin = host.read_optional(f"{folder}/{release}/modules.builtin")
        if release and builtin:
            names |= {
                line.rpartition("/")[2].partition(".ko")[0]
                for line in builtin.splitlines()
            }
            break
    return {name.replace("-", "_") for name in names}


def labels_of(
    rows: Iterable[Row], features: Features, source: str
) -> dict[str, LabelValue]:
    """Return the labels of all rows that match; later rows overwrite.

    The devices are those of `<source>.device`, the modules of `<source>.module`.
    """
    devices = features.instances.get(f"{source}.device", ())
    modules = features.attributes.get(f"{source}.module", {})
    made: dict[str, LabelValue] = {}
    for row in rows:
        matching = [d for d in devices if matches(row, d)]
        if not matching or missing_modules(row, modules):
            continue
        fields = _fields(row, matching, modules)
        for key, text in row.labels.items():
            if all(name in fields for name in _FIELD.findall(text)):
                value = _FIELD.sub(lambda m, known=fields: known[m[1]], text)  # type: ignore[misc] # a default binds the loop's value
                made[key] = _label(row, value, matching[0], source)
    return made


def why_not(rows: Iterable[Row], name: str, features: Features, source: str) -> str:
    """Say what the rows that make the label `name` lack."""
    reasons = []
    for row in rows:
        if name not in row.labels:
            continue
        devices = features.instances.get(f"{source}.device", ())
        missing = missing_modules(row, features.attributes.get(f"{source}.module", {}))
        if not any(matches(row, d) for d in devices):
            kinds = ", ".join(row.devices or row.classes) or "any"
            reasons.append(f"no device of vendor {row.vendor} ({kinds})")
        elif missing:
            reasons.append(f"the kernel has no module {', '.join(missing)}")
        else:
            reasons.append(f"not known: {row.labels[name]}")
    return "; ".join(reasons) or "no row of the table makes it"


def missing_modules(row: Row, modules: Mapping[str, str]) -> list[str]:
    """Return what the row needs of the kernel and the kernel has not."""
    return [
        text
        for text in row.modules
        if not any(name in modules for name in text.split("|"))
    ]


def _label(row: Row, value: str, device: Attributes, source: str) -> LabelValue:
    """Name the modules as what made it, where there are any: they come and go."""
    address = device.get("address", "")
    if row.modules:
        needed = ", ".join(row.modules)
        return LabelValue(value, f"{source}.module", needed, f"{address} is there")
    return LabelValue(value, f"{source}.device", address, f"vendor {row.vendor}")


def _fields(
    row: Row, devices: Sequence[Attributes], modules: Mapping[str, str]
) -> dict[str, str]:
    fields = {"count": str(len(devices))}
    counts: dict[str, int] = {}
    for device in devices:
        number = device.get("device", "")
        counts[number] = counts.get(number, 0) + 1
    most = min(counts, key=lambda d: (-counts[d], d))
    if most in row.products:
        fields["product"], fields["family"] = row.products[most]
    for text in row.modules[:1]:
        for name in text.split("|"):
            version = modules.get(name, "")
            if version:
                fields["version"] = version
                numbers = re.split(r"[.+-]", version)
                fields |= dict(
                    zip((f"version.{p}" for p in _PARTS), numbers, strict=False)
                )
    return fields
