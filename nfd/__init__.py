"""Node feature discovery: facts about a host as typed values, and labels of them.

`nfd.scan()` is the whole library in one call; the names below are loaded when they
are first used, so that `import nfd` costs nothing.
"""

from typing import TYPE_CHECKING, Any

from nfd._version import __version__ as __version__

if TYPE_CHECKING:
    from nfd.config.worker import WorkerConfig as WorkerConfig
    from nfd.discovery import Discovery as Discovery
    from nfd.discovery import SourceResult as SourceResult
    from nfd.errors import NfdError as NfdError
    from nfd.features import Features as Features
    from nfd.hostroot import HostRoot as HostRoot
    from nfd.labels import Label as Label
    from nfd.labels import Provenance as Provenance
    from nfd.labels import Refusal as Refusal
    from nfd.library import scan as scan
    from nfd.source import Source as Source

_HOMES = {
    "Discovery": "nfd.discovery",
    "Features": "nfd.features",
    "HostRoot": "nfd.hostroot",
    "Label": "nfd.labels",
    "NfdError": "nfd.errors",
    "Provenance": "nfd.labels",
    "Refusal": "nfd.labels",
    "Source": "nfd.source",
    "SourceResult": "nfd.discovery",
    "WorkerConfig": "nfd.config.worker",
    "scan": "nfd.library",
}


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        msg = f"module 'nfd' has no attribute {name!r}"
        raise AttributeError(msg) from None
    from importlib import import_module  # noqa: PLC0415 - `import nfd` stays cheap

    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
