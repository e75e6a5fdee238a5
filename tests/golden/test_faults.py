"""A read that fails costs only what was in it, and is never taken for absence."""

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nfd import registry
from nfd.discovery import Discovery, Plan, discover
from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.source import Source
from tests.sources.roots import WatchedTree

SOURCES = [registry.installed().load(n) for n in registry.installed().names]
ASKED_AT_LEAST = {"arm64-server": 50, "hybrid-laptop": 120, "intel-vmd": 70}


def scan(host: HostRoot, source: Source[Any]) -> Discovery:
    return discover(host, Plan((source,), frozenset({source.name})))


def values(found: Discovery) -> dict[str, str]:
    return {key: label.value for key, label in found.labels.items()}


def no_element_is_false(before: Features, after: Features) -> bool:
    """Tell whether what is still there is as it was."""
    return all(
        before.attributes.get(key, {}).items() >= elements.items()
        for key, elements in after.attributes.items()
    ) and all(
        before.flags.get(key, frozenset()) >= names
        for key, names in after.flags.items()
    )


@pytest.fixture
def open_watched() -> Iterator[Callable[[Path, dict[str, int]], HostRoot]]:
    opened: list[HostRoot] = []

    def open_(path: Path, fails: dict[str, int]) -> HostRoot:
        host = HostRoot(str(path))
        host._tree = WatchedTree(host._tree, fails)
        opened.append(host)
        return host

    yield open_
    for host in opened:
        host.close()


@pytest.mark.parametrize("name", sorted(ASKED_AT_LEAST))
@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_failing_read_never_changes_an_unrelated_label(
    name: str,
    number: int,
    host_dir: Path,
    open_watched: Callable[[Path, dict[str, int]], HostRoot],
) -> None:
    asked = 0
    for source in SOURCES:
        host = open_watched(host_dir / name, {})
        before = scan(host, source)
        assert isinstance(host._tree, WatchedTree)
        for path in host._tree.asked:
            asked += 1
            faulty = open_watched(host_dir / name, {path: number})
            after = scan(faulty, source)
            faulty.close()
            result = after.results[source.name]
            where = f"{source.name}: {path}"

            assert values(before).items() >= values(after).items(), where
            if result.status == "failed":
                continue
            found = before.results[source.name].features

            assert no_element_is_false(found, result.features), where
            # The rest may be enough to be sure: one CPU with siblings is.
            assert result.features.unknown or result.features == found, where
            lost = before.labels.keys() - after.labels.keys()
            features = {before.labels[key].provenance.feature for key in lost}

            assert features <= result.features.unknown.keys(), where
    assert asked >= ASKED_AT_LEAST[name]


def test_one_unreadable_gpu_of_eight_changes_nothing(
    host_dir: Path, open_watched: Callable[[Path, dict[str, int]], HostRoot]
) -> None:
    (pci,) = (s for s in SOURCES if s.name == "pci")
    host = host_dir / "gpu-server-a100"
    before = scan(open_watched(host, {}), pci)
    bad = "/sys/bus/pci/devices/0000:47:00.0/vendor"
    after = scan(open_watched(host, {bad: errno.EIO}), pci)

    assert values(before) == values(after)
    assert {"pci.device"} == after.features.unknown.keys()
    assert "0000:47:00.0" in after.features.unknown["pci.device"]
