"""NodeFeatures of a fleet, held small: equal feature sets once, all as packed bytes.

A fleet's hosts are never equal as a whole, but their feature sets are: thousands of
nodes share a few `cpu.model`, `kernel.config` or `pci.device` sets. Each set is kept
once, packed, with a number; the numbers are what rule results are kept by. Not
thread-safe: its owner serialises access.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from hashlib import blake2b
from sys import intern
from typing import Any, Generic, TypeVar

import attrs

from nfd.errors import NfdError
from nfd.features import Features
from nfd.master import packing
from nfd.master.guard import ObjectKey
from nfd.rules.sets import Sets

T = TypeVar("T")

_PACK_FROM = 160  # bytes; shorter texts do not get smaller
_PARSED = 256  # parsed sets kept at hand


@attrs.frozen(slots=True)
class StoredFeature:
    """One NodeFeature: its node, and its content as numbers in a `Pool`.

    `sets` holds (lower-case key, number of the set) pairs, sorted.
    """

    key: ObjectKey
    node: str
    uid: str
    sets: tuple[tuple[str, int], ...]
    labels: int
    about: int  # trimmed sets, stale sources, owners: what else makes a difference
    created: str = ""  # RFC 3339
    published: str = ""  # time of the newest write known, RFC 3339
    version: str = ""  # resourceVersion

    def same_content(self, other: "StoredFeature") -> bool:
        """Tell whether nothing changed that could change a node."""
        mine = (self.node, self.sets, self.labels, self.about)
        return mine == (other.node, other.sets, other.labels, other.about)


@attrs.define(slots=True)
class _Entry:
    data: bytes
    packed: bool
    digest: bytes
    users: int = 0


class Pool:
    """Numbers plain values and keeps each once while somebody uses it.

    The API server sends maps sorted, so that equal values have equal bytes; where
    they have not, they are merely kept twice.
    """

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
        self._numbers: dict[bytes, int] = {}
        self._next = 0
        self._parsed: OrderedDict[int, Any] = OrderedDict()

    def add(self, value: Any, check: Callable[[Any], None] | None = None) -> int:
        """Take a use of a plain value; return its number.

        `check` looks at values that were not known, and raises what it finds.
        """
        data = packing.dump(value)
        digest = blake2b(data, digest_size=16).digest()
        number = self._numbers.get(digest)
        if number is None:
            if check is not None:
                check(value)
            number = self._next
            self._next += 1
            self._numbers[digest] = number
            packed = len(data) >= _PACK_FROM
            if packed:
                data = packing.pack(data)
            self._entries[number] = _Entry(data, packed, digest)
        self._entries[number].users += 1
        return number

    def release(self, number: int) -> None:
        """Give a use back; the text goes with its last user."""
        entry = self._entries[number]
        entry.users -= 1
        if not entry.users:
            del self._entries[number]
            del self._numbers[entry.digest]
            self._parsed.pop(number, None)

    def get(self, number: int) -> Any:
        """Return the value; callers must not change it."""
        if number in self._parsed:
            self._parsed.move_to_end(number)
            return self._parsed[number]
        entry = self._entries[number]
        data = packing.unpack(entry.data) if entry.packed else entry.data
        value = packing.load(data)
        self._parsed[number] = value
        if len(self._parsed) > _PARSED:
            self._parsed.popitem(last=False)
        return value

    def forget_parsed(self) -> None:
        """Drop the parsed values, after a burst of work."""
        self._parsed.clear()

    @property
    def size(self) -> int:
        """Bytes of text held."""
        return sum(len(e.data) for e in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


_KINDS = ("flags", "attributes", "instances")


def _by_key(features: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Sort `spec.features` by lower-case key: the elements of each kind, or None.

    Flags become a tuple of names: their empty maps are slow to unpack.
    """
    plain: dict[str, list[Any]] = {}
    for index, kind in enumerate(_KINDS):
        for key, value in (features.get(kind) or {}).items():
            parts = plain.setdefault(key.lower(), [None, None, None])
            elements: Any = value["elements"] or ([] if kind == "instances" else {})
            if kind == "flags" and type(elements) is dict:
                elements = tuple(elements)
            if parts[index] is None:
                parts[index] = elements
            elif kind == "attributes":  # the same key in capitals
                parts[index] = {**parts[index], **elements}
            else:
                parts[index] = parts[index] + elements
    return dict(sorted(plain.items()))


def _check(parts: list[Any]) -> None:
    """Check the shape of one set; where in doubt by reading it as features are read."""
    flags, attributes, instances = parts
    if (
        (flags is None or type(flags) is tuple)
        and (attributes is None or _is_text_map(attributes))
        and (instances is None or _are_instances(instances))
    ):
        return
    if type(flags) is tuple:
        flags = {name: {} for name in flags}
    Features.from_spec(
        {
            kind: {"": {"elements": elements}}
            for kind, elements in zip(
                _KINDS, (flags, attributes, instances), strict=True
            )
            if elements is not None
        }
    )


def _is_text_map(value: Any) -> bool:
    return type(value) is dict and {*map(type, value.values())} <= {str}


def _are_instances(value: Any) -> bool:
    return type(value) is list and all(
        type(each) is dict and _is_text_map(each.get("attributes")) for each in value
    )


class FeatureStore:
    """All NodeFeatures, by object and by node."""

    def __init__(self) -> None:
        self.pool = Pool()
        self._objects: dict[ObjectKey, StoredFeature] = {}
        self._nodes: dict[str, tuple[ObjectKey, ...]] = {}

    def put(  # noqa: PLR0913 - the parts of an object
        self,
        key: ObjectKey,
        node: str,
        *,
        uid: str,
        features: Mapping[str, Any],
        labels: Mapping[str, str],
        about: Mapping[str, Any],
        created: str = "",
        published: str = "",
        version: str = "",
    ) -> tuple[StoredFeature, StoredFeature | None]:
        """Store an object; return it and what was stored before.

        `features` is `spec.features` as on the wire.

        Raises:
            NfdError: A part has the wrong shape; then nothing has changed.

        """
        plain = _by_key(features)
        add = self.pool.add
        numbers: list[int] = []
        try:
            for name in plain:
                numbers.append(add(plain[name], _check))  # noqa: PERF401 - see below
        except NfdError:
            for number in numbers:
                self.pool.release(number)
            raise
        stored = StoredFeature(
            key,
            node,
            uid,
            tuple(zip(map(intern, plain), numbers, strict=True)),
            add(dict(labels)),
            add(dict(about)),
            created,
            published,
            version,
        )
        before = self._objects.get(key)
        self._unlink(before)
        self._objects[key] = stored
        self._nodes[node] = tuple(sorted((*self._nodes.get(node, ()), key)))
        return stored, before

    def drop(self, key: ObjectKey) -> StoredFeature | None:
        """Remove an object; return what was stored."""
        before = self._objects.pop(key, None)
        self._unlink(before)
        return before

    def _unlink(self, stored: StoredFeature | None) -> None:
        if stored is None:
            return
        left = tuple(k for k in self._nodes.get(stored.node, ()) if k != stored.key)
        if left:
            self._nodes[stored.node] = left
        else:
            self._nodes.pop(stored.node, None)
        for _, number in stored.sets:
            self.pool.release(number)
        self.pool.release(stored.labels)
        self.pool.release(stored.about)

    def get(self, key: ObjectKey) -> StoredFeature | None:
        """Return one object."""
        return self._objects.get(key)

    def of_node(self, node: str) -> list[StoredFeature]:
        """Return the objects that speak for a node, sorted by namespace and name."""
        return [self._objects[k] for k in self._nodes.get(node, ())]

    def labels_of(self, stored: StoredFeature) -> Mapping[str, str]:
        """Return the labels that an object publishes."""
        labels: Mapping[str, str] = self.pool.get(stored.labels)
        return labels

    def about(self, stored: StoredFeature) -> Mapping[str, Any]:
        """Return what else was stored with an object."""
        about: Mapping[str, Any] = self.pool.get(stored.about)
        return about

    @property
    def nodes(self) -> Mapping[str, tuple[ObjectKey, ...]]:
        """The nodes that somebody speaks for."""
        return self._nodes

    @property
    def objects(self) -> Mapping[ObjectKey, StoredFeature]:
        """All objects."""
        return self._objects

    def __len__(self) -> int:
        return len(self._objects)


class MergedSets:
    """The sets of one node's objects, merged on demand and in the order given.

    Flags are united, later attributes win, instances are appended
    (spec/worker.md section 6.7).
    """

    def __init__(self, pool: Pool, objects: list[StoredFeature]) -> None:
        self._pool = pool
        self._numbers: dict[str, tuple[int, ...]] = {}
        for stored in objects:
            for key, number in stored.sets:
                self._numbers[key] = (*self._numbers.get(key, ()), number)
        self._merged: dict[str, Mapping[str, Any]] = {}

    def identity(self, keys: tuple[str, ...]) -> Hashable:
        """Return what results that depend on these sets can be kept by."""
        return tuple(self._numbers.get(key) for key in keys)

    def part(self, key: str, kind: str) -> Any:
        """Return the `f`, `a` or `i` part of a set, None where it is absent."""
        merged = self._merged.get(key)
        if merged is None:
            merged = self._merged[key] = self._merge(self._numbers[key])
        return merged.get(kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def _merge(self, numbers: tuple[int, ...]) -> Mapping[str, Any]:
        merged: dict[str, Any] = {}
        for flags, attributes, instances in map(self._pool.get, numbers):
            if flags is not None:
                merged["f"] = merged.get("f", frozenset()).union(flags)
            if attributes is not None:
                before = merged.get("a")
                merged["a"] = {**before, **attributes} if before else attributes
            if instances is not None:
                found = (i["attributes"] or {} for i in instances)
                merged["i"] = (*merged.get("i", ()), *found)
        return merged

    def sets(self, unknown: Mapping[str, str], settled: Mapping[str, Any]) -> Sets:
        """Return the sets in the form that rules read; each is parsed when asked."""
        return Sets(
            LazyKind(self, "f"),
            LazyKind(self, "a"),
            LazyKind(self, "i"),
            unknown,
            settled,
        )


class LazyKind(Mapping[str, T], Generic[T]):
    """One kind of feature of a `MergedSets`, as a mapping."""

    def __init__(self, merged: MergedSets, kind: str) -> None:
        self._sets = merged
        self._kind = kind

    def __getitem__(self, key: str) -> T:
        value: T | None = (
            self._sets.part(key, self._kind) if key in self._sets else None
        )
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[str]:
        return (k for k in self._sets if self._sets.part(k, self._kind) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
