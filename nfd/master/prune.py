"""`-prune`: takes everything of a master off all Nodes (spec/master.md 2.10).

Impure. The guard has no say here: whoever prunes means it.
"""

from collections.abc import Iterator
from typing import Any

from nfd.kube import patch
from nfd.kube.client import Client
from nfd.kube.errors import Conflict, Invalid, NotFound
from nfd.kube.resources import NODES, JsonObject
from nfd.labels import ANNOTATION_NS
from nfd.master.plan import Step, plan
from nfd.master.state import NodeState, Tracking, Wanted

_TRIES = 10


def prune(client: Client, tracking: Tracking, instance: str = "") -> Iterator[str]:
    """Clean every Node; yield the names of those that had to be written.

    Raises:
        ApiError: A Node could not be cleaned; those before it are.

    """
    client = client.but(field_manager=tracking.manager)
    prefix = f"{instance}.{ANNOTATION_NS}/" if instance else f"{ANNOTATION_NS}/"
    for obj in client.list(NODES):
        if _clean(client, {"kind": "Node", **obj}, tracking, prefix):
            yield obj["metadata"]["name"]


def _clean(client: Client, node: JsonObject, tracking: Tracking, prefix: str) -> bool:
    name = node["metadata"]["name"]
    wrote = False
    for attempt in range(_TRIES):
        step = _next(node, tracking, prefix)
        if step is None:
            return wrote
        subresource = "status" if step.target == "status" else ""
        try:
            node = client.json_patch(
                NODES, name, step.operations, subresource=subresource
            )
            wrote = True
        except NotFound:
            return wrote
        except (Conflict, Invalid):
            # Somebody wrote it in between.
            if attempt == _TRIES - 1:
                raise
            node = client.get(NODES, name)
    return wrote


def _next(node: JsonObject, tracking: Tracking, prefix: str) -> Step | None:
    planned = plan(NodeState.from_object(node), Wanted(), tracking)
    if planned:
        return planned.steps[0]
    notes: dict[str, Any] = node["metadata"].get("annotations") or {}
    ours = {key: text for key, text in notes.items() if key.startswith(prefix)}
    if not ours:
        return None
    operations = [patch.same_object(node["metadata"]["uid"])]
    for key, text in sorted(ours.items()):
        at = ("metadata", "annotations", key)
        operations += [patch.expect(at, text), patch.remove(at)]
    return Step("node", tuple(operations))
