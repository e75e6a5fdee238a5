"""The API server's audit log: what is written, and how tests read it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        # What the tests count and read: whole bodies, but never a token.
        {
            "level": "RequestResponse",
            "verbs": ["create", "update", "patch", "delete", "deletecollection"],
            "resources": [
                {"group": "", "resources": ["nodes", "nodes/status"]},
                {"group": "nfd.k8s-sigs.io", "resources": ["*"]},
            ],
        },
        {"level": "Metadata"},
    ],
}


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Read the events of a log that is still being written."""
    with path.open() as lines:
        for line in lines:
            if line.endswith("\n"):  # the last one may be half written
                yield json.loads(line)


def matches(event: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    """Whether the event has these facts; see `ControlPlane.audit_events`."""
    reference = event.get("objectRef", {})
    resource = reference.get("resource", "")
    if reference.get("subresource"):
        resource += f"/{reference['subresource']}"
    facts = {
        "user": event["user"].get("username", ""),  # none with a bad token
        "verb": event["verb"],
        "resource": resource,
        "name": reference.get("name", ""),
    }
    agent = wanted.get("agent")
    if agent and not event.get("userAgent", "").startswith(agent):
        return False
    return all(facts[key] == value for key, value in wanted.items() if key != "agent")
