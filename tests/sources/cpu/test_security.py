"""Enclaves, encrypted guests, resource director technology."""

from collections.abc import Callable

import pytest

from nfd_sources._reading import Gaps
from nfd_sources.cpu import resctrl, security
from tests.sources.cpu.shared import Tree

KVM_AMD = "sys/module/kvm_amd/parameters"
TDX = "sys/module/kvm_intel/parameters/tdx"
CAPACITY = "sys/fs/cgroup/misc.capacity"
OLD_CAPACITY = "sys/fs/cgroup/misc/misc.capacity"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        # H11: a resource is its whole name.
        (
            {
                f"{KVM_AMD}/sev": "Y",
                f"{KVM_AMD}/sev_es": "Y\n",
                CAPACITY: "sev_es 509\n",
            },
            {
                "sev.enabled": "true",
                "sev.es.enabled": "true",
                "sev.encrypted_state_ids": "509",
            },
        ),
        (
            {
                f"{KVM_AMD}/sev": "1\n",
                f"{KVM_AMD}/sev_es": " y",
                f"{KVM_AMD}/sev_snp": "Y",
                CAPACITY: "sev 100\nsev_es 409",
            },
            {
                "sev.enabled": "true",
                "sev.asids": "100",
                "sev.es.enabled": "true",
                "sev.encrypted_state_ids": "409",
                "sev.snp.enabled": "true",
            },
        ),
        ({TDX: "Y\n", CAPACITY: "tdx max\n"}, {"tdx.enabled": "true"}),
        ({TDX: "Y", CAPACITY: "tdx\n"}, {"tdx.enabled": "true"}),
        (
            {TDX: "1", OLD_CAPACITY: "tdx  63\ntdx 7\n"},
            {"tdx.enabled": "true", "tdx.total_keys": "63"},
        ),
        (
            {TDX: "Y", CAPACITY: "sev 5\n", OLD_CAPACITY: "tdx 63\n"},
            {"tdx.enabled": "true"},
        ),
        ({TDX: "N\n", f"{KVM_AMD}/sev": "N", f"{KVM_AMD}/sev_es": "0"}, {}),
        ({TDX: "", f"{KVM_AMD}/sev": ""}, {}),
        ({CAPACITY: "tdx 63\n"}, {}),
    ],
)
def test_x86_security(
    tree: Tree, files: dict[str, str], expected: dict[str, str]
) -> None:
    """Module parameters say what is on, misc.capacity how much there is."""
    gaps = Gaps()

    assert expected == security.x86_security(tree(files), frozenset(), 0, gaps)
    assert gaps.unknown == {}


@pytest.mark.parametrize(
    ("flags", "epc", "expected"),
    [
        ({"SGX"}, 4096, {"sgx.enabled": "true", "sgx.epc": "4096"}),
        ({"SGX"}, 0, {}),
        (set(), 4096, {}),
        ({"TDX_GUEST"}, 0, {"tdx.protected": "true"}),
    ],
)
def test_security_by_cpuid(
    tree: Tree, flags: set[str], epc: int, expected: dict[str, str]
) -> None:
    """SGX needs both the flag and memory; a TDX guest is protected."""
    found = security.x86_security(tree({}), frozenset(flags), epc, Gaps())

    assert expected == found


def test_security_that_cannot_be_read(
    tree: Tree, broken: Callable[[str], None]
) -> None:
    """A read error costs its own element, and is said."""
    host = tree({f"{KVM_AMD}/sev": "Y", TDX: "Y", CAPACITY: "sev 100\n"})
    gaps = Gaps()
    broken("/tdx")

    assert security.x86_security(host, frozenset(), 0, gaps) == {
        "sev.enabled": "true",
        "sev.asids": "100",
    }
    assert list(gaps.unknown) == ["cpu.security"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1\n", {"se.enabled": "true"}), ("1", {"se.enabled": "true"}), ("0\n", {})],
)
def test_secure_execution(tree: Tree, text: str, expected: dict[str, str]) -> None:
    """The ultravisor says whether secure guests can run."""
    host = tree({"sys/firmware/uv/prot_virt_host": text})

    assert expected == security.s390x_security(host, Gaps())
    assert security.s390x_security(tree({"sys/firmware/uv/x": ""}), Gaps()) == {} or (
        expected
    )


MOUNTINFO = (
    "30 23 0:26 / /sys rw shared:7 - sysfs sysfs rw\n"
    "36 30 0:32 / /mnt/res\\040ctrl rw,relatime shared:9 - resctrl resctrl rw\n"
)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"sys/fs/resctrl/info/L3/num_closids": "16\n"}, "15"),
        ({"sys/fs/resctrl/info/L3/num_closids": "1"}, "0"),
        ({"sys/fs/resctrl/info/L3/num_closids": "0"}, None),
        ({"sys/fs/resctrl/info/L3/num_closids": "lots"}, None),
        ({"sys/fs/resctrl/info/last_cmd_status": "ok"}, None),
        (
            {
                "proc/self/mountinfo": MOUNTINFO,
                "mnt/res ctrl/info/L3/num_closids": "8\n",
            },
            "7",
        ),
    ],
)
def test_classes_of_service(
    tree: Tree, files: dict[str, str], expected: str | None
) -> None:
    """The default class is not counted; without resctrl nothing is told."""
    found = resctrl.rdt_attributes(tree(files), ["RDTL3CA"], Gaps())

    assert expected == found.get("RDTL3CA_NUM_CLOSID")
    assert found["RDTL3CA"] == "true"


def test_classes_need_cache_allocation(tree: Tree) -> None:
    """Without L3 allocation the number of classes means nothing."""
    host = tree({"sys/fs/resctrl/info/L3/num_closids": "16\n"})

    assert resctrl.rdt_attributes(host, ["RDTMON"], Gaps()) == {"RDTMON": "true"}
