"""The system source."""

from pathlib import Path

import pytest

from nfd.source import NoSettings
from nfd_sources.system import DMIID, NAME, OS, SystemSource, parse_os_release
from tests.sources.roots import failing, make_root

SETTINGS = NoSettings()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ID=debian\n", {"ID": "debian"}),
        ("ID='debian'\r\n", {"ID": "debian"}),
        ('NAME="A B"  \n', {"NAME": "A B"}),
        ("ID=a\nID=b\n", {"ID": "b"}),
        (" ID=a\n# ID=b\nID=\nnonsense\n", {}),
        (
            "VERSION_ID=22.04",
            {
                "VERSION_ID": "22.04",
                "VERSION_ID.major": "22",
                "VERSION_ID.minor": "04",
            },
        ),
        ("VERSION_ID=12", {"VERSION_ID": "12", "VERSION_ID.major": "12"}),
        (
            'VERSION_ID="3.20.2"',
            {
                "VERSION_ID": "3.20.2",
                "VERSION_ID.major": "3",
                "VERSION_ID.minor": "20",
            },
        ),
        ("VERSION_ID=rolling", {"VERSION_ID": "rolling"}),
        ("ÄID=x\n", {}),
    ],
)
def test_os_release(text: str, expected: dict[str, str]) -> None:
    assert expected == parse_os_release(text)


def test_sets_and_labels(tmp_path: Path) -> None:
    source = SystemSource()
    host = make_root(
        tmp_path,
        {
            "/.nfd/node_name": "node-1\n",
            "/etc/os-release": (
                "ID=rhcos\nVERSION_ID=4.16\nOPENSHIFT_VERSION=4.16\n"
                "RHEL_VERSION=9.4\nOSTREE_VERSION=416.94\nVARIANT_ID=coreos\n"
            ),
            "/sys/devices/virtual/dmi/id/sys_vendor": " QEMU \n",
            "/sys/devices/virtual/dmi/id/product_sku": "\n",
            "/sys/devices/virtual/dmi/id/product_serial": "secret\n",
        },
    )
    features = source.discover(host, SETTINGS)

    assert features.attributes[NAME] == {"nodename": "node-1"}
    assert features.attributes[DMIID] == {"sys_vendor": "QEMU", "product_sku": ""}
    assert features.attributes[OS]["VARIANT_ID"] == "coreos"
    assert {k: v.value for k, v in source.labels(features, SETTINGS).items()} == {
        "os_release.ID": "rhcos",
        "os_release.VERSION_ID": "4.16",
        "os_release.VERSION_ID.major": "4",
        "os_release.VERSION_ID.minor": "16",
        "os_release.OPENSHIFT_VERSION": "4.16",
        "os_release.RHEL_VERSION": "9.4",
        "os_release.OSTREE_VERSION": "416.94",
    }


def test_nothing_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    features = SystemSource().discover(make_root(tmp_path, {}), SETTINGS)

    assert features.attributes == {NAME: {"nodename": ""}}
    assert not caplog.records


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    host = make_root(
        tmp_path, {"/sys/devices/virtual/dmi/id/product_name": b"R\xff2\n"}
    )

    assert SystemSource().discover(host, SETTINGS).attributes[DMIID] == {
        "product_name": "R\ufffd2"
    }


def test_unreadable_sets_are_unknown(tmp_path: Path) -> None:
    dmi = "/sys/devices/virtual/dmi/id"
    root = make_root(
        tmp_path,
        {
            "/etc/os-release": "ID=x\n",
            f"{dmi}/sys_vendor": "QEMU\n",
            f"{dmi}/board_name": "b\n",
        },
    )
    features = SystemSource().discover(
        failing(root, "/etc/os-release", f"{dmi}/board_name"), SETTINGS
    )

    assert {OS, DMIID} == features.unknown.keys()
    assert OS not in features.attributes
    assert features.attributes[DMIID] == {"sys_vendor": "QEMU"}


def test_why_not(tmp_path: Path) -> None:
    source = SystemSource()
    root = make_root(tmp_path, {"/etc/os-release": "ID=x\nVERSION_ID=rolling\n"})
    features = source.discover(root, SETTINGS)

    def why(name: str) -> str:
        return source.why_not(name, features, SETTINGS)

    assert "has no RHEL_VERSION" in why("os_release.RHEL_VERSION")
    assert "'rolling'" in why("os_release.VERSION_ID.major")
    assert "only ID, VERSION_ID" in why("os_release.NAME")
    assert "os_release.*" in why("dmi.sys_vendor")
