"""The whole source on made-up hosts: what holds whatever cannot be read."""

from collections.abc import Callable

import pytest

from nfd.features import Features
from nfd_sources.cpu import CpuSettings, CpuSource
from tests.sources.cpu.shared import SYSTEM, Tree

CPUINFO = (
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
    "flags\t\t: fpu cx8 cmov mmx fxsr sse sse2 syscall hypervisor tdx_guest cat_l3\n"
)
X86 = {
    "proc/cpuinfo": CPUINFO,
    "sys/hypervisor/type": "xen\n",
    "sys/bus/cpu/devices/cpu0/topology/thread_siblings_list": "0\n",
    "sys/bus/cpu/devices/cpu0/topology/physical_package_id": "0\n",
    "sys/bus/cpu/devices/cpu1/topology/thread_siblings_list": "1\n",
    "sys/bus/cpu/devices/cpu1/topology/physical_package_id": "1\n",
    "sys/devices/cpu_core/cpus": "0\n",
    "sys/devices/cpu_atom/cpus": "1\n",
    f"{SYSTEM}/cpuidle/current_driver": "intel_idle\n",
    "sys/module/intel_idle/parameters/max_cstate": "9\n",
    f"{SYSTEM}/intel_pstate/status": "active\n",
    f"{SYSTEM}/intel_pstate/no_turbo": "0\n",
    f"{SYSTEM}/cpufreq/policy0/affected_cpus": "0\n",
    f"{SYSTEM}/cpufreq/policy0/scaling_governor": "powersave\n",
    "sys/fs/resctrl/info/L3/num_closids": "16\n",
    "sys/module/kvm_intel/parameters/tdx": "Y\n",
    "sys/module/kvm_amd/parameters/sev": "Y\n",
    "sys/fs/cgroup/misc.capacity": "tdx 63\nsev 100\n",
}
# Leaves 0, 1, 7 and 0x16: Intel 6-85 with SGX off, 2300 MHz; base leaf 0x80000000.
DUMP = (
    "1 0 0 0 0 => 16 756e6547 6c65746e 49656e69\n"
    "1 1 0 0 0 => 50654 400800 8000000 bfebfbff\n"
    "1 16 0 0 0 => 8fc e74 64 0\n"
    "xcr0 7\n"
)
DUMPED = {
    **X86,
    ".nfd/uname": "Linux x 6.1 x86_64\n",
    ".nfd/cpuid": DUMP,
    "sys/bus/cpu/devices/cpu1/cpufreq/base_frequency": "2700000\n",
}
S390X = {
    "proc/cpuinfo": "vendor_id : IBM/S390\nfeatures : esan3 zarch madeup\n",
    "proc/sysinfo": "VM00 Control Program: KVM/Linux\n",
    "sys/firmware/uv/prot_virt_host": "1\n",
}
PPC64LE = {
    ".nfd/uname": "Linux x 6.1 ppc64le\n",
    ".nfd/auxv": "hwcap 2\nhwcap2 80000000\n",
    "proc/cpuinfo": "processor : 0\ncpu : POWER9, altivec supported\n",
    "sys/devices/vio/ibm,compression-v1/nx_gzip_caps/x": "",
}
ARM64 = {
    ".nfd/uname": "aarch64\n",
    ".nfd/auxv": "hwcap 801\nhwcap2 0\n",
    "proc/cpuinfo": "processor : 0\nFeatures : fp\n",
    "sys/bus/cpu/devices/cpu0/regs/identification/midr_el1": "0x00000000410fd0c0\n",
}
RISCV = {
    ".nfd/uname": "riscv64\n",
    "proc/cpuinfo": "processor : 0\nisa : rv64imac\nmvendorid : 0x489\n",
}
HOSTS = {
    "x86": X86,
    "dumped": DUMPED,
    "s390x": S390X,
    "ppc64le": PPC64LE,
    "arm64": ARM64,
    "riscv": RISCV,
}

NOT_READ = {
    *(("dumped", "proc/cpuinfo"), ("dumped", "sys/hypervisor/type")),
    *(("arm64", "proc/cpuinfo"), ("ppc64le", "proc/cpuinfo")),
    ("dumped", "sys/fs/resctrl/info/L3/num_closids"),  # the dump has no RDT
    ("ppc64le", "sys/devices/vio/ibm,compression-v1/nx_gzip_caps/x"),
}


def discover(files: dict[str, str], tree: Tree) -> Features:
    """Return the features of a made-up host."""
    with tree(files) as host:
        return CpuSource().discover(host, CpuSettings())


def test_x86(tree: Tree) -> None:
    """Everything that cpuinfo and sysfs tell."""
    found = discover(X86, tree)

    assert {"cpu_core", "cpu_atom"} == found.flags["cpu.hybrid"]
    assert {"TDX_GUEST", "HYPERVISOR", "X86_64_V1"} <= found.flags["cpu.cpuid"]
    assert found.attributes == {
        "cpu.cpuid": {},
        "cpu.model": {
            "vendor_id": "Intel",
            "family": "6",
            "id": "85",
            "hypervisor": "xenhvm",
        },
        "cpu.cstate": {"enabled": "true"},
        "cpu.pstate": {
            "status": "active",
            "turbo": "true",
            "scaling_governor": "powersave",
        },
        "cpu.rdt": {"RDTL3CA": "true", "RDTL3CA_NUM_CLOSID": "15"},
        "cpu.security": {
            "tdx.enabled": "true",
            "tdx.total_keys": "63",
            "tdx.protected": "true",
            "sev.enabled": "true",
            "sev.asids": "100",
        },
        "cpu.sst": {},
        "cpu.topology": {"hardware_multithreading": "false", "socket_count": "2"},
        "cpu.coprocessor": {},
    }
    assert found.unknown == {}


def test_a_recorded_dump(tree: Tree) -> None:
    """A dump in the capture is decoded; cpuinfo does not count then."""
    found = discover(DUMPED, tree)

    assert found.attributes["cpu.sst"] == {"bf.enabled": "true"}
    assert "OSXSAVE" in found.flags["cpu.cpuid"]
    assert "TDX_GUEST" not in found.flags["cpu.cpuid"]
    assert found.attributes["cpu.model"]["hypervisor"] == "none"


def test_a_dump_that_cannot_be_parsed(tree: Tree) -> None:
    """A broken dump is named, and cpuinfo tells instead."""
    found = discover({**X86, ".nfd/cpuid": "rubbish"}, tree)

    assert "TDX_GUEST" in found.flags["cpu.cpuid"]
    assert "rubbish" in found.notes["cpu.cpuid/dump"]


def test_s390x(tree: Tree) -> None:
    """Words of cpuinfo, the control program, secure execution."""
    found = discover(S390X, tree)

    assert {"ESAN3", "ZARCH"} == found.flags["cpu.cpuid"]
    assert found.attributes["cpu.model"] == {
        "vendor_id": "IBM_S390",
        "family": "0",
        "id": "0",
        "hypervisor": "KVM_Linux",
    }
    assert found.attributes["cpu.security"] == {"se.enabled": "true"}
    assert "cpu.cpuid" not in found.attributes


def test_ppc64le(tree: Tree) -> None:
    """A recorded auxiliary vector, and the Nest accelerator."""
    found = discover(PPC64LE, tree)

    assert {"TRUE_LE", "ARCH_2_07"} == found.flags["cpu.cpuid"]
    assert found.attributes["cpu.coprocessor"] == {"nx_gzip": "true"}
    assert found.attributes["cpu.model"]["vendor_id"] == "VendorUnknown"


def test_arm_with_a_broken_auxv(tree: Tree) -> None:
    """An auxv that cannot be parsed is named, and cpuinfo's words tell instead."""
    found = discover(
        {
            ".nfd/uname": "armv7l\n",
            ".nfd/auxv": "rubbish\n",
            "proc/cpuinfo": "processor : 0\nFeatures : neon vfpv4 madeup\n",
        },
        tree,
    )

    assert {"NEON", "VFPv4"} == found.flags["cpu.cpuid"]
    assert "rubbish" in found.notes["cpu.cpuid/auxv"]


@pytest.mark.parametrize("arch", ["aarch64", "riscv64", "loongarch64", "s390x"])
def test_no_cpuinfo(tree: Tree, arch: str) -> None:
    """A capture that has nothing about the processor tells nothing."""
    found = discover({".nfd/uname": f"{arch}\n"}, tree)

    assert "cpu.cpuid" not in found.flags
    assert "cpu.model" not in found.attributes


def test_an_empty_root(tree: Tree) -> None:
    """Nothing is made up where there is nothing."""
    found = discover({}, tree)

    assert found.flags == {}
    assert CpuSource().labels(found, CpuSettings()) == {}
    assert found.unknown == {}


@pytest.mark.parametrize(
    ("host", "path"), [(host, path) for host, files in HOSTS.items() for path in files]
)
def test_a_file_that_cannot_be_read_costs_its_own_set(
    tree: Tree, broken: Callable[[str], None], host: str, path: str
) -> None:
    """EIO on any file: sets that are not marked unknown are as before."""
    whole = discover(HOSTS[host], tree)
    broken(f"/{path}")
    found = discover(HOSTS[host], tree)

    assert ((host, path) not in NOT_READ) == bool(found.unknown)
    for key in whole.keys():  # noqa: SIM118 - Features is no mapping
        if key not in found.unknown:
            assert whole.flags.get(key) == found.flags.get(key)
            assert whole.attributes.get(key) == found.attributes.get(key)
    before = CpuSource().labels(whole, CpuSettings())
    after = CpuSource().labels(found, CpuSettings())
    lost = {
        label.feature
        for name, label in before.items()
        if not isinstance(label, str) and after.get(name) != label
    }
    assert lost <= found.unknown.keys()
