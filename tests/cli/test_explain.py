"""`nfd explain`: labels and features that are there, and those that are not."""

import json
from pathlib import Path

import pytest

from tests import tiny
from tests.cli.conftest import Nfd

NS = "feature.node.kubernetes.io"


@pytest.fixture
def explain(nfd: Nfd, root: str, tiny_sources: None) -> Nfd:
    del tiny_sources
    return lambda *words: nfd("explain", "--root", root, *words)


@pytest.mark.parametrize("key", ["tiny-one", f"{NS}/tiny-one"])
def test_label_that_is_there(explain: Nfd, key: str) -> None:
    done = explain(key)

    assert done == (
        0,
        f"""\
label {NS}/tiny-one
  value:         true
  source:        tiny
  because:       named
  feature:       tiny.found
  element:       one
  elements:
    one
  files:
    /etc/tiny = hello
""",
        "",
    )


def test_label_the_source_does_not_make(explain: Nfd) -> None:
    done = explain("tiny-onne")

    assert done.status == 1
    assert f"label {NS}/tiny-onne: not there\n" in done.out
    assert "missing:       onne is not among the names" in done.out
    assert f"nearest:\n    {NS}/tiny-one\n" in done.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["broken-x"], "failed:        RuntimeError: boom"),
        (["off-one"], "not selected:  add 'off' to --sources"),
        (["tiny-one", "--label-sources", ""], "not selected:  add 'tiny' to --label-sources"),
        (["tiny-bad", "--options", "sources: {tiny: {extra: {bad: a b}}}"], "refused:       'a b' by source tiny: the value may hold"),
        (["tiny-one", "--options", "core: {labelWhiteList: x}"], "does not match core.labelWhiteList"),
        (["tiny-?"], "invalid key:   the name part may hold"),
        (["whatever"], "missing:       no source has this prefix"),
        (["vendor.io/x"], "missing:       no source or rule makes this key"),
        (["nope.feature"], "not installed: there is no source 'nope'"),
        (["tiny.nothing"], "missing:       source tiny has no such feature"),
        (["tiny.nothing"], "nearest:\n    tiny.found"),
        (["broken.found"], "failed:        RuntimeError: boom"),
        (["tiny.found.txet"], "missing:       tiny.found has no element 'txet'"),
    ],
)  # fmt: skip
def test_why_something_is_not_there(
    explain: Nfd, words: list[str], expected: str
) -> None:
    done = explain(*words)

    assert done.status == 1
    assert expected in done.out


def test_feature_that_the_host_has_not(nfd: Nfd, host_dir: Path) -> None:
    """It names the files that were looked for, and does not suggest itself."""
    done = nfd("explain", "kernel.config", "--root", str(host_dir / "empty-root"))

    assert done.status == 1
    assert "missing:       the host has nothing of this kind" in done.out
    assert "/proc/config.gz (No such file or directory)" in done.out
    assert "kernel.config" not in done.out.partition("nearest:")[2]


def test_element_that_is_not_there_names_its_file(nfd: Nfd, host_dir: Path) -> None:
    root = str(host_dir / "vm-without-gpu")
    done = nfd("explain", "system.dmiid.product_sku", "--root", root)

    assert "missing:       system.dmiid has no element 'product_sku'" in done.out
    assert "dmi/id/product_sku (No such file or directory)" in done.out


def test_feature_that_is_there(explain: Nfd) -> None:
    assert (
        explain("tiny.found").out
        == """\
feature tiny.found
  source:        tiny
  kind:          flag (1), attribute (1)
  elements:
    one
    text=hello
  files:
    /etc/tiny = hello
"""
    )


def test_element_of_a_feature(explain: Nfd) -> None:
    done = explain("tiny.found.text")

    assert done.status == 0
    assert "  elements:\n    text=hello\n" in done.out


def test_who_else_wanted_the_label(explain: Nfd) -> None:
    options = "{sources: {tiny: {extra: {x.io/k: a}}, loud: {extra: {x.io/k: b}}}}"

    done = explain("x.io/k", "--options", options)

    assert "value:         b\n" in done.out
    assert "also wanted:   'a' by source tiny: overwritten by source 'loud'" in done.out


def test_absent_source_names_the_missing_file(
    nfd: Nfd, tmp_path: Path, tiny_sources: None
) -> None:
    del tiny_sources
    tiny.host(tmp_path).close()

    done = nfd("explain", "tiny-one", "--root", str(tmp_path))

    assert "absent:        no /etc/tiny" in done.out
    assert "/etc/tiny (No such file or directory)" in done.out


def test_json(explain: Nfd) -> None:
    plain = json.loads(explain("tiny-one", "-o", "json").out)

    assert plain["found"] is True
    assert plain["kind"] == "label"
    assert plain["facts"]["because"] == ["named"]
    assert plain["files"] == [{"path": "/etc/tiny", "content": "hello", "error": ""}]


def test_files_of_the_element_only(nfd: Nfd, host_dir: Path) -> None:
    """A device's label shows that device's files, not all of PCI."""
    done = nfd(
        "explain", "pci-10de.present", "--root", str(host_dir / "gpu-server-a100")
    )

    files = [line for line in done.out.splitlines() if line.startswith("    /sys")]
    assert files
    assert len({line.split("/")[5] for line in files}) == 1
    assert any("vendor = 0x10de" in line for line in files)
    assert "deviceClassWhitelist" in done.out


def test_class_that_is_not_white_listed(nfd: Nfd, host_dir: Path) -> None:
    done = nfd(
        "explain", "pci-10de.present", "--root", str(host_dir / "nvidia-audio-desktop")
    )

    assert done.status == 1
    assert "which is not on deviceClassWhitelist" in done.out


def test_line_of_a_file(nfd: Nfd, root: str) -> None:
    tiny.host(Path(root), {"/etc/os-release": 'A=1\nID="debian"\nB=2\n'}).close()

    done = nfd("explain", "system-os_release.ID", "--root", root)

    assert '/etc/os-release = ID="debian"\n' in done.out


def test_documented_key_of_another_namespace(nfd: Nfd, host_dir: Path) -> None:
    """Keys with a prefix of their own lead to the source that documents them."""
    root = str(host_dir / "gpu-server-a100")
    status, told, _ = nfd("explain", "--root", root, "nvidia.com/gpu.product")

    assert status == 1
    assert "source:        nvml" in told
    assert "absent:        NVML answers on a running host" in told
