"""From what an earlier worker published to what this one remembers. Pure."""

from collections.abc import Iterable, Mapping

import attrs

from nfd.errors import NfdError
from nfd.labels import FEATURE_NS, Label
from nfd.publish.demand import trimmed_sets
from nfd.publish.nodefeature import TRIMMED, read_back, unknown_sets
from nfd.worker.memory import Remembered, read_back_features, read_back_labels
from nfd.worker.results import Published


@attrs.frozen(slots=True)
class Recollection:
    """Features by source, and labels, as they were published."""

    memory: Mapping[str, Remembered]
    labels: Mapping[str, Label]
    problems: tuple[str, ...] = ()


def recollect(published: Published, sources: Iterable[str], now: float) -> Recollection:
    """Read what was published; `now` in seconds since the epoch.

    A set that was published in part, trimmed or unknown, is no memory: what it lacks
    may have been there. A label that is on the Node alone was written there first.
    """
    if published.obj is None:
        return Recollection({}, read_back_labels(published.node_labels, {}, sources))
    metadata = published.obj["metadata"]
    found = read_back(published.obj)
    problems = list(found.problems)
    partial = set(unknown_sets(metadata))
    try:
        notes = metadata.get("annotations") or {}
        partial |= trimmed_sets(str(notes.get(TRIMMED) or "")).keys()
    except NfdError as error:
        problems.append(str(error))
    on_node = {
        k: v
        for k, v in published.node_labels.items()
        if k.removeprefix(f"{FEATURE_NS}/") not in found.labels
    }
    labels = on_node | dict(found.labels)
    whole = found.features.only(k for k in found.features if k not in partial)
    return Recollection(
        read_back_features(whole, found.stale, now),
        read_back_labels(labels, found.makers, sources),
        tuple(problems),
    )
