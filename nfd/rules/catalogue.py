"""The feature sets that rules can name: what exists, of which kind, which elements."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Protocol, Self

import attrs

from nfd.rules.model import MATCHED_FEATURE

NEAREST = 3
CUTOFF = 0.45  # likeness, 1 is equal


class Spec(Protocol):
    """Documents one feature set, as `nfd.source.FeatureSpec` does."""

    @property
    def key(self) -> str:
        """The feature key."""
        ...

    @property
    def kinds(self) -> Sequence[str]:
        """What it may be: flag, attribute, instance."""
        ...

    @property
    def elements(self) -> Sequence[str] | None:
        """Names of its elements, None when they are open."""
        ...


@attrs.frozen(slots=True)
class Known:
    """One feature set that is known; `elements` is None when they are open."""

    kinds: frozenset[str]
    elements: frozenset[str] | None


@attrs.frozen(slots=True)
class Catalogue:
    """Known feature sets by lower-case key; sets below `prefixes` are taken as known.

    A prefix is `acme` or `acme.`: all features of that domain.
    """

    features: Mapping[str, Known] = attrs.field(factory=dict)
    prefixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, specs: Iterable[Spec], prefixes: Iterable[str] = ()) -> Self:
        """Collect documented sets; several entries of one key are joined."""
        features: dict[str, Known] = {
            MATCHED_FEATURE: Known(frozenset({"attribute"}), None)
        }
        for spec in specs:
            key = spec.key.lower()
            names = None if spec.elements is None else frozenset(spec.elements)
            known = Known(frozenset(spec.kinds), names)
            if before := features.get(key):
                both = before.elements is None or known.elements is None
                known = Known(
                    before.kinds | known.kinds,
                    None
                    if both
                    else (before.elements or frozenset())
                    | (known.elements or frozenset()),
                )
            features[key] = known
        return cls(features, tuple(p.rstrip(".").lower() for p in prefixes))

    def get(self, feature: str) -> Known | None:
        """Return what is known of a feature, in any case of letters."""
        return self.features.get(feature.lower())

    def knows(self, feature: str) -> bool:
        """Tell whether a feature may be named."""
        domain = feature.lower().partition(".")[0]
        return feature.lower() in self.features or domain in self.prefixes

    def nearest(self, feature: str) -> str:
        """Return `; nearest: a, b` for an unknown feature, or ""."""
        return near(feature.lower(), self.features)


def near(word: str, known: Iterable[str]) -> str:
    """Return `; nearest: a, b`, the known words most like `word`, or ""."""
    folded = {name.casefold(): name for name in sorted(known)}
    found = get_close_matches(word.casefold(), folded, n=NEAREST, cutoff=CUTOFF)
    if not found:
        return ""
    return f"; nearest: {', '.join(folded[name] for name in found)}"
