"""The labels of GPU feature discovery, case by case (spec/gpu.md section 1.7)."""

from pathlib import Path
from typing import Any

import pytest

from nfd.errors import ConfigError
from nfd_sources.nvml import NvmlSettings, NvmlSource
from tests.sources.nvml.fakes import (
    FakeDevice,
    FakeMig,
    discover,
    labelled,
    real_mig,
)

FULL = FakeDevice()
IN_MIG = FakeDevice(mig=True, cc=(0, 0))  # as upstream's mock


def slicing(name: str, replicas: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "timeSlicing": {"resources": [{"name": name, "replicas": replicas}], **more}
    }


def mps(name: str = "nvidia.com/gpu", replicas: int = 2) -> dict[str, Any]:
    return {"mps": {"resources": [{"name": name, "replicas": replicas}]}}


def gpu(labels: dict[str, str]) -> dict[str, str]:
    """Return the labels `gpu.*` that describe the resource."""
    names = ("product", "count", "replicas", "sharing-strategy", "memory")
    return {n: labels[f"gpu.{n}"] for n in names if f"gpu.{n}" in labels}


def described(
    product: str, count: int, replicas: int, strategy: str, memory: int = 300
) -> dict[str, str]:
    return {
        "product": product,
        "count": str(count),
        "replicas": str(replicas),
        "sharing-strategy": strategy,
        "memory": str(memory),
    }


def test_one_gpu(tmp_path: Path) -> None:
    """Every label of a plain node, deprecated twins included."""
    dmi = tmp_path / "sys/class/dmi/id"
    dmi.mkdir(parents=True)
    (dmi / "product_name").write_text("NVIDIA DGX (A100)  920-1\n")

    assert labelled(tmp_path, FULL) == {
        "cuda.driver-version.full": "400.300",
        "cuda.driver-version.major": "400",
        "cuda.driver-version.minor": "300",
        "cuda.driver-version.revision": "",
        "cuda.driver.major": "400",
        "cuda.driver.minor": "300",
        "cuda.driver.rev": "",
        "cuda.runtime-version.full": "8.0",
        "cuda.runtime-version.major": "8",
        "cuda.runtime-version.minor": "0",
        "cuda.runtime.major": "8",
        "cuda.runtime.minor": "0",
        "gpu.MOCKMODEL.count": "1",
        "gpu.MOCKMODEL.memory": "300",
        "gpu.compute.major": "8",
        "gpu.compute.minor": "0",
        "gpu.count": "1",
        "gpu.family": "ampere",
        "gpu.machine": "NVIDIA-DGX-A100-920-1",
        "gpu.memory": "300",
        "gpu.mode": "compute",
        "gpu.product": "MOCKMODEL",
        "gpu.replicas": "1",
        "gpu.sharing-strategy": "none",
        "mig.capable": "true",
        "mps.capable": "false",
        "vgpu.present": "false",
    }


@pytest.mark.parametrize(
    ("devices", "sharing", "expected"),
    [
        ((FULL,), None, described("MOCKMODEL", 1, 1, "none")),
        ((FULL, FULL), None, described("MOCKMODEL", 2, 1, "none")),
        (
            (FULL,),
            slicing("nvidia.com/gpu"),
            described("MOCKMODEL-SHARED", 1, 2, "time-slicing"),
        ),
        (
            (FULL,),
            slicing("nvidia.com/gpu", renameByDefault=True),
            described("MOCKMODEL", 1, 2, "time-slicing"),
        ),
        (
            (FULL,),
            slicing("nvidia.com/other"),
            described("MOCKMODEL", 1, 1, "none"),
        ),
        ((FULL,), mps(), described("MOCKMODEL-SHARED", 1, 2, "mps")),
        (
            (FULL,),
            slicing("gpu", 4) | mps("gpu", 3),
            described("MOCKMODEL-SHARED", 1, 3, "mps"),
        ),
        ((IN_MIG,), slicing("gpu"), described("MOCKMODEL", 1, 0, "none")),
        (
            (IN_MIG, FULL),
            slicing("gpu"),
            described("MOCKMODEL-SHARED", 2, 2, "time-slicing"),
        ),
    ],
)
def test_sharing(
    tmp_path: Path,
    devices: tuple[FakeDevice, ...],
    sharing: dict[str, Any] | None,
    expected: dict[str, str],
) -> None:
    labels = labelled(tmp_path, *devices, sharing=sharing)

    assert gpu(labels) == expected
    assert labels.get("gpu.family") == ("ampere" if FULL in devices else None)


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        (mps(), "true"),
        (mps(replicas=1), "false"),
        (None, "false"),
        (slicing("gpu"), "false"),
    ],
)
def test_mps_capable(
    tmp_path: Path, sharing: dict[str, Any] | None, expected: str
) -> None:
    assert labelled(tmp_path, FULL, sharing=sharing)["mps.capable"] == expected


def test_mps_excludes_mig(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"0000:01:00\.0 is in MIG mode"):
        labelled(tmp_path, IN_MIG, sharing=mps())


def test_capability_unknown(tmp_path: Path) -> None:
    """Upstream's mock in MIG mode says 0.0: no family, no compute labels."""
    labels = labelled(tmp_path, IN_MIG)

    assert not {n for n in labels if n.startswith(("gpu.compute", "gpu.family"))}


def test_single_without_mig(tmp_path: Path) -> None:
    plain = labelled(tmp_path, FULL)

    assert labelled(tmp_path, FULL, mig="single") == plain | {"mig.strategy": "single"}


def test_single(tmp_path: Path) -> None:
    device = FakeDevice(mig=True, migs=(FakeMig("1g.100gb", 100, gi=1, ci=2),))
    labels = labelled(tmp_path, device, mig="single")

    assert gpu(labels) == described("MOCKMODEL-MIG-1g.100gb", 1, 1, "none", 100)
    assert labels["gpu.slices.gi"] == "1"
    assert labels["gpu.slices.ci"] == "2"
    engines = {n: v for n, v in labels.items() if n.startswith("gpu.engines.")}
    assert engines == dict.fromkeys(
        (f"gpu.engines.{e}" for e in ("copy", "decoder", "encoder", "jpeg", "ofa")), "0"
    )
    assert labels["gpu.multiprocessors"] == "0"
    assert labels["gpu.family"] == "ampere"


def test_single_over_two_gpus(tmp_path: Path) -> None:
    values = {"multiprocessors": 14, "engines.copy": 1, "engines.ofa": 2}
    mig = FakeMig("1g.5gb", 4864, values=values)
    device = FakeDevice(mig=True, migs=(mig,))
    labels = labelled(tmp_path, device, device, mig="single")

    assert labels["gpu.count"] == "2"
    assert labels["gpu.multiprocessors"] == "14"
    assert labels["gpu.engines.copy"] == "1"
    assert labels["gpu.engines.ofa"] == "2"


def test_single_two_of_one_profile(tmp_path: Path) -> None:
    device = FakeDevice(mig=True, migs=(FakeMig("3g.20gb", 20),) * 2)

    assert gpu(labelled(tmp_path, device, mig="single")) == described(
        "MOCKMODEL-MIG-3g.20gb", 2, 1, "none", 20
    )


def test_single_mode_off_but_devices_listed(tmp_path: Path) -> None:
    device = FakeDevice(mig=False, migs=(FakeMig("3g.20gb", 20),))

    assert gpu(labelled(tmp_path, device, mig="single")) == described(
        "MOCKMODEL", 1, 1, "none"
    )


MIG_5 = FakeDevice(mig=True, migs=(FakeMig("1g.5gb", 5),))


@pytest.mark.parametrize(
    "devices",
    [
        (FakeDevice(mig=True),),
        (FakeDevice(mig=True, migs=(FakeMig("1g.5gb", 5), FakeMig("2g.10gb", 10))),),
        (MIG_5, FULL),
        (MIG_5, FULL, FakeDevice(mig=True)),
    ],
    ids=["empty", "two profiles", "on and off", "on, off and empty"],
)
def test_single_invalid(tmp_path: Path, devices: tuple[FakeDevice, ...]) -> None:
    """H51: the stated form, and all labels of full GPUs are still there."""
    labels = labelled(tmp_path, *devices, mig="single")

    assert gpu(labels) == described("MOCKMODEL-MIG-INVALID", 0, 0, "", 0)
    assert set(labels) == set(labelled(tmp_path, *devices)) | {"mig.strategy"}
    assert labels["gpu.family"] == "ampere"


def test_mixed(tmp_path: Path) -> None:
    device = FakeDevice(mig=True, migs=(FakeMig("3g.20gb", 20, 3, 3), MIG_5.migs[0]))
    labels = labelled(tmp_path, device, mig="mixed")

    assert gpu(labels) == described("MOCKMODEL", 1, 0, "none")
    assert labels["mig-3g.20gb.count"] == "1"
    assert labels["mig-3g.20gb.product"] == "MOCKMODEL-MIG-3g.20gb"
    assert labels["mig-3g.20gb.slices.gi"] == "3"
    assert labels["mig-1g.5gb.memory"] == "5"
    assert labels["mig.strategy"] == "mixed"


@pytest.mark.parametrize(("renamed", "suffix"), [(False, "-SHARED"), (True, "")])
def test_mixed_and_shared(tmp_path: Path, renamed: bool, suffix: str) -> None:  # noqa: FBT001 - a case
    device = FakeDevice(mig=True, migs=(FakeMig("1g.1gb", 300),))
    sharing = slicing("nvidia.com/mig-1g.1gb", renameByDefault=renamed)
    labels = labelled(tmp_path, device, mig="mixed", sharing=sharing)

    assert labels["mig-1g.1gb.replicas"] == "2"
    assert labels["mig-1g.1gb.product"] == f"MOCKMODEL-MIG-1g.1gb{suffix}"
    assert labels["mig-1g.1gb.sharing-strategy"] == "time-slicing"
    assert labels["gpu.replicas"] == "0"


def test_media_extensions_in_names(tmp_path: Path) -> None:
    """`+` cannot stand in a label."""
    device = FakeDevice(mig=True, mib=40960, migs=(real_mig(1, 4864, 40960, "+me"),))
    labels = labelled(tmp_path, device, mig="mixed")

    assert labels["mig-1g.5gb.me.product"] == "MOCKMODEL-MIG-1g.5gb.me"


def test_mig_enabled_without_instances(tmp_path: Path) -> None:
    """H51: no MIG counts, no failure."""
    labels = labelled(tmp_path, FakeDevice(mig=True), mig="mixed")

    assert not [name for name in labels if name.startswith("mig-")]
    assert labels["gpu.replicas"] == "0"


def test_real_node(tmp_path: Path) -> None:
    """A captured A100 with 3 x 1g.5gb and 1 x 2g.10gb (spec/gpu.md section 1.7)."""
    migs = [FakeMig("1g.5gb", 4864, values={"multiprocessors": 14})] * 3
    two = FakeMig(
        "2g.10gb",
        9856,
        2,
        2,
        {"multiprocessors": 28, "engines.copy": 2, "engines.decoder": 1},
    )
    device = FakeDevice(
        model="NVIDIA A100-SXM4-40GB", mib=40960, mig=True, migs=(*migs, two)
    )
    labels = labelled(tmp_path, device, mig="mixed")

    assert labels["gpu.product"] == "NVIDIA-A100-SXM4-40GB"
    assert labels["gpu.memory"] == "40960"
    assert labels["gpu.replicas"] == "0"
    assert labels["gpu.compute.major"] == "8"
    assert labels["mig-1g.5gb.count"] == "3"
    assert labels["mig-1g.5gb.memory"] == "4864"
    assert labels["mig-1g.5gb.multiprocessors"] == "14"
    assert labels["mig-2g.10gb.slices.ci"] == "2"
    assert labels["mig-2g.10gb.engines.decoder"] == "1"


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (("0x030000",), "graphics"),
        (("0x030200",), "compute"),
        (("0x068000",), "unknown"),
        (("0x030000", "0x030200"), "unknown"),
    ],
)
def test_mode(tmp_path: Path, classes: tuple[str, ...], expected: str) -> None:
    devices = (FakeDevice(pci_class=c) for c in classes)

    assert labelled(tmp_path, *devices, always=True)["gpu.mode"] == expected


@pytest.mark.parametrize(
    ("modes", "expected"),
    [((None,), "false"), ((None, True), "true"), ((False,), "true")],
)
def test_mig_capable(
    tmp_path: Path, modes: tuple[bool | None, ...], expected: str
) -> None:
    """An answer to the question is the capability."""
    devices = (FakeDevice(mig=mode) for mode in modes)

    assert labelled(tmp_path, *devices)["mig.capable"] == expected


@pytest.mark.parametrize(
    ("cliques", "expected"),
    [
        ((("u", 1), ("u", 1)), "u.1"),
        ((("u", 1), None), "u.1"),
        ((("u", 1), ("u", 2)), None),
        ((("u", 1), ("v", 1)), None),
        ((None,), None),
    ],
)
def test_clique(
    tmp_path: Path, cliques: tuple[tuple[str, int] | None, ...], expected: str | None
) -> None:
    devices = (FakeDevice(clique=clique) for clique in cliques)

    assert labelled(tmp_path, *devices).get("gpu.clique") == expected


def test_timestamp_is_off_by_default(tmp_path: Path) -> None:
    first = labelled(tmp_path, FULL, timestamp=True)

    assert "gfd.timestamp" not in labelled(tmp_path, FULL)
    assert int(first["gfd.timestamp"]) > 1_700_000_000
    assert first == labelled(tmp_path, FULL, timestamp=True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia.com/mig.strategy", "migStrategy is none"),
        ("nvidia.com/gpu.clique", "no GPU is on a fabric"),
        ("nvidia.com/gfd.timestamp", "the setting timestamp is off"),
        ("nvidia.com/gpu.other.count", "no GPU is of that model"),
        ("nvidia.com/nonsense", "no label of this source"),
    ],
)
def test_why_not(tmp_path: Path, name: str, expected: str) -> None:
    features = discover(tmp_path, FULL)

    assert expected in NvmlSource().why_not(name, features, NvmlSettings())


def test_why_not_names_what_failed(tmp_path: Path) -> None:
    features = discover(tmp_path, FakeDevice(errors={"memory": "UNKNOWN"}))
    answer = NvmlSource().why_not("nvidia.com/gpu.memory", features, NvmlSettings())

    assert "0000:01:00.0 (UNKNOWN)" in answer
