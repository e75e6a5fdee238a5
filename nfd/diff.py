"""Compares two discoveries: labels, features and what was known of them. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import attrs

from nfd.discovery import Discovery
from nfd.errors import NfdError
from nfd.features import Features

_IDENTITIES = ("address", "name", "uuid", "serial")  # attributes that tell instances

Kind = Literal["added", "removed", "changed"]


@attrs.frozen(slots=True)
class Snapshot:
    """What is compared; `features` is None when a saved scan has none."""

    labels: Mapping[str, str]
    features: Features | None
    failed: Mapping[str, str] = attrs.field(factory=dict)  # source: error

    @classmethod
    def of(cls, found: Discovery) -> "Snapshot":
        """Take what a discovery found."""
        return cls(
            {key: label.value for key, label in found.labels.items()},
            found.features,
            {r.name: r.error for r in found.failed},
        )

    @classmethod
    def from_plain(cls, plain: Any) -> "Snapshot":
        """Read what `nfd scan -o json` wrote.

        Raises:
            NfdError: The data has another shape.

        """
        if not isinstance(plain, Mapping) or not isinstance(
            plain.get("labels"), Mapping
        ):
            raise NfdError("not the output of 'nfd scan -o json': no map 'labels'")
        sources = plain.get("sources")
        sources = sources if isinstance(sources, Mapping) else {}
        raw = plain.get("features")
        if raw is not None and not isinstance(raw, Mapping):
            raise NfdError("not the output of 'nfd scan -o json': features is no map")
        return cls(
            {str(key): str(value) for key, value in plain["labels"].items()},
            None if raw is None else Features.from_plain(raw),
            {
                str(name): str(result.get("error", ""))
                for name, result in sources.items()
                if isinstance(result, Mapping) and result.get("status") == "failed"
            },
        )


@attrs.frozen(slots=True)
class Change:
    """One difference; `before` and `after` are None where there is nothing."""

    subject: Literal["label", "feature"]
    key: str
    before: str | None
    after: str | None

    @property
    def kind(self) -> Kind:
        """Say what happened to the key."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"

    def __str__(self) -> str:
        """Write one line: `+`, `-` or `~`, subject, key and values."""
        if self.before is None:
            return f"+ {self.subject} {self.key}{_equals(self.after)}"
        if self.after is None:
            return f"- {self.subject} {self.key}{_equals(self.before)}"
        return f"~ {self.subject} {self.key}: {self.before!r} -> {self.after!r}"


@attrs.frozen(slots=True)
class Difference:
    """All changes in order, and warnings about what could not be compared."""

    changes: tuple[Change, ...]
    warnings: tuple[str, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return plain data: labels and features, each added, removed, changed."""
        plain: dict[str, Any] = {
            subject: {"added": {}, "removed": {}, "changed": {}}
            for subject in ("labels", "features")
        }
        for change in self.changes:
            group = plain[change.subject + "s"][change.kind]
            if change.kind == "changed":
                group[change.key] = [change.before, change.after]
            else:
                group[change.key] = (
                    change.before if change.after is None else change.after
                )
        plain["warnings"] = list(self.warnings)
        return plain


def compare(before: Snapshot, after: Snapshot) -> Difference:
    """Compare two snapshots, labels first, keys in order."""
    warnings = []
    for side, snapshot in (("first", before), ("second", after)):
        warnings += [
            f"source {name} failed in the {side}: {error}"
            for name, error in sorted(snapshot.failed.items())
        ]
        if snapshot.features is not None:
            warnings += [
                f"{key} is not, or not completely, known in the {side}: {reason}"
                for key, reason in sorted(snapshot.features.unknown.items())
                if key.partition(".")[0] not in snapshot.failed
            ]
    changes = list(_changes("label", before.labels, after.labels))
    if before.features is not None and after.features is not None:
        changes += _changes("feature", _flat(before.features), _flat(after.features))
    elif (before.features is None) != (after.features is None):
        warnings.append("features are not compared: one side was saved without them")
    return Difference(tuple(changes), tuple(warnings))


def _changes(
    subject: Literal["label", "feature"],
    before: Mapping[str, str],
    after: Mapping[str, str],
) -> Iterator[Change]:
    for key in sorted({*before, *after}):
        change = Change(subject, key, before.get(key), after.get(key))
        if change.before != change.after:
            yield change


def _flat(features: Features) -> dict[str, str]:
    """Give every element a key of its own: `kernel.version.full`, `pci.device[x].y`."""
    flat: dict[str, str] = {}
    for key, names in features.flags.items():
        flat[key] = ""
        flat.update(dict.fromkeys((f"{key} {name}" for name in names), ""))
    for key, elements in features.attributes.items():
        flat[key] = ""
        flat.update((f"{key}.{name}", value) for name, value in elements.items())
    for key, instances in features.instances.items():
        flat[key] = ""
        identity = _identity(instances)
        seen: Counter[str] = Counter()
        for instance in instances:
            if identity:
                shown = instance[identity]
                flat.update(
                    (f"{key}[{shown}].{name}", value)
                    for name, value in instance.items()
                )
                continue
            shown = " ".join(f"{n}={v}" for n, v in sorted(instance.items()))
            seen[shown] += 1
            count = f" #{seen[shown]}" if seen[shown] > 1 else ""
            flat[f"{key}[{shown}]{count}"] = ""
    return flat


def _identity(instances: tuple[Mapping[str, str], ...]) -> str:
    """Find the attribute that every instance has with a value of its own."""
    for name in _IDENTITIES:
        values = {i[name] for i in instances if name in i}
        if len(values) == len(instances):
            return name
    return ""


def _equals(value: str | None) -> str:
    return f"={value}" if value else ""
