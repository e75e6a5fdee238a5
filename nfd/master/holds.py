"""Held removals on the master's Lease: told there, and confirmed there.

The annotation `held` names each held cause with a mark of this very incident;
`nfd fleet confirm` answers with cause and mark, so that no old confirmation lets a
new incident pass (DESIGN section 6).
"""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from nfd.kube.client import Client
from nfd.kube.errors import AlreadyExists, Conflict, NotFound
from nfd.kube.resources import LEASES, JsonObject
from nfd.labels import ANNOTATION_NS
from nfd.master.guard import HeldCause

LEASE = "nfd-master.nfd.kubernetes.io"
HELD = f"{ANNOTATION_NS}/held"
CONFIRMED = f"{ANNOTATION_NS}/confirmed"
_TRIES = 5


@attrs.frozen(slots=True)
class Incident:
    """One held cause as the Lease tells it."""

    cause: str
    mark: str
    nodes: int
    reason: str


def incidents(annotations: Mapping[str, str]) -> tuple[Incident, ...]:
    """Read what is held; what cannot be read is nothing."""
    try:
        plain = json.loads(annotations.get(HELD) or "{}")
        return tuple(
            Incident(cause, str(e["mark"]), int(e["nodes"]), str(e["reason"]))
            for cause, e in sorted(plain.items())
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()


def held_text(found: Iterable[Incident]) -> str:
    """Write the annotation; "" when nothing is held."""
    plain = {
        i.cause: {"mark": i.mark, "nodes": i.nodes, "reason": i.reason} for i in found
    }
    return json.dumps(plain, separators=(",", ":")) if plain else ""


def confirmation(incident: Incident) -> str:
    """Return what confirms an incident."""
    return f"{incident.cause}={incident.mark}"


class Incidents:
    """Gives each held cause a mark while it lasts."""

    def __init__(self) -> None:
        self.open: dict[str, Incident] = {}

    def update(self, held: Iterable[HeldCause]) -> None:
        """Take in what is held now."""
        before = self.open
        self.open = {
            h.cause: Incident(
                h.cause,
                before[h.cause].mark if h.cause in before else uuid.uuid4().hex[:12],
                len(h.nodes),
                h.reason,
            )
            for h in held
        }

    def confirmed(self, annotations: Mapping[str, str]) -> tuple[str, ...]:
        """Return the causes that the Lease confirms."""
        given = (annotations.get(CONFIRMED) or "").split(",")
        return tuple(c for c, i in self.open.items() if confirmation(i) in given)


def annotate(
    client: Client,
    namespace: str,
    name: str,
    change: Callable[[dict[str, str]], Mapping[str, str]],
) -> None:
    """Change the annotations of a Lease, which is made where it is missing.

    Raises:
        ApiError: It could not be read or written.

    """
    for attempt in range(_TRIES):
        try:
            lease = client.get(LEASES, name, namespace)
        except NotFound:
            lease = _new(namespace, name)
        meta = lease["metadata"]
        before = meta.get("annotations") or {}
        after = dict(change(dict(before)))
        if after == before:
            return
        meta["annotations"] = after
        try:
            if meta.get("resourceVersion"):
                client.update(LEASES, lease)
            else:
                client.create(LEASES, lease)
        except (AlreadyExists, Conflict):
            # The holder renewed it in between.
            if attempt == _TRIES - 1:
                raise
        else:
            return


def _new(namespace: str, name: str) -> JsonObject:
    made: dict[str, Any] = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {},
    }
    return made


def told(found: Mapping[str, Incident]) -> Callable[[dict[str, str]], dict[str, str]]:
    """Return the change of annotations that tells what is held, and forgets answers."""

    def change(annotations: dict[str, str]) -> dict[str, str]:
        text = held_text(found.values())
        kept = {k: v for k, v in annotations.items() if k not in (HELD, CONFIRMED)}
        return {**kept, HELD: text} if text else kept

    return change
