"""The local source: files of features.d."""

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from nfd.features import Features
from nfd_sources.local import (
    FEATURE,
    FEATURES_D,
    LABEL,
    MAX_FILE,
    LocalSettings,
    LocalSource,
    parse_features,
    parse_time,
)
from tests.sources.roots import Link, failing, make_root

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z
PAST = "# +expiry-time=2000-01-01T00:00:00Z\n"
FUTURE = "# +expiry-time=2100-01-01T00:00:00Z\n"
SOURCE = LocalSource(now=lambda: NOW)
SETTINGS = LocalSettings()


def discover(
    folder: Path, files: dict[str, Any], settings: LocalSettings = SETTINGS
) -> Features:
    """Discover files of features.d by name."""
    root = make_root(folder, {f"{FEATURES_D}/{n}": c for n, c in files.items()})
    return SOURCE.discover(root, settings)


def test_case_h22(tmp_path: Path) -> None:
    features = discover(
        tmp_path,
        {
            "10-a": "# plain comment\nfoo\nbar=baz\nvendor.io/x=1\n# +no-feature\n"
            "label-only=value\n# +no-label\nfeat-only=value\nbad=a b\n"
            + PAST
            + "gone=1"
        },
    )
    both = {"foo": "true", "bar": "baz", "vendor.io/x": "1", "bad": "a b"}

    assert {**both, "label-only": "value"} == features.attributes[LABEL]
    assert {**both, "feat-only": "value"} == features.attributes[FEATURE]
    assert "10-a line 11: expired" in SOURCE.why_not("gone", features, SETTINGS)
    assert "no-label" in SOURCE.why_not("feat-only", features, SETTINGS)
    assert "no line" in SOURCE.why_not("other", features, SETTINGS)


@pytest.mark.parametrize(
    ("text", "labels", "features"),
    [
        ("a=b=c\n", {"a": "b=c"}, {"a": "b=c"}),
        ("k=\n", {"k": ""}, {"k": ""}),
        ("crlf=1\r\n", {"crlf": "1"}, {"crlf": "1"}),
        ("k = v\n", {"k": "v"}, {"k": "v"}),
        ("=v\n", {}, {}),
        ("#+no-label\na\n", {"a": "true"}, {"a": "true"}),
        ("#  +no-label\na\n", {"a": "true"}, {"a": "true"}),
        ("# +no-label foo\na\n", {"a": "true"}, {"a": "true"}),
        ("# +no-label=x\na\n", {}, {"a": "true"}),
        ("# +no-label\n# +no-feature\na\nb\n", {"b": "true"}, {"b": "true"}),
        ("# +no-label\n\n# comment\na\nb\n", {"b": "true"}, {"a": "true", "b": "true"}),
        ("foo=bar\n# +no-label\nfoo=baz\n", {}, {"foo": "baz"}),
        ("foo=bar\n# +no-feature\nfoo=baz\n", {"foo": "baz"}, {}),
        (PAST + "a\n" + FUTURE + "b\n", {"b": "true"}, {"b": "true"}),
        (
            FUTURE + "a\n" + PAST + "b\n" + FUTURE + "c\n",
            {"a": "true", "c": "true"},
            {"a": "true", "c": "true"},
        ),
        # An expired line does not use up the directive.
        (PAST + "# +no-label\na\n" + FUTURE + "b\n", {}, {"b": "true"}),
        ("# +expiry-time=garbage\na\n", {"a": "true"}, {"a": "true"}),
        (PAST + "# +expiry-time=garbage\na\n", {}, {}),
        ("# +expiry-time\na\n", {"a": "true"}, {"a": "true"}),
        ("# +expiry-time =2000-01-01T00:00:00Z\na\n", {"a": "true"}, {"a": "true"}),
        ("# +expiry-time= 2000-01-01T00:00:00Z \na\n", {}, {}),
    ],
)
def test_lines(text: str, labels: dict[str, str], features: dict[str, str]) -> None:
    parsed = parse_features(text, NOW)

    assert (labels, features) == (parsed.labels, parsed.features)


@pytest.mark.parametrize(
    "text",
    [
        "# +random-key=1",
        "# + Something",
        "# +no-label foo",
        "# +expiry-time",
        "# +expiry-time=2100-01-01T00:00:00.33X",
        "=v",
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str) -> None:
    features = discover(tmp_path, {"10-a": f"ok\n{text}\n"})

    assert features.attributes[LABEL] == {"ok": "true"}
    assert list(features.notes) == ["local.feature/10-a line 2"]
    assert "10-a line 2" in SOURCE.why_not("x", features, SETTINGS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:30:00-00:30", 0),
        ("1970-01-01T00:00:01.999Z", 1),
        ("1970-01-01T1:00:00Z", 3600),
        ("1970-01-01t00:00:00Z", None),
        ("1970-01-01T00:00:00z", None),
        ("1970-01-01T00:00:00", None),
        ("1970-01-01 00:00:00Z", None),
        ("1970-02-30T00:00:00Z", None),
        ("1970-01-01T00:00:60Z", None),
        ("garbage", None),
    ],
)
def test_times(text: str, expected: float | None) -> None:
    assert expected == parse_time(text)


def test_expiry_is_exact() -> None:
    text = "# +expiry-time=1970-01-01T00:00:10Z\na\n"

    assert parse_features(text, 10.0).labels == {"a": "true"}
    assert parse_features(text, 10.1).labels == {}


def test_later_file_wins_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    features = discover(
        tmp_path,
        {"10-a": "bar=baz\nsame=1\n", "20-b": "# +no-feature\nbar=qux\nsame=1\n"},
    )

    assert features.attributes[LABEL] == {"bar": "qux", "same": "1"}
    assert features.attributes[FEATURE] == {"bar": "baz", "same": "1"}
    assert len(caplog.records) == 1
    assert {"10-a", "20-b"} <= set(caplog.text.replace("=", " ").split())


def test_files_that_are_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    features = discover(
        tmp_path,
        {
            ".tmp": "hidden\n",
            "folder": None,
            "folder/x": "below\n",
            "big": "x" * (MAX_FILE + 1),
            "most": "a\n".ljust(MAX_FILE, "#"),
        },
    )

    assert {"a"} == features.attributes[LABEL].keys()
    assert {f"{FEATURE}/big": "larger than 65536 bytes"} == features.notes
    assert len(caplog.records) == 1


def test_links_that_leave_the_folder_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (tmp_path / "outside").write_text("evil\n")
    make_root(root, {"/etc/secret": "key\n"})
    features = discover(
        root,
        {
            "absolute": Link("/etc/secret"),
            "relative": Link("../../../secret"),
            "above": Link("../" * 9 + "outside"),
            "nothing": Link("missing"),
            "..2024/inside": "a\n",
            "..data": Link("..2024"),
            "inside": Link("..data/inside"),
        },
    )

    assert features.attributes[LABEL] == {"a": "true"}
    assert {"absolute", "relative", "above", "nothing"} == {
        key.removeprefix(f"{FEATURE}/") for key in features.notes
    }
    assert "leaves the folder" in SOURCE.why_not("key", features, SETTINGS)


@pytest.mark.parametrize("strict", [False, True])
def test_files_that_all_may_write(
    tmp_path: Path,
    strict: bool,  # noqa: FBT001 - a table
    caplog: pytest.LogCaptureFixture,
) -> None:
    make_root(tmp_path, {f"{FEATURES_D}/10-a": "a\n", f"{FEATURES_D}/20-b": "b\n"})
    (tmp_path / FEATURES_D.lstrip("/") / "10-a").chmod(0o666)
    features = discover(tmp_path, {}, LocalSettings(strict=strict))

    assert ({"b"} if strict else {"a", "b"}) == features.attributes[LABEL].keys()
    assert strict == bool(features.notes)
    assert [r.levelno for r in caplog.records] == [logging.WARNING]


def test_unreadable_file_is_not_taken_for_absent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = make_root(tmp_path, {f"{FEATURES_D}/a": "a\n", f"{FEATURES_D}/b": "b\n"})
    features = SOURCE.discover(failing(root, f"{FEATURES_D}/a", number=13), SETTINGS)

    assert features.attributes[LABEL] == {"b": "true"}
    assert {LABEL, FEATURE} == features.unknown.keys()
    assert "Permission denied" in features.unknown[LABEL]
    assert len(caplog.records) == 1


def test_unreadable_folder_is_unknown(tmp_path: Path) -> None:
    root = make_root(tmp_path, {FEATURES_D: None})
    features = SOURCE.discover(failing(root, FEATURES_D), SETTINGS)

    assert features.attributes == {}
    assert {LABEL, FEATURE} == features.unknown.keys()


def test_missing_folder_is_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    features = SOURCE.discover(make_root(tmp_path, {}), SETTINGS)

    assert features.attributes == {LABEL: {}, FEATURE: {}}
    assert not caplog.records


def test_pipe_is_ignored(tmp_path: Path) -> None:
    make_root(tmp_path, {FEATURES_D: None})
    os.mkfifo(tmp_path / FEATURES_D.lstrip("/") / "pipe")
    features = discover(tmp_path, {})

    assert features.attributes == {LABEL: {}, FEATURE: {}}
    assert not features.notes


def test_labels_are_what_the_files_say(tmp_path: Path) -> None:
    features = discover(tmp_path, {"10-a": "vendor.io/x=1\nplain\n"})

    assert {
        name: label.value for name, label in SOURCE.labels(features, SETTINGS).items()
    } == {"vendor.io/x": "1", "plain": "true"}
    assert SOURCE.why_not("plain", features, SETTINGS) == ""
