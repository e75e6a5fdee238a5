"""The USB source."""

from pathlib import Path

import pytest

from nfd.features import Features
from nfd_sources.usb import FEATURE, UsbSettings, UsbSource
from tests.sources.roots import failing, make_root

USB = "/sys/bus/usb/devices"
SETTINGS = UsbSettings()


def device(name: str, class_: str | None, vendor: str, product: str) -> dict[str, str]:
    values = {"bDeviceClass": class_, "idVendor": vendor, "idProduct": product}
    return {f"{USB}/{name}/{k}": f"{v}\n" for k, v in values.items() if v is not None}


def test_devices_and_interfaces(tmp_path: Path) -> None:
    host = make_root(
        tmp_path,
        {
            **device("1-1", "00", "046d", "c52b"),
            f"{USB}/1-1/1-1:1.0/bInterfaceClass": "03\n",
            f"{USB}/1-1/1-1:1.1/bInterfaceClass": "fe\n",
            f"{USB}/1-1:1.0/bInterfaceClass": "03\n",
            **device("1-1.2", "ff", "06cb", "00f0"),
            f"{USB}/1-1.2/serial": " 0001 \n",
            **device("1-2", "00", "1234", "5678"),  # without interfaces
            **device("1-3", None, "aaaa", "bbbb"),  # without a class
            **device("1-4", "ff", "cccc", ""),  # without a product
            f"{USB}/usb1/power/level": "on\n",
        },
    )
    features = UsbSource().discover(host, SETTINGS)

    assert features.instances[FEATURE] == (
        {"class": "03", "vendor": "046d", "device": "c52b"},
        {"class": "fe", "vendor": "046d", "device": "c52b"},
        {"class": "ff", "vendor": "06cb", "device": "00f0", "serial": "0001"},
        {"vendor": "aaaa", "device": "bbbb"},
    )
    assert {"fe_046d_c52b.present", "ff_06cb_00f0.present"} == UsbSource().labels(
        features, SETTINGS
    ).keys()


def test_no_usb_is_an_empty_set(tmp_path: Path) -> None:
    assert UsbSource().discover(make_root(tmp_path, {}), SETTINGS).instances == {
        FEATURE: ()
    }


def test_unreadable_interface_keeps_the_others(tmp_path: Path) -> None:
    root = make_root(
        tmp_path,
        {
            **device("1-1", "00", "046d", "c52b"),
            f"{USB}/1-1/1-1:1.0/bInterfaceClass": "03\n",
            f"{USB}/1-1/1-1:1.1/bInterfaceClass": "fe\n",
        },
    )
    bad = f"{USB}/1-1/1-1:1.0/bInterfaceClass"
    features = UsbSource().discover(failing(root, bad), SETTINGS)

    assert [i["class"] for i in features.instances[FEATURE]] == ["fe"]
    assert "1-1" in features.unknown[FEATURE]


def test_unreadable_id_makes_no_wrong_name(tmp_path: Path) -> None:
    root = make_root(tmp_path, device("1-1", "ff", "046d", "c52b"))
    features = UsbSource().discover(failing(root, f"{USB}/1-1/idVendor"), SETTINGS)

    assert features.instances[FEATURE] == ()
    assert {FEATURE} == features.unknown.keys()


@pytest.mark.parametrize(
    ("whitelist", "fields", "expected"),
    [
        (("ef",), ("class", "vendor", "device"), {"ef_0408_5411"}),
        (("EF",), ("device", "class"), {"ef_5411"}),
        (("0xe",), ("vendor",), {"0408"}),
        (("ef",), ("serial", "vendor"), {"0408_"}),
        (("ef",), ("bogus",), {"ef_0408_5411"}),
        ((), ("vendor",), set()),
    ],
)
def test_labels(
    whitelist: tuple[str, ...], fields: tuple[str, ...], expected: set[str]
) -> None:
    instance = {"class": "ef", "vendor": "0408", "device": "5411"}
    labels = UsbSource().labels(
        Features.of(instances={FEATURE: [instance]}), UsbSettings(whitelist, fields)
    )

    assert {f"{name}.present" for name in expected} == labels.keys()


def test_why_not() -> None:
    instance = {"class": "09", "vendor": "1d6b", "device": "0002"}
    features = Features.of(instances={FEATURE: [instance]})

    def why(name: str) -> str:
        return UsbSource().why_not(name, features, SETTINGS)

    assert "class 09 is not on deviceClassWhitelist" in why("09_1d6b_0002.present")
    assert "there are: 09_1d6b_0002" in why("ff_1d6b_0002.present")
