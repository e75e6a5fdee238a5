"""Several models on a node: the same answer, whatever the order of enumeration."""

import json
import random
from pathlib import Path

from nfd.labels import key_problem, value_problem
from nfd_sources.nvml import NvmlSettings
from tests.sources.nvml.fakes import (
    FakeDevice,
    FakeNvml,
    FakeSession,
    gpu_host,
    labelled,
    placed,
    texts,
)

A100 = FakeDevice("A100-SXM4-80GB", 81920)
DISPLAY = FakeDevice("DGX Display", 4096, (7, 5), "0x030000", mig=None)
STATION = [*[A100] * 3, DISPLAY, *[A100] * 4]


def test_shuffled_enumeration(tmp_path: Path) -> None:
    """H49: 100 orders, one answer, about the A100s."""
    devices = placed(STATION)
    source = FakeNvml()
    seen = set()
    host = gpu_host(tmp_path, devices)
    for seed in range(100):
        random.Random(seed).shuffle(devices)
        source.answer = FakeSession(list(devices))
        features = source.discover(host, NvmlSettings())
        labels = source.labels(features, NvmlSettings())
        shown = [{k: v._asdict() for k, v in labels.items()}, features.to_plain()]
        seen.add(json.dumps(shown))

    assert len(seen) == 1
    made = texts(labels)
    assert made["gpu.product"] == "A100-SXM4-80GB"
    assert made["gpu.count"] == "7"
    assert made["gpu.memory"] == "81920"
    assert made["gpu.mode"] == "compute"
    assert made["gpu.DGX-Display.count"] == "1"
    assert "gpu.mixed" not in made


def test_display_cards_are_told_by_name_or_size(tmp_path: Path) -> None:
    """A small card beside compute cards serves a screen, however many there are."""
    t400 = FakeDevice("NVIDIA T400 4GB", 4096, (7, 5), "0x030000", mig=None)
    made = labelled(tmp_path, t400, t400, A100)

    assert made["gpu.product"] == "A100-SXM4-80GB"
    assert made["gpu.count"] == "1"
    assert "gpu.mixed" not in made
    assert made["gpu.NVIDIA-T400-4GB.count"] == "2"


def test_two_compute_models(tmp_path: Path) -> None:
    """H49: counts and memory for each model; a setting leaves the misleading out."""
    cards = (
        FakeDevice("NVIDIA GeForce RTX 3090", 24576, (8, 6), "0x030000", mig=None),
        FakeDevice("NVIDIA GeForce RTX 4090", 24564, (8, 9), "0x030000", mig=None),
    )
    made = labelled(tmp_path, *cards)

    assert made["gpu.mixed"] == "true"
    assert made["gpu.product"] == "NVIDIA-GeForce-RTX-3090"
    assert made["gpu.count"] == "1"
    assert made["gpu.NVIDIA-GeForce-RTX-3090.count"] == "1"
    assert made["gpu.NVIDIA-GeForce-RTX-4090.count"] == "1"
    assert made["gpu.NVIDIA-GeForce-RTX-4090.memory"] == "24564"
    without = labelled(tmp_path, *cards, mixed_models="omit")
    assert set(made) - set(without) == {"gpu.product", "gpu.memory"}


def test_names_of_models(tmp_path: Path) -> None:
    """Names fit into keys, and different models never share one."""
    long = "NVIDIA Quadro RTX 6000 Ada Generation Passive Server Edition"
    models = (f"{long} A", f"{long} B", "TITAN X (Pascal)", "TITAN X Pascal", "()")
    made = labelled(tmp_path, *(FakeDevice(model) for model in models))
    counts = [n for n in made if n.endswith(".count") and n != "gpu.count"]

    assert len(counts) == len(models)
    for name, value in made.items():
        assert key_problem(f"nvidia.com/{name}") == ""
        assert value_problem(value) == ""
    assert "gpu.TITAN-X-Pascal.count" not in made


def test_one_name_needs_no_hash(tmp_path: Path) -> None:
    made = labelled(tmp_path, FakeDevice("TITAN X (Pascal)"))

    assert made["gpu.TITAN-X-Pascal.count"] == "1"
    assert made["gpu.product"] == "TITAN-X-Pascal"
