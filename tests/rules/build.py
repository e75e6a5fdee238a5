"""Short ways to write rules in tests."""

from collections.abc import Iterable, Mapping
from typing import Any

from nfd.features import Features
from nfd.rules.load import load_text
from nfd.rules.model import Expression, Rule, Term


def expr(op: str, *values: str, kind: str = "") -> Expression:
    return Expression(op, values, kind)


def term(
    feature: str, name: Expression | None = None, **expressions: Expression
) -> Term:
    return Term(feature, expressions or None, name)


def rule(*terms: Term, name: str = "r", **outputs: Any) -> Rule:
    outputs.setdefault("labels", {name: "true"})
    return Rule(name, match_features=terms, **outputs)


def host(
    *,
    flags: Mapping[str, Iterable[str]] | None = None,
    attributes: Mapping[str, Mapping[str, str]] | None = None,
    instances: Mapping[str, Iterable[Mapping[str, str]]] | None = None,
    unknown: Mapping[str, str] | None = None,
) -> Features:
    return Features.of(
        flags=flags, attributes=attributes, instances=instances, unknown=unknown
    )


def load(text: str) -> tuple[Rule, ...]:
    loaded = load_text(text, "test")
    assert not loaded.errors
    return loaded.rules
