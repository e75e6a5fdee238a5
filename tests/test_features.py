"""The data model: equal content is equal, comes back from JSON, merges as specified."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfd.errors import NfdError
from nfd.features import Features, merge

keys = st.sampled_from(["a.b", "a.c", "d.e"])
texts = st.text(max_size=4)
maps = st.dictionaries(texts, texts, max_size=3)
features = st.builds(
    Features.of,
    flags=st.dictionaries(keys, st.sets(texts)),
    attributes=st.dictionaries(keys, maps),
    instances=st.dictionaries(keys, st.lists(maps, max_size=3)),
    unknown=st.dictionaries(keys, texts),
)


@given(features)
def test_content_comes_back(wanted: Features) -> None:
    """From plain data and, without what is unknown, from a NodeFeature's spec."""
    plain = json.loads(json.dumps(wanted.to_plain()))
    spec = json.loads(json.dumps(wanted.to_spec()))

    assert wanted == Features.from_plain(plain)
    assert wanted.unknown == Features.from_plain(plain).unknown
    assert wanted.to_spec() == Features.from_spec(spec).to_spec()


@given(features)
def test_order_of_building_does_not_matter(wanted: Features) -> None:
    plain = wanted.to_plain()
    turned = {part: dict(reversed(list(sets.items()))) for part, sets in plain.items()}

    assert wanted == Features.from_plain(turned)
    assert json.dumps(plain) == json.dumps(Features.from_plain(turned).to_plain())


def test_notes_are_no_content() -> None:
    assert Features.of(notes={"a.b/x": "left out"}) == Features()


def test_keys_only_and_membership() -> None:
    found = Features.of(
        flags={"a.b": ["x"]},
        attributes={"a.b": {}, "c.d": {"k": "v"}},
        instances={"e.f": [{}]},
        unknown={"g.h": "unread", "a.b": "partly"},
        notes={"a.b/x": "note", "c.d/y": "note"},
    )

    assert list(found) == found.keys() == ["a.b", "c.d", "e.f"]
    assert "e.f" in found
    assert "g.h" not in found
    assert found.only(["a.b", "g.h"]) == Features.of(
        flags={"a.b": ["x"]},
        attributes={"a.b": {}},
        unknown={"g.h": "unread", "a.b": "partly"},
    )
    assert found.only(["a.b"]).notes == {"a.b/x": "note"}


def test_merging() -> None:
    """spec/worker.md section 6.7."""
    first = Features.of(
        flags={"a.b": ["x"]},
        attributes={"a.b": {"k": "1", "l": "1"}},
        instances={"a.b": [{"n": "1"}]},
        unknown={"c.d": "unread"},
    )
    second = Features.of(
        flags={"a.b": ["y"], "e.f": []},
        attributes={"a.b": {"k": "2"}},
        instances={"a.b": [{"n": "1"}]},
    )

    assert merge([first, second]) == Features.of(
        flags={"a.b": ["x", "y"], "e.f": []},
        attributes={"a.b": {"k": "2", "l": "1"}},
        instances={"a.b": [{"n": "1"}, {"n": "1"}]},
        unknown={"c.d": "unread"},
    )
    assert merge([]) == Features()


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"flags": None, "attributes": {}, "instances": None},
    ],
)
def test_missing_parts_of_a_spec_are_empty(spec: dict[str, Any]) -> None:
    assert Features.from_spec(spec) == Features()


def test_missing_elements_of_a_spec_are_empty_sets() -> None:
    spec = {
        "flags": {"a.b": {"elements": None}},
        "attributes": {"a.b": {"elements": None}},
        "instances": {"a.b": {"elements": [{"attributes": None}]}},
    }

    assert Features.from_spec(spec) == Features.of(
        flags={"a.b": []}, attributes={"a.b": {}}, instances={"a.b": [{}]}
    )


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"flags": []}, ""),
        ({"flags": ["x"]}, "features.flags: expected a map, got ['x']"),
        ({"flags": {"a.b": "x"}}, "features.flags.a.b: unexpected 'x'"),
        ({"flags": {"a.b": [1]}}, "features.flags.a.b: unexpected [1]"),
        ({"attributes": {"a.b": {"k": 1}}}, "features.attributes.a.b: unexpected"),
        ({"attributes": {"a.b": ["k"]}}, "features.attributes.a.b: unexpected"),
        ({"instances": {"a.b": [["k"]]}}, "features.instances.a.b: unexpected"),
        ({"instances": {"a.b": 5}}, "features.instances.a.b: unexpected 5"),
        ({"flags": {"a.b": 100 * "x"}}, "..."),
    ],
)
def test_wrong_shapes_are_named(plain: Any, message: str) -> None:
    if not message:  # an empty list is as good as an empty map
        assert Features.from_plain(plain) == Features()
        return
    with pytest.raises(NfdError) as caught:
        Features.from_plain(plain)

    assert message in str(caught.value)
    assert len(str(caught.value)) < 130
