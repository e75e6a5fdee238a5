"""`nfd scan`: formats, failures, configuration, selection, roots."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from nfd.cli.output import FORMATS, render
from nfd.config.worker import DEFAULT_OWNERS
from nfd.discovery import Discovery, SourceResult
from nfd.labels import Label, Provenance
from tests.cli.conftest import Nfd

NS = "feature.node.kubernetes.io"
pytestmark = pytest.mark.usefixtures("tiny_sources")


def test_labels_are_the_default_off_a_terminal(nfd: Nfd, root: str) -> None:
    done = nfd("scan", "--root", root, "--sources", "tiny")

    assert done == (0, f"{NS}/tiny-one=true\n", "")


def test_json(nfd: Nfd, root: str) -> None:
    done = nfd("scan", "--root", root, "--sources", "all,-loud", "-o", "json")

    plain = json.loads(done.out)
    assert list(plain) == ["labels", "sources"]
    assert plain["labels"] == {f"{NS}/tiny-one": "true"}
    assert list(plain["sources"]) == ["broken", "tiny"]
    assert plain["sources"]["broken"]["status"] == "failed"
    assert plain["sources"]["broken"]["error"] == "RuntimeError: boom"
    assert plain["sources"]["tiny"]["seconds"] >= 0


def test_features_in_json_are_plain_lists_and_maps(nfd: Nfd, root: str) -> None:
    done = nfd("scan", "--root", root, "--sources", "tiny", "-o", "json", "--features")

    assert json.loads(done.out)["features"] == {
        "flags": {"tiny.found": ["one"]},
        "attributes": {"tiny.found": {"text": "hello"}},
        "instances": {},
    }


def test_yaml_says_what_json_says(nfd: Nfd, root: str) -> None:
    words = ("scan", "--root", root, "--sources", "tiny", "--features")
    as_json = json.loads(nfd(*words, "-o", "json").out)
    as_yaml = yaml.safe_load(nfd(*words, "-o", "yaml").out)

    for plain in (as_json, as_yaml):
        del plain["sources"]["tiny"]["seconds"]
    assert as_yaml == as_json


def test_failed_sources_are_told_and_cost_nothing(nfd: Nfd, root: str) -> None:
    done = nfd("scan", "--root", root)

    assert done == (
        0,
        f"{NS}/tiny-one=true\n",
        "nfd: source broken failed: RuntimeError: boom\n",
    )


def test_strict_exits_with_one(nfd: Nfd, root: str) -> None:
    assert nfd("scan", "--root", root, "--strict").status == 1
    assert nfd("scan", "--root", root, "--strict", "--sources", "tiny").status == 0


def test_refused_labels_are_told(nfd: Nfd, root: str) -> None:
    options = '{"sources": {"tiny": {"extra": {"bad": "a b", "x.io/y": "1"}}}}'

    done = nfd("scan", "--root", root, "--sources", "tiny", "--options", options)

    assert (
        f"label '{NS}/tiny-bad' of source tiny came to nothing: the value" in done.err
    )
    assert "x.io/y=1\n" in done.out


def test_file_then_options(nfd: Nfd, root: str, tmp_path: Path) -> None:
    file = tmp_path / "worker.conf"
    file.write_text("sources: {tiny: {names: [file], NESTED: {deep: true}, nmaes: []}}")

    words = ("scan", "--root", root, "--sources", "tiny", "--config", str(file))

    assert nfd(*words) == (
        0,
        f"{NS}/tiny-file=true\n",
        "nfd: warning: sources.tiny.nmaes: unknown key, ignored, did you mean 'names'?\n",
    )
    over = nfd(*words, "--options", "sources: {tiny: {names: [0200]}}")
    assert over.out == f"{NS}/tiny-128=true\n"


def test_whitelist_of_the_configuration(nfd: Nfd, root: str) -> None:
    words = ("scan", "--root", root, "--sources", "tiny", "--options")

    assert nfd(*words, "core: {labelWhiteList: ^tiny-o}").out == f"{NS}/tiny-one=true\n"
    done = nfd(*words, "core: {labelWhiteList: ^x}")
    assert done.out == ""
    assert "does not match core.labelWhiteList" in done.err


def test_wrong_values_name_their_key(nfd: Nfd, root: str) -> None:
    wrong = "is not allowed here"
    done = nfd("scan", "--root", root, "--options", "sources: {tiny: {names: 5}}")

    assert done == (
        1,
        "",
        f"nfd: error: sources.tiny.names: 5 {wrong}, expected a list of texts\n",
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--sources", "off"], "absent"),
        (["--sources", "all,off"], "absent"),
    ],
)
def test_sources_that_are_off_run_when_named(
    nfd: Nfd, tmp_path: Path, words: list[str], expected: str
) -> None:
    (tmp_path / "sys").mkdir()
    done = nfd("scan", "--root", str(tmp_path), "-o", "json", *words)

    assert json.loads(done.out)["sources"]["off"]["status"] == expected


def test_sources_named_make_labels_too(nfd: Nfd, root: str) -> None:
    assert nfd("scan", "--root", root, "--sources", "off").out == f"{NS}/off-one=true\n"


def test_label_sources(nfd: Nfd, root: str) -> None:
    words = ("scan", "--root", root, "--sources", "tiny", "--features")

    done = nfd(*words, "--label-sources", "")

    assert done.out == "tiny.found one\ntiny.found.text=hello\n"


def test_selecting_nothing_is_wrong_use(nfd: Nfd, root: str) -> None:
    done = nfd("scan", "--root", root, "--sources", "tinny")

    assert done.status == 2
    assert "did you mean 'tiny'?" in done.err


def test_root_from_the_environment_and_the_flag_wins(
    nfd: Nfd, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NFD_HOST_ROOT", root)

    assert nfd("scan", "--sources", "tiny").out == f"{NS}/tiny-one=true\n"
    assert nfd("scan", "--sources", "tiny", "--root", str(tmp_path)).out == ""


def test_table_on_a_terminal(
    nfd: Nfd, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)

    done = nfd("scan", "--root", root)

    assert "\x1b[" in done.out
    assert "tiny-one" in done.out
    assert "RuntimeError: boom" in done.out
    assert "1 label from 3 sources, 1 failed" in done.out


def test_table_without_colour(nfd: Nfd, root: str) -> None:
    done = nfd("scan", "--root", root, "-o", "table", "--features")

    assert "\x1b[" not in done.out
    assert "tiny.found.text=hello" in done.out


def _found(**labels: str) -> Discovery:
    return Discovery(
        {"x": SourceResult("x", "ok")},
        {k: Label(k, v, Provenance("x")) for k, v in labels.items()},
    )


def test_env_can_be_read_by_a_shell() -> None:
    found = _found(**{f"{NS}/pci-10de.present": "true", "vendor.io/a.b": "c"})

    assert (
        render(found, "env") == "NFD_PCI_10DE_PRESENT='true'\nNFD_VENDOR_IO_A_B='c'\n"
    )


def test_env_names_stay_apart() -> None:
    assert render(_found(**{"a-b": "1", "a.b": "2"}), "env") == (
        "NFD_A_B='1'\nNFD_A_B__2='2'\n"
    )


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_ends_with_a_newline(form: str) -> None:
    assert render(_found(a="1"), form, features=True).endswith("\n")


def test_owners_default_to_the_node() -> None:
    assert DEFAULT_OWNERS == ("node",)
