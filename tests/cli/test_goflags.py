"""Command lines as Go's flag package reads them."""

import io
from typing import Any

import pytest

from nfd.cli.goflags import (
    KLOG,
    FlagSet,
    HelpWanted,
    camel,
    duration,
    gates,
    integer,
    klog_values,
    switch,
    text,
    words,
)
from nfd.errors import UsageError

FLAGS = FlagSet(
    "nfd-worker",
    (
        text("config", "a file", "/etc/x"),
        switch("oneshot", "once"),
        integer("port", "port", 8080),
        words("owner-refs", "owners", ("pod", "ds")),
        duration("period", "pause", "1h"),
        gates({"NodeFeatureAPI": True, "Alpha": False}, locked=("NodeFeatureAPI",)),
        *KLOG,
    ),
)


@pytest.mark.parametrize(
    ("argv", "name", "expected"),
    [
        (["-config", "a"], "config", "a"),
        (["--config=a=b"], "config", "a=b"),
        (["-config="], "config", ""),
        (["-config", "-oneshot"], "config", "-oneshot"),
        (["-oneshot"], "oneshot", True),
        (["-oneshot=false"], "oneshot", False),
        (["-oneshot=T"], "oneshot", True),
        (["-port=0x10"], "port", 16),
        (["-port", "010"], "port", 8),
        (["-port=1", "-port=2"], "port", 2),
        (["-owner-refs= ds, ,node"], "owner-refs", ("ds", "node")),
        (["-owner-refs="], "owner-refs", ()),
        (["-period=90s"], "period", 90_000_000_000),
        (["-v=4"], "v", 4),
        (["--"], "v", 0),
        (
            ["-feature-gates=Alpha=true", "-feature-gates=NodeFeatureAPI=true"],
            "feature-gates",
            {"NodeFeatureAPI": True, "Alpha": True},
        ),
    ],
)
def test_values(argv: list[str], name: str, expected: Any) -> None:
    assert expected == FLAGS.parse(argv)[name]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["-oneshot", "false"], "unknown command line argument: false"),
        (["x"], "unknown command line argument: x"),
        (["--", "x"], "unknown command line argument: x"),
        (["-"], "unknown command line argument: -"),
        (["-nope"], "there is no flag -nope"),
        (["---config=a"], "bad flag syntax: ---config=a"),
        (["-=a"], "bad flag syntax: -=a"),
        (["-config"], "flag -config needs a value"),
        (["-port=ten"], "flag -port: 'ten': expected a whole number"),
        (["-oneshot=maybe"], "flag -oneshot: 'maybe': expected true or false"),
        (["-period=3"], "flag -period: '3': expected a duration"),
        (["-feature-gates=X=true"], "unrecognized feature gate: X"),
        (["-feature-gates=Alpha"], "missing bool value for Alpha"),
        (["-feature-gates=NodeFeatureAPI=false"], "locked to true"),
    ],
)
def test_mistakes(argv: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        FLAGS.parse(argv)

    assert said in str(caught.value)


def test_only_flags_on_the_command_line_count_as_given() -> None:
    """They override the configuration, defaults do not."""
    assert FLAGS.parse(["-oneshot"]).given == {"oneshot"}


def test_help_is_no_error_and_a_mistake_is_exit_status_2() -> None:
    out, err = io.StringIO(), io.StringIO()

    assert FLAGS.parse_or_exit(["-h"], out, err) == 0
    assert out.getvalue().startswith("Usage of nfd-worker:\n  -add_dir_header\n")
    assert "a file (default /etc/x)" in out.getvalue()
    assert FLAGS.parse_or_exit(["-nope"], out, err) == 2
    assert "there is no flag -nope" in err.getvalue()
    with pytest.raises(HelpWanted):
        FLAGS.parse(["--help"])


def test_empty_words_may_be_dropped_first() -> None:
    """As upstream's master does."""
    flags = FlagSet("nfd-master", FLAGS.flags, drop_empty=True)

    assert flags.parse(["-config", "", "a"])["config"] == "a"
    with pytest.raises(UsageError):
        FLAGS.parse([""])


def test_klog_keys_are_camel_case_and_the_command_line_wins() -> None:
    configured = {"v": "3", "logFile": "/x", "skipHeaders": "true", "nope": "1"}

    values, unknown = klog_values(configured, FLAGS.parse(["-log_file=/y"]))

    assert camel("an_arg") == "anArg"
    assert (values["v"], values["log_file"], values["skip_headers"]) == (3, "/y", True)
    assert unknown == ["nope"]
    with pytest.raises(UsageError, match=r"core\.klog\.v: expected a whole number"):
        klog_values({"v": "loud"}, FLAGS.parse([]))
