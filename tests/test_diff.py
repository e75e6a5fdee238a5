"""Comparing two hosts: every element has a key, ignorance is no change."""

from typing import Any

import pytest

from nfd.diff import Snapshot, compare
from nfd.errors import NfdError
from nfd.features import Features


def said(before: Features, after: Features) -> list[str]:
    return [str(c) for c in compare(Snapshot({}, before), Snapshot({}, after)).changes]


def listed(*instances: dict[str, str]) -> Features:
    return Features.of(instances={"a.b": instances})


def test_labels_and_features_in_plain_data() -> None:
    before = Snapshot(
        {"gone": "1", "same": "1", "other": "1"}, Features.of(flags={"a.b": ["x"]})
    )
    after = Snapshot(
        {"same": "1", "other": "2", "new": "1"}, Features.of(flags={"a.b": ["y"]})
    )

    assert compare(before, after).to_plain() == {
        "labels": {
            "added": {"new": "1"},
            "removed": {"gone": "1"},
            "changed": {"other": ["1", "2"]},
        },
        "features": {
            "added": {"a.b y": ""},
            "removed": {"a.b x": ""},
            "changed": {},
        },
        "warnings": [],
    }


def test_instances_are_told_by_an_attribute_of_their_own() -> None:
    before = listed({"address": "1", "v": "a"}, {"address": "2", "v": "a"})
    after = listed({"address": "1", "v": "b"}, {"address": "3", "v": "a"})

    assert said(before, after) == [
        "~ feature a.b[1].v: 'a' -> 'b'",
        "- feature a.b[2].address=2",
        "- feature a.b[2].v=a",
        "+ feature a.b[3].address=3",
        "+ feature a.b[3].v=a",
    ]


def test_instances_without_one_are_counted() -> None:
    one = {"v": "a", "w": "b"}

    assert said(listed(one, one), listed(one)) == ["- feature a.b[v=a w=b] #2"]


def test_an_empty_set_is_not_an_absent_one() -> None:
    assert said(Features(), listed()) == ["+ feature a.b"]
    assert said(Features.of(attributes={"a.b": {}}), Features()) == ["- feature a.b"]


def test_what_is_not_known_is_told() -> None:
    before = Snapshot({}, Features.of(unknown={"a.b": "unread", "c.d": "boom"}))
    after = Snapshot({}, None, {"c": "boom"})

    assert compare(before, after).warnings == (
        "a.b is not, or not completely, known in the first: unread",
        "c.d is not, or not completely, known in the first: boom",
        "source c failed in the second: boom",
        "features are not compared: one side was saved without them",
    )


@pytest.mark.parametrize(
    "plain", [None, [], {}, {"labels": 1}, {"labels": {}, "features": []}]
)
def test_other_data_is_refused(plain: Any) -> None:
    with pytest.raises(NfdError, match="not the output of 'nfd scan -o json'"):
        Snapshot.from_plain(plain)


def test_saved_scans_come_back() -> None:
    features = Features.of(flags={"a.b": ["x"]})
    plain = {
        "labels": {"k": "v"},
        "sources": {"c": {"status": "failed", "error": "boom"}, "d": {"status": "ok"}},
        "features": features.to_plain(),
    }

    assert Snapshot.from_plain(plain) == Snapshot({"k": "v"}, features, {"c": "boom"})
    assert Snapshot.from_plain({"labels": {}}).features is None
