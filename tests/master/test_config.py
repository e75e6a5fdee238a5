"""The master's configuration: layers, unions, errors with paths."""

import pytest

from nfd.errors import ConfigError
from nfd.master.config import (
    MasterConfig,
    Selector,
    check_instance,
    controller_config,
    fleet_config,
    load,
)


def test_defaults_are_upstreams() -> None:
    """spec/master.md section 2.11."""
    config = load().config

    assert config == MasterConfig()
    assert (
        config.resync_period.seconds,
        config.parallelism,
        config.page_size,
    ) == (3600.0, 10, 200)
    assert config.restrictions.allow_overwrite


def test_layers_replace_but_namespace_lists_unite() -> None:
    """File and -options add up, flags replace."""
    file = "denyLabelNs: [a, b]\nresyncPeriod: 2h\nenabletaints: yes\n"
    options = '{"denyLabelNs": ["b", "c"], "resyncPeriod": "1m"}'

    config = load(file=file, options=options).config
    flagged = load(file=file, overrides={"denyLabelNs": ["x"]}).config

    assert config.deny_label_ns == ("a", "b", "c")
    assert config.resync_period.seconds == 60
    assert config.enable_taints
    assert flagged.deny_label_ns == ("x",)


def test_null_is_no_settings() -> None:
    """The chart renders `config: null` as the text `null`."""
    assert load(file="null").config == MasterConfig()


def test_nested_parts() -> None:
    """Restrictions, guard, trust and leader election."""
    text = """
restrictions:
  allowOverwrite: false
  nodeFeatureNamespaceSelector:
    matchLabels: {a: b}
    matchExpressions: [{key: c, operator: In, values: [d, e]}]
removalGuard: {lostNodes: 5, editHold: 2m}
trust:
  enforce: true
  allow: [{namespaces: [gpu-*], labels: ["nvidia.com/*"]}]
startupTaints: []
"""
    config = load(file=text).config
    fleet = fleet_config(config, namespace="nfd", instance="blue")

    assert not fleet.allow_overwrite
    assert (fleet.limits.lost_nodes, fleet.limits.edit_hold) == (5, 120.0)
    assert fleet.scope.trust.labels("gpu-operator", "n1", "nvidia.com/x")
    assert not fleet.scope.trust.labels("other", "n1", "nvidia.com/x")
    assert fleet.startup_taints == frozenset()
    assert fleet.tracking.labels == "blue.nfd.node.kubernetes.io/feature-labels"
    selector = config.restrictions.selector
    assert selector is not None
    assert selector.matches({"a": "b", "c": "e"})
    assert not selector.matches({"a": "b", "c": "f"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nfdApiParallelism: 0", "nfdApiParallelism: 0"),
        ("informerPageSize: -1", "informerPageSize"),
        ("resyncPeriod: soon", "resyncPeriod"),
        ("labelWhiteList: '('", "labelWhiteList"),
        ("[1]", "the configuration file"),
        (
            "restrictions: {nodeFeatureNamespaceSelector: {matchExpressions: [{key: a, operator: Maybe}]}}",
            r"matchExpressions\[0\].operator",
        ),
    ],
)
def test_errors_name_key_and_value(text: str, message: str) -> None:
    """Every error says where."""
    with pytest.raises(ConfigError, match=message):
        load(file=text)


def test_unknown_keys_warn_with_the_nearest() -> None:
    """A typing mistake must not be silent."""
    (warning,) = load(file="enableTaint: true").warnings

    assert "enableTaints" in warning


@pytest.mark.parametrize("instance", ["Upper", "under_score", "-x", "a/b"])
def test_instance_that_the_api_would_refuse(instance: str) -> None:
    """Upstream lets these through and fails at the first write."""
    with pytest.raises(ConfigError, match="-instance"):
        check_instance(instance)


def test_no_publish_and_dry_run_write_nothing() -> None:
    """Either is enough."""
    quiet = load(options="noPublish: true").config

    assert not controller_config(quiet).publish
    assert not controller_config(MasterConfig(), dry_run=True).publish
    assert controller_config(MasterConfig()).publish


@pytest.mark.parametrize(
    ("op", "values", "labels", "selected"),
    [
        ("In", ["a"], {"k": "a"}, True),
        ("In", ["a"], {}, False),
        ("NotIn", ["a"], {"k": "b"}, True),
        ("NotIn", ["a"], {}, True),
        ("NotIn", ["a"], {"k": "a"}, False),
        ("Exists", [], {"k": ""}, True),
        ("DoesNotExist", [], {"k": ""}, False),
    ],
)
def test_selector_operators(
    op: str,
    values: list[str],
    labels: dict[str, str],
    selected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """As the API server's selectors: NotIn holds where the key is missing."""
    made = Selector.from_config(
        {"matchExpressions": [{"key": "k", "operator": op, "values": values}]}, "s"
    )

    assert made is not None
    assert selected == made.matches(labels)
