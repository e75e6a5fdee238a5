"""A source of made-up features, for tests of rules; off unless named.

Specification: worker.md section 1.11.
"""

from collections.abc import Mapping

import attrs

from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.source import FeatureSpec, LabelSpec, LabelValue, Settings, Source, setting

FLAG = "fake.flag"
ATTRIBUTE = "fake.attribute"
INSTANCE = "fake.instance"

DEFAULT_LABELS: Mapping[str, str] = {
    "fakefeature1": "true",
    "fakefeature2": "true",
    "fakefeature3": "true",
}
DEFAULT_ATTRIBUTES: Mapping[str, str] = {
    "attr_1": "true",
    "attr_2": "false",
    "attr_3": "10",
}
DEFAULT_INSTANCES: tuple[Mapping[str, str], ...] = (
    {
        "name": "instance_1",
        "attr_1": "true",
        "attr_2": "false",
        "attr_3": "10",
        "attr_4": "foobar",
    },
    {"name": "instance_2", "attr_1": "true", "attr_2": "true", "attr_3": "100"},
    {"name": "instance_3"},
)


@attrs.frozen(slots=True, eq=False, repr=False)
class FakeSettings(Settings):
    """The settings below `sources.fake`."""

    labels: Mapping[str, str] = setting("labels", DEFAULT_LABELS, "labels to make")
    flag_features: tuple[str, ...] = setting(
        "flagFeatures", ("flag_1", "flag_2", "flag_3"), "names in fake.flag"
    )
    attribute_features: Mapping[str, str] = setting(
        "attributeFeatures", DEFAULT_ATTRIBUTES, "elements of fake.attribute"
    )
    instance_features: tuple[Mapping[str, str], ...] = setting(
        "instanceFeatures", DEFAULT_INSTANCES, "instances of fake.instance"
    )


class FakeSource(Source[FakeSettings]):
    """Returns what its settings say, whatever the host."""

    name = "fake"
    on_by_default = False
    settings_class = FakeSettings
    feature_specs = (
        FeatureSpec(FLAG, ("flag",), None, "the names of flagFeatures"),
        FeatureSpec(ATTRIBUTE, ("attribute",), None, "attributeFeatures"),
        FeatureSpec(INSTANCE, ("instance",), None, "instanceFeatures"),
    )
    label_specs = (LabelSpec("<name>", "each entry of labels"),)

    def discover(self, host: HostRoot, settings: FakeSettings) -> Features:
        """Return the configured features."""
        del host
        return Features.of(
            flags={FLAG: settings.flag_features},
            attributes={ATTRIBUTE: settings.attribute_features},
            instances={INSTANCE: settings.instance_features},
        )

    def labels(
        self, features: Features, settings: FakeSettings
    ) -> Mapping[str, LabelValue]:
        """Return the configured labels; none before a discovery."""
        if FLAG not in features.flags:
            return {}
        return {
            name: LabelValue(value, because="sources.fake.labels")
            for name, value in settings.labels.items()
        }

    def why_not(self, name: str, features: Features, settings: FakeSettings) -> str:
        """Say that the settings do not name the label."""
        del features
        return "" if name in settings.labels else "not in sources.fake.labels"
