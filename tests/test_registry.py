"""Sources are found by their entry points, and broken ones cost only themselves."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from nfd.registry import (
    GROUP,
    NOTHING_INSTALLED,
    Plugin,
    PluginError,
    Registry,
    entry_points,
    find_plugins,
    installed,
)
from tests import tiny

ROOT = Path(__file__).parent.parent


def test_agrees_with_importlib_metadata() -> None:
    found = {(p.name, p.target, p.distribution) for p in find_plugins(sys.path)}

    assert {
        (e.name, e.value, e.dist.name if e.dist else "")
        for e in importlib.metadata.entry_points(group=GROUP)
    } == found


def test_agrees_with_importlib_metadata_on_versions() -> None:
    version = importlib.metadata.version("node-feature-discovery")

    assert {version} == {p.version for p in installed().plugins.values()}


def test_every_source_module_is_registered() -> None:
    """A new source needs `pip install -e .` again; this says so."""
    modules = {
        p.stem
        for p in (ROOT / "sources" / "nfd_sources").iterdir()
        if not p.name.startswith("_") and p.name != "py.typed"
    }
    registered = {
        p.target.removeprefix("nfd_sources.").partition(":")[0].partition(".")[0]
        for p in installed().plugins.values()
        if p.target.startswith("nfd_sources.")
    }

    assert modules == registered, "run pip install -e . again, or register the source"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("[console_scripts]\nnfd = nfd.cli:main\n", {}),
        ("[nfd.sources]\na = m:A\n", {"a": "m:A"}),
        ("[ nfd.sources ]\na = m:A\n", {}),
        ("[x]\na = m:X\n[nfd.sources]\n a=m.n:A.B [extra]\n\n# c\n; d\n[y]\nb = m:B", {"a": "m.n:A.B [extra]"}),
        ("[nfd.sources]\nno equals\na = m:A", {"a": "m:A"}),
    ],
)  # fmt: skip
def test_entry_points_of_one_group(text: str, expected: dict[str, str]) -> None:
    assert expected == entry_points(text)


def _distribution(folder: Path, name: str, text: str, version: str = "1.0") -> None:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text(text)
    (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")


def test_third_party_distribution_is_installed(tmp_path: Path) -> None:
    """A distribution of its own adds a source without any change here."""
    _distribution(tmp_path, "acme_source", "[nfd.sources]\nacme = acme:AcmeSource\n")
    (tmp_path / "acme.py").write_text(
        "from nfd.features import Features\n"
        "from nfd.source import Source\n"
        "class AcmeSource(Source):\n"
        "    name = 'acme'\n"
        "    def discover(self, host, settings):\n"
        "        return Features.of(flags={'acme.part': ['rocket']})\n"
        "    def labels(self, features, settings):\n"
        "        return {p: 'true' for p in features.flags['acme.part']}\n"
    )
    code = "import sys; from nfd.cli import main; sys.exit(main(sys.argv[1:]))"
    command = ["scan", "--root", str(tmp_path), "--sources", "acme", "-o", "labels"]

    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == "feature.node.kubernetes.io/acme-rocket=true\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_same_name_twice_keeps_ours_and_names_the_other(tmp_path: Path) -> None:
    _distribution(tmp_path, "aaa", "[nfd.sources]\npci = evil:Pci\n")
    _distribution(tmp_path, "node_feature_discovery", "[nfd.sources]\npci = good:Pci\n")

    registry = installed([str(tmp_path)])

    assert registry.plugins["pci"].target == "good:Pci"
    (problem,) = registry.problems.values()
    assert "distribution aaa" in problem
    assert "node-feature-discovery" in problem


def test_first_copy_of_a_distribution_counts(tmp_path: Path) -> None:
    _distribution(tmp_path / "a", "x", "[nfd.sources]\none = a:A\n", "2.0")
    _distribution(tmp_path / "b", "x", "[nfd.sources]\ntwo = b:B\n", "1.0")

    found = list(find_plugins([str(tmp_path / "a"), str(tmp_path / "b")]))

    assert [Plugin("one", "a:A", "x", "2.0")] == found


def test_path_entries_that_do_not_exist_are_passed_over(tmp_path: Path) -> None:
    archive = tmp_path / "some.zip"
    archive.write_bytes(b"PK")

    assert list(find_plugins([str(tmp_path / "no"), str(archive)])) == []


def test_no_sources_at_all(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="no sources are installed") as caught:
        installed([str(tmp_path)])

    assert str(caught.value) == NOTHING_INSTALLED


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("no_such_module:X", "ModuleNotFoundError"),
        ("tests.tiny:Missing", "AttributeError"),
        ("tests.tiny:NoSource", "is not an nfd.source.Source"),
        ("tests.tiny", "not of the form module:Class"),
        ("tests.tiny:OffSource", "the class calls itself 'off'"),
        ("nfd.source:Source", "the class calls itself None"),
    ],
)
def test_broken_plugins_name_their_distribution(target: str, expected: str) -> None:
    registry = Registry([Plugin("x", target, "acme-source", "1")])

    with pytest.raises(PluginError) as caught:
        registry.load("x")

    assert expected in str(caught.value)
    assert "distribution acme-source" in str(caught.value)
    assert registry.settings_class("x") is None
    assert not registry.off_by_default("x")


def test_sources_are_loaded_once_and_on_demand() -> None:
    registry = tiny.registry(tiny.TinySource, tiny.OffSource)

    assert registry.names == ("off", "tiny")
    assert registry.load("tiny") is registry.load("tiny")
    assert registry.off_by_default("off")
    assert tiny.TinySettings is registry.settings_class("tiny")
    with pytest.raises(PluginError, match="no source 'nope'"):
        registry.load("nope")


def test_only_selected_sources_are_imported() -> None:
    code = (
        "import sys, nfd\n"
        "nfd.scan('/', sources='memory')\n"
        "print(sorted(m for m in sys.modules if m.startswith('nfd_sources.')\n"
        "             and not m.startswith('nfd_sources._')))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout == "['nfd_sources.memory']\n"
