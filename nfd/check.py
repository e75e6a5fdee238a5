"""Checks a node's labels against what programs that read node labels expect.

A *profile* describes one such program: which labels it needs, what happens without
them and what makes them. Profiles are files in `nfd/profiles`; their form is in
docs/check.md. A profile also holds the worker configuration that its program needs.
Source of the contracts: spec/gpu.md section 3.
"""

import fnmatch
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import attrs

from nfd.config import goyaml
from nfd.config.decode import decode, find_key
from nfd.config.worker import SettingsClasses, WorkerConfig
from nfd.errors import NfdError, UsageError
from nfd.features import Features

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "profiles")
_ENDING = ".yaml"

Verdict: TypeAlias = Literal["ok", "broken", "not needed"]


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


@attrs.frozen(slots=True)
class NeedResult:
    """How a need is met: the labels that are there, none when it is missing."""

    need: Need
    present: tuple[str, ...]


@attrs.frozen(slots=True)
class ProfileResult:
    """How a program fares on a node."""

    profile: Profile
    verdict: Verdict
    needs: tuple[NeedResult, ...]

    @property
    def missing(self) -> tuple[NeedResult, ...]:
        """The needs that are not met and not optional."""
        return tuple(n for n in self.needs if not n.present and not n.need.optional)

    def to_plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "profile": self.profile.name,
            "verdict": self.verdict,
            "needs": [
                {
                    "consumer": result.need.consumer,
                    "anyOf": [str(wanted) for wanted in result.need.any_of],
                    "present": list(result.present),
                    "optional": result.need.optional,
                    "without": result.need.without,
                    "madeBy": result.need.made_by,
                }
                for result in self.needs
            ],
        }


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


def check(
    profile: Profile, labels: Mapping[str, str], features: Features | None = None
) -> ProfileResult:
    """Say how a program fares with these labels; pure.

    With the features of a host its devices tell whether the program is needed there,
    else the labels do, so that a Node without any sign counts as one without need.
    """
    results = tuple(
        NeedResult(
            need, tuple(text for w in need.any_of for text in w.found_in(labels))
        )
        for need in profile.needs
    )
    verdict: Verdict = "ok"
    if not _concerns(profile, labels, features):
        verdict = "not needed"
    elif any(not r.present and not r.need.optional for r in results):
        verdict = "broken"
    return ProfileResult(profile, verdict, results)


def _concerns(
    profile: Profile, labels: Mapping[str, str], features: Features | None
) -> bool:
    if not profile.hardware:
        return True
    if features is not None and "pci.device" in features:
        return any(
            all(
                device.get(key, "").startswith(values) for key, values in wanted.items()
            )
            for device in features.instances["pci.device"]
            for wanted in profile.devices
        )
    return any(sign.found_in(labels) for sign in profile.signs)


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


def with_profiles(
    config: WorkerConfig | None, profiles: Iterable[Profile], classes: SettingsClasses
) -> WorkerConfig:
    """Return a configuration that has what the profiles need, and all that it had.

    Raises:
        ConfigError: A profile does not fit the settings of a source.

    """
    config = config or WorkerConfig()
    wanted = profile_config(profiles).get("sources", {})
    sources = dict(config.sources)
    custom = list(config.custom)
    for name, tree in wanted.items():
        if name == "custom":
            custom = unite(custom, tree)
            continue
        cls = classes.settings_class(name)
        if cls is None:
            continue  # not installed, or broken: that is told elsewhere
        base = sources.get(name) or cls()
        united = {key: unite(_value(base, key), value) for key, value in tree.items()}
        if name == "pci":
            united |= _pci_formats(base, tree)
        sources[name] = decode(cls, united, f"sources.{name}", base=base)
    return attrs.evolve(config, sources=sources, custom=tuple(custom))


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
