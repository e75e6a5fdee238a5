"""Logs of the agents."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nfd import agentlog
from nfd.errors import ConfigError


@pytest.fixture(autouse=True)
def files_closed() -> Iterator[None]:
    yield
    agentlog.configure("nfd")


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_lines_with_fields() -> None:
    stream = io.StringIO()
    agentlog.configure("nfd-worker", stream=stream)

    agentlog.logger("worker").info("labels changed", added=["a"])
    agentlog.logger("worker").debug("not said")

    (line,) = lines(stream)
    assert line.pop("time").endswith("Z")
    assert line == {
        "component": "worker",
        "added": ["a"],
        "event": "labels changed",
        "level": "info",
    }


class Broken(io.StringIO):
    """A stream whose reader has gone, or whose disk is full."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(text)


@pytest.mark.parametrize("stream", [Broken(), io.StringIO()])
def test_a_log_that_cannot_be_written_costs_nothing_else(stream: io.StringIO) -> None:
    """Sources log; they must not fail, or facts be lost, for it."""
    agentlog.configure("nfd-worker", form="text", stream=stream)
    if not isinstance(stream, Broken):
        stream.close()

    agentlog.logger("worker").warning("said")
    logging.getLogger("nfd_sources.pci").warning("said too")


def test_text_and_verbosity() -> None:
    stream = io.StringIO()
    values = {"v": 1, "skip_headers": True}
    agentlog.configure("nfd-worker", values, form="text", stream=stream)

    agentlog.logger("worker").debug("looked", why="a b", empty="")

    assert stream.getvalue() == "looked component=worker why='a b' empty=''\n"


def test_standard_logging_comes_along() -> None:
    stream = io.StringIO()
    agentlog.configure("nfd-worker", stream=stream)

    logging.getLogger("nfd_sources.pci").warning("device %s skipped", "x")

    (line,) = lines(stream)
    assert (line["event"], line["logger"]) == ("device x skipped", "nfd_sources.pci")


def test_log_file_with_errors_on_standard_error(tmp_path: Path) -> None:
    stream = io.StringIO()
    values = {"logtostderr": False, "log_dir": str(tmp_path)}
    agentlog.configure("nfd-worker", values, stream=stream)
    log = agentlog.logger("worker")

    log.warning("small")
    log.error("big")

    assert [line["event"] for line in lines(stream)] == ["big"]
    assert len((tmp_path / "nfd-worker.log").read_text().splitlines()) == 2


def test_wrong_threshold_is_named() -> None:
    values = {"logtostderr": False, "log_file": "/dev/null", "stderrthreshold": "loud"}

    with pytest.raises(ConfigError, match="stderrthreshold"):
        agentlog.configure("nfd-worker", values)


def test_nothing_that_draws_is_imported() -> None:
    """Rich would cost megabytes in every agent."""
    code = "import sys, nfd.agentlog; print([m for m in sys.modules if 'rich' in m])"

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
