"""Reads rules from plain data, YAML or JSON text, and says exactly what is wrong.

Two kinds of strictness. Cluster objects are read as the API server and upstream do:
unknown keys mean nothing. With `strict` they are errors, and so are texts that lack
quotes. Worker rules have short forms (spec/worker.md section 5).
"""

import json
from typing import Any

import attrs

from nfd.config import goyaml
from nfd.config.nearest import suggest
from nfd.errors import NfdError, RuleError
from nfd.rules.model import Kind, Rule, RuleObject
from nfd.rules.problems import Problem, show
from nfd.rules.reader import RULES_KEY, NodeFeature, Reader

GROUP_VERSION = "nfd.k8s-sigs.io/v1alpha1"


@attrs.frozen(slots=True)
class Loaded:
    """What a text holds, and all that is wrong with it; wrong rules are left out."""

    objects: tuple[RuleObject, ...] = ()
    node_features: tuple[NodeFeature, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of all objects in the order in which a master runs them."""
        ordered = sorted(self.objects, key=lambda found: found.name)
        return tuple(rule for found in ordered for rule in found.rules)

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that are errors."""
        return tuple(p for p in self.problems if p.severity == "error")


def load_text(text: str, place: str, *, strict: bool = False) -> Loaded:
    """Read YAML (any number of documents) or JSON; lists are worker rules.

    `place` names the text in problems. Nothing is raised: what cannot be read is a
    problem, and the rest is there.
    """
    try:
        documents = _documents(text, unique=strict)
    except NfdError as error:
        return Loaded(problems=(Problem("error", place, "", str(error)),))
    loaded = Loaded()
    for index, document in enumerate(documents, 1):
        if document is None:
            continue
        where = place if len(documents) == 1 else f"{place}, document {index}"
        loaded = _joined(loaded, load_document(document, where, strict=strict))
    return loaded


def _documents(text: str, *, unique: bool) -> list[Any]:
    if text.lstrip()[:1] in ("{", "["):  # tabs are fine in JSON and not in YAML
        try:
            return [json.loads(text)]
        except (ValueError, RecursionError):
            pass  # flow-style YAML, or the YAML reader says what is wrong
    return goyaml.load_all(text, unique=unique)


def _joined(left: Loaded, right: Loaded) -> Loaded:
    return Loaded(
        left.objects + right.objects,
        left.node_features + right.node_features,
        left.problems + right.problems,
    )


def load_document(document: Any, place: str, *, strict: bool = False) -> Loaded:
    """Read one object, a list of objects, or a list of worker rules."""
    reader = Reader(place, "NodeFeatureRule", strict=strict)
    if isinstance(document, list):
        rules = custom_rules(document, place, strict=strict)
        found = RuleObject("custom", place, rules.rules, place=place)
        return Loaded((found,), problems=rules.problems)
    if not isinstance(document, dict):
        reader.wrong("", f"expected an object or a list of rules, got {show(document)}")
        return Loaded(problems=tuple(reader.problems))
    kind = document.get("kind")
    if isinstance(kind, str) and kind.endswith("List"):
        loaded = Loaded()
        for index, item in enumerate(reader.items(document.get("items"), "items")):
            part = load_document(item, f"{place}, items[{index}]", strict=strict)
            loaded = _joined(loaded, part)
        return _joined(loaded, Loaded(problems=tuple(reader.problems)))
    if kind == "NodeFeature":
        manifest = reader.node_feature(document)
        found_features = () if manifest is None else (manifest,)
        return Loaded(node_features=found_features, problems=tuple(reader.problems))
    rule_kind: Kind | None = next((k for k in RULES_KEY if k == kind), None)
    if rule_kind is None:
        known = (*RULES_KEY, "NodeFeature")
        hint = suggest(kind, known) if isinstance(kind, str) else ""
        reader.wrong("kind", f"unexpected kind {show(kind)}{hint}")
        return Loaded(problems=tuple(reader.problems))
    if strict and document.get("apiVersion") != GROUP_VERSION:
        version = show(document.get("apiVersion"))
        reader.wrong("apiVersion", f"expected {GROUP_VERSION!r}, got {version}")
    reader.kind = rule_kind
    found = reader.rule_object(document)
    return Loaded((found,), problems=tuple(reader.problems))


@attrs.frozen(slots=True)
class CustomRules:
    """Worker rules that could be read, and what is wrong with the others."""

    rules: tuple[Rule, ...]
    problems: tuple[Problem, ...] = ()

    def checked(self) -> tuple[Rule, ...]:
        """Return the rules if all is well.

        Raises:
            RuleError: There is an error; the first one is in the text.

        """
        for problem in self.problems:
            if problem.severity == "error":
                parts = (problem.place, problem.path, problem.message)
                raise RuleError(": ".join(part for part in parts if part))
        return self.rules


def custom_rules(
    plain: Any, place: str, *, strict: bool = False, path: str = ""
) -> CustomRules:
    """Read a list of worker rules in short or long form; keys in any case."""
    reader = Reader(place, "custom", strict=strict)
    rules = []
    for index, item in enumerate(reader.items(plain, path)):
        rule = reader.rule(item, f"{path}[{index}]", origin=place)
        if rule is not None:
            rules.append(rule)
    return CustomRules(tuple(rules), tuple(reader.problems))


def custom_text(text: str, place: str) -> CustomRules:
    """Read a file of custom.d: strict, every key known and given once.

    An empty file is fine. Any error loses the file, see `CustomRules.checked`.
    """
    try:
        documents = _documents(text, unique=True)
    except NfdError as error:
        return CustomRules((), (Problem("error", place, "", str(error)),))
    return custom_rules(documents[0] if documents else None, place, strict=True)
