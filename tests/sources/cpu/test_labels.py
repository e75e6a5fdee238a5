"""Labels of the cpu source, and why one is not there."""

import pytest

from nfd.features import Features
from nfd_sources.cpu import CpuSettings, CpuSource

FEATURES = Features.of(
    flags={"cpu.cpuid": ["AVX", "SSE4", "X86_64_V1"], "cpu.hybrid": ["cpu_core"]},
    attributes={
        "cpu.cpuid": {"AVX10_VERSION": "2"},
        "cpu.model": {"vendor_id": "Intel", "family": "6", "id": "1"},
        "cpu.cstate": {"enabled": "false"},
        "cpu.pstate": {"status": "active"},
        "cpu.rdt": {"RDTMON": "true"},
        "cpu.security": {"sgx.enabled": "true", "sgx.epc": "4096"},
        "cpu.sst": {"bf.enabled": "true"},
        "cpu.topology": {"hardware_multithreading": "true", "socket_count": "2"},
        "cpu.coprocessor": {"nx_gzip": "true"},
    },
)
ATTRIBUTES = {
    "cpuid.AVX10_VERSION": "2",
    "model.vendor_id": "Intel",
    "model.family": "6",
    "model.id": "1",
    "cstate.enabled": "false",
    "pstate.status": "active",
    "security.sgx.enabled": "true",
    "power.sst_bf.enabled": "true",
    "hardware_multithreading": "true",
    "coprocessor.nx_gzip": "true",
    "cpu_core": "true",
}


def labelled(settings: CpuSettings) -> dict[str, str]:
    """Return names and values of the labels of `FEATURES`."""
    made = CpuSource().labels(FEATURES, settings)
    return {k: v if isinstance(v, str) else v.value for k, v in made.items()}


@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        (CpuSettings(), {"AVX", "X86_64_V1"}),
        (CpuSettings(attribute_blacklist=()), {"AVX", "SSE4", "X86_64_V1"}),
        (CpuSettings(attribute_blacklist=("avx", "X86")), {"AVX", "SSE4", "X86_64_V1"}),
        (CpuSettings(attribute_whitelist=("SSE4", "NONE")), {"SSE4"}),
        (CpuSettings(("AVX",), ("AVX",)), {"AVX"}),
        (CpuSettings(("AVX10_VERSION",), ("AVX",)), {"AVX"}),
    ],
)
def test_labels(settings: CpuSettings, flags: set[str]) -> None:
    """The lists filter flags exactly as written; attributes are never filtered."""
    expected = ATTRIBUTES | {f"cpuid.{flag}": "true" for flag in flags}

    assert expected == labelled(settings)


def test_the_default_blacklist() -> None:
    """Upstream's 26 names are kept from labels by default."""
    blacklist = CpuSettings().attribute_blacklist

    assert 26 == len(set(blacklist)) == len(blacklist)
    assert CpuSettings().attribute_whitelist == ()


def test_no_features_no_labels() -> None:
    """Before a discovery there is nothing to label."""
    assert CpuSource().labels(Features(), CpuSettings()) == {}


UNKNOWN = Features.of(
    attributes={"cpu.security": {}},
    unknown={"cpu.cpuid": "EACCES", "cpu.pstate": "EIO", "cpu.hybrid": "EPERM"},
    notes={"cpu.cstate/enabled": "max_cstate is 'many'"},
)


@pytest.mark.parametrize(
    ("name", "features", "settings", "reason"),
    [
        ("cpuid.SSE4", FEATURES, CpuSettings(), "attributeBlacklist"),
        ("cpuid.AVX", FEATURES, CpuSettings((), ("SSE4",)), "attributeWhitelist"),
        ("cpuid.AVX2", FEATURES, CpuSettings(), "has no AVX2"),
        ("cpuid.avx", FEATURES, CpuSettings(), "AVX is there, case counts"),
        ("cpuid.AVX", Features(), CpuSettings(), "absent"),
        ("cpuid.AVX", UNKNOWN, CpuSettings(), "EACCES"),
        ("cpu_atom", FEATURES, CpuSettings(), "/sys/devices/cpu_atom/cpus"),
        ("cpu_atom", UNKNOWN, CpuSettings(), "EPERM"),
        ("security.sgx.epc", FEATURES, CpuSettings(), "a feature only"),
        ("security.tdx.enabled", FEATURES, CpuSettings(), "no element tdx.enabled"),
        ("pstate.turbo", UNKNOWN, CpuSettings(), "EIO"),
        ("cstate.enabled", UNKNOWN, CpuSettings(), "max_cstate is 'many'"),
        ("hardware_multithreading", UNKNOWN, CpuSettings(), "absent"),
        ("power.sst_bf.enabled", Features(), CpuSettings(), "cpu.sst is absent"),
        ("rdt.RDTMON", FEATURES, CpuSettings(), "a feature only"),
        ("topology.socket_count", FEATURES, CpuSettings(), "a feature only"),
    ],
)
def test_why_not(
    name: str, features: Features, settings: CpuSettings, reason: str
) -> None:
    """The list, the file or the processor that keeps a label away is named."""
    assert reason in CpuSource().why_not(name, features, settings)


def test_why_not_of_other_names() -> None:
    """Names that this source never makes get no reason."""
    assert CpuSource().why_not("madeup", FEATURES, CpuSettings()) == ""
