"""`nfd sources`, `nfd diff` and `nfd export`."""

import json
from pathlib import Path

import pytest

from nfd.cli.export import go_json
from nfd.registry import installed
from tests import tiny
from tests.cli.conftest import Nfd

NS = "feature.node.kubernetes.io"


def test_sources_as_json_tell_all(nfd: Nfd, tiny_sources: None) -> None:
    del tiny_sources
    plain = json.loads(nfd("sources", "-o", "json").out)

    assert list(plain) == ["broken", "loud", "off", "tiny"]
    assert plain["off"]["default"] == "off"
    assert plain["tiny"] == {
        "distribution": "tests 1",
        "object": "tests.tiny:TinySource",
        "default": "on",
        "features": {
            "tiny.found": {
                "kinds": ["flag", "attribute"],
                "elements": None,
                "help": "tiny",
            }
        },
        "labels": {"tiny-<name>": "each name"},
        "settings": {
            "sources.tiny.names": {
                "type": "list of text",
                "default": ["one"],
                "help": "names to find",
            },
            "sources.tiny.extra": {
                "type": "map of text",
                "default": {},
                "help": "labels to add",
            },
            "sources.tiny.nested.deep": {
                "type": "true/false",
                "default": False,
                "help": "a nested key",
            },
        },
    }


def test_table_of_the_real_sources_names_everything(nfd: Nfd) -> None:
    done = nfd("sources")

    assert done.status == 0
    registry = installed()
    for name in registry.names:
        source = registry.load(name)
        assert f"{name}  (node-feature-discovery " in done.out
        for spec in source.feature_specs:
            assert spec.key in done.out


def test_broken_sources_are_listed_with_the_reason(
    nfd: Nfd, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = tiny.plugin(tiny.TinySource)._replace(target="no_such:Thing")
    monkeypatch.setattr("nfd.registry.find_plugins", lambda _: [plugin])

    assert "cannot be loaded: source 'tiny' of distribution tests" in (
        nfd("sources").out
    )
    assert "error" in json.loads(nfd("sources", "-o", "json").out)["tiny"]


@pytest.fixture
def other(tmp_path: Path) -> str:
    folder = tmp_path / "other"
    tiny.host(folder, {"/etc/tiny": "goodbye\n"}).close()
    return str(folder)


TINY = ("--sources", "tiny")


def test_diff_of_equal_hosts_is_empty(nfd: Nfd, root: str, tiny_sources: None) -> None:
    del tiny_sources
    assert nfd("diff", root, root, *TINY, "--exit-code") == (0, "", "")


def test_diff_of_hosts(nfd: Nfd, root: str, other: str, tiny_sources: None) -> None:
    del tiny_sources
    expected = "~ feature tiny.found.text: 'hello' -> 'goodbye'\n"

    assert nfd("diff", root, other, *TINY) == (0, expected, "")
    assert nfd("diff", root, other, *TINY, "--exit-code").status == 1


def test_diff_of_saved_scans(
    nfd: Nfd, root: str, tmp_path: Path, tiny_sources: None
) -> None:
    del tiny_sources
    words = ("scan", "--root", root, "-o", "json")
    (tmp_path / "a.json").write_text(nfd(*words, "--features").out)
    (tmp_path / "b.json").write_text(nfd(*words, "--sources", "tiny").out)
    empty = tmp_path / "empty"
    tiny.host(empty).close()

    same = nfd("diff", str(tmp_path / "a.json"), root, "--sources", "all")
    assert same.out == ""
    assert "source broken failed in the first: RuntimeError: boom" in same.err

    partly = nfd("diff", str(tmp_path / "b.json"), root, *TINY)
    assert partly.out == ""
    assert "features are not compared" in partly.err

    gone = nfd("diff", str(tmp_path / "a.json"), str(empty), *TINY, "-o", "json")
    plain = json.loads(gone.out)
    assert plain["labels"]["removed"] == {f"{NS}/tiny-one": "true"}
    assert "tiny.found one" in plain["features"]["removed"]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"labels": 5}', '{"labels": {}, "features": 1}']
)
def test_diff_of_something_else(nfd: Nfd, tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)

    done = nfd("diff", str(file), str(file))

    assert done.status == 1
    assert str(file) in done.err


def test_export_labels(nfd: Nfd, host_dir: Path) -> None:
    """As spec/worker.md section 3.4: no CPUID block list, four spaces, sorted."""
    root = str(host_dir / "vm-without-gpu")
    done = nfd("export", "labels", "--root", root)

    labels = json.loads(done.out)
    assert done.out.startswith('{\n    "')
    assert done.out.endswith("}\n")
    assert list(labels) == sorted(labels)
    scan = nfd("scan", "--root", root, "-o", "json")
    assert json.loads(scan.out)["labels"].items() <= labels.items()
    assert f"{NS}/cpu-cpuid.CX16" in labels


def test_export_features_into_a_file(nfd: Nfd, host_dir: Path, tmp_path: Path) -> None:
    root = str(host_dir / "vm-without-gpu")
    file = tmp_path / "features.json"

    assert nfd("export", "features", "--root", root, "-p", str(file)) == (0, "", "")

    text = file.read_text()
    assert text == nfd("export", "features", "--root", root).out.rstrip("\n")
    plain = json.loads(text)
    assert set(plain) == {"flags", "attributes", "instances"}
    for instance in plain["instances"]["pci.device"]["elements"]:
        assert set(instance) == {"attributes"}


def test_export_stops_at_a_failed_source(
    nfd: Nfd, root: str, tiny_sources: None
) -> None:
    del tiny_sources
    assert nfd("export", "features", "--root", root) == (
        1,
        "",
        "nfd: error: source broken failed: RuntimeError: boom\n",
    )


def test_export_into_a_file_that_cannot_be_written(nfd: Nfd, host_dir: Path) -> None:
    done = nfd(
        "export", "labels", "--root", str(host_dir / "empty-root"), "-p", "/no/x"
    )

    assert done == (1, "", "nfd: error: /no/x: No such file or directory\n")


def test_json_is_escaped_as_go_does() -> None:
    assert go_json({"a": "<b> & \u2028é"}) == (
        '{\n    "a": "\\u003cb\\u003e \\u0026 \\u2028é"\n}'
    )
