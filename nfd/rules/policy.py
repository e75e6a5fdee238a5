"""What may be put on a Node: prefixes, namespaces, values (spec/master.md 2.7, 10)."""

from collections.abc import Mapping
from functools import cached_property
from typing import TypeVar

import attrs

from nfd import regex
from nfd.labels import (
    FEATURE_NS,
    MAX_ANNOTATION_BYTES,
    PROFILE_NS,
    in_namespace,
    in_namespaces,
    key_problem,
    split_key,
    value_problem,
)
from nfd.quantity import Quantity, QuantityError
from nfd.rules.model import Taint

T = TypeVar("T")

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NAMESPACE_NOT_ALLOWED = "namespace is not allowed"
_KEPT = 16384  # label verdicts; a few hundred bytes each
UNPREFIXED = "unprefixed keys are not allowed"


@attrs.frozen(slots=True)
class Policy:
    """The limits of labels, annotations, taints and extended resources.

    Entries of `deny_label_ns` that begin with `*` match the end of a namespace,
    others the whole; `extra_label_ns` match the whole and lift every denial.
    `label_whitelist` is an RE2 pattern searched in the part after the slash.
    """

    deny_label_ns: tuple[str, ...] = ()
    extra_label_ns: tuple[str, ...] = ()
    label_whitelist: str = ""
    disable_auto_prefix: bool = False
    enable_taints: bool = False
    disable_labels: bool = False
    disable_annotations: bool = False
    disable_extended_resources: bool = False

    @cached_property
    def _whitelist(self) -> regex.Pattern:
        return regex.compile(self.label_whitelist)

    def prefixed(self, outputs: Mapping[str, T]) -> dict[str, T]:
        """Give keys without prefix the default one; a prefixed twin wins."""
        if self.disable_auto_prefix:
            return dict(outputs)
        named: dict[str, T] = {}
        for key, value in outputs.items():
            if "/" in key:
                named[key] = value
            elif (full := f"{FEATURE_NS}/{key}") not in outputs:
                named[full] = value
        return named

    @cached_property
    def _label_problems(self) -> dict[tuple[str, str], str]:
        return {}

    def label_problem(self, key: str, value: str) -> str:
        """Say why a label is refused, or ""; a fleet asks the same again and again."""
        known = self._label_problems
        problem = known.get((key, value))
        if problem is None:
            if len(known) >= _KEPT:
                known.clear()
            problem = known[key, value] = self._label_problem(key, value)
        return problem

    def _label_problem(self, key: str, value: str) -> str:
        if self.disable_labels:
            return "labels are disabled (restrictions.disableLabels)"
        if problem := key_problem(key):
            return problem
        namespace, name = split_key(key)
        if namespace not in self.extra_label_ns:
            if problem := self._prefix_problem(namespace, FEATURE_NS, PROFILE_NS):
                return problem
            if namespace and self._denies(namespace):
                return f'namespace "{namespace}" is not allowed'
        if problem := value_problem(value):
            return problem
        if self.label_whitelist and not self._whitelist.search(name):
            return f"the name does not match the whitelist {self.label_whitelist!r}"
        return ""

    def annotation_problem(self, key: str, value: str) -> str:
        """Say why an annotation is refused, or ""."""
        if self.disable_annotations:
            return "annotations are disabled (restrictions.disableAnnotations)"
        problem = key_problem(key) or self._prefix_problem(
            split_key(key)[0], FEATURE_NS
        )
        if problem:
            return problem
        size = len(value.encode("utf-8", "surrogatepass"))
        if size > MAX_ANNOTATION_BYTES:
            return f"the value has {size} bytes, {MAX_ANNOTATION_BYTES} are allowed"
        return ""

    def resource_problem(self, key: str, value: str) -> str:
        """Say why an extended resource is refused, or ""."""
        if self.disable_extended_resources:
            return "extended resources are disabled (restrictions.disableExtendedResources)"
        problem = key_problem(key) or self._prefix_problem(
            split_key(key)[0], FEATURE_NS
        )
        if problem:
            return problem
        try:
            quantity = Quantity.parse(value)
        except QuantityError as error:
            return str(error)
        if not quantity.is_whole:
            return f"an extended resource must be a whole number, not {value!r}"
        if quantity.nanos < 0:
            return f"an extended resource must not be negative, as {value!r} is"
        return ""

    def taint_problem(self, taint: Taint) -> str:
        """Say why a taint is refused, or ""."""
        if not self.enable_taints:
            return "taints are disabled (enableTaints)"
        return taint_problem(taint)

    def _prefix_problem(self, namespace: str, *allowed: str) -> str:
        if namespace or not self.disable_auto_prefix:
            return prefix_problem(namespace, *allowed)
        return ""

    def _denies(self, namespace: str) -> bool:
        return any(
            namespace.endswith(entry.lstrip("*"))
            if entry.startswith("*")
            else namespace == entry
            for entry in self.deny_label_ns
        )


def prefix_problem(namespace: str, *allowed: str) -> str:
    """Say why keys may not stand in a namespace, or ""."""
    if not namespace:
        return UNPREFIXED
    if in_namespace(namespace, "kubernetes.io") and not in_namespaces(
        namespace, allowed
    ):
        return NAMESPACE_NOT_ALLOWED
    return ""


def taint_problem(taint: Taint) -> str:
    """Say why the API server or the policy would refuse a taint, or ""."""
    problem = prefix_problem(split_key(taint.key)[0], FEATURE_NS)
    if problem:
        return problem
    if not taint.effect:
        return "empty taint effect"
    if taint.effect not in TAINT_EFFECTS:
        return f"invalid taint effect {taint.effect!r}"
    return key_problem(taint.key) or value_problem(taint.value)
