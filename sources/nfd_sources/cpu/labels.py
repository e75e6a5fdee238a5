"""Labels of the cpu source, and why one is not there; pure."""

from collections.abc import Iterator

import attrs

from nfd.features import Features
from nfd.source import LabelValue, Settings, setting

BLACKLIST = (
    *("AVX10", "BMI1", "BMI2", "CLMUL", "CMOV", "CX16", "ERMS", "F16C", "HTT"),
    *("LZCNT", "MMX", "MMXEXT", "NX", "POPCNT", "RDRAND", "RDSEED", "RDTSCP", "SGX"),
    *("SGXLC", "SSE", "SSE2", "SSE3", "SSE4", "SSE42", "SSSE3", "TDX_GUEST"),
)

# Counts that nodes rarely share; rules turn them into extended resources.
SECURITY_COUNTS = frozenset(
    {"tdx.total_keys", "sgx.epc", "sev.encrypted_state_ids", "sev.asids"}
)

# Beginning of a label -> feature set whose element name follows.
_FAMILIES = {
    "model.": "cpu.model",
    "cstate.": "cpu.cstate",
    "pstate.": "cpu.pstate",
    "security.": "cpu.security",
    "power.sst_": "cpu.sst",
    "coprocessor.": "cpu.coprocessor",
}
_MULTITHREADING = "hardware_multithreading"
_ONLY_FEATURES = {"rdt.": "cpu.rdt", "topology.": "cpu.topology"}


@attrs.frozen(slots=True, eq=False, repr=False)
class CpuSettings(Settings):
    """The settings below `sources.cpu`."""

    attribute_blacklist: tuple[str, ...] = setting(
        "cpuid.attributeBlacklist",
        BLACKLIST,
        "CPUID flags that get no label, exactly as written; features keep them",
    )
    attribute_whitelist: tuple[str, ...] = setting(
        "cpuid.attributeWhitelist",
        (),
        "if not empty, the only CPUID flags that get a label",
    )

    def refuses(self, flag: str) -> str:
        """Name the list that keeps a flag from being a label, or ""."""
        if self.attribute_whitelist:
            if flag in self.attribute_whitelist:
                return ""
            return "not in sources.cpu.cpuid.attributeWhitelist"
        if flag in self.attribute_blacklist:
            return "in sources.cpu.cpuid.attributeBlacklist"
        return ""


def labels(features: Features, settings: CpuSettings) -> dict[str, LabelValue]:
    """Return the labels, keys without prefix."""
    made = {}
    for flag in sorted(features.flags.get("cpu.cpuid", ())):
        if not settings.refuses(flag):
            made[f"cpuid.{flag}"] = LabelValue("true", "cpu.cpuid", flag)
    for core_type in sorted(features.flags.get("cpu.hybrid", ())):
        made[core_type] = LabelValue("true", "cpu.hybrid", core_type)
    for name, feature, element, value in _from_attributes(features):
        made[name] = LabelValue(value, feature, element)
    return made


def _from_attributes(features: Features) -> Iterator[tuple[str, str, str, str]]:
    for name, value in features.attributes.get("cpu.cpuid", {}).items():
        yield f"cpuid.{name}", "cpu.cpuid", name, value
    for beginning, feature in _FAMILIES.items():
        for name, value in features.attributes.get(feature, {}).items():
            if feature != "cpu.security" or name not in SECURITY_COUNTS:
                yield f"{beginning}{name}", feature, name, value
    topology = features.attributes.get("cpu.topology", {})
    if _MULTITHREADING in topology:
        value = topology[_MULTITHREADING]
        yield _MULTITHREADING, "cpu.topology", _MULTITHREADING, value


def why_not(name: str, features: Features, settings: CpuSettings) -> str:
    """Say why the label `name` is not there, or "" for names that are none."""
    if name.startswith("cpuid."):
        return _why_no_flag(name.removeprefix("cpuid."), features, settings)
    if name in {"cpu_atom", "cpu_core"}:
        reason = f"/sys/devices/{name}/cpus is not there: no hybrid processor"
        return features.unknown.get("cpu.hybrid", reason)
    if name == _MULTITHREADING:
        return _why_no_element("cpu.topology", name, features)
    for beginning, feature in _FAMILIES.items():
        if name.startswith(beginning):
            element = name.removeprefix(beginning)
            if feature == "cpu.security" and element in SECURITY_COUNTS:
                return f"{feature} element {element} is a feature only, no label"
            return _why_no_element(feature, element, features)
    for beginning, feature in _ONLY_FEATURES.items():
        if name.startswith(beginning):
            return f"{feature} is a feature only; a rule can make labels of it"
    return ""


def _why_no_flag(flag: str, features: Features, settings: CpuSettings) -> str:
    flags = features.flags.get("cpu.cpuid")
    if flags is not None and flag in flags:
        return f"cpu.cpuid has {flag}, but it is {settings.refuses(flag)}"
    if reason := features.unknown.get("cpu.cpuid"):
        return f"cpu.cpuid is not known: {reason}"
    if flags is None:
        return "cpu.cpuid is absent: neither CPUID nor cpuinfo is to be had"
    near = sorted(known for known in flags if known.lower() == flag.lower())
    hint = f"; {near[0]} is there, case counts" if near else ""
    return f"the processor has no {flag}, or the system keeps it off{hint}"


def _why_no_element(feature: str, element: str, features: Features) -> str:
    if reason := features.unknown.get(feature):
        return f"{feature} is not known: {reason}"
    if reason := features.notes.get(f"{feature}/{element}"):
        return f"{feature} element {element} was left out: {reason}"
    if feature not in features.attributes:
        return f"{feature} is absent on this host"
    return f"{feature} has no element {element} on this host"
