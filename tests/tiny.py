# ruff: noqa: ARG002 - sources may ignore what they are given
"""Tiny sources for tests of everything around sources."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs

from nfd.errors import NotPresentError
from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.registry import Plugin, Registry
from nfd.source import FeatureSpec, LabelSpec, LabelValue, Source, setting


@attrs.frozen(slots=True)
class TinySettings:
    names: tuple[str, ...] = setting("names", ("one",), "names to find")
    extra: Mapping[str, str] = setting("extra", {}, "labels to add")
    deep: bool = setting("nested.deep", default=False, help="a nested key")


class TinySource(Source[Any]):
    """Finds /etc/tiny and makes labels of its settings."""

    name = "tiny"
    settings_class: ClassVar[type[Any]] = TinySettings
    feature_specs = (FeatureSpec("tiny.found", ("flag", "attribute"), None, "tiny"),)
    label_specs = (LabelSpec("<name>", "each name"),)

    def discover(self, host: HostRoot, settings: TinySettings) -> Features:
        text = host.read_optional("/etc/tiny")
        if text is None:
            raise NotPresentError("no /etc/tiny")
        return Features.of(
            flags={f"{self.name}.found": settings.names},
            attributes={f"{self.name}.found": {"text": text}},
        )

    def labels(
        self, features: Features, settings: TinySettings
    ) -> Mapping[str, LabelValue | str]:
        made: dict[str, LabelValue | str] = {
            name: LabelValue("true", f"{self.name}.found", name, "named")
            for name in features.flags.get(f"{self.name}.found", ())
        }
        return made | dict(settings.extra) if made else {}

    def why_not(self, name: str, features: Features, settings: TinySettings) -> str:
        return f"{name} is not among the names"


class OffSource(TinySource):
    name = "off"
    on_by_default = False


class LoudSource(TinySource):
    """Overwrites labels of others: unprefixed and of higher priority."""

    name = "loud"
    label_priority = 20
    prefix_labels = False

    def discover(self, host: HostRoot, settings: TinySettings) -> Features:
        return Features.of(flags={"loud.found": settings.names})

    def labels(
        self, features: Features, settings: TinySettings
    ) -> Mapping[str, LabelValue | str]:
        return dict(settings.extra)


class BrokenSource(TinySource):
    name = "broken"
    feature_specs = (FeatureSpec("broken.found", ("flag",), None, "never found"),)

    def discover(self, host: HostRoot, settings: TinySettings) -> Features:
        raise RuntimeError("boom")


class ExitingSource(TinySource):
    name = "exiting"

    def discover(self, host: HostRoot, settings: TinySettings) -> Features:
        raise SystemExit(3)


class ForgingSource(TinySource):
    name = "forging"

    def discover(self, host: HostRoot, settings: TinySettings) -> Features:
        return Features.of(flags={"cpu.cpuid": ["AVX"]})


class BadLabelsSource(TinySource):
    name = "badlabels"

    def discover(self, host: HostRoot, settings: TinySettings) -> Features:
        return Features.of(flags={"badlabels.found": ["x"]})

    def labels(
        self, features: Features, settings: TinySettings
    ) -> Mapping[str, LabelValue | str]:
        raise ValueError("no labels today")


class HangingSource(TinySource):
    name = "hanging"

    def __init__(self) -> None:
        self.release = threading.Event()
        self.runs = 0

    def discover(self, host: HostRoot, settings: TinySettings) -> Features:
        self.runs += 1
        self.release.wait(20)
        return Features.of(flags={"hanging.found": ["late"]})


class NoSource:
    """Not a source at all."""

    name = "nosource"


def plugin(cls: type[Any], name: str = "", distribution: str = "tests") -> Plugin:
    target = f"{cls.__module__}:{cls.__qualname__}"
    return Plugin(name or cls.name, target, distribution, "1")


def registry(*classes: type[Any]) -> Registry:
    return Registry(plugin(cls) for cls in classes)


def host(folder: Path, files: Mapping[str, str] | None = None) -> HostRoot:
    """Make a captured host of a few files."""
    (folder / "sys").mkdir(parents=True, exist_ok=True)
    for path, text in (files or {}).items():
        file = folder / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return HostRoot.open(str(folder), live=False)
