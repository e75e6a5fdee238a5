"""The rule language as frozen values (spec/worker.md section 6.1)."""

from collections.abc import Mapping
from functools import cached_property
from typing import Literal, TypeAlias

import attrs

MATCHED_FEATURE = "rule.matched"  # what earlier rules put out (spec section 6.6)
FORMATS_OF_TYPE = ("", "version")
Kind: TypeAlias = Literal["NodeFeatureRule", "NodeFeatureGroup", "custom"]


@attrs.frozen(slots=True)
class Expression:
    """One test of a value or name: operator, operands and how to compare."""

    op: str
    value: tuple[str, ...] = ()
    type: str = ""

    def __str__(self) -> str:
        """Write it as people say it: `Gt 5.15 (version)`."""
        words = [self.op or "(any)"]
        if self.value:
            words.append(
                self.value[0] if len(self.value) == 1 else f"[{', '.join(self.value)}]"
            )
        if self.type:
            words.append(f"({self.type})")
        return " ".join(words)


@attrs.frozen(slots=True)
class Term:
    """What one feature must be; None means that this part was not given."""

    feature: str  # as the author wrote it; looked up in lower case
    expressions: Mapping[str, Expression] | None = None
    name: Expression | None = None

    @property
    def key(self) -> str:
        """The feature key that is looked up."""
        return self.feature.lower()

    @property
    def all_expressions(self) -> tuple[Expression, ...]:
        """The expressions over elements and the one over names."""
        named = () if self.name is None else (self.name,)
        return (*(self.expressions or {}).values(), *named)


@attrs.frozen(slots=True)
class Taint:
    """A taint that a rule wants."""

    key: str
    effect: str
    value: str = ""
    time_added: str = ""

    @property
    def ident(self) -> str:
        """What identifies a taint on a Node: `key:Effect`."""
        return f"{self.key}:{self.effect}"

    def __str__(self) -> str:
        """Write it as kubectl does: `key=value:Effect`."""
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


@attrs.frozen(slots=True, eq=False)
class Rule:
    """One rule; compared by identity, so that what is computed of it can be kept."""

    name: str
    labels: Mapping[str, str] = attrs.field(factory=dict)
    labels_template: str = ""
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    taints: tuple[Taint, ...] = ()
    extended_resources: Mapping[str, str] = attrs.field(factory=dict)
    vars: Mapping[str, str] = attrs.field(factory=dict)
    vars_template: str = ""
    match_features: tuple[Term, ...] = ()
    match_any: tuple[tuple[Term, ...], ...] = ()
    origin: str = ""  # name of the object or file that holds the rule

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms, those of matchAny first, as they are evaluated."""
        return sum(self.match_any, ()) + self.match_features

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All expressions of all terms."""
        return tuple(e for term in self.terms for e in term.all_expressions)

    @cached_property
    def reads(self) -> frozenset[str]:
        """Lower-case keys of the features that decide about a match."""
        return frozenset(term.key for term in self.terms)

    def __str__(self) -> str:
        """Name the rule and where it comes from."""
        return f"{self.origin}/{self.name}" if self.origin else self.name


@attrs.frozen(slots=True)
class RuleObject:
    """A NodeFeatureRule, a NodeFeatureGroup or one file of worker rules."""

    kind: Kind
    name: str
    rules: tuple[Rule, ...]
    namespace: str = ""
    place: str = ""  # file and document
