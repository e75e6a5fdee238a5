"""The fake source."""

from pathlib import Path

from nfd.features import Features
from nfd_sources.fake import (
    ATTRIBUTE,
    FLAG,
    INSTANCE,
    FakeSettings,
    FakeSource,
)
from tests.sources.roots import make_root


def test_defaults(tmp_path: Path) -> None:
    source = FakeSource()
    features = source.discover(make_root(tmp_path, {}), FakeSettings())

    assert {"flag_1", "flag_2", "flag_3"} == features.flags[FLAG]
    assert (features.attributes[ATTRIBUTE]) == {
        "attr_1": "true",
        "attr_2": "false",
        "attr_3": "10",
    }
    assert [i["name"] for i in features.instances[INSTANCE]] == [
        "instance_1",
        "instance_2",
        "instance_3",
    ]
    assert {"fakefeature1", "fakefeature2", "fakefeature3"} == (
        source.labels(features, FakeSettings()).keys()
    )
    assert not source.on_by_default


def test_settings_decide(tmp_path: Path) -> None:
    source = FakeSource()
    settings = FakeSettings({"a/b": "c"}, ("f",), {"x": "1"}, ({"name": "i"},))
    features = source.discover(make_root(tmp_path, {}), settings)

    assert (
        Features.of(
            flags={FLAG: ["f"]},
            attributes={ATTRIBUTE: {"x": "1"}},
            instances={INSTANCE: [{"name": "i"}]},
        )
        == features
    )
    assert source.labels(features, settings)["a/b"].value == "c"
    assert source.why_not("a/b", features, settings) == ""
    assert "sources.fake.labels" in source.why_not("other", features, settings)


def test_nothing_before_a_discovery() -> None:
    assert FakeSource().labels(Features(), FakeSettings()) == {}
