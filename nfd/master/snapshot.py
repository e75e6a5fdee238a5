"""The cluster as it is now, read once: for plans that nobody carries out."""

from collections.abc import Iterable, Mapping

from nfd.errors import RuleError
from nfd.kube.client import Client
from nfd.kube.resources import NODEFEATURERULES, NODEFEATURES, NODES
from nfd.master.feeds import RuleFeed, rules_of
from nfd.master.fleet import Fleet, FleetConfig
from nfd.rules.load import Loaded, load_text
from nfd.rules.model import Rule


def read_fleet(
    client: Client,
    config: FleetConfig,
    *,
    page_size: int = 200,
    rules: Mapping[str, tuple[Rule, ...]] | None = None,
) -> Fleet:
    """List rules, NodeFeatures and whole Nodes; return the fleet that they make.

    `rules` replace those of the cluster that have the same object names.

    Raises:
        ApiError: A list is not complete.

    """
    fleet = Fleet(config)
    feed = read_rules(client)
    found = {name: rules_of(loaded) for name, loaded in feed.items()}
    fleet.rules_put({**found, **(rules or {})}, 0.0)
    fleet.feature_list_begin()
    for obj in client.list(NODEFEATURES, limit=page_size):
        fleet.feature_put(obj)
    fleet.feature_list_end(0.0)
    fleet.node_list_begin()
    for obj in client.list(NODES, limit=page_size):
        fleet.node_put({"kind": "Node", **obj})
    fleet.node_list_end(0.0)
    return fleet


def read_rules(client: Client) -> dict[str, Loaded]:
    """List the rule objects of the cluster: name → what was read."""
    feed = RuleFeed(lambda: None)
    feed.replace_begin()
    for obj in client.list(NODEFEATURERULES):
        feed.item(obj)
    feed.replace_end()
    return feed.loaded


def rules_of_files(texts: Iterable[tuple[str, str]]) -> dict[str, tuple[Rule, ...]]:
    """Read NodeFeatureRules from (place, text) pairs: object name → rules.

    Raises:
        RuleError: A text holds an error, or no NodeFeatureRule.

    """
    found: dict[str, tuple[Rule, ...]] = {}
    for place, text in texts:
        loaded = load_text(text, place)
        for problem in loaded.errors:
            raise RuleError(str(problem))
        objects = [o for o in loaded.objects if o.kind == "NodeFeatureRule"]
        if not objects:
            raise RuleError(f"{place}: no NodeFeatureRule in it")
        found |= {o.name: o.rules for o in objects}
    return found
