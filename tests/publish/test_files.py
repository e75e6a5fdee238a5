"""Atomic label files."""

import os
from pathlib import Path

import pytest

from nfd.publish.files import label_lines, read_labels, write_if_changed


def test_unchanged_content_is_not_written(tmp_path: Path) -> None:
    """The file's inode tells whether it was replaced."""
    path = tmp_path / "gfd"

    assert write_if_changed(str(path), label_lines({"b": "2", "a": "1"}))
    first = path.stat().st_ino
    assert not write_if_changed(str(path), "a=1\nb=2\n")

    assert path.stat().st_ino == first
    assert path.stat().st_mode & 0o777 == 0o644


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """Nothing half-written is ever seen, and no temporary file stays."""
    path = tmp_path / "gfd"
    path.mkdir()

    with pytest.raises(OSError, match="gfd"):
        write_if_changed(str(path), "a=1\n")

    assert os.listdir(tmp_path) == ["gfd"]


def test_written_labels_read_back(tmp_path: Path) -> None:
    """A worker remembers what an earlier one wrote; a missing file holds nothing."""
    path = str(tmp_path / "gfd")
    labels = {"a": "1", "b": ""}
    assert read_labels(path) == {}

    write_if_changed(path, label_lines(labels))

    assert read_labels(path) == labels
