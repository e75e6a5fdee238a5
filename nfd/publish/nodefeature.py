"""The NodeFeature object of a worker: built, compared, read back.

Pure. Shape: spec/worker.md section 3.3; annotations of ours: DESIGN section 6.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from nfd.errors import NfdError
from nfd.features import Features
from nfd.labels import ANNOTATION_NS, FEATURE_NS, Label
from nfd.publish.demand import Trimmed
from nfd.publish.ownership import NODE_NAME_LABEL, node_name_label

API_VERSION = "nfd.k8s-sigs.io/v1alpha1"
WORKER_VERSION = f"{ANNOTATION_NS}/worker.version"
POD_UID = f"{ANNOTATION_NS}/worker.pod.uid"
NODE_NAME = f"{ANNOTATION_NS}/node-name"
STALE = f"{ANNOTATION_NS}/stale-sources"
MAKERS = f"{ANNOTATION_NS}/label-sources"
TRIMMED = f"{ANNOTATION_NS}/trimmed-features"
REFUSED = f"{ANNOTATION_NS}/refused"  # written by the master, kept by the worker

SIZE_BUDGET = 128 << 10  # bytes of JSON


@attrs.frozen(slots=True)
class OwnerReference:
    """One entry of `metadata.ownerReferences`."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None

    def to_plain(self) -> dict[str, Any]:
        """Return the API's form; an owner of ours never blocks its deletion."""
        plain: dict[str, Any] = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "blockOwnerDeletion": False,
        }
        if self.controller is not None:
            plain["controller"] = self.controller
        return plain


@attrs.frozen(slots=True)
class Publication:
    """All that a worker says about its node in one pass."""

    node: str
    labels: Mapping[str, Label]
    trimmed: Trimmed
    stale: Mapping[str, float] = attrs.field(factory=dict)  # source → epoch seconds
    unknown: Mapping[str, str] = attrs.field(factory=dict)  # set → why it is unknown


@attrs.frozen(slots=True)
class Identity:
    """What marks an object as the work of this worker."""

    namespace: str
    version: str
    pod_uid: str = ""


def build(
    said: Publication, identity: Identity, owners: Sequence[OwnerReference] | None
) -> dict[str, Any]:
    """Build the object; `owners` None leaves the field to what is there already."""
    annotations = {WORKER_VERSION: identity.version}
    if identity.pod_uid:
        annotations[POD_UID] = identity.pod_uid
    if node_name_label(said.node) != said.node:
        annotations[NODE_NAME] = said.node
    optional = {
        STALE: stale_text(said.stale, said.unknown),
        MAKERS: _makers_text(said.labels),
        TRIMMED: said.trimmed.to_annotation(),
    }
    annotations |= {name: text for name, text in optional.items() if text}
    metadata: dict[str, Any] = {
        "name": said.node,
        "namespace": identity.namespace,
        "labels": {NODE_NAME_LABEL: node_name_label(said.node)},
        "annotations": dict(sorted(annotations.items())),
    }
    if owners is not None:
        metadata["ownerReferences"] = [o.to_plain() for o in owners]
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeFeature",
        "metadata": metadata,
        "spec": {
            "features": said.trimmed.features.to_spec(),
            "labels": {k: label.value for k, label in sorted(said.labels.items())},
        },
    }


def content_hash(made: Mapping[str, Any]) -> str:
    """Hash what a worker decides: labels, annotations, owners and spec.

    The refusals that a master notes on the object are left out, so that they cause
    no write.
    """
    metadata = made["metadata"]
    notes = dict((metadata.get("annotations") or {}).items())
    notes.pop(REFUSED, None)
    owners = [_owner_ident(o) for o in metadata.get("ownerReferences") or ()]
    content = [metadata.get("labels") or {}, notes, owners, _spec(made)]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _owner_ident(owner: Mapping[str, Any]) -> list[str]:
    return [str(owner.get(k, "")) for k in ("apiVersion", "kind", "name", "uid")]


def _spec(made: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec with null and missing parts alike (spec section 3.3)."""
    spec = made.get("spec") or {}
    features = spec.get("features") or {}
    return {
        "labels": spec.get("labels") or {},
        "features": {
            part: features.get(part) or {}
            for part in ("flags", "attributes", "instances")
        },
    }


def replacement(made: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object to PUT over `found`: our content with its identity.

    The master's note of refusals stays. Owners are replaced by ours, or left where
    ours are not known.
    """
    old = found["metadata"]
    metadata = dict(made["metadata"])
    for field in ("resourceVersion", "uid"):
        metadata[field] = old[field]
    refused = (old.get("annotations") or {}).get(REFUSED)
    if refused is not None:
        metadata["annotations"] = {**metadata["annotations"], REFUSED: refused}
    if "ownerReferences" not in metadata and old.get("ownerReferences"):
        metadata["ownerReferences"] = old["ownerReferences"]
    return {**made, "metadata": metadata}


def stale_text(stale: Mapping[str, float], unknown: Iterable[str] = ()) -> str:
    """Write the stale annotation: JSON, source → RFC 3339 time; "" when none is.

    A feature set that could not be read and of which nothing is remembered stands
    there with its key and an empty time, so that rules that read it are unknown.
    """
    plain = dict.fromkeys(unknown, "") | {
        name: datetime.fromtimestamp(int(when), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for name, when in stale.items()
    }
    return json.dumps(plain, sort_keys=True, separators=(",", ":")) if plain else ""


def unknown_sets(metadata: Mapping[str, Any]) -> frozenset[str]:
    """Return the feature sets that an object's stale annotation calls unknown."""
    notes = _note(metadata.get("annotations") or {}, STALE, [])
    return frozenset(key for key, when in notes.items() if not when)


def _makers_text(labels: Mapping[str, Label]) -> str:
    plain = {}
    for key, label in sorted(labels.items()):
        maker = label.provenance
        if maker.rule:
            plain[key] = f"rule:{maker.rule}"
        elif maker.source and not key.startswith(f"{FEATURE_NS}/{maker.source}-"):
            plain[key] = maker.source
    return json.dumps(plain, separators=(",", ":")) if plain else ""


@attrs.frozen(slots=True)
class ReadBack:
    """What an own NodeFeature of an earlier worker tells."""

    features: Features
    labels: Mapping[str, str]
    makers: Mapping[str, str]
    stale: Mapping[str, float]
    problems: tuple[str, ...] = ()  # annotations or parts that could not be read


def read_back(found: Mapping[str, Any]) -> ReadBack:
    """Read an own NodeFeature; each part that cannot be read is named and empty."""
    notes = found["metadata"].get("annotations") or {}
    spec = found.get("spec") or {}
    problems: list[str] = []
    features = Features()
    try:
        features = Features.from_spec(spec.get("features") or {})
    except NfdError as error:
        problems.append(str(error))
    stale: dict[str, float] = {}
    for source, text in _note(notes, STALE, problems).items():
        if not text:
            continue
        try:
            stale[source] = datetime.fromisoformat(text).timestamp()
        except ValueError:
            problems.append(f"{STALE}: {source}: no time: {text[:40]!r}")
    labels = {k: v for k, v in (spec.get("labels") or {}).items() if isinstance(v, str)}
    return ReadBack(
        features, labels, _note(notes, MAKERS, problems), stale, tuple(problems)
    )


def _note(notes: Mapping[str, Any], name: str, problems: list[str]) -> dict[str, str]:
    text = notes.get(name)
    if not text:
        return {}
    try:
        plain = json.loads(text)
        return {str(k): str(v) for k, v in plain.items()}
    except (ValueError, AttributeError, TypeError):
        problems.append(f"{name}: no JSON map: {str(text)[:80]!r}")
        return {}


def largest_sets(features: Features, count: int = 3) -> list[tuple[str, int]]:
    """Return the largest feature sets with their bytes of JSON, for the warning."""
    sizes = {
        key: len(json.dumps(features.only([key]).to_spec(), separators=(",", ":")))
        for key in features
    }
    return sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:count]


def size(made: Mapping[str, Any]) -> int:
    """Return the object's size as compact JSON, in bytes."""
    return len(json.dumps(made, separators=(",", ":")).encode())
