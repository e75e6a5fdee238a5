"""Finds sources: the entry points of the group `nfd.sources`, loaded on demand.

The `entry_points.txt` of the installed distributions is read here, because importing
`importlib.metadata` costs as much as a whole scan. Format: the PyPA specification
"Entry points".
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from nfd.errors import NfdError
from nfd.source import Source

GROUP = "nfd.sources"
OWN_DISTRIBUTION = "node-feature-discovery"
NOTHING_INSTALLED = "no sources are installed; run pip install -e ."

_METADATA = (".dist-info", ".egg-info")
_SEPARATORS = re.compile(r"[-_.]+")
_ENTRY = re.compile(
    r"(?P<module>[\w.]+)\s*:\s*(?P<object>[\w.]+)\s*(?:\[[^\]]*\])?", re.ASCII
)


class PluginError(NfdError):
    """A source cannot be used; the text names its distribution."""


class Plugin(NamedTuple):
    """One registered source, not yet imported."""

    name: str
    target: str  # "package.module:Class"
    distribution: str  # normalised name
    version: str

    def load(self) -> Source[Any]:
        """Import and create the source.

        Raises:
            PluginError: It cannot be imported, is no Source, or has another name.

        """
        where = f"source {self.name!r} of distribution {self.distribution}"
        match = _ENTRY.fullmatch(self.target)
        if match is None:
            msg = f"{where}: {self.target!r} is not of the form module:Class"
            raise PluginError(msg)
        try:
            made: Any = import_module(match["module"])
            for part in match["object"].split("."):
                made = getattr(made, part)
            if isinstance(made, type):
                made = made()
        except Exception as error:  # a plug-in may raise anything
            msg = f"{where}: {type(error).__name__}: {error}"
            raise PluginError(msg) from error
        if not isinstance(made, Source):
            msg = f"{where}: {self.target} is not an nfd.source.Source"
            raise PluginError(msg)
        name = getattr(made, "name", None)
        if name != self.name:
            msg = f"{where}: the class calls itself {name!r}"
            raise PluginError(msg)
        return made


class Registry:
    """The registered sources by name; each is imported when first loaded."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        """Keep one plug-in a name: ours first, then by distribution name.

        The others are left out and named in `problems`.
        """
        self.plugins: dict[str, Plugin] = {}
        self.problems: dict[str, str] = {}
        self._loaded: dict[str, Source[Any] | PluginError] = {}
        for plugin in sorted(
            plugins,
            key=lambda p: (p.name, p.distribution != OWN_DISTRIBUTION, p.distribution),
        ):
            first = self.plugins.setdefault(plugin.name, plugin)
            if first is not plugin:
                self.problems[f"{plugin.name}@{plugin.distribution}"] = (
                    f"source {plugin.name!r} of distribution {plugin.distribution}: "
                    f"ignored, {first.distribution} registers the same name"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all registered sources, sorted."""
        return tuple(self.plugins)

    def load(self, name: str) -> Source[Any]:
        """Return the source called `name`, imported at the first call.

        Raises:
            PluginError: There is no such source, or it is broken.

        """
        if name not in self._loaded:
            try:
                plugin = self.plugins[name]
            except KeyError:
                msg = f"there is no source {name!r}"
                raise PluginError(msg) from None
            try:
                self._loaded[name] = plugin.load()
            except PluginError as error:
                self._loaded[name] = error
        found = self._loaded[name]
        if isinstance(found, PluginError):
            raise found
        return found

    def settings_class(self, name: str) -> type[Any] | None:
        """Return the settings class of a source; None when it cannot be loaded."""
        try:
            return self.load(name).settings_class
        except PluginError:
            return None

    def off_by_default(self, name: str) -> bool:
        """Tell whether a source runs only when it is named; broken ones do not hide."""
        try:
            return not self.load(name).on_by_default
        except PluginError:
            return False


def installed(path: Iterable[str] | None = None) -> Registry:
    """Return the sources that the distributions on `path` (sys.path) register.

    Raises:
        PluginError: None does.

    """
    registry = Registry(find_plugins(sys.path if path is None else path))
    if not registry.plugins:
        raise PluginError(NOTHING_INSTALLED)
    return registry


def find_plugins(path: Iterable[str]) -> Iterator[Plugin]:
    """Yield the registered sources; the first copy of a distribution counts."""
    seen: set[str] = set()
    for folder in path:
        try:
            entries = sorted(os.listdir(folder or "."))
        except OSError:  # zip archives and folders that do not exist
            continue
        for entry in entries:
            if not entry.endswith(_METADATA):
                continue
            name, _, version = entry.rpartition(".")[0].partition("-")
            distribution = _SEPARATORS.sub("-", name).lower()
            if distribution in seen:
                continue
            seen.add(distribution)
            text = _read(os.path.join(folder, entry, "entry_points.txt"))
            for key, target in entry_points(text).items():
                yield Plugin(key, target, distribution, version.partition("-py")[0])


def entry_points(text: str, group: str = GROUP) -> Mapping[str, str]:
    """Return one group of an `entry_points.txt`: name to target."""
    found: dict[str, str] = {}
    inside = False
    if f"[{group}]" not in text:
        return found
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[" and line[-1] == "]":
            inside = line[1:-1].strip() == group
        elif inside:
            name, equals, target = line.partition("=")
            if equals:
                found[name.strip()] = target.strip()
    return found


def _read(path: str) -> str:
    """Read a metadata file; distributions without entry points have none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(fd, 1 << 20).decode("utf-8", "replace")
    finally:
        os.close(fd)
