"""Which elements of the bulky feature sets rules and groups use (DESIGN section 6).

Pure.
"""

from collections.abc import Collection, Iterable, Iterator

from nfd.publish.demand import Demand
from nfd.rules.model import Rule


def demand_of(rules: Iterable[Rule]) -> Demand:
    """Return what rules read: elements that they name, or whole sets."""
    return Demand.of(pair for rule in rules for pair in _reads(rule))


def _reads(rule: Rule) -> Iterator[tuple[str, Collection[str] | None]]:
    for term in rule.terms:
        if term.name is not None:
            yield term.key, None  # every name is looked at
        else:
            yield term.key, tuple(term.expressions or ())
    for outputs in (rule.labels, rule.extended_resources):
        for value in outputs.values():
            parts = value[1:].split(".", 2) if value.startswith("@") else ()
            if len(parts) == 3:
                yield f"{parts[0]}.{parts[1]}".lower(), (parts[2],)
