"""Who owns the NodeFeature: the Node, the pod or its DaemonSet (DESIGN section 6)."""

from collections.abc import Mapping
from typing import Any

import attrs

from nfd.kube.answers import metadata_of
from nfd.kube.client import Client
from nfd.kube.config import claims
from nfd.kube.errors import ApiError
from nfd.kube.resources import NODES, PODS
from nfd.publish.nodefeature import OwnerReference


@attrs.frozen(slots=True)
class Pod:
    """The pod that the worker runs in; texts are empty where that is not known."""

    namespace: str
    name: str = ""
    uid: str = ""


@attrs.frozen(slots=True)
class Resolved:
    """The owners; None leaves those that are there. `problems`: kind → why not."""

    owners: tuple[OwnerReference, ...] | None
    problems: Mapping[str, str] = attrs.field(factory=dict)


def resolve(
    kinds: tuple[str, ...], node: str, pod: Pod, client: Client, node_uid: str = ""
) -> Resolved:
    """Find the owners of these kinds; what cannot be found costs only itself.

    Asks the API for the Node only where neither `node_uid` nor the worker's token
    tells its UID, and for the pod only where its DaemonSet is wanted.
    """
    found: list[OwnerReference] = []
    problems: dict[str, str] = {}
    for kind in kinds:
        try:
            if kind == "node":
                found.append(_node(node, client, node_uid))
            elif kind == "pod":
                if pod.name and pod.uid:
                    found.append(OwnerReference("v1", "Pod", pod.name, pod.uid))
            elif pod.name:
                found += _daemon_set(pod, client)
        except ApiError as error:
            problems[kind] = str(error)
        except LookupError as error:
            problems[kind] = str(error.args[0])
    return Resolved(tuple(found) if found or not problems else None, problems)


def token_claims(client: Client) -> dict[str, Any]:
    """Return the Kubernetes claims of the client's token; {} where it has none."""
    if client.authorization is None:
        return {}
    token = client.authorization().removeprefix("Bearer ")
    found = claims(token).get("kubernetes.io")
    return found if isinstance(found, dict) else {}


def _node(name: str, client: Client, uid: str) -> OwnerReference:
    if uid:
        return OwnerReference("v1", "Node", name, uid)
    claimed = token_claims(client).get("node")
    if isinstance(claimed, dict) and claimed.get("name") == name and claimed.get("uid"):
        return OwnerReference("v1", "Node", name, str(claimed["uid"]))
    found = client.get(NODES, name, metadata_only=True)
    return OwnerReference("v1", "Node", name, str(metadata_of(found)["uid"]))


def _daemon_set(pod: Pod, client: Client) -> list[OwnerReference]:
    metadata = metadata_of(client.get(PODS, pod.name, pod.namespace))
    sets = [
        o
        for o in metadata.get("ownerReferences") or ()
        if (o.get("apiVersion"), o.get("kind")) == ("apps/v1", "DaemonSet")
    ]
    if len(sets) > 1:
        raise LookupError(f"pod {pod.name} has {len(sets)} DaemonSets as owners")
    return [
        OwnerReference("apps/v1", "DaemonSet", o["name"], o["uid"], o.get("controller"))
        for o in sets
    ]
