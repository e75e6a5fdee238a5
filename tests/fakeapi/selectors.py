"""Label and field selectors."""

import re
from collections.abc import Callable
from typing import Any

from nfd.kube.resources import JsonObject
from tests.fakeapi.refusals import bad_request

Selector = Callable[[JsonObject], bool]

_FIELDS = {
    "involvedObject.name",
    "involvedObject.uid",
    "metadata.name",
    "metadata.namespace",
    "reason",
    "spec.nodeName",
}
_SET = re.compile(r"(\S+)\s+(in|notin)\s+\(([^)]*)\)")


def selector(labels: str, fields: str) -> Selector:
    """What both selectors let through; an empty one lets everything through."""
    terms = [_label_term(t) for t in _split(labels)]
    terms += [_field_term(t) for t in _split(fields)]
    return lambda obj: all(term(obj) for term in terms)


def _split(text: str) -> list[str]:
    return [t.strip() for t in re.split(r",(?![^(]*\))", text) if t.strip()]


def _label_term(term: str) -> Selector:
    if found := _SET.fullmatch(term):
        key, operator, values = found.groups()
        listed = {v.strip() for v in values.split(",")}
        wanted = operator == "in"
        return lambda obj: (_label(obj, key) in listed) == wanted
    if "!=" in term:
        key, value = term.split("!=", 1)
        return lambda obj: _label(obj, key.strip()) != value.strip()
    if "=" in term:
        key, value = re.split("==?", term, maxsplit=1)
        return lambda obj: _label(obj, key.strip()) == value.strip()
    if term.startswith("!"):
        return lambda obj: _label(obj, term[1:]) is None
    return lambda obj: _label(obj, term) is not None


def _label(obj: JsonObject, key: str) -> str | None:
    labels = obj["metadata"].get("labels") or {}
    value = labels.get(key)
    return None if value is None else str(value)


def _field_term(term: str) -> Selector:
    path, value = re.split("!=|==?", term, maxsplit=1)
    if path not in _FIELDS:
        raise bad_request(f"field label not supported: {path}")
    wanted = "!=" not in term
    return lambda obj: (_field(obj, path) == value) == wanted


def _field(obj: JsonObject, path: str) -> Any:
    for part in path.split("."):
        obj = obj.get(part) or {}
    return obj or ""
