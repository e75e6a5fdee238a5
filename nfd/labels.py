"""Label keys, values and namespaces, and labels with the reason they are there.

Rules: the Kubernetes documentation "Labels and Selectors", spec/worker.md sections
0.3 and 6.9. All functions are pure; a check returns the reason of a refusal or "".
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import attrs

FEATURE_NS = "feature.node.kubernetes.io"
PROFILE_NS = "profile.node.kubernetes.io"
ANNOTATION_NS = "nfd.node.kubernetes.io"

MAX_NAME = 63
MAX_PREFIX = 253
MAX_ANNOTATION_BYTES = 1024

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
)


@attrs.frozen(slots=True)
class Provenance:
    """Where a label or another output comes from."""

    source: str = ""  # label source (or "rule" objects' name in a master)
    feature: str = ""  # feature key, as "pci.device"
    element: str = ""  # which element of it, as "0000:3b:00.0" or "NO_HZ"
    rule: str = ""  # name of the rule that made it
    because: str = ""  # the setting, term or condition that decided


@attrs.frozen(slots=True)
class Label:
    """One accepted label: `key` has its prefix, `value` is valid."""

    key: str
    value: str
    provenance: Provenance = Provenance()


@attrs.frozen(slots=True)
class Refusal:
    """Something that was wanted and not granted, with the reason."""

    kind: str  # label, annotation, taint, extendedResource
    key: str
    value: str
    reason: str
    provenance: Provenance = Provenance()


class RuleLabels(NamedTuple):
    """What rules made of features: labels, what was refused, and open questions.

    `unknown_rules` names the rules whose outcome cannot be known now: the labels that
    they made before stay. Where some rules could not be read, `answered` names those
    that could: what others made before stays too.
    """

    labels: list[Label]
    refused: Sequence[Refusal] = ()
    unknown_rules: frozenset[str] = frozenset()
    answered: frozenset[str] | None = None


def split_key(key: str) -> tuple[str, str]:
    """Split `prefix/name` at the first slash; the prefix is "" without one."""
    prefix, slash, name = key.partition("/")
    return (prefix, name) if slash else ("", key)


def name_problem(name: str) -> str:
    """Say why `name` cannot be the name part of a key, or ""."""
    if not name:
        return "the name part is empty"
    if len(name) > MAX_NAME:
        return f"the name part has {len(name)} characters, {MAX_NAME} are allowed"
    if not _NAME.fullmatch(name):
        return (
            "the name part may hold letters, digits, '-', '_' and '.', and must "
            "begin and end with a letter or digit"
        )
    return ""


@lru_cache(4096)
def key_problem(key: str) -> str:
    """Say why `key` is not a Kubernetes qualified name, or ""."""
    prefix, slash, name = key.partition("/")
    if not slash:
        return name_problem(key)
    if not prefix:
        return "the prefix before '/' is empty"
    if len(prefix) > MAX_PREFIX:
        return f"the prefix has {len(prefix)} characters, {MAX_PREFIX} are allowed"
    if not _SUBDOMAIN.fullmatch(prefix):
        return f"the prefix {prefix!r} is not a lower-case DNS subdomain"
    return name_problem(name)


def value_problem(value: str) -> str:
    """Say why `value` is not a label value, or ""; the empty value is valid."""
    if not value:
        return ""
    if len(value) > MAX_NAME:
        return f"the value has {len(value)} characters, {MAX_NAME} are allowed"
    if not _NAME.fullmatch(value):
        return (
            "the value may hold letters, digits, '-', '_' and '.', and must begin "
            "and end with a letter or digit"
        )
    return ""


def in_namespace(prefix: str, namespace: str) -> bool:
    """Tell whether `prefix` is `namespace` or one of its sub-domains."""
    return prefix == namespace or prefix.endswith("." + namespace)


def in_namespaces(prefix: str, namespaces: Iterable[str]) -> bool:
    """Tell whether `prefix` is in one of the namespaces or their sub-domains."""
    return any(in_namespace(prefix, namespace) for namespace in namespaces)
