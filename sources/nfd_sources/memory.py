"""Memory: NUMA nodes, swap, non-volatile memory, huge pages.

Kernel: Documentation/ABI/stable/sysfs-devices-node, .../testing/sysfs-kernel-mm-hugepages,
Documentation/driver-api/nvdimm. Specification: worker.md section 1.3.
"""

from collections.abc import Mapping

from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.source import (
    FeatureSpec,
    LabelSpec,
    LabelValue,
    NoSettings,
    Source,
    Watch,
)
from nfd_sources._reading import Gaps, entries, is_positive, read_folder, word

NODES = "/sys/bus/node/devices"
SWAPS = "/proc/swaps"
NVDIMMS = "/sys/bus/nd/devices"
HUGEPAGES = "/sys/kernel/mm/hugepages"

NUMA = "memory.numa"
SWAP = "memory.swap"
NV = "memory.nv"
HUGE = "memory.hugepages"
NV_FILES = ("devtype", "mode")


class MemorySource(Source[NoSettings]):
    """Finds out about NUMA, swap, non-volatile memory and huge pages."""

    name = "memory"
    needs = ("/sys/class",)
    feature_specs = (
        FeatureSpec(NUMA, ("attribute",), ("node_count", "is_numa"), "NUMA nodes"),
        FeatureSpec(SWAP, ("attribute",), ("enabled",), "whether swap is in use"),
        FeatureSpec(NV, ("instance",), ("name", *NV_FILES), "NVDIMM devices"),
        FeatureSpec(
            HUGE,
            ("attribute",),
            None,
            "`enabled`, and `hugepages-<size>`: pages reserved of each size",
        ),
    )
    label_specs = (
        LabelSpec("numa", "more than one NUMA node has CPUs"),
        LabelSpec("swap", "swap is in use"),
        LabelSpec("nv.present", "an NVDIMM device is there"),
        LabelSpec("nv.dax", "an NVDIMM device is configured for direct access"),
    )

    def discover(self, host: HostRoot, settings: NoSettings) -> Features:
        """Read the four sets; each that cannot be read is unknown by itself."""
        del settings
        gaps = Gaps()
        attributes: dict[str, dict[str, str]] = {}
        instances: dict[str, list[dict[str, str]]] = {}
        with gaps.reading(NUMA):
            numa = _numa(host, gaps)
            if numa:
                attributes[NUMA] = numa
        with gaps.reading(SWAP):
            swaps = host.read_optional(SWAPS)
            if swaps is not None:
                attributes[SWAP] = {"enabled": word(has_swap(swaps))}
        with gaps.reading(NV):
            instances[NV] = _nvdimms(host, gaps)
        with gaps.reading(HUGE):
            attributes[HUGE] = _hugepages(host, gaps)
        return Features.of(
            attributes=attributes,
            instances=instances,
            unknown=gaps.unknown,
            notes=gaps.notes,
        )

    def labels(
        self, features: Features, settings: NoSettings
    ) -> Mapping[str, LabelValue]:
        """Return `numa`, `swap`, `nv.present` and `nv.dax` where they hold."""
        del settings
        labels = {}
        if features.attributes.get(NUMA, {}).get("is_numa") == "true":
            labels["numa"] = LabelValue("true", NUMA, "is_numa")
        if features.attributes.get(SWAP, {}).get("enabled") == "true":
            labels["swap"] = LabelValue("true", SWAP, "enabled")
        for device in features.instances.get(NV, ()):
            name = device["name"]
            labels.setdefault("nv.present", LabelValue("true", NV, name))
            if device.get("devtype") == "nd_dax":
                made = LabelValue("true", NV, name, "devtype is nd_dax")
                labels.setdefault("nv.dax", made)
        return labels

    def why_not(self, name: str, features: Features, settings: NoSettings) -> str:
        """Say what the features hold instead."""
        del settings
        if name == "numa":
            numa = features.attributes.get(NUMA)
            if numa is None:
                return f"no {NODES}"
            return f"not more than one of {numa['node_count']} NUMA nodes has CPUs"
        if name == "swap":
            return "no swap in use" if SWAP in features.attributes else f"no {SWAPS}"
        if name == "nv.present":
            return f"no device in {NVDIMMS}"
        if name == "nv.dax":
            return f"no device with devtype nd_dax in {NVDIMMS}"
        return ""

    def watch(self, settings: NoSettings) -> tuple[Watch, ...]:
        """Look again when an NVDIMM device or a NUMA node comes or goes."""
        del settings
        return (Watch("udev", "nd"), Watch("udev", "node"))


def has_swap(swaps: str) -> bool:
    """Tell from the text of /proc/swaps whether a swap area follows the header."""
    return sum(1 for line in swaps.split("\n") if line.strip()) > 1


def hugepage_size(name: str) -> str | None:
    """Return the Kubernetes quantity in a folder name: `hugepages-2048kB` is `2Mi`."""
    digits = name.removeprefix("hugepages-").rstrip("kB")
    if not (digits.isascii() and digits.isdigit()):
        return None
    size = int(digits)
    unit = 0
    units = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
    while size and size % 1024 == 0 and unit < len(units) - 1:
        size //= 1024
        unit += 1
    return f"{size}{units[unit]}" if size else "0"


def _numa(host: HostRoot, gaps: Gaps) -> dict[str, str]:
    nodes = entries(host, NODES)
    if nodes is None:
        return {}
    # Nodes of memory alone (NVDIMM, CXL, GPU memory) give CPUs no choice of node.
    with_cpus = 0
    unread = 0
    for node in nodes:
        try:
            if host.read_optional(f"{NODES}/{node}/cpulist") != "":
                with_cpus += 1  # also where the kernel does not say
        except OSError as error:
            gaps.unread(NUMA, node, (error,))
            unread += 1
    numa = {"node_count": str(len(nodes))}
    if with_cpus > 1 or not unread:
        numa["is_numa"] = word(with_cpus > 1)
    return numa


def _nvdimms(host: HostRoot, gaps: Gaps) -> list[dict[str, str]]:
    devices = []
    for name in entries(host, NVDIMMS) or ():
        errors: list[OSError] = []
        values = read_folder(host, f"{NVDIMMS}/{name}", NV_FILES, errors)
        if errors:
            gaps.unread(NV, name, errors)
        devices.append({"name": name, **values})
    return devices


def _hugepages(host: HostRoot, gaps: Gaps) -> dict[str, str]:
    pages = {}
    unread = 0
    for name in entries(host, HUGEPAGES) or ():
        size = hugepage_size(name)
        path = f"{HUGEPAGES}/{name}"
        if size is None or not host.is_dir(path):
            continue
        try:
            pages[f"hugepages-{size}"] = (
                host.read_optional(f"{path}/nr_hugepages") or ""
            )
        except OSError as error:
            gaps.unread(HUGE, name, (error,))
            unread += 1
    enabled = any(is_positive(count) for count in pages.values())
    if enabled or not unread:
        pages["enabled"] = word(enabled)
    return pages
