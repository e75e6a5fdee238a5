"""What a rule can look at: feature sets by lower-case key, and earlier outputs."""

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Self, TypeVar

import attrs

from nfd.features import Attributes, Features
from nfd.rules.model import MATCHED_FEATURE

T = TypeVar("T")


@attrs.frozen(slots=True)
class Sets:
    """Features made ready for many rules.

    Keys are lower-case, so that sets which other programs publish with capitals are
    found. `settled` names, for sets in `unknown` that were published in part, the
    elements whose absence is as sure as their presence.
    """

    flags: Mapping[str, frozenset[str]]
    attributes: Mapping[str, Attributes]
    instances: Mapping[str, tuple[Attributes, ...]]
    unknown: Mapping[str, str] = attrs.field(factory=dict)
    settled: Mapping[str, Container[str]] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls,
        features: Features,
        settled: Mapping[str, Collection[str]] | None = None,
    ) -> Self:
        """Index features; `settled` as above, with keys as in `features.unknown`."""
        flags, attributes = features.flags, features.attributes
        instances, unknown = features.instances, features.unknown
        if _capitals(flags):
            flags = _lowered(flags, lambda old, new: old | new)
        if _capitals(attributes):
            attributes = _lowered(attributes, lambda old, new: {**old, **new})
        if _capitals(instances):
            instances = _lowered(instances, lambda old, new: old + new)
        if _capitals(unknown):
            unknown = _lowered(unknown, lambda _old, new: new)
        names: Mapping[str, Container[str]] = settled or {}
        if _capitals(names):
            names = _lowered(names, lambda _old, new: new)
        return cls(flags, attributes, instances, unknown, names)


def _capitals(keys: Iterable[str]) -> bool:
    return any(key != key.lower() for key in keys)


def _lowered(sets: Mapping[str, T], join: Callable[[T, T], T]) -> dict[str, T]:
    merged: dict[str, T] = {}
    for key in sorted(sets, key=lambda k: (k == k.lower(), k)):  # exact ones last
        low = key.lower()
        merged[low] = join(merged[low], sets[key]) if low in merged else sets[key]
    return merged


@attrs.frozen(slots=True)
class Matched:
    """The attribute feature `rule.matched`: labels, then vars of earlier rules.

    `uncertain` names elements that a rule of unknown outcome may have written; None
    means that it could have written any. They are not in `elements`. `perhaps` says
    that such a rule may have made the feature exist: it may also have failed.
    """

    exists: bool = False
    perhaps: bool = False
    elements: Attributes = attrs.field(factory=dict)
    uncertain: frozenset[str] | None = frozenset()

    @classmethod
    def start(cls, features: Features | Sets) -> Self:
        """Begin with what the features themselves hold under that name."""
        base = features.attributes.get(MATCHED_FEATURE)
        return cls() if base is None else cls(exists=True, elements=base)

    def known(self, labels: Attributes, variables: Attributes) -> "Matched":
        """Add the outputs of a rule whose outcome is known."""
        if not labels and not variables:
            return self if self.exists else attrs.evolve(self, exists=True)
        uncertain = self.uncertain
        if uncertain:
            uncertain = uncertain - labels.keys() - variables.keys()
        elements = {**self.elements, **labels, **variables}
        return Matched(exists=True, elements=elements, uncertain=uncertain)

    def doubted(self, names: Iterable[str] | None) -> "Matched":
        """Add a rule of unknown outcome that may have written `names`; None: any."""
        if names is None:
            return Matched(exists=self.exists, perhaps=True, uncertain=None)
        if self.uncertain is None:
            return attrs.evolve(self, perhaps=True)
        uncertain = self.uncertain.union(names)
        elements = {k: v for k, v in self.elements.items() if k not in uncertain}
        return Matched(
            exists=self.exists, perhaps=True, elements=elements, uncertain=uncertain
        )

    @property
    def unknown(self) -> str:
        """Why elements are unknown, or ""."""
        hidden = self.perhaps and not self.exists
        if hidden or self.uncertain is None or self.uncertain:
            return "an earlier rule is unknown"
        return ""

    def settles(self, name: str) -> bool:
        """Tell whether presence or absence of an element is certain."""
        if self.uncertain is None:
            return name in self.elements
        return name not in self.uncertain

    def __contains__(self, name: object) -> bool:
        """As `settles`, so that it can stand where a set of settled names does."""
        return isinstance(name, str) and self.settles(name)
