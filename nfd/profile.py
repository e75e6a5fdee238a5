"""Profiles: what programs that read node labels expect of them.

A profile describes one such program: which labels it needs, what happens without
them and what makes them. Profiles are files in `nfd/profiles`; their form is in
docs/check.md. A profile also holds the worker configuration that its program needs.
Source of the contracts: spec/gpu.md section 3.
"""

import fnmatch
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from nfd.config import goyaml
from nfd.config.decode import decode, find_key
from nfd.errors import NfdError, UsageError

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "profiles")
_ENDING = ".yaml"


@attrs.frozen(slots=True)
class Wanted:
    """One label that would do: a key, which may hold `*`, and perhaps a value."""

    key: str
    value: str | None = None

    @classmethod
    def of(cls, text: str) -> "Wanted":
        """Read `key` or `key=value`."""
        key, equals, value = text.partition("=")
        return cls(key, value if equals else None)

    def __str__(self) -> str:
        return self.key if self.value is None else f"{self.key}={self.value}"

    def found_in(self, labels: Mapping[str, str]) -> list[str]:
        """Return the labels that are wanted, as `key=value`, sorted."""
        if "*" in self.key:
            keys = fnmatch.filter(labels, self.key)
        else:
            keys = [self.key] if self.key in labels else []
        return sorted(
            f"{key}={labels[key]}"
            for key in keys
            if self.value is None or labels[key] == self.value
        )


@attrs.frozen(slots=True)
class Need:
    """What one part of a program reads: any of the labels is enough."""

    consumer: str
    any_of: tuple[Wanted, ...]
    without: str  # what happens without
    made_by: str
    optional: bool = False


@attrs.frozen(slots=True)
class Profile:
    """One program, the hardware that it is about, and what it needs."""

    name: str
    summary: str
    hardware: str  # in words, "" when it is about every node
    devices: tuple[Mapping[str, tuple[str, ...]], ...]  # of pci.device: any fits
    signs: tuple[Wanted, ...]  # labels that tell of the hardware
    needs: tuple[Need, ...]
    config: Mapping[str, Any]


def profile_names() -> tuple[str, ...]:
    """Return the names of all profiles, sorted."""
    return tuple(
        sorted(
            name.removesuffix(_ENDING)
            for name in os.listdir(FOLDER)
            if name.endswith(_ENDING)
        )
    )


def load_profiles(names: Iterable[str]) -> tuple[Profile, ...]:
    """Load profiles by name.

    Raises:
        UsageError: There is none of a name.

    """
    known = profile_names()
    loaded = []
    for name in names:
        if name not in known:
            raise UsageError(
                f"there is no profile {name!r}; there are {', '.join(known)}"
            )
        with open(os.path.join(FOLDER, name + _ENDING), encoding="utf-8") as file:
            loaded.append(parse_profile(file.read(), name))
    return tuple(loaded)


def parse_profile(text: str, name: str) -> Profile:
    """Read a profile.

    Raises:
        NfdError: It has not the form of one.

    """
    plain = goyaml.load(text)
    try:
        return Profile(
            name,
            plain["summary"],
            plain.get("hardware", ""),
            tuple(
                {key: tuple(values) for key, values in device.items()}
                for device in plain.get("devices", ())
            ),
            tuple(Wanted.of(sign) for sign in plain.get("signs", ())),
            tuple(
                Need(
                    need["consumer"],
                    tuple(Wanted.of(wanted) for wanted in need["anyOf"]),
                    need["without"],
                    need["madeBy"],
                    optional=bool(need.get("optional", False)),
                )
                for need in plain["needs"]
            ),
            plain.get("config", {}),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise NfdError(f"profile {name}: {type(error).__name__}: {error}") from None


def profile_config(profiles: Iterable[Profile]) -> dict[str, Any]:
    """Return the union of the profiles' configurations: lists hold each entry once."""
    merged: dict[str, Any] = {}
    for profile in profiles:
        merged = unite(merged, profile.config)
    return merged


def unite(base: Any, more: Any) -> Any:
    """Unite two trees: maps by key, lists with each entry once, else the later one."""
    if isinstance(base, Mapping) and isinstance(more, Mapping):
        united = dict(base)
        for key, value in more.items():
            united[key] = unite(base[key], value) if key in base else value
        return united
    if isinstance(base, list | tuple) and isinstance(more, list | tuple):
        return [*base, *(entry for entry in more if entry not in base)]
    return more


def add_profiles(
    sources: Mapping[str, Any],
    custom: Sequence[Any],
    profiles: Iterable[Profile],
    settings_class: Callable[[str], type[Any] | None],
) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Return settings by source and custom rules with what the profiles need.

    All that they had stays. `settings_class` tells the class of a source's settings,
    None where it is not installed or broken.

    Raises:
        ConfigError: A profile does not fit the settings of a source.

    """
    settings = dict(sources)
    rules: Any = list(custom)
    for name, tree in profile_config(profiles).get("sources", {}).items():
        if name == "custom":
            rules = unite(rules, tree)
            continue
        cls = settings_class(name)
        if cls is None:
            continue  # that is told elsewhere
        base = settings.get(name) or cls()
        united = {key: unite(_value(base, key), value) for key, value in tree.items()}
        if name == "pci":
            united |= _pci_formats(base, tree)
        settings[name] = decode(cls, united, f"sources.{name}", base=base)
    return settings, tuple(rules)


def _value(settings: Any, key: str) -> Any:
    """Return the value of a setting by its key in configuration files."""
    by_key = {f.metadata.get("key", ""): f.name for f in attrs.fields(type(settings))}
    found = find_key(key, by_key)
    return None if found is None else getattr(settings, by_key[found])


def _pci_formats(settings: Any, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Make the user's one format the first of several; alone it would win."""
    fields = _value(settings, "deviceLabelFields")
    if fields is None or "deviceLabelFormats" not in wanted:
        return {}
    formats = unite([",".join(fields)], wanted["deviceLabelFormats"])
    return {"deviceLabelFields": None, "deviceLabelFormats": formats}
