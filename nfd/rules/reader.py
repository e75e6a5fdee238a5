"""Reads one rule, rule object or NodeFeature from plain data, with all its problems."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import attrs

from nfd.config import goyaml
from nfd.config.nearest import suggest
from nfd.errors import NfdError
from nfd.features import Features
from nfd.rules.model import Expression, Kind, Rule, RuleObject, Taint, Term
from nfd.rules.operators import operand_problem
from nfd.rules.problems import Problem, Severity, show

NODE_NAME_LABEL = "nfd.node.kubernetes.io/node-name"

_COMMON = ("name", "vars", "varsTemplate", "matchFeatures", "matchAny")
_LABELS = ("labels", "labelsTemplate")
_CLUSTER_ONLY = ("annotations", "taints", "extendedResources")
FIELDS: Mapping[Kind, frozenset[str]] = {
    "NodeFeatureRule": frozenset((*_COMMON, *_LABELS, *_CLUSTER_ONLY)),
    "NodeFeatureGroup": frozenset(_COMMON),
    "custom": frozenset((*_COMMON, *_LABELS)),
}
RULES_KEY: Mapping[Kind, str] = {
    "NodeFeatureRule": "rules",
    "NodeFeatureGroup": "featureGroupRules",
}


@attrs.frozen(slots=True)
class NodeFeature:
    """A NodeFeature manifest: which node, its features and its labels."""

    name: str
    namespace: str
    node: str
    features: Features
    labels: Mapping[str, str]


class Reader:
    """Reads one object; collects problems instead of stopping at the first."""

    def __init__(self, place: str, kind: Kind, *, strict: bool) -> None:
        self.place = place
        self.kind = kind
        self.strict = strict
        self.problems: list[Problem] = []
        self._rule = ""

    def wrong(self, path: str, message: str, severity: Severity = "error") -> None:
        """Record a problem at a path."""
        self.problems.append(Problem(severity, self.place, path, message, self._rule))

    # Plain shapes.

    def items(self, plain: Any, path: str) -> list[Any]:
        """Read a list; null is an empty one."""
        if plain is None:
            return []
        if isinstance(plain, list | tuple):
            return list(plain)
        self.wrong(path, f"expected a list, got {show(plain)}")
        return []

    def _entries(self, plain: Any, path: str) -> dict[str, Any]:
        if plain is None:
            return {}
        if isinstance(plain, Mapping):
            return dict(plain)
        self.wrong(path, f"expected a map, got {show(plain)}")
        return {}

    def _text(self, plain: Any, path: str) -> str:
        if isinstance(plain, str):
            return plain
        if plain is None:
            return ""
        if isinstance(plain, bool | int | float):
            if self.strict and self.kind != "custom":
                self.wrong(path, f"expected text, got {show(plain)}; quote it")
            return goyaml.as_text(plain)
        self.wrong(path, f"expected text, got {show(plain)}")
        return ""

    def _texts(self, plain: Any, path: str) -> dict[str, str]:
        return {
            str(key): self._text(value, _under(path, key))
            for key, value in self._entries(plain, path).items()
        }

    def _known(self, plain: Any, path: str, names: Iterable[str]) -> dict[str, Any]:
        """Read a map with known keys; worker rules spell them in any case."""
        entries = self._entries(plain, path)
        if self.kind == "custom":
            exact = {name.casefold(): name for name in names}
            entries = {exact.get(k.casefold(), k): v for k, v in entries.items()}
        if self.strict:
            for key in sorted(set(entries) - set(names)):
                hint = suggest(key, names)
                self.wrong(_under(path, key), f"unknown key {key!r}{hint}")
        return entries

    # Objects.

    def rule_object(self, plain: Mapping[str, Any]) -> RuleObject:
        """Read a NodeFeatureRule or NodeFeatureGroup, as `kind` says."""
        metadata = self._entries(plain.get("metadata"), "metadata")
        name = self._text(metadata.get("name"), "metadata.name")
        key = RULES_KEY[self.kind]
        if self.strict:
            self._known(plain, "", ("apiVersion", "kind", "metadata", "spec", "status"))
        given = plain.get("spec")
        spec = self._known(given, "spec", (key,))
        if spec.get(key) is None and (given is None or isinstance(given, Mapping)):
            self.wrong(f"spec.{key}", "missing")
        rules = []
        for index, item in enumerate(self.items(spec.get(key), f"spec.{key}")):
            rule = self.rule(item, f"spec.{key}[{index}]", origin=name)
            if rule is not None:
                rules.append(rule)
        namespace = self._text(metadata.get("namespace"), "metadata.namespace")
        return RuleObject(self.kind, name, tuple(rules), namespace, self.place)

    def node_feature(self, plain: Mapping[str, Any]) -> NodeFeature | None:
        """Read a NodeFeature; None when its features cannot be read."""
        metadata = self._entries(plain.get("metadata"), "metadata")
        spec = self._entries(plain.get("spec"), "spec")
        labels = self._texts(metadata.get("labels"), "metadata.labels")
        name = self._text(metadata.get("name"), "metadata.name")
        try:
            features = Features.from_spec(
                self._entries(spec.get("features"), "spec.features")
            )
        except NfdError as error:
            self.wrong("spec", str(error))
            return None
        return NodeFeature(
            name,
            self._text(metadata.get("namespace"), "metadata.namespace"),
            labels.get(NODE_NAME_LABEL, ""),
            features,
            self._texts(spec.get("labels"), "spec.labels"),
        )

    # Rules.

    def rule(self, plain: Any, path: str, origin: str) -> Rule | None:
        """Read one rule; None when something in it is wrong.

        Strict reading is for finding all mistakes, so it gives wrong rules too.
        """
        before = len(self.problems)
        self._rule = ""
        if not isinstance(plain, Mapping):
            self.wrong(path, f"expected a map, got {show(plain)}")
            return None
        fields = self._known(plain, path, FIELDS[self.kind])
        self._rule = name = self._text(fields.get("name"), f"{path}.name")
        if not name and self.kind != "custom":
            self.wrong(f"{path}.name", "rule name cannot be empty")
        rule = Rule(
            name=name,
            origin=origin,
            match_features=self._terms(
                fields.get("matchFeatures"), f"{path}.matchFeatures"
            ),
            match_any=tuple(self._branches(fields.get("matchAny"), f"{path}.matchAny")),
            **self._outputs(fields, path),
        )
        self._rule = ""
        errors = any(p.severity == "error" for p in self.problems[before:])
        return None if errors and not self.strict else rule

    def _outputs(self, fields: Mapping[str, Any], path: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        allowed = FIELDS[self.kind]
        for name, read, target in (
            ("labels", self._texts, "labels"),
            ("labelsTemplate", self._text, "labels_template"),
            ("annotations", self._texts, "annotations"),
            ("extendedResources", self._texts, "extended_resources"),
            ("taints", self._taints, "taints"),
            ("vars", self._texts, "vars"),
            ("varsTemplate", self._text, "vars_template"),
        ):
            if name in fields and name in allowed:
                found[target] = read(fields[name], f"{path}.{name}")
        return found

    def _taints(self, plain: Any, path: str) -> tuple[Taint, ...]:
        taints = []
        for index, item in enumerate(self.items(plain, path)):
            where = f"{path}[{index}]"
            fields = self._known(item, where, ("key", "value", "effect", "timeAdded"))
            key, value, effect, added = (
                self._text(fields.get(name), f"{where}.{name}")
                for name in ("key", "value", "effect", "timeAdded")
            )
            taints.append(Taint(key, effect, value, added))
        return tuple(taints)

    def _branches(self, plain: Any, path: str) -> Iterator[tuple[Term, ...]]:
        for index, item in enumerate(self.items(plain, path)):
            where = f"{path}[{index}]"
            fields = self._known(item, where, ("matchFeatures",))
            yield self._terms(fields.get("matchFeatures"), f"{where}.matchFeatures")

    def _terms(self, plain: Any, path: str) -> tuple[Term, ...]:
        return tuple(
            self._term(item, f"{path}[{index}]")
            for index, item in enumerate(self.items(plain, path))
        )

    def _term(self, plain: Any, path: str) -> Term:
        names = ("feature", "matchExpressions", "matchName")
        fields = self._known(plain, path, names)
        feature = self._text(fields.get("feature"), f"{path}.feature")
        if not feature:
            self.wrong(f"{path}.feature", "missing")
        expressions = fields.get("matchExpressions")
        name = fields.get("matchName")
        if expressions is not None:
            where = f"{path}.matchExpressions"
            expressions = self._expressions(expressions, where)
        if name is not None:
            name = self._expression(name, f"{path}.matchName")
        return Term(feature, expressions, name)

    def _expressions(self, plain: Any, path: str) -> dict[str, Expression]:
        if self.kind == "custom" and isinstance(plain, list):
            found = {}
            for index, item in enumerate(plain):
                if not isinstance(item, str):
                    self.wrong(f"{path}[{index}]", f"expected text, got {show(item)}")
                    continue
                name, equals, value = item.partition("=")
                found[name] = (
                    Expression("In", (value,)) if equals else Expression("Exists")
                )
            return found
        return {
            str(name): Expression("Exists")
            if self.kind == "custom" and item is None
            else self._expression(item, _under(path, name))
            for name, item in self._entries(plain, path).items()
        }

    def _expression(self, plain: Any, path: str) -> Expression:
        if self.kind == "custom" and not isinstance(plain, Mapping):
            return Expression("In", self._values(plain, path))
        fields = self._known(plain, path, ("op", "value", "type"))
        if self.strict and self.kind != "custom" and fields.get("op") is None:
            self.wrong(f"{path}.op", "missing")
        expression = Expression(
            self._text(fields.get("op"), f"{path}.op"),
            self._values(fields.get("value"), f"{path}.value"),
            self._text(fields.get("type"), f"{path}.type"),
        )
        if self.kind == "custom" and (problem := operand_problem(expression)):
            self.wrong(path, problem)
        return expression

    def _values(self, plain: Any, path: str) -> tuple[str, ...]:
        if self.kind != "custom":
            return tuple(
                self._text(item, f"{path}[{index}]")
                for index, item in enumerate(self.items(plain, path))
            )
        if plain is None:
            return ()
        if isinstance(plain, list):
            for index, item in enumerate(plain):
                if not isinstance(item, str):
                    where = f"{path}[{index}]"
                    self.wrong(where, f"expected text, got {show(item)}; quote it")
            return tuple(str(item) for item in plain)
        if isinstance(plain, bool):
            return ("true" if plain else "false",)
        if isinstance(plain, float):
            return (format(Decimal(repr(plain)), "f"),)
        if isinstance(plain, str | int):
            return (str(plain),)
        self.wrong(path, f"expected text or a list of texts, got {show(plain)}")
        return ()


def _under(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)
