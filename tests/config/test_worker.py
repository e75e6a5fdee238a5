"""The worker's configuration: spec/worker.md sections 2, 7.1 and 11, DESIGN 6."""

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from nfd.config.duration import Duration
from nfd.config.worker import WorkerConfig, decode_tree, load
from nfd.errors import ConfigError
from nfd.registry import Registry, installed
from nfd.source import setting
from tests import tiny

MINUTE = Duration.of_seconds(60)


@attrs.frozen(slots=True)
class PciLike:
    whitelist: tuple[str, ...] = setting("deviceClassWhitelist", ("03", "12"), "")
    fields: tuple[str, ...] = setting("deviceLabelFields", ("class", "vendor"), "")


class FakeLike(tiny.TinySource):
    name = "fake"


class KernelLike(tiny.TinySource):
    name = "kernel"


class PciSource(tiny.TinySource):
    name = "pci"
    settings_class = PciLike


@pytest.fixture
def registry() -> Registry:
    return tiny.registry(tiny.TinySource, FakeLike, KernelLike, PciSource)


def test_defaults(registry: Registry) -> None:
    config = load(registry)

    assert WorkerConfig() == config
    assert config.core.sleep_interval == MINUTE
    assert ("all",) == config.core.feature_sources == config.core.label_sources
    assert config.core.owner_refs == ("node",)
    assert config.core.publish == ("nodefeature",)


@pytest.mark.parametrize("text", ["", "# empty\n", "core:\nsources:\n", "{}"])
def test_empty_files_are_defaults(registry: Registry, text: str) -> None:
    assert WorkerConfig() == load(registry, file=text)


def test_flags_win_over_options_over_file(registry: Registry) -> None:
    config = load(
        registry,
        file="core: {sleepInterval: 10s, labelSources: [kernel], noPublish: true}",
        options='{"core": {"labelSources": ["fake"], "labelWhiteList": "foo"}}',
        overrides={"labelSources": ["cpu", "kernel", "pci"]},
    )

    assert Duration.of_seconds(10) == config.core.sleep_interval
    assert config.core.label_sources == ("cpu", "kernel", "pci")
    assert config.core.label_whitelist == "foo"
    assert config.core.no_publish


def test_file_then_options_for_a_source(registry: Registry) -> None:
    config = load(
        registry,
        file="sources: {pci: {deviceClassWhitelist: [ff]}, kernel: {names: [DMI]}}",
        options="sources: {pci: {deviceClassWhitelist: ['03']}}",
    )

    assert PciLike(("03",), ("class", "vendor")) == config.sources["pci"]
    assert config.sources["kernel"].names == ("DMI",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[0200]", ("128",)),
        ("[0b40, 03, 12]", ("0b40", "3", "12")),
        ("[]", ()),
        ("null", ()),
        ("['0200']", ("0200",)),
    ],
)
def test_typing_of_yaml(
    registry: Registry, text: str, expected: tuple[str, ...]
) -> None:
    config = load(registry, file=f"sources: {{pci: {{DEVICECLASSWHITELIST: {text}}}}}")

    assert expected == config.sources["pci"].whitelist
    assert config.warnings == ()


def test_source_names_are_case_sensitive(registry: Registry) -> None:
    """spec/worker.md section 11.1; ours says so."""
    config = load(registry, file="Sources: {PCI: {deviceClassWhitelist: []}}")

    assert config.sources == {}
    assert config.warnings == (
        "sources.PCI: unknown source, ignored, did you mean 'pci'?",
    )


def test_null_sections_keep_defaults(registry: Registry) -> None:
    config = load(registry, file="sources: {pci: null}\ncore: null")

    assert PciLike() == config.sources["pci"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("60", 1),  # nanoseconds, so below the second that is the least
        ("500ms", 1),
        ("1h30m", 5400),
        ("0s", 0),
        ("-5s", -5),
    ],
)
def test_sleep_interval(registry: Registry, text: str, expected: int) -> None:
    config = load(registry, file=f"core: {{sleepInterval: {text}}}")

    assert expected == config.core.sleep_interval.seconds


def test_old_name_of_label_sources_wins_in_the_file_only(registry: Registry) -> None:
    text = "core: {sources: [kernel], labelSources: [pci]}"

    assert load(registry, file=text).core.label_sources == ("kernel",)
    assert load(registry, options=text).core.label_sources == ("pci",)
    both = load(registry, file=text, options="core: {labelSources: [fake]}")
    assert both.core.label_sources == ("fake",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[ds, node, pod]", ("node", "pod", "ds")),
        ("[]", ()),
        ("null", ("node",)),
        ("'ds, node'", ("node", "ds")),
    ],
)
def test_owner_references(
    registry: Registry, text: str, expected: tuple[str, ...]
) -> None:
    assert (
        expected == load(registry, file=f"core: {{ownerRefs: {text}}}").core.owner_refs
    )


def test_deprecated_switch_beats_owner_references(registry: Registry) -> None:
    text = "core: {ownerRefs: [pod], noOwnerRefs: true}"

    assert load(registry, file=text).core.owner_refs == ()


def test_unpublished_features_are_trimmed(registry: Registry) -> None:
    """Case H65 of spec/cases.md."""
    text = 'core: {noPublishFeatures: [" pci.device ", "kernel.*", " "]}'

    assert load(registry, file=text).core.no_publish_features == (
        "pci.device",
        "kernel.*",
    )


def test_klog_values_are_text(registry: Registry) -> None:
    config = load(registry, file="core: {klog: {v: 4, addDirHeader: true, x: 1.10}}")

    assert config.core.klog == {"v": "4", "addDirHeader": "true", "x": "1.1"}


def test_custom_rules_merge_by_index(registry: Registry) -> None:
    config = load(
        registry,
        file="sources: {custom: [{name: a, labels: {x: 1}}, {name: b}]}",
        options="sources: {custom: [{labels: {z: 2}}]}",
    )

    assert config.custom == ({"name": "a", "labels": {"x": 1, "z": 2}},)


def test_keys_of_ours(registry: Registry) -> None:
    config = load(
        registry,
        file="""
core:
  publish: [node, nodefeature]
  publishAllFeatures: true
  staleLimit: 24h
""",
    )

    assert config.core.publish == ("nodefeature", "node")
    assert config.core.publish_all_features
    assert config.core.stale_limit.seconds == 86400


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("core: {sleepInterval: '60'}", "core.sleepInterval: '60' is not allowed here, expected a duration"),
        ("core: {sleepInterval: null}", "core.sleepInterval: null is not allowed here, expected a duration"),
        ("core: {labelWhiteList: '('}", "core.labelWhiteList: invalid regular expression"),
        ("core: {labelWhiteList: 5}", "core.labelWhiteList: 5 is not allowed here, expected a regular expression"),
        ("core: {ownerRefs: [job]}", "core.ownerRefs[0]: 'job' is not allowed here, expected a list of node, pod, ds"),
        ("core: {ownerRefs: [pod, pod]}", "core.ownerRefs[1]: 'pod' is not allowed here"),
        ("core: {publish: [none, node]}", "core.publish: ['none', 'node'] is not allowed here, expected 'none' alone"),
        ("core: {noPublish: 'yes'}", "core.noPublish: 'yes' is not allowed here, expected true or false"),
        ("core: []", "core: [] is not allowed here, expected a map"),
        ("[]", "the configuration: [] is not allowed here"),
        ("sources: [pci]", "sources: ['pci'] is not allowed here"),
        ("sources: {custom: {}}", "sources.custom: {} is not allowed here, expected a list of rules"),
        ("sources: {pci: {deviceClassWhitelist: '03'}}", "sources.pci.deviceClassWhitelist: '03' is not allowed here"),
        ("sources: {tiny: {extra: {a: []}}}", "sources.tiny.extra.a: [] is not allowed here, expected text"),
        ("a: [", "the configuration file: line 2, column 1: "),
    ],
)  # fmt: skip
def test_errors_name_the_key(registry: Registry, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(registry, file=text)

    assert str(caught.value).startswith(message)


def test_errors_in_options_say_so(registry: Registry) -> None:
    with pytest.raises(ConfigError, match=r"^-options: line 2"):
        load(registry, options="{")


def test_deprecated_keys_warn(registry: Registry) -> None:
    config = load(registry, file="core: {sources: [pci], noOwnerRefs: true}")

    assert config.warnings == (
        "core.sources: deprecated, use core.labelSources",
        "core.noOwnerRefs: deprecated, use core.ownerRefs: []",
    )


def test_unknown_keys_warn(registry: Registry) -> None:
    config = load(
        registry,
        file="Cores: 1\ncore: {labelSource: []}\nsources: {pci: {fields: []}}",
    )

    assert config.warnings == (
        "Cores: unknown key, ignored, did you mean 'core'?",
        "core.labelSource: unknown key, ignored, did you mean 'labelSources'?",
        (
            "sources.pci.fields: unknown key, ignored "
            "(known: deviceClassWhitelist, deviceLabelFields)"
        ),
    )


def test_data_in_the_shape_of_the_file(registry: Registry) -> None:
    tree: Mapping[str, Any] = {"sources": {"tiny": {"names": ["a"]}}}

    assert decode_tree(tree, registry).sources["tiny"].names == ("a",)


def test_keys_of_ours_in_the_real_sources() -> None:
    config = load(
        installed(),
        file="sources: {pci: {deviceLabelFormats: [vendor]}, local: {strict: true,"
        " hooksEnabled: true}, fake: {labels: {y: 1.10}, instanceFeatures: [{name: z}]}}",
    )

    assert config.sources["pci"].device_label_formats == ("vendor",)
    assert config.sources["local"].strict
    assert config.sources["fake"].labels["true"] == "1.1"
    assert {"name": "z", "attr_4": "foobar"}.items() <= (
        config.sources["fake"].instance_features[0].items()
    )
    assert config.warnings == ()


def test_profiles_add_to_what_is_set() -> None:
    """They are laid over all layers; nothing that was set goes."""
    config = load(
        installed(),
        file="core: {profiles: [gpu-operator]}\n"
        'sources: {pci: {deviceLabelFields: ["vendor", "device"]}}',
        options='{"core": {"profiles": ["gpu-operator", "gaudi"]}}',
    )

    assert config.core.profiles == ("gpu-operator", "gaudi")
    assert config.sources["pci"].device_label_formats[0] == "vendor,device"
    assert {"0302", "12"} <= set(config.sources["pci"].device_class_whitelist)


def test_unknown_profiles_are_named() -> None:
    with pytest.raises(ConfigError, match=r"core.profiles: .*'gpu-opertor'.*amd"):
        load(installed(), file="core: {profiles: [gpu-opertor]}")
