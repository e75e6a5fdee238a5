"""JSON text: exactly that of the standard library."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfd.cli.jsontext import write

WORDS = st.none() | st.booleans() | st.integers() | st.text()
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
DATA = st.recursive(
    WORDS | NUMBERS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(DATA)
def test_text_is_that_of_the_standard_library(value: Any) -> None:
    assert write(value) == json.dumps(value, indent=2, ensure_ascii=False)


def test_every_character_is_escaped_alike() -> None:
    text = "".join(map(chr, (*range(0x2030), 0xD800, 0xFFFF, 0x1F600)))

    assert write(text) == json.dumps(text, ensure_ascii=False)


@pytest.mark.parametrize("value", [{1: "a"}, {"a": {2}}, [b"bytes"], object()])
def test_other_data_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        write(value)


def test_tuples_are_lists_and_empty_ones_stay_on_their_line() -> None:
    assert write({"a": (), "b": {}, "c": (1,)}) == (
        '{\n  "a": [],\n  "b": {},\n  "c": [\n    1\n  ]\n}'
    )
