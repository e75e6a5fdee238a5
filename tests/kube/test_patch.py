"""JSON patches, applied by the fake server's own implementation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfd.kube.patch import (
    Operation,
    add,
    as_merge,
    change_map,
    expect,
    pointer,
    remove,
    replace,
    same_object,
)
from tests.fakeapi import Refusal
from tests.fakeapi.patching import json_patch, merge_patch

KEYS = st.sampled_from(["a", "b", "c/d", "e~f", "~1", ""])
TEXTS = st.sampled_from(["", "1", "2"])
PATH = ("metadata", "labels")


@given(
    current=st.none() | st.dictionaries(KEYS, TEXTS),
    changes=st.dictionaries(KEYS, st.none() | TEXTS),
)
def test_a_map_ends_as_wanted_with_the_fewest_operations(
    current: dict[str, str] | None, changes: dict[str, str | None]
) -> None:
    before = {"metadata": {} if current is None else {"labels": current}}
    operations = change_map(PATH, current, changes)
    after = json_patch(before, operations)["metadata"].get("labels")

    have = current or {}
    wanted = {k: v for k, v in {**have, **changes}.items() if v is not None}
    assert wanted == (after or {})
    writes = [
        o for o in operations if o["op"] != "test" and o["path"] != pointer(*PATH)
    ]
    assert len(writes) == sum(have.get(k) != v for k, v in changes.items())


@given(
    current=st.dictionaries(KEYS, TEXTS),
    meanwhile=st.dictionaries(KEYS, TEXTS),
    changes=st.dictionaries(KEYS, st.none() | TEXTS, min_size=1),
)
def test_what_someone_wrote_meanwhile_is_never_overwritten(
    current: dict[str, str],
    meanwhile: dict[str, str],
    changes: dict[str, str | None],
) -> None:
    operations = change_map(PATH, current, changes)
    touched = {k for k, v in changes.items() if current.get(k) != v}
    differs = any(current.get(k) != meanwhile.get(k) for k in touched)
    now = {"metadata": {"labels": meanwhile}}
    if differs:
        with pytest.raises(Refusal):
            json_patch(now, operations)
    else:
        json_patch(now, operations)


def test_a_map_that_appeared_meanwhile_is_not_wiped() -> None:
    operations = change_map(PATH, None, {"a": "1"})
    with pytest.raises(Refusal):
        json_patch({"metadata": {"labels": {"foreign": "1"}}}, operations)


def test_exactly_these_operations() -> None:
    operations = change_map(
        PATH, {"x.io/old": "1", "b": "1"}, {"x.io/old": None, "b": "2"}
    )

    expected = [
        {"op": "test", "path": "/metadata/labels/b", "value": "1"},
        {"op": "replace", "path": "/metadata/labels/b", "value": "2"},
        {"op": "test", "path": "/metadata/labels/x.io~1old", "value": "1"},
        {"op": "remove", "path": "/metadata/labels/x.io~1old"},
    ]
    assert expected == operations


def test_the_guard_of_identity() -> None:
    document = {"metadata": {"uid": "u1", "labels": {"a": "1"}}}
    operations = [same_object("u1"), remove((*PATH, "a"))]
    assert json_patch(document, operations)["metadata"]["labels"] == {}
    with pytest.raises(Refusal):
        json_patch(document, [same_object("u2"), remove((*PATH, "a"))])


VERSION = expect(("metadata", "resourceVersion"), "7")


@given(st.dictionaries(KEYS, TEXTS), st.dictionaries(KEYS, TEXTS, min_size=1))
def test_a_merge_patch_does_what_the_json_patch_does(
    current: dict[str, str], wanted: dict[str, str]
) -> None:
    before = {
        "metadata": {"resourceVersion": "7", "uid": "u", "labels": current or None}
    }
    operations = [same_object("u"), VERSION]
    if not current:
        operations += [expect(PATH, None), add(PATH, {})]
    for key, value in wanted.items():
        if key in current:
            operations.append(expect((*PATH, key), current[key]))
        operations.append(add((*PATH, key), value))

    merged = as_merge(operations)

    assert merged is not None
    assert merged["metadata"]["resourceVersion"] == "7"
    assert merge_patch(before, merged) == json_patch(before, operations)


@pytest.mark.parametrize(
    "operations",
    [
        [add((*PATH, "a"), "1")],  # nothing vouches for what was read
        [same_object("u"), add((*PATH, "a"), "1")],
        [VERSION, expect((*PATH, "a"), "1"), remove((*PATH, "a"))],
        [VERSION, replace(("spec", "taints"), [])],
    ],
)
def test_no_merge_patch_for_removals_lists_or_without_a_version(
    operations: list[Operation],
) -> None:
    assert as_merge(operations) is None
