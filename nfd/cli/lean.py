"""Imports attrs in two thirds of the time, for commands that end soon.

Instructions of `import attrs`, in millions, of which bare Python and `typing` are 82:
187 as it is, 132 this way.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # importlib.abc is not imported by anything else

# What attrs imports and does not use unless asked to, and names that it does use.
DEFERRED: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "attr.validators": {},  # ten classes of its own, and inspect.signature for one
    "attrs.validators": {},
    "copy": {},  # for base classes with fields
    "inspect": {},  # for cached_property and pre-init hooks; brings ast and dis
    "platform": {"python_implementation": lambda: "CPython"},  # ten patterns
    "tokenize": {},  # imported by linecache to read files
}

_loading = RLock()


class Deferred(ModuleType):
    """A module whose code runs when somebody asks for a name that it lacks.

    It is the module itself, not a stand-in: whoever has it sees it filled. (The
    standard library's LazyLoader runs the code at the second import already.)
    """

    def __getattr__(self, name: str) -> Any:
        with _loading:
            loader: Loader | None = self.__dict__.pop("_deferred", None)
            if loader is not None:
                try:
                    loader.exec_module(self)
                except BaseException:
                    self.__dict__["_deferred"] = loader
                    raise
                self.__class__ = ModuleType  # type: ignore[assignment] # costs nothing from now on
        return ModuleType.__getattribute__(self, name)


class _Loader(Loader):
    """Creates a module and leaves its code to be run by another loader."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Deferred(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        names = DEFERRED[module.__name__]
        module.__dict__.update(names, _deferred=self._loader)


class _Finder:
    """Finds the modules of `DEFERRED` where the usual finder does."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if name not in DEFERRED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def import_attrs() -> None:
    """Import attrs, and let what it rarely needs wait until it is used."""
    if "attr" in sys.modules or sys.implementation.name != "cpython":
        return
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        import attrs  # noqa: F401, PLC0415 - what this function is for
    finally:
        sys.meta_path.remove(finder)
