"""`nfd explain` tells what the sources know about labels that are not there."""

from pathlib import Path

import pytest

from nfd.cli import main


@pytest.mark.parametrize(
    ("host", "key", "reason"),
    [
        ("gpu-server-a100", "maintenance", "10-site line 7: expired at 2020-01-01"),
        (
            "gpu-server-a100",
            "feature.node.kubernetes.io/firmware.level",
            "10-site line 5: marked no-label",
        ),
        ("gpu-server-a100", "other.io/x", "no line in /etc/kubernetes"),
        ("gpu-server-a100", "pci-20b2.present", "format device is not configured"),
        ("gpu-server-a100", "kernel-config.NUMA", "not named in sources.kernel"),
        ("nvidia-audio-desktop", "pci-10de.present", "0000:09:00.1 has class 0403"),
        (
            "sriov-server",
            "pci-14e4.sriov.capable",
            "0000:31:00.0 has no sriov_totalvfs",
        ),
        ("sriov-server", "storage-nonrotationaldisk", "zram0=0 (not a disk)"),
        ("hybrid-laptop", "usb-03_046d_c52b.present", "class 03 is not on"),
        ("hybrid-laptop", "memory-numa", "not more than one of 1 NUMA nodes"),
    ],
)
def test_reason_is_told(
    host: str,
    key: str,
    reason: str,
    host_dir: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["explain", key, "--root", str(host_dir / host)])

    assert reason in capsys.readouterr().out.replace("\n", " ")
