"""What captures must not tell."""

import pytest

from nfd.redaction import Redactor

DMI = "/sys/devices/virtual/dmi/id"
NET = "/sys/devices/pci0000:00/0000:00:1f.6/net/eth0"


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (f"{DMI}/product_serial", "CZ3123ABCD\n", "SERIAL0001\n"),
        (f"{DMI}/chassis_asset_tag", "room 12\n", "ASSET0001\n"),
        (f"{DMI}/board_asset_tag", "Not Specified\n", "Not Specified\n"),
        (
            f"{DMI}/product_uuid",
            "4c4c4544-0042-3510-8054-b4c04f4d4e32\n",
            "00000000-0000-4000-8000-000000000001\n",
        ),
        (f"{DMI}/product_name", "ProLiant DL360\n", "ProLiant DL360\n"),
        (f"{NET}/address", "3c:fd:fe:12:34:56\n", "02:00:00:00:00:01\n"),
        (f"{NET}/address", "00:00:00:00:00:00\n", "00:00:00:00:00:00\n"),
        (f"{NET}/broadcast", "ff:ff:ff:ff:ff:ff\n", "ff:ff:ff:ff:ff:ff\n"),
        (
            "/sys/class/infiniband/mlx5_0/node_guid",
            "0c42:a103:0065:1b2e",
            "0000:0000:0000:0001",
        ),
        ("/sys/devices/x/nvme/nvme0/serial", "S4EVNF0M\n", "SERIAL0001\n"),
        ("/sys/devices/x/usb1/serial", "0000:00:14.0\n", "0000:00:14.0\n"),
        ("/sys/devices/x/usb1/1-1/serial", "1234\n", "SERIAL0001\n"),
        ("/sys/devices/x/usb1/1-1/serial", "\n", "\n"),
        (
            "/sys/devices/x/hid/uevent",
            "HID_UNIQ=AB12\nHID_ID=1\n",
            "HID_UNIQ=SERIAL0001\nHID_ID=1\n",
        ),
        (
            "/proc/cpuinfo",
            "Serial\t\t: 00000000abcd\nModel\t\t: Pi 4\n",
            "Serial\t\t: SERIAL0001\nModel\t\t: Pi 4\n",
        ),
        (
            "/proc/cpuinfo",
            "processor 0: version = FF,  identification = 018248,  machine = 2964\n",
            "processor 0: version = FF,  identification = 000001,  machine = 2964\n",
        ),
        (
            "/proc/sysinfo",
            "Sequence Code:        00000000000ABCDE\nLPAR Name:            PROD1\n",
            "Sequence Code:        SERIAL0001\nLPAR Name:            host-1\n",
        ),
        (
            "/proc/version",
            "Linux version 6.1 (me@build7) (gcc 12)\n",
            "Linux version 6.1 (host-1) (gcc 12)\n",
        ),
        (
            "/proc/cmdline",
            "root=UUID=4c4c4544-0042-3510-8054-b4c04f4d4e32 ip=10.1.2.3::10.1.2.1 nfsroot=fe80::1:2 at=12:34:56 ks=http://kick.example.com/x\n",
            "root=UUID=00000000-0000-4000-8000-000000000001 ip=192.0.2.1::192.0.2.2 nfsroot=2001:db8::1 at=12:34:56 ks=http://host-1/x\n",
        ),
        ("/boot/config-6.1", "CONFIG_SERIAL_8250=y\n", "CONFIG_SERIAL_8250=y\n"),
        (
            "/proc/modules",
            "usbserial 69632 1 ftdi_sio, Live 0x0\n",
            "usbserial 69632 1 ftdi_sio, Live 0x0\n",
        ),
        ("/proc/sys/kernel/osrelease", "5.14.0.1\n", "5.14.0.1\n"),
        (f"{DMI}/bios_version", "2.1.4.0\n", "2.1.4.0\n"),
        ("/etc/os-release", "VERSION_ID=10.0.2.1\n", "VERSION_ID=10.0.2.1\n"),
        (f"{NET}/uevent", "INTERFACE=enx3cfdfe123456\n", "INTERFACE=enx020000000001\n"),
        (
            "/.nfd/nvml",
            '{"serial": "1320", "uuid": "GPU-4c4c4544-0042-3510-8054-b4c04f4d4e32"}',
            '{"serial": "SERIAL0001", "uuid": "GPU-00000000-0000-4000-8000-000000000001"}',
        ),
        (
            "/sys/devices/virtual/kfd/kfd/topology/nodes/2/properties",
            "hive_id 0\nunique_id 8127649183746\nlocation_id 1280\n",
            "hive_id 0\nunique_id SERIAL0001\nlocation_id 1280\n",
        ),
        ("/.nfd/node_name", "gpu-17.example.com", "host-1"),
    ],
)
def test_redacts(path: str, text: str, expected: str) -> None:
    assert expected == Redactor().text(path, text)


def test_equal_values_stay_equal_and_different_ones_differ() -> None:
    redactor = Redactor()
    first = redactor.text("/x/net/a/address", "3c:fd:fe:12:34:56")
    second = redactor.text("/x/net/b/address", "3c:fd:fe:12:34:57")
    upper = redactor.text("/proc/cmdline", "mac=3C:FD:FE:12:34:56")

    assert first != second
    assert f"mac={first}" == upper
    assert redactor.name("en0/enx3cfdfe123456") == "en0/enx020000000001"
    assert redactor.counts == {"mac": 2}


def test_redacting_twice_changes_nothing_more() -> None:
    redactor = Redactor()
    once = redactor.text("/proc/cmdline", "a=10.9.8.7 b=3c:fd:fe:12:34:56")

    assert once == redactor.text("/proc/cmdline", once)


def test_the_hosts_own_names_go_where_text_is_free() -> None:
    redactor = Redactor(["gpu-17.example.com", "localhost", ""])

    assert (
        redactor.text("/proc/cmdline", "host=gpu-17.example.com mode=localhost")
        == "host=host-1 mode=localhost"
    )
    assert (
        redactor.text(
            "/etc/kubernetes/node-feature-discovery/features.d/x", "x=gpu-17\n"
        )
        == "x=host-2\n"
    )
    assert redactor.text("/proc/cmdline", "gpu-170") == "gpu-170"
    assert redactor.text("/proc/modules", "gpu-17") == "gpu-17"


def test_binary_and_odd_bytes_survive() -> None:
    redactor = Redactor()

    assert (
        redactor.content("/proc/config.gz", b"\x1f\x8b\x08data") == b"\x1f\x8b\x08data"
    )
    assert redactor.content("/sys/x/config", b"a\0b") == b"a\0b"
    pci = "/sys/devices/pci0000:00/0000:3b:00.0/config"
    assert redactor.content(pci, bytes(range(256)) * 16) == bytes(range(256))
    assert (
        redactor.content("/sys/x/y", b"caf\xe9 3c:fd:fe:12:34:56")
        == b"caf\xe9 02:00:00:00:00:01"
    )
