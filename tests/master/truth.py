"""An oracle for removals: what the cluster wants, and whether a removal was right.

A removal of a label is wrong when the cluster wanted the label at every moment since
the master was last seen to be up to date (`settle`), however late it is since then.
"""

import threading
from collections.abc import Mapping
from typing import Any

import attrs

from nfd.kube.resources import NODES
from nfd.labels import FEATURE_NS
from tests.fakeapi.answers import Review
from tests.fakeapi.server import FakeApi

PREFIX = f"{FEATURE_NS}/"


@attrs.define
class Truth:
    """Wanted labels of every node, and all removals that were wrong."""

    wanted: dict[str, dict[str, str]] = attrs.field(factory=dict)
    wrong: list[tuple[str, str]] = attrs.field(factory=list)
    removals: int = 0
    foreign: list[tuple[str, str]] = attrs.field(factory=list)
    evidence: list[str] = attrs.field(factory=list)  # what made each wrong removal
    _always: dict[str, set[str]] = attrs.field(factory=dict)  # wanted since `settle`
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    @classmethod
    def of(cls, api: FakeApi) -> "Truth":
        """Watch over all writes to a fake API server."""
        truth = cls()
        api.admission.append(truth.review)
        return truth

    def change(self, node: str, labels: Mapping[str, str]) -> None:
        """Say what is wanted of a node from now on; call it before keys go."""
        with self._lock:
            self.wanted[node] = dict(labels)
            self._always.setdefault(node, set(labels)).intersection_update(labels)

    def settle(self) -> None:
        """Say that every node is as wanted now, and nothing is on its way."""
        with self._lock:
            self._always = {node: set(labels) for node, labels in self.wanted.items()}

    def review(self, review: Review) -> None:
        """Judge a write."""
        if review.resource != NODES or review.old is None or review.new is None:
            return
        name = review.new["metadata"]["name"]
        if review.old["metadata"]["uid"] != review.new["metadata"]["uid"]:
            return
        old, new = _labels(review.old), _labels(review.new)
        with self._lock:
            wanted = self.wanted.get(name, {})
            always = self._always.get(name, set())
            for key in old.keys() - new.keys():
                if not key.startswith(PREFIX):
                    self.foreign.append((name, key))
                    continue
                self.removals += 1
                if key[len(PREFIX) :] in always:
                    self.wrong.append((name, key))
                    version = review.old["metadata"]["resourceVersion"]
                    asked = review.asked
                    self.evidence.append(
                        f"{asked.method} of version {version} by {asked.user_agent}:"
                        f" {asked.body!r}; wanted {wanted}, all the time {always}"
                    )


def _labels(obj: Mapping[str, Any]) -> dict[str, str]:
    labels: dict[str, str] = obj["metadata"].get("labels") or {}
    return labels
