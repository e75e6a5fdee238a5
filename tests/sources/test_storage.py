"""The storage source."""

from pathlib import Path

import pytest

from nfd.errors import NotPresentError
from nfd.features import Features
from nfd.source import NoSettings
from nfd_sources.storage import FEATURE, StorageSource, is_disk
from tests.sources.roots import failing, make_root

BLOCK = "/sys/block"
SETTINGS = NoSettings()


def rotational(**devices: str) -> dict[str, str]:
    return {
        f"{BLOCK}/{name.replace('_', '-')}/queue/rotational": f"{value}\n"
        for name, value in devices.items()
    }


def test_raw_devices_keep_all_and_labels_count_disks(tmp_path: Path) -> None:
    """Case H62."""
    source = StorageSource()
    host = make_root(tmp_path, rotational(sda="1", loop0="0", zram0="0", dm_0="0"))
    features = source.discover(host, SETTINGS)

    assert [d["name"] for d in features.instances[FEATURE]] == [
        "dm-0",
        "loop0",
        "sda",
        "zram0",
    ]
    assert source.labels(features, SETTINGS) == {}
    assert "zram0=0 (not a disk)" in source.why_not(
        "nonrotationaldisk", features, SETTINGS
    )

    make_root(tmp_path, rotational(nvme0n1="0"))
    labels = source.labels(source.discover(host, SETTINGS), SETTINGS)

    assert {"nonrotationaldisk"} == labels.keys()
    assert labels["nonrotationaldisk"].element == "nvme0n1"


@pytest.mark.parametrize(
    "name", ["loop7", "zram0", "dm-12", "zd16", "ram3", "md127", "md_d0", "nbd0"]
)
def test_no_disks(name: str) -> None:
    assert not is_disk(name)


@pytest.mark.parametrize(
    "name",
    ["sda", "nvme0n1", "vda", "xvda", "mmcblk0", "pmem0", "dasda", "rbd0", "sr0"],
)
def test_disks(name: str) -> None:
    assert is_disk(name)


def test_attributes_and_gaps(tmp_path: Path) -> None:
    files = {
        f"{BLOCK}/sda/queue/{name}": f"{value}\n"
        for name, value in {"dax": 0, "rotational": 1, "nr_zones": 0}.items()
    }
    root = make_root(tmp_path, {**files, f"{BLOCK}/odd": ""})
    features = StorageSource().discover(
        failing(root, f"{BLOCK}/sda/queue/rotational"), SETTINGS
    )

    assert features.instances[FEATURE] == (
        {"name": "odd"},
        {"name": "sda", "dax": "0", "nr_zones": "0"},
    )
    assert "sda" in features.unknown[FEATURE]


def test_no_folder_is_absent(tmp_path: Path) -> None:
    with pytest.raises(NotPresentError):
        StorageSource().discover(make_root(tmp_path, {}), SETTINGS)


def test_nothing_before_a_discovery() -> None:
    assert StorageSource().labels(Features(), SETTINGS) == {}
