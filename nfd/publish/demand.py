"""Which elements of the bulky feature sets a cluster's rules use (DESIGN section 6).

Pure. The master keeps a `Demand` in the ConfigMap `nfd-feature-demand`; a worker that
can read it publishes only these elements of the bulky sets.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import attrs

from nfd.errors import NfdError
from nfd.features import Features

CONFIGMAP = "nfd-feature-demand"
BULKY = ("kernel.config", "kernel.enabledmodule", "kernel.loadedmodule")
WHOLE = "*"


@attrs.frozen(slots=True)
class Demand:
    """Per bulky set the wanted element names; None stands for the whole set."""

    sets: Mapping[str, frozenset[str] | None] = attrs.field(factory=dict)

    @classmethod
    def of(cls, terms: Iterable[tuple[str, Collection[str] | None]]) -> "Demand":
        """Unite (set, element names or None) pairs; sets that are not bulky drop."""
        sets: dict[str, frozenset[str] | None] = {}
        for key, names in terms:
            if key not in BULKY:
                continue
            before = sets.get(key, frozenset())
            if names is None or before is None:
                sets[key] = None
            else:
                sets[key] = before | frozenset(names)
        return cls(dict(sorted(sets.items())))

    def __or__(self, other: "Demand") -> "Demand":
        return Demand.of([*self.sets.items(), *other.sets.items()])

    def to_data(self) -> dict[str, str]:
        """Return the `data` of the ConfigMap: set → `*` or names, one a line."""
        return {
            key: WHOLE if names is None else "\n".join(sorted(names))
            for key, names in sorted(self.sets.items())
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Demand":
        """Read the `data` of the ConfigMap; sets that are not bulky are ignored."""
        return cls.of(
            (key, None if text.strip() == WHOLE else text.split())
            for key, text in data.items()
            if isinstance(text, str)
        )


@attrs.frozen(slots=True)
class Trimmed:
    """What trimming left, and per trimmed set the names that were looked for."""

    features: Features
    sets: Mapping[str, frozenset[str]] = attrs.field(factory=dict)

    def to_annotation(self) -> str:
        """Return `nfd.node.kubernetes.io/trimmed-features`; "" when nothing was."""
        if not self.sets:
            return ""
        plain = {key: sorted(names) for key, names in sorted(self.sets.items())}
        return json.dumps(plain, separators=(",", ":"))


def trim(features: Features, demand: Demand) -> Trimmed:
    """Leave of each bulky set only the elements that are in demand.

    A set stays, possibly empty, so that it is not taken for absent.
    """
    flags, attributes = dict(features.flags), dict(features.attributes)
    trimmed: dict[str, frozenset[str]] = {}
    for key in BULKY:
        names = demand.sets.get(key, frozenset())
        if names is None or key not in features:
            continue
        if key in flags:
            flags[key] &= names
        if key in attributes:
            attributes[key] = {k: v for k, v in attributes[key].items() if k in names}
        trimmed[key] = names
    return Trimmed(attrs.evolve(features, flags=flags, attributes=attributes), trimmed)


def trimmed_sets(annotation: str) -> dict[str, frozenset[str]]:
    """Read `nfd.node.kubernetes.io/trimmed-features`.

    Raises:
        NfdError: The text is no JSON map of lists of names.

    """
    if not annotation:
        return {}
    try:
        plain = json.loads(annotation)
        return {str(k): frozenset(map(str, names)) for k, names in plain.items()}
    except (ValueError, AttributeError, TypeError):
        raise NfdError(f"trimmed-features: unreadable {annotation[:80]!r}") from None
