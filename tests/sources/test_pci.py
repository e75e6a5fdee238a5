"""The PCI source."""

import logging
from pathlib import Path
from typing import Any

import pytest

from nfd.errors import NotPresentError
from nfd.features import Features
from nfd_sources.pci import FEATURE, PciSettings, PciSource
from tests.sources.roots import Link, failing, make_root

GPU = ("0x030200", "0x10de", "0x20b2", "0x10de", "0x1463")
NIC = ("0x020000", "0x15b3", "0x101d", "0x15b3", "0x0043")
NAMES = ("class", "vendor", "device", "subsystem_vendor", "subsystem_device")
DEVICES = "/sys/bus/pci/devices"


def device(address: str, ids: tuple[str, ...], **more: str) -> dict[str, str]:
    values = {**dict(zip(NAMES, ids, strict=False)), **more}
    return {f"{DEVICES}/{address}/{name}": f"{v}\n" for name, v in values.items()}


def found(*devices: dict[str, str]) -> Features:
    return Features.of(instances={FEATURE: devices})


A = {
    "address": "0000:07:00.0",
    "class": "0302",
    "vendor": "10de",
    "device": "20b2",
    "subsystem_vendor": "10de",
    "subsystem_device": "1463",
}
B = {"address": "0000:e1:00.0", "class": "0200", "vendor": "15b3", "device": "101d"}


def test_device_whole(tmp_path: Path) -> None:
    host = make_root(
        tmp_path,
        {
            **device("0000:07:00.0", GPU, numa_node="1", sriov_totalvfs=" 16 "),
            f"{DEVICES}/0000:07:00.0/iommu_group/type": "identity\n",
            f"{DEVICES}/0000:07:00.0/iommu/intel-iommu/version": "1:0\n",
            f"{DEVICES}/0000:07:00.0/driver": Link("../../drivers/nvidia"),
        },
    )

    assert list(PciSource().discover(host, PciSettings()).instances[FEATURE]) == [
        {
            **A,
            "numa_node": "1",
            "sriov_totalvfs": "16",
            "iommu_group/type": "identity",
            "iommu/intel-iommu/version": "1:0",
            "driver": "nvidia",
        }
    ]


def test_five_digit_domains_and_order_of_addresses(tmp_path: Path) -> None:
    addresses = ["10000:00:00.0", "0000:ff:00.1", "0000:0a:00.0"]
    files: dict[str, Any] = {}
    for address in addresses:
        files |= device(address, NIC)
    features = PciSource().discover(make_root(tmp_path, files), PciSettings())

    assert sorted(addresses) == [i["address"] for i in features.instances[FEATURE]]


def test_optional_attributes_may_be_missing(tmp_path: Path) -> None:
    host = make_root(tmp_path, device("0000:00:01.0", NIC[:3], numa_node="-1"))

    assert list(PciSource().discover(host, PciSettings()).instances[FEATURE]) == [
        {**B, "address": "0000:00:01.0"}
    ]


def test_device_with_nothing_but_class_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    host = make_root(
        tmp_path, {**device("0000:00:01.0", NIC), **device("0000:00:02.0", NIC[:1])}
    )
    features = PciSource().discover(host, PciSettings())

    assert len(features.instances[FEATURE]) == 1
    assert features.notes == {"pci.device/0000:00:02.0": "without vendor, device"}
    assert not features.unknown
    assert len(caplog.records) == 1
    assert "0000:00:02.0" in caplog.text


def test_unreadable_attribute_costs_only_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = make_root(
        tmp_path, {**device("0000:00:01.0", NIC), **device("0000:00:02.0", GPU)}
    )
    gpu = f"{DEVICES}/0000:00:02.0"
    host = failing(root, f"{gpu}/sriov_totalvfs", f"{gpu}/subsystem_vendor")
    features = PciSource().discover(host, PciSettings())

    assert [i["vendor"] for i in features.instances[FEATURE]] == ["15b3", "10de"]
    assert "subsystem_vendor" not in features.instances[FEATURE][1]
    assert "Input/output error" in features.unknown[FEATURE]
    assert [r.levelno for r in caplog.records] == [logging.WARNING]


def test_no_bus_is_absent_and_unreadable_bus_fails(tmp_path: Path) -> None:
    with pytest.raises(NotPresentError):
        PciSource().discover(make_root(tmp_path, {}), PciSettings())
    with pytest.raises(PermissionError):
        PciSource().discover(
            failing(make_root(tmp_path, {DEVICES: None}), DEVICES, number=13),
            PciSettings(),
        )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"0302_10de", "10de", "0200_15b3", "15b3"}),
        ({"list": ("0300", "0302"), "fields": ("vendor",)}, {"10de"}),
        (
            {"list": ("02", "03"), "fields": ("vendor", "class")},
            {"0302_10de", "0200_15b3"},
        ),
        ({"fields": ("vendor", "device")}, {"10de_20b2", "15b3_101d"}),
        ({"fields": ("bogus",)}, {"0302_10de", "0200_15b3"}),
        ({"fields": ()}, {"0302_10de", "0200_15b3"}),
        ({"fields": ("bogus", "device")}, {"20b2", "101d"}),
        ({"list": ("0x0302",), "fields": ("vendor",)}, {"10de"}),
        ({"list": ("0302 ",), "fields": ("vendor",)}, {"10de"}),
        ({"list": ("0X03",), "fields": ("vendor",)}, {"10de"}),
        ({"list": ()}, set()),
        (
            {"formats": ("device", " class , vendor ")},
            {"20b2", "101d"} | {"0302_10de", "0200_15b3"},
        ),
        ({"fields": ("vendor",), "formats": ("device",)}, {"10de", "15b3"}),
        # B has no subsystem ids, so no name is made of them.
        ({"fields": ("vendor", "subsystem_device")}, {"10de_1463"}),
    ],
)
def test_labels(settings: dict[str, Any], expected: set[str]) -> None:
    """Case H18."""
    chosen = PciSettings(
        settings.get("list", PciSettings().device_class_whitelist),
        settings.get("fields"),
        settings.get("formats", PciSettings().device_label_formats),
    )
    labels = PciSource().labels(found(A, B), chosen)

    assert {f"{name}.present" for name in expected} == labels.keys()
    assert {"true"} >= {label.value for label in labels.values()}


def test_unknown_field_is_one_notice(caplog: pytest.LogCaptureFixture) -> None:
    settings = PciSettings(device_label_fields=("bogus",))
    PciSource().labels(found(A, B), settings)

    assert len(caplog.records) == 1
    assert "field=bogus" in caplog.text


def test_label_says_what_made_it() -> None:
    label = PciSource().labels(found(B, A), PciSettings())["10de.present"]

    assert (FEATURE, A["address"]) == (label.feature, label.element)
    assert "03" in label.because


@pytest.mark.parametrize(
    ("totalvfs", "expected"),
    [({}, False), ({"sriov_totalvfs": "0"}, False), ({"sriov_totalvfs": "8"}, True)],
)
def test_sriov_needs_virtual_functions(
    totalvfs: dict[str, str],
    expected: bool,  # noqa: FBT001 - a table
) -> None:
    labels = PciSource().labels(found({**B, **totalvfs}), PciSettings())

    assert expected == ("15b3.sriov.capable" in labels)
    assert expected == ("0200_15b3.sriov.capable" in labels)


def test_audio_function_alone_makes_no_vendor_label() -> None:
    """Case H20."""
    audio = {**A, "class": "0403"}
    settings = PciSettings(("0300", "0302"), ("vendor",))

    assert PciSource().labels(found(audio), settings) == {}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("0403_10de.present", "0000:09:00.1 has class 0403, which is not on"),
        ("20b2.present", "format device is not configured (class,vendor; vendor)"),
        ("10de.sriov.capable", "0000:07:00.0 has no sriov_totalvfs above 0"),
        ("8086.present", "no PCI device matches 8086"),
        ("8086", "end in .present or .sriov.capable"),
    ],
)
def test_why_not(name: str, reason: str) -> None:
    audio = {**A, "address": "0000:09:00.1", "class": "0403"}
    features = found(A, B, audio)

    assert reason in PciSource().why_not(name, features, PciSettings())


def test_hundreds_of_virtual_functions(tmp_path: Path) -> None:
    files: dict[str, str] = {}
    for number in range(256):
        files |= device(f"0000:17:{number // 8:02x}.{number % 8}", NIC)
    features = PciSource().discover(make_root(tmp_path, files), PciSettings())

    assert len(features.instances[FEATURE]) == 256
    assert {"0200_15b3.present", "15b3.present"} == PciSource().labels(
        features, PciSettings()
    ).keys()
