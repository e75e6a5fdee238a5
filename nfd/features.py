"""The frozen data model of what was discovered: flags, attributes and instances.

A *flag* feature is a set of names, an *attribute* feature a map of name to text, an
*instance* feature a list of such maps (spec section 0). All values are text. Keys
are `<source>.<feature>`; one key may be of several kinds at once.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, TypeAlias

import attrs

from nfd.errors import NfdError

Attributes: TypeAlias = Mapping[str, str]


@attrs.frozen(slots=True)
class Features:
    """All feature sets of a host or of one source; equal content compares equal.

    A key that is missing means that the set is *absent*; an empty set is there.
    `unknown` names the sets that could not be read, or not completely: key to
    reason. A key that is in `unknown` and in no other map is wholly unknown; with
    data beside it, the data is right but may lack elements.

    `notes` says for `nfd explain` what was left out while reading, "<key>/<element>"
    to reason; it is no part of the content: not compared, not written out.
    """

    flags: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    attributes: Mapping[str, Attributes] = attrs.field(factory=dict)
    instances: Mapping[str, tuple[Attributes, ...]] = attrs.field(factory=dict)
    unknown: Mapping[str, str] = attrs.field(factory=dict)
    notes: Mapping[str, str] = attrs.field(factory=dict, eq=False)

    @classmethod
    def of(
        cls,
        *,
        flags: Mapping[str, Iterable[str]] | None = None,
        attributes: Mapping[str, Attributes] | None = None,
        instances: Mapping[str, Iterable[Attributes]] | None = None,
        unknown: Mapping[str, str] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> Self:
        """Build from loose collections; each is copied into its frozen form."""
        return cls(
            {k: frozenset(v) for k, v in (flags or {}).items()},
            {k: dict(v) for k, v in (attributes or {}).items()},
            {k: tuple(dict(i) for i in v) for k, v in (instances or {}).items()},
            dict(unknown or {}),
            dict(notes or {}),
        )

    def keys(self) -> list[str]:
        """Return the keys of all sets that hold data, sorted."""
        return sorted({*self.flags, *self.attributes, *self.instances})

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: object) -> bool:
        return key in self.flags or key in self.attributes or key in self.instances

    def only(self, wanted: Iterable[str]) -> "Features":
        """Return the sets whose keys are in `wanted`, unknown ones included."""
        keep = frozenset(wanted)
        return Features(
            {k: v for k, v in self.flags.items() if k in keep},
            {k: v for k, v in self.attributes.items() if k in keep},
            {k: v for k, v in self.instances.items() if k in keep},
            {k: v for k, v in self.unknown.items() if k in keep},
            {k: v for k, v in self.notes.items() if k.partition("/")[0] in keep},
        )

    def to_plain(self) -> dict[str, Any]:
        """Return sorted plain lists and maps: `flags`, `attributes`, `instances`.

        Flags become lists of names; `unknown` is added only when there is any.
        """
        plain: dict[str, Any] = {
            "flags": {k: sorted(v) for k, v in sorted(self.flags.items())},
            "attributes": {
                k: dict(sorted(v.items())) for k, v in sorted(self.attributes.items())
            },
            "instances": {
                k: [dict(sorted(i.items())) for i in v]
                for k, v in sorted(self.instances.items())
            },
        }
        if self.unknown:
            plain["unknown"] = dict(sorted(self.unknown.items()))
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `to_plain` wrote.

        Raises:
            NfdError: A part has the wrong shape; the text names it.

        """
        return cls._read(plain, lambda v: v, lambda v: v, lambda v: v)

    def to_spec(self) -> dict[str, Any]:
        """Return `spec.features` of a NodeFeature (spec/worker.md section 3.3)."""
        return {
            "flags": {
                k: {"elements": {n: {} for n in sorted(v)}}
                for k, v in sorted(self.flags.items())
            },
            "attributes": {
                k: {"elements": dict(sorted(v.items()))}
                for k, v in sorted(self.attributes.items())
            },
            "instances": {
                k: {"elements": [{"attributes": dict(sorted(i.items()))} for i in v]}
                for k, v in sorted(self.instances.items())
            },
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        """Read `spec.features` of a NodeFeature; null and missing parts are empty.

        Raises:
            NfdError: A part has the wrong shape; the text names it.

        """
        return cls._read(
            spec,
            lambda v: v["elements"] or {},
            lambda v: v["elements"] or {},
            lambda v: [i["attributes"] or {} for i in v["elements"] or ()],
        )

    @classmethod
    def _read(cls, plain: Mapping[str, Any], flag: Any, attr: Any, inst: Any) -> Self:
        built: dict[str, dict[str, Any]] = {}
        shapes = (
            ("flags", lambda v: frozenset(_texts(flag(v)))),
            ("attributes", lambda v: _text_map(attr(v))),
            ("instances", lambda v: tuple(_text_map(i) for i in inst(v))),
            ("unknown", str),
        )
        for part, shape in shapes:
            sets = plain.get(part) or {}
            built[part] = {}
            try:
                items = sets.items()
            except AttributeError:
                msg = f"features.{part}: expected a map, got {_show(sets)}"
                raise NfdError(msg) from None
            for key, value in items:
                try:
                    built[part][str(key)] = shape(value)
                except (TypeError, KeyError, AttributeError, ValueError):
                    msg = f"features.{part}.{key}: unexpected {_show(value)}"
                    raise NfdError(msg) from None
        return cls(**built)


def merge(parts: Iterable[Features]) -> Features:
    """Merge feature sets: flags united, later attributes win, instances appended.

    Source: spec/worker.md section 6.7.
    """
    flags: dict[str, frozenset[str]] = {}
    attributes: dict[str, Attributes] = {}
    instances: dict[str, tuple[Attributes, ...]] = {}
    unknown: dict[str, str] = {}
    notes: dict[str, str] = {}
    for part in parts:
        for key, names in part.flags.items():
            flags[key] = flags[key] | names if key in flags else names
        for key, elements in part.attributes.items():
            attributes[key] = (
                {**attributes[key], **elements} if key in attributes else elements
            )
        for key, listed in part.instances.items():
            instances[key] = instances[key] + listed if key in instances else listed
        unknown.update(part.unknown)
        notes.update(part.notes)
    return Features(flags, attributes, instances, unknown, notes)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str) or not all(isinstance(v, str) for v in value):
        raise TypeError
    return list(value)


def _text_map(value: Any) -> dict[str, str]:
    for key, text in value.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise TypeError
    return dict(value)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
