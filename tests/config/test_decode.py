"""Settings are decoded by the rules of Go's JSON decoder, errors name their path."""

from collections.abc import Mapping
from typing import Any, Literal

import attrs
import pytest

from nfd.config.decode import Key, decode, keys, merge_trees
from nfd.config.duration import Duration
from nfd.errors import ConfigError
from nfd.source import setting


@attrs.frozen(slots=True)
class Inner:
    level: int = setting("level", 1, "a number")
    word: Literal["a", "b"] = setting("word", "a", "a choice")


@attrs.frozen(slots=True)
class Outer:
    yes: bool = setting("yesOrNo", default=False, help="a boolean")
    ratio: float = setting("ratio", 0.5, "a ratio")
    name: str = setting("name", "n", "a name")
    names: tuple[str, ...] = setting("names", ("x", "y"), "names")
    labels: Mapping[str, str] = setting("labels", {"k": "v"}, "labels")
    maps: tuple[Mapping[str, str], ...] = setting("maps", ({"a": "1"},), "maps")
    maybe: tuple[str, ...] | None = setting("maybe", None, "perhaps a list")
    inner: Inner = setting("inner", Inner(), "more settings")
    inners: tuple[Inner, ...] = setting("inners", (), "many more")
    deep: str = setting("some.where.deep", "", "a nested key")
    other: str = setting("some.other", "o", "its neighbour")
    pause: Duration = setting("pause", Duration(5), "a pause")
    anything: Any = setting("anything", None, "any data")


@pytest.mark.parametrize(
    ("tree", "field", "expected"),
    [
        ({"yesOrNo": True}, "yes", True),
        ({"YESORNO": True}, "yes", True),
        ({"yesOrNo": None}, "yes", False),
        ({"ratio": 2}, "ratio", 2.0),
        ({"name": 128}, "name", "128"),
        ({"name": True}, "name", "true"),
        ({"name": 1.1}, "name", "1.1"),
        ({"name": None}, "name", "n"),
        ({"names": []}, "names", ()),
        ({"names": None}, "names", ()),
        ({"names": [1, "b", True]}, "names", ("1", "b", "true")),
        ({"labels": {"k2": 2}}, "labels", {"k": "v", "k2": "2"}),
        ({"labels": {"K": "w"}}, "labels", {"k": "v", "K": "w"}),
        ({"labels": None}, "labels", {}),
        ({"maps": [{"b": "2"}, {"c": "3"}]}, "maps", ({"a": "1", "b": "2"}, {"c": "3"})),
        ({"maps": []}, "maps", ()),
        ({"maybe": None}, "maybe", None),
        ({"maybe": ["q"]}, "maybe", ("q",)),
        ({"inner": {"LEVEL": 7}}, "inner", Inner(7, "a")),
        ({"inner": {"word": "b"}}, "inner", Inner(1, "b")),
        ({"inner": {"level": 3.0}}, "inner", Inner(3, "a")),
        ({"inner": None}, "inner", Inner()),
        ({"inners": [{"level": 2}, None]}, "inners", (Inner(2), Inner())),
        ({"some": {"where": {"deep": "x"}}}, "deep", "x"),
        ({"SOME": {"Where": {"DEEP": "x"}}}, "deep", "x"),
        ({"some": None}, "deep", ""),
        ({"pause": "1s"}, "pause", Duration.of_seconds(1)),
        ({"anything": {"a": [1]}}, "anything", {"a": [1]}),
        (None, "name", "n"),
    ],
)  # fmt: skip
def test_values(tree: Any, field: str, expected: Any) -> None:
    warnings: list[str] = []

    decoded = decode(Outer, tree, "top", warnings=warnings)

    assert expected == getattr(decoded, field)
    assert attrs.evolve(decoded, **{field: getattr(Outer(), field)}) == Outer()
    assert warnings == []


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"yesOrNo": "true"}, "top.yesOrNo: 'true' is not allowed here, expected true or false"),
        ({"yesOrNo": 1}, "top.yesOrNo: 1 is not allowed here, expected true or false"),
        ({"ratio": "x"}, "top.ratio: 'x' is not allowed here, expected a number"),
        ({"name": []}, "top.name: [] is not allowed here, expected text"),
        ({"names": "x"}, "top.names: 'x' is not allowed here, expected a list of texts"),
        ({"names": [[]]}, "top.names[0]: [] is not allowed here, expected text"),
        ({"labels": {"a": {}}}, "top.labels.a: {} is not allowed here, expected text"),
        ({"labels": [1]}, "top.labels: [1] is not allowed here, expected a map of texts"),
        ({"maps": [1]}, "top.maps[0]: 1 is not allowed here, expected a map of texts"),
        ({"inner": {"level": 1.5}}, "top.inner.level: 1.5 is not allowed here, expected a whole number"),
        ({"inner": {"level": True}}, "top.inner.level: true is not allowed here, expected a whole number"),
        ({"inner": {"word": "c"}}, "top.inner.word: 'c' is not allowed here, expected one of a, b"),
        ({"inner": 5}, "top.inner: 5 is not allowed here, expected a map"),
        ({"SOME": {"where": 5}}, "top.some.where: 5 is not allowed here, expected a map"),
        ({"inners": [{"level": "x"}]}, "top.inners[0].level: 'x' is not allowed here, expected a whole number"),
        ([], "top: [] is not allowed here, expected a map"),
    ],
)  # fmt: skip
def test_errors_name_path_value_and_what_is_allowed(tree: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        decode(Outer, tree, "top")

    assert message == str(caught.value)


def test_long_values_are_cut() -> None:
    with pytest.raises(ConfigError) as caught:
        decode(Outer, {"ratio": "x" * 500})

    assert len(str(caught.value)) < 130


def test_unknown_keys_warn_with_the_nearest() -> None:
    warnings: list[str] = []

    decode(Outer, {"nmae": 1, "inner": {"zzz": 1}}, "top", warnings=warnings)

    assert warnings == [
        "top.inner.zzz: unknown key, ignored (known: level, word)",
        "top.nmae: unknown key, ignored, did you mean 'name'?",
    ]


def test_layers_keep_what_the_upper_one_does_not_name() -> None:
    base = decode(Outer, {"name": "low", "some": {"other": "x"}, "labels": {"a": "1"}})

    over = decode(
        Outer, {"some": {"where": {"deep": "y"}}, "labels": {"a": "2"}}, base=base
    )

    assert (over.name, over.other, over.deep) == ("low", "x", "y")
    assert over.labels == {"k": "v", "a": "2"}


def test_keys_that_differ_in_case_are_applied_in_the_order_of_their_bytes() -> None:
    assert decode(Outer, {"name": "lower", "NAME": "upper"}).name == "lower"


def test_exact_key_of_a_map_is_case_sensitive() -> None:
    assert decode(Outer, {"labels": {"K": 1}}).labels == {"k": "v", "K": "1"}


def test_documented_keys() -> None:
    listed = {key.path: key for key in keys(Outer)}

    assert Key("inner.level", int, 1, "a number") == listed["inner.level"]
    assert "some.where.deep" in listed
    assert "inner" not in listed


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        ({"a": 1}, {"A": 2, "b": 3}, {"a": 2, "b": 3}),
        ([{"name": "x", "v": 1}], [{"v": 2}], [{"name": "x", "v": 2}]),
        ([{"name": "x"}, {"name": "y"}], [{"name": "z"}], [{"name": "z"}]),
        (["a", "b"], ["c"], ["c"]),
        ({"a": {"b": [1]}}, {"a": {"b": None}}, {"a": {"b": None}}),
        (None, {"a": 1}, {"a": 1}),
    ],
)
def test_undecoded_data_merges(base: Any, over: Any, expected: Any) -> None:
    assert expected == merge_trees(base, over)
