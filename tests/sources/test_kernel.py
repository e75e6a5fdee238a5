"""The kernel source."""

import gzip
import logging
from pathlib import Path
from typing import Any

import pytest

from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd_sources.kernel import (
    CONFIG,
    CONFIG_FILES,
    ENABLED,
    KVM,
    LOADED,
    OSRELEASE,
    SELINUX,
    VERSION,
    KernelSettings,
    KernelSource,
    parse_builtin,
    parse_config,
    parse_modules,
    parse_version,
)
from tests.sources.roots import failing, make_root

SETTINGS = KernelSettings()
RELEASE = {OSRELEASE: "6.1.0\n"}


def discover(
    folder: Path, files: dict[str, Any], settings: KernelSettings = SETTINGS
) -> Features:
    return KernelSource().discover(make_root(folder, files), settings)


@pytest.mark.parametrize(
    ("release", "full", "numbers"),
    [
        ("6.6.43-talos", "6.6.43-talos", ("6", "6", "43")),
        (
            "4.18.0-553.el8_10.x86_64",
            "4.18.0-553.el8_10.x86_64",
            ("4", "18", "0"),
        ),
        ("4.4.0+", "4.4.0", ("4", "4", "0")),
        (
            "5.15.79.1-microsoft-standard-WSL2",
            "5.15.79.1-microsoft-standard-WSL2",
            ("5", "15", "79"),
        ),
        (
            "6.1.21.1-microsoft-standard-WSL2+",
            "6.1.21.1-microsoft-standard-WSL2",
            ("6", "1", "21"),
        ),
        ("6.6.31+rpt-rpi-v8", "6.6.31_rpt-rpi-v8", ("6", "6", "31")),
        ("6.2.3", "6.2.3", ("6", "2", "3")),
        ("6.0.0-beta", "6.0.0-beta", ("6", "0", "0")),
        ("6.8", "6.8", ("6", "8", "")),
        ("6.0.10-100+123.x86_64~", "6.0.10-100_123.x86_64", ("6", "0", "10")),
        ("6.8.0-" + 70 * "x", "6.8.0-" + 70 * "x", ("6", "8", "0")),
    ],
)
def test_version(release: str, full: str, numbers: tuple[str, str, str]) -> None:
    """Case H14."""
    major, minor, revision = numbers

    assert {
        "full": full,
        "major": major,
        "minor": minor,
        "revision": revision,
    } == parse_version(release)


def test_version_without_numbers() -> None:
    assert parse_version("next") == {"full": "next"}


def test_empty_release_is_absent(tmp_path: Path) -> None:
    assert VERSION not in discover(tmp_path, {OSRELEASE: "\n"}).attributes


def test_parse_config() -> None:
    text = (
        '# CONFIG_A is not set\nCONFIG_B=y\nCONFIG_C="x=y"\nCONFIG_D=\n'
        " CONFIG_E=y\nCONFIG_F\nCONFIG_G=0x10\n"
    )

    assert parse_config(text) == {"B": "y", "C": "x=y", "D": "", "G": "0x10"}


@pytest.mark.parametrize("path", [p for p in CONFIG_FILES if not p.endswith(".gz")])
def test_config_places(tmp_path: Path, path: str) -> None:
    where = path.format("6.1.0")

    assert discover(tmp_path, {**RELEASE, where: "CONFIG_X=m\n"}).attributes[
        CONFIG
    ] == {"X": "m"}


def test_config_gz_comes_first_and_a_configured_file_before_it(tmp_path: Path) -> None:
    files = {
        **RELEASE,
        "/proc/config.gz": gzip.compress(b"CONFIG_FROM=gz\n"),
        "/boot/config-6.1.0": "CONFIG_FROM=boot\n",
        "/srv/config": "CONFIG_FROM=srv\n",
    }

    assert discover(tmp_path, files).attributes[CONFIG] == {"FROM": "gz"}
    settings = KernelSettings(kconfig_file="/srv/config")
    host = make_root(tmp_path, {})

    assert KernelSource().discover(host, settings).attributes[CONFIG] == {"FROM": "srv"}
    settings = KernelSettings(kconfig_file="/srv/missing")

    assert KernelSource().discover(host, settings).attributes[CONFIG] == {"FROM": "gz"}


@pytest.mark.parametrize("path", ["/boot/mine", "{}boot/mine"])
def test_configured_file_below_upstreams_mount_prefix(
    tmp_path: Path, path: str
) -> None:
    make_root(tmp_path, {"/host-boot/mine": "CONFIG_FROM=mine\n"}).close()
    prefix = f"{tmp_path}/host-"
    settings = KernelSettings(kconfig_file=path.format(prefix))
    with HostRoot(prefix, live=False) as host:
        features = KernelSource().discover(host, settings)

    assert features.attributes[CONFIG] == {"FROM": "mine"}


def test_config_of_a_realtime_kernel(tmp_path: Path) -> None:
    """Case H15."""
    path = "/usr/src/linux-rt-headers-6.6.0-1-rt-amd64/.config"
    features = discover(
        tmp_path, {OSRELEASE: "6.6.0-1-rt-amd64\n", path: "CONFIG_PREEMPT_RT=y\n"}
    )

    assert features.attributes[CONFIG] == {"PREEMPT_RT": "y"}


@pytest.mark.parametrize(
    "data",
    [b"no gzip", gzip.compress(b"CONFIG_X=y\n")[:-8], gzip.compress(bytes(5 << 20))],
    ids=["other", "cut", "bomb"],
)
def test_broken_config_gz_is_passed_over(tmp_path: Path, data: bytes) -> None:
    files: dict[str, Any] = {**RELEASE, "/proc/config.gz": data}

    assert {CONFIG} == discover(tmp_path, files).unknown.keys()
    files = {"/boot/config-6.1.0": "CONFIG_X=y\n"}

    assert discover(tmp_path, files).attributes[CONFIG] == {"X": "y"}


def test_no_config_is_one_info_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Case H15."""
    with caplog.at_level(logging.INFO):
        features = discover(
            tmp_path, {**RELEASE, "/proc/modules": "a 1 0 - Live 0x0\n"}
        )

    assert [r.message for r in caplog.records] == ["no kernel configuration found"]
    assert CONFIG not in features.attributes
    assert not features.unknown
    assert VERSION in features.attributes
    assert {"a"} == features.flags[LOADED]


def test_modules(tmp_path: Path) -> None:
    assert {"a", "b_c"} == parse_modules("a 1 0 - Live 0x0\n  \nb_c 2 1 a, Live 0x0\n")
    assert {"ext4", "nvme-core"} == parse_builtin(
        "kernel/fs/ext4/ext4.ko\nkernel/drivers/nvme/nvme-core.ko \nkernel/x.ko.xz\n"
    )
    files = {
        **RELEASE,
        "/proc/modules": "a 1 0 - Live 0x0\n",
        "/lib/modules/6.1.0/modules.builtin": "kernel/b.ko\n",
    }
    features = discover(tmp_path, files)

    assert {LOADED: {"a"}, ENABLED: {"a", "b"}} == features.flags


def test_enabled_modules_need_the_built_in_ones(tmp_path: Path) -> None:
    features = discover(tmp_path, {**RELEASE, "/proc/modules": "a 1 0 - Live 0x0\n"})

    assert {LOADED} == features.flags.keys()


def test_enabled_modules_without_loaded_ones(tmp_path: Path) -> None:
    builtin = "/lib/modules/6.1.0/modules.builtin"
    files = {**RELEASE, builtin: "kernel/b.ko\n", "/proc/modules": "a 1 0 - Live 0\n"}
    root = make_root(tmp_path, files)
    features = KernelSource().discover(failing(root, "/proc/modules"), SETTINGS)

    assert {ENABLED: {"b"}} == features.flags
    assert {LOADED, ENABLED} == features.unknown.keys()


def test_unreadable_release_hides_what_its_name_leads_to(tmp_path: Path) -> None:
    root = make_root(tmp_path, {**RELEASE, "/boot/config-6.1.0": "CONFIG_X=y\n"})
    features = KernelSource().discover(failing(root, OSRELEASE), SETTINGS)

    assert {VERSION, CONFIG, ENABLED} == features.unknown.keys()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"/sys/fs/cgroup/x": ""}, "false"),
        ({"/sys/fs/selinux/enforce": "0"}, "false"),
        ({"/sys/fs/selinux/enforce": "1"}, "true"),
        ({"/sys/fs/selinux/enforce": " 1\n"}, "true"),
        ({"/sys/fs/selinux/enforce": ""}, "false"),
    ],
)
def test_selinux(tmp_path: Path, files: dict[str, str], expected: str | None) -> None:
    """Case H13."""
    features = discover(tmp_path, files)
    labels = KernelSource().labels(features, SETTINGS)

    assert expected == features.attributes.get(SELINUX, {}).get("enabled")
    assert (expected == "true") == ("selinux.enabled" in labels)


@pytest.mark.parametrize("there", [True, False])
def test_kvm(tmp_path: Path, there: bool) -> None:  # noqa: FBT001 - a table
    files = {"/sys/devices/virtual/misc/kvm/dev": "10:232"} if there else {}

    assert {"enabled": str(there).lower()} == discover(tmp_path, files).attributes[KVM]


def test_labels_and_their_absence(tmp_path: Path) -> None:
    config = "CONFIG_NO_HZ=y\nCONFIG_PREEMPT=m\nCONFIG_HZ=250\nCONFIG_SMP=y\n"
    features = discover(tmp_path, {**RELEASE, "/boot/config-6.1.0": config})
    settings = KernelSettings(config_opts=("NO_HZ", "PREEMPT", "HZ", "DMI"))
    source = KernelSource()

    assert {k: v.value for k, v in source.labels(features, settings).items()} == {
        "config.NO_HZ": "true",
        "config.PREEMPT": "true",
        "config.HZ": "250",
        "version.full": "6.1.0",
        "version.major": "6",
        "version.minor": "1",
        "version.revision": "0",
    }
    for name, reason in {
        "config.DMI": "CONFIG_DMI is not set",
        "config.SMP": "not named in sources.kernel.configOpts",
        "selinux.enabled": "no /sys/fs",
        "modules.x": "version.*",
    }.items():
        assert reason in source.why_not(name, features, settings)
    assert "no kernel configuration" in source.why_not(
        "config.DMI", Features(), settings
    )
