"""What a pass comes to, what is published of it, and by whom. Pure."""

from collections.abc import Mapping

import attrs

from nfd.config.worker import CoreConfig
from nfd.features import Features
from nfd.kube.resources import JsonObject
from nfd.labels import Label
from nfd.publish.demand import Demand, Trimmed, trim
from nfd.publish.nodefeature import Identity, Publication
from nfd.worker.look import Seen, allowed, published
from nfd.worker.owners import Pod

NODE, OBJECT, FILE = "node", "nodefeature", "file"  # words of `core.publish`


@attrs.frozen(slots=True)
class Result:
    """What is to be published; equal ones cost nothing."""

    features: Features
    labels: Mapping[str, Label]
    stale: Mapping[str, float] = attrs.field(factory=dict)

    @classmethod
    def of(cls, seen: Seen) -> "Result":
        """Take from a pass what is published of it."""
        return cls(seen.features, seen.labels, seen.stale)


@attrs.frozen(slots=True)
class Published:
    """What an earlier worker published: its NodeFeature, and its keys on the Node."""

    obj: JsonObject | None = None
    node_labels: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(slots=True)
class Self:
    """Who publishes, and for which Node."""

    node: str
    identity: Identity
    pod: Pod
    auto_prefix: bool = True  # keys without prefix get the default one on the Node


def publication(
    node: str, result: Result, core: CoreConfig, demand: Demand | None
) -> Publication:
    """Choose what the NodeFeature says: filters of the configuration, then demand."""
    features = published(result.features, core.no_publish_features)
    features = allowed(features, core.publish_features)
    trimmed = Trimmed(features)
    if demand is not None and not core.publish_all_features:
        named = Demand.of((key, None) for key in core.publish_features)
        trimmed = trim(features, demand | named)
    return Publication(node, result.labels, trimmed, result.stale, features.unknown)
