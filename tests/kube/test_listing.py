"""Lists decoded as they arrive."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfd.kube.answers import lines
from nfd.kube.listing import ListMetadata, items

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.text(), VALUES)


def _pieces(body: bytes, sizes: list[int]) -> Iterator[bytes]:
    while body:
        size = sizes.pop() if sizes else 50
        yield body[:size]
        body = body[size:]


@settings(max_examples=50)
@given(
    objects=st.lists(OBJECTS, max_size=3),
    sizes=st.lists(st.integers(1, 40), max_size=30),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
    order=st.permutations(["kind", "apiVersion", "metadata", "items"]),
)
def test_any_list_in_any_pieces(
    objects: list[dict[str, Any]],
    sizes: list[int],
    indent: int | None,
    order: list[str],
    *,
    ascii_only: bool,
) -> None:
    parts = {
        "kind": "NodeList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "12", "continue": "x"},
        "items": objects,
    }
    text = json.dumps(
        {key: parts[key] for key in order}, indent=indent, ensure_ascii=ascii_only
    )
    metadata = ListMetadata()
    body = text.encode(errors="surrogatepass")
    assert objects == list(items(_pieces(body, sizes), metadata))
    assert ListMetadata("12", "x") == metadata


def test_a_list_whose_items_are_null() -> None:
    """Go writes an empty slice that was never made so."""
    body = b'{"metadata":{"resourceVersion":"1"},"items":null}'
    assert list(items([body], ListMetadata())) == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"<html>",
        b'{"kind":"Status"}',
        b'{"items":[1]}',
        b'{"items":{}}',
        b'{"items":[{}',
        b'{"items":[{}]',
        b'{"items":[{} {}]}',
        b'{"items":[{"a":"\xff"}]}',
    ],
)
def test_what_is_no_list(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        list(items([body], ListMetadata()))


def test_items_come_before_the_list_has_ended() -> None:
    read: list[int] = []

    def body() -> Iterator[bytes]:
        yield b'{"metadata":{},"items":['
        for i in range(1000):
            read.append(i)
            yield b'{"a":1},' if i < 999 else b'{"a":1}'
        yield b"]}"

    found = items(body(), ListMetadata())
    next(found)

    assert len(read) < 5


@given(
    st.lists(st.binary().map(lambda b: b.replace(b"\n", b"") + b"."), max_size=6),
    st.lists(st.integers(1, 9)),
)
def test_lines_in_any_pieces(expected: list[bytes], sizes: list[int]) -> None:
    body = b"".join(line + b"\n" for line in expected)
    assert expected == list(lines(_pieces(body, sizes)))


def test_a_stream_that_ends_inside_a_line() -> None:
    with pytest.raises(ValueError, match="inside an event"):
        list(lines([b"one\ntw"]))
