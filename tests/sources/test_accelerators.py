"""Accelerators by table, which a configuration can extend."""

from pathlib import Path

import pytest

from nfd.config.decode import decode
from nfd.errors import ConfigError, NotPresentError
from nfd.hostroot import HostRoot
from nfd_sources._acceleratortable import ROWS
from nfd_sources.accelerators import (
    _VENDORS,
    AcceleratorsSettings,
    AcceleratorsSource,
)
from tests.sources.roots import make_root

SOURCE = AcceleratorsSource()
NIC = {
    "vendor": "0x1dd8",
    "device": "0x1002",
    "class": "0x020000",
    "subsystem_device": "0x5201",
}


def host(folder: Path, ids: dict[str, str], *modules: str, **more: str) -> HostRoot:
    base = "/sys/bus/pci/devices/0000:05:00.0"
    return make_root(
        folder,
        {
            **{f"{base}/{name}": text for name, text in ids.items()},
            **{f"/sys/module/{name}/version": more.get(name, "") for name in modules},
        },
    )


def labels(
    root: HostRoot, settings: AcceleratorsSettings | None = None
) -> dict[str, str]:
    settings = settings or AcceleratorsSettings()
    made = SOURCE.labels(SOURCE.discover(root, settings), settings)
    return {key: label.value for key, label in made.items()}


def test_nic(tmp_path: Path) -> None:
    """Device, subsystem and module must all fit."""
    other = NIC | {"subsystem_device": "0x4000"}

    assert labels(host(tmp_path / "a", NIC, "ionic")) == {
        "feature.node.kubernetes.io/amd-nic": "true"
    }
    assert labels(host(tmp_path / "b", NIC)) == {}
    assert labels(host(tmp_path / "c", other, "ionic")) == {}


def test_versions_and_unknown_fields(tmp_path: Path) -> None:
    """A label whose facts are unknown is left out, the others are made."""
    ids = {"vendor": "0x1eff", "device": "0x1220", "class": "0x120000"}
    root = host(tmp_path, ids, "rebellions", rebellions="1.4.2-rc1\n")

    assert labels(root) == {
        "rebellions.ai/npu.present": "true",
        "rebellions.ai/npu.count": "1",
        "rebellions.ai/driver-version.full": "1.4.2-rc1",
        "rebellions.ai/driver-version.major": "1",
        "rebellions.ai/driver-version.minor": "4",
        "rebellions.ai/driver-version.patch": "2",
    }


def test_rows_of_the_configuration(tmp_path: Path) -> None:
    settings = decode(
        AcceleratorsSettings,
        {
            "rows": [
                {
                    "vendor": "0x1E52",
                    "classes": ["12"],
                    "devices": ["401e"],
                    "modules": ["tenstorrent"],
                    "labels": {"tenstorrent.com/card.count": "{count}"},
                }
            ]
        },
    )
    ids = {"vendor": "0x1e52", "device": "0x401e", "class": "0x120000"}

    assert labels(host(tmp_path, ids, "tenstorrent"), settings) == {
        "tenstorrent.com/card.count": "1"
    }


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"vendor": "1e52"}, "needs a text 'vendor'"),
        ({"vendor": "1e52", "labels": {}, "klass": []}, r"rows\[0\].klass"),
        ({"vendor": "1e52", "labels": {}, "devices": "401e"}, "devices"),
    ],
)
def test_wrong_rows(tmp_path: Path, row: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        SOURCE.discover(host(tmp_path, NIC), AcceleratorsSettings(rows=(row,)))


def test_nothing_there(tmp_path: Path) -> None:
    ids = {"vendor": "0x8086", "class": "0x060000"}
    with pytest.raises(NotPresentError):
        SOURCE.discover(host(tmp_path, ids), AcceleratorsSettings())


def test_the_gate_lets_every_row_through() -> None:
    assert {row.vendor for row in ROWS} == set(_VENDORS)
