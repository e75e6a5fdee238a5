"""Keys, values and namespaces: spec/worker.md sections 0.3 and 6.9."""

import pytest

from nfd.labels import (
    in_namespace,
    in_namespaces,
    key_problem,
    split_key,
    value_problem,
)


@pytest.mark.parametrize(
    "key",
    [
        "a",
        "A-b_c.9",
        "x" * 63,
        "example.com/a",
        "a/b",
        "0.1/x",
        "a" * 63 + ".io/x",
        ".".join(["a" * 62] * 4) + "/x",
    ],
)
def test_valid_keys(key: str) -> None:
    assert key_problem(key) == ""


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("", "the name part is empty"),
        ("example.com/", "the name part is empty"),
        ("/x", "the prefix before '/' is empty"),
        ("x" * 64, "64 characters, 63 are allowed"),
        ("-x", "must begin and end"),
        ("x.", "must begin and end"),
        ("a b", "may hold"),
        ("x\n", "may hold"),
        ("\u00e4", "may hold"),
        ("a/b/c", "may hold"),
        ("Example.com/x", "lower-case DNS subdomain"),
        ("example..com/x", "lower-case DNS subdomain"),
        ("example.com\n/x", "lower-case DNS subdomain"),
        ("a" * 254 + "/x", "254 characters, 253 are allowed"),
    ],
)
def test_invalid_keys(key: str, reason: str) -> None:
    assert reason in key_problem(key)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", ""),
        ("true", ""),
        ("A.b-c_9", ""),
        ("x" * 63, ""),
        ("x" * 64, "64 characters, 63 are allowed"),
        ("a b", "may hold"),
        ("_", "must begin and end"),
        ("x\n", "may hold"),
    ],
)
def test_values(value: str, reason: str) -> None:
    assert (reason in value_problem(value)) if reason else not value_problem(value)


def test_keys_are_split_at_the_first_slash() -> None:
    assert split_key("a/b/c") == ("a", "b/c")
    assert split_key("a") == ("", "a")


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("kubernetes.io", True),
        ("a.kubernetes.io", True),
        ("evilkubernetes.io", False),
        ("kubernetes.io.evil", False),
        ("", False),
    ],
)
def test_namespaces_hold_their_sub_domains(prefix: str, *, expected: bool) -> None:
    assert expected == in_namespace(prefix, "kubernetes.io")
    assert expected == in_namespaces(prefix, ["x.io", "kubernetes.io"])
    assert not in_namespaces(prefix, [])
