"""Sprig's URLs and slash-separated paths."""

import posixpath
import re

from nfd.gotemplate.functions import Function


def base(path: str) -> str:
    """Return the last element of a path."""
    if not path:
        return "."
    return path.rstrip("/").rpartition("/")[2] or "/"


def clean(path: str) -> str:
    """Return the shortest path of the same meaning."""
    if not path:
        return "."
    cleaned = posixpath.normpath(path)
    return "/" if cleaned == "//" else re.sub("^//", "/", cleaned)


def directory(path: str) -> str:
    """Return all but the last element of a path, cleaned."""
    return clean(path[: path.rfind("/") + 1])


def extension(path: str) -> str:
    """Return what follows the last dot of the last element, with the dot."""
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :] if "." in name else ""


def is_absolute(path: str) -> bool:
    """Tell whether a path starts at the root."""
    return path.startswith("/")


_PATHS = {
    "base": base,
    "clean": clean,
    "dir": directory,
    "ext": extension,
    "isAbs": is_absolute,
}
FUNCTIONS = {
    **{name: Function(call, "string") for name, call in _PATHS.items()},
    **{
        f"os{name[0].upper()}{name[1:]}": Function(call, "string")
        for name, call in _PATHS.items()
    },
}
