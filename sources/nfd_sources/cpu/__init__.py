"""The processor: flags, model, power states, security, topology.

Specification: spec/worker.md section 1.1; the manual's page is docs/sources/cpu.md.
"""

from collections.abc import Mapping

from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.source import FeatureSpec, LabelSpec, LabelValue, Source, Watch
from nfd_sources._reading import Gaps
from nfd_sources.cpu import labels
from nfd_sources.cpu.labels import CpuSettings
from nfd_sources.cpu.power import cstate, pstate, sst
from nfd_sources.cpu.processor import Processor, architecture, identify
from nfd_sources.cpu.resctrl import rdt_attributes
from nfd_sources.cpu.security import s390x_security, x86_security
from nfd_sources.cpu.topology import core_types, threads_and_sockets

__all__ = ["CpuSettings", "CpuSource"]

# Architectures that surely have none of what only x86 has.
_NOT_X86 = frozenset(
    ["arm", "arm64", "loongarch64", "ppc64", "ppc64le", "riscv32", "riscv64", "s390x"]
)

_ALL_BUT_TOPOLOGY = (
    *("cpu.cpuid", "cpu.model", "cpu.cstate", "cpu.pstate", "cpu.rdt"),
    *("cpu.security", "cpu.sst", "cpu.coprocessor", "cpu.hybrid"),
)
_BY_CPUID = ("cpu.model", "cpu.rdt", "cpu.security", "cpu.sst")


class CpuSource(Source[CpuSettings]):
    """Finds out what the processor can do and how the system runs it."""

    name = "cpu"
    needs = ("/sys/class",)
    settings_class = CpuSettings
    feature_specs = (
        FeatureSpec(
            "cpu.cpuid",
            ("flag", "attribute"),
            None,
            "instruction sets and other features, levels X86_64_V1 to X86_64_V4; the "
            "attribute AVX10_VERSION",
        ),
        FeatureSpec(
            "cpu.model",
            ("attribute",),
            ("vendor_id", "family", "id", "hypervisor"),
            "who made the processor, which it is, and under what it runs",
        ),
        FeatureSpec("cpu.cstate", ("attribute",), ("enabled",), "intel_idle is in use"),
        FeatureSpec(
            "cpu.pstate",
            ("attribute",),
            ("status", "turbo", "scaling_governor"),
            "the intel_pstate driver",
        ),
        FeatureSpec(
            "cpu.rdt",
            ("attribute",),
            (
                *("RDTMON", "RDTCMT", "RDTMBM"),
                *("RDTL3CA", "RDTL2CA", "RDTMBA", "RDTL3CA_NUM_CLOSID"),
            ),
            "resource director technology",
        ),
        FeatureSpec(
            "cpu.security",
            ("attribute",),
            (
                *("sgx.enabled", "sgx.epc"),
                *("tdx.enabled", "tdx.total_keys", "tdx.protected"),
                *("sev.enabled", "sev.asids", "sev.es.enabled"),
                *("sev.encrypted_state_ids", "sev.snp.enabled", "se.enabled"),
            ),
            "enclaves and encrypted guests",
        ),
        FeatureSpec(
            "cpu.sst", ("attribute",), ("bf.enabled",), "speed select technology"
        ),
        FeatureSpec(
            "cpu.topology",
            ("attribute",),
            ("hardware_multithreading", "socket_count"),
            "threads and sockets of the CPUs that are online",
        ),
        FeatureSpec(
            "cpu.coprocessor", ("attribute",), ("nx_gzip",), "accelerators of ppc64le"
        ),
        FeatureSpec(
            "cpu.hybrid",
            ("flag",),
            ("cpu_atom", "cpu_core"),
            "core types; only on hybrid processors",
        ),
    )
    label_specs = (
        LabelSpec("cpuid.<flag>", "true for each flag that the lists let pass"),
        LabelSpec("cpuid.AVX10_VERSION", "version of AVX10; no list applies"),
        LabelSpec("model.<element>", "each element of cpu.model"),
        LabelSpec("cstate.enabled", "true or false under intel_idle"),
        LabelSpec("pstate.<element>", "each element of cpu.pstate"),
        LabelSpec("security.<element>", "each element of cpu.security but the counts"),
        LabelSpec("power.sst_bf.enabled", "true when base frequency is raised"),
        LabelSpec("hardware_multithreading", "true or false"),
        LabelSpec("coprocessor.nx_gzip", "true with the Nest accelerator"),
        LabelSpec("<core type>", "true for cpu_atom and cpu_core on hybrids"),
    )

    def discover(self, host: HostRoot, settings: CpuSettings) -> Features:
        """Read processor and sysfs; what cannot be read costs its own set only."""
        del settings
        gaps = Gaps()
        arch, processor = _processor(host, gaps)
        flags = {"cpu.cpuid": processor.flags}
        attributes: dict[str, Mapping[str, str] | None] = {
            "cpu.cpuid": processor.attributes,
            "cpu.model": processor.model,
            "cpu.cstate": {},
            "cpu.pstate": {},
            "cpu.rdt": {},
            "cpu.security": {},
            "cpu.sst": {},
            "cpu.topology": threads_and_sockets(host, gaps),
            "cpu.coprocessor": {},
        }
        if arch == "s390x":
            attributes["cpu.security"] = s390x_security(host, gaps)
        elif arch == "ppc64le":
            attributes["cpu.coprocessor"] = _coprocessor(host, gaps)
        elif arch not in _NOT_X86:
            flags["cpu.hybrid"] = core_types(host, gaps) or None
            attributes |= {
                "cpu.cstate": cstate(host, gaps),
                "cpu.pstate": pstate(host, gaps),
                "cpu.rdt": rdt_attributes(host, processor.rdt, gaps),
                "cpu.security": x86_security(
                    host, processor.flags or frozenset(), processor.epc_bytes, gaps
                ),
                "cpu.sst": sst(host, processor.nominal_mhz, gaps),
            }
        return Features(
            {key: names for key, names in flags.items() if names is not None},
            {key: found for key, found in attributes.items() if found is not None},
            unknown=gaps.unknown,
            notes=gaps.notes,
        )

    def labels(
        self, features: Features, settings: CpuSettings
    ) -> Mapping[str, LabelValue | str]:
        """Label flags that pass the lists, and most attributes."""
        return labels.labels(features, settings)

    def why_not(self, name: str, features: Features, settings: CpuSettings) -> str:
        """Say which list, file or processor keeps a label away."""
        return labels.why_not(name, features, settings)

    def watch(self, settings: CpuSettings) -> tuple[Watch, ...]:
        """Look again when a CPU goes online or offline."""
        del settings
        return (Watch("udev", "cpu"),)


def _processor(host: HostRoot, gaps: Gaps) -> tuple[str, Processor]:
    """Return architecture and processor; what they cannot tell becomes unknown."""
    try:
        arch = architecture(host.arch)
    except OSError as error:
        for key in _ALL_BUT_TOPOLOGY:
            gaps.unread(key, "", (error,))
        return "", Processor()
    processor = Processor()
    with gaps.reading("cpu.cpuid"):
        processor = identify(host, arch, gaps)
    if arch == "x86" and "cpu.cpuid" in gaps.unknown:
        for key in _BY_CPUID:
            gaps.unknown[key] = gaps.unknown["cpu.cpuid"]
    return arch, processor


def _coprocessor(host: HostRoot, gaps: Gaps) -> dict[str, str]:
    """Return `nx_gzip` when the Nest accelerator is there (powerpc/vas-api.rst)."""
    with gaps.reading("cpu.coprocessor", "nx_gzip"):
        if host.exists("/sys/devices/vio/ibm,compression-v1/nx_gzip_caps"):
            return {"nx_gzip": "true"}
    return {}
