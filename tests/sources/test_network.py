"""The network source."""

from pathlib import Path

import pytest

from nfd.errors import NotPresentError
from nfd.features import Features
from nfd.source import NoSettings
from nfd_sources.network import DEVICE, VIRTUAL, NetworkSource
from tests.sources.roots import Link, failing, make_root

NET = "/sys/class/net"
SETTINGS = NoSettings()


def test_devices_and_virtual_interfaces(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Case H01."""
    host = make_root(
        tmp_path,
        {
            f"{NET}/bonding_masters": "bond0\n",
            f"{NET}/bond0/operstate": "up\n",
            f"{NET}/bond0/speed": "25000\n",
            f"{NET}/bond0/mtu": "9000\n",
            f"{NET}/eth0/operstate": "up\n",
            f"{NET}/eth0/speed": "10000\n",
            f"{NET}/eth0/mtu": "1500\n",
            f"{NET}/eth0/device/sriov_totalvfs": "8\n",
            f"{NET}/eth0/device/sriov_numvfs": "0\n",
        },
    )
    features = NetworkSource().discover(host, SETTINGS)

    assert features.instances == {
        DEVICE: (
            {
                "name": "eth0",
                "operstate": "up",
                "speed": "10000",
                "mtu": "1500",
                "sriov_totalvfs": "8",
                "sriov_numvfs": "0",
            },
        ),
        VIRTUAL: (
            {"name": "bond0", "operstate": "up", "speed": "25000", "mtu": "9000"},
        ),
    }
    assert not caplog.records


def test_files_and_dangling_links_count(tmp_path: Path) -> None:
    host = make_root(
        tmp_path,
        {f"{NET}/odd": "text\n", f"{NET}/lo": Link("../../devices/virtual/net/lo")},
    )

    assert NetworkSource().discover(host, SETTINGS).instances[VIRTUAL] == (
        {"name": "lo"},
        {"name": "odd"},
    )


def test_no_folder_is_absent(tmp_path: Path) -> None:
    with pytest.raises(NotPresentError):
        NetworkSource().discover(make_root(tmp_path, {}), SETTINGS)


def test_unreadable_attribute_marks_the_set(tmp_path: Path) -> None:
    root = make_root(
        tmp_path,
        {
            f"{NET}/eth0/mtu": "1500\n",
            f"{NET}/eth0/device/sriov_totalvfs": "8\n",
            f"{NET}/lo/mtu": "65536\n",
        },
    )
    features = NetworkSource().discover(failing(root, f"{NET}/eth0/mtu"), SETTINGS)

    assert {DEVICE} == features.unknown.keys()
    assert features.instances[DEVICE][0]["sriov_totalvfs"] == "8"


def test_interface_of_unknown_kind_is_in_neither_set(tmp_path: Path) -> None:
    root = make_root(tmp_path, {f"{NET}/eth0/mtu": "1500\n", f"{NET}/lo/mtu": "9\n"})
    features = NetworkSource().discover(failing(root, f"{NET}/eth0/device"), SETTINGS)

    assert {DEVICE, VIRTUAL} == features.unknown.keys()
    assert [i["name"] for i in features.instances[VIRTUAL]] == ["lo"]


@pytest.mark.parametrize(
    ("total", "configured", "expected"),
    [
        ("8", "2", {"sriov.capable", "sriov.configured"}),
        ("8", "0", {"sriov.capable"}),
        ("0", "0", set()),
        ("many", "", set()),
    ],
)
def test_sriov_labels(total: str, configured: str, expected: set[str]) -> None:
    interface = {"name": "eth0", "sriov_totalvfs": total, "sriov_numvfs": configured}
    features = Features.of(instances={DEVICE: [{"name": "eth1"}, interface]})
    labels = NetworkSource().labels(features, SETTINGS)

    assert expected == labels.keys()
    for name in {"sriov.capable", "sriov.configured"} - expected:
        assert "eth0=" in NetworkSource().why_not(name, features, SETTINGS)
