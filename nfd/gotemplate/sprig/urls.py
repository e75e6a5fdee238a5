"""Sprig's URLs (Go's `net/url` as judge) and slash-separated paths."""

import posixpath
import re
from typing import Any, NamedTuple

from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.functions import Function
from nfd.gotemplate.values import AnyMap, from_bytes, go_type, to_bytes


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

# URLs -------------------------------------------------------------------------

_ALWAYS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
_IN_PATH = frozenset((_ALWAYS + "$&+,/:;=@").encode())
_IN_FRAGMENT = frozenset((_ALWAYS + "$&+,/:;=?@!()*").encode())
_IN_USER = frozenset((_ALWAYS + "$&+,;=").encode())
_IN_HOST = frozenset((_ALWAYS + "!$&'()*+,;=:[]<>\"").encode())
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT = re.compile(r"(?::[0-9]*)?")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})?")
_PARTS = ("scheme", "host", "path", "query", "opaque", "fragment", "userinfo")


class Url(NamedTuple):
    """A URL in parts; all but `query` and `userinfo` are unescaped."""

    scheme: str = ""
    opaque: str = ""
    userinfo: str = ""
    host: str = ""
    path: str = ""
    query: str = ""
    fragment: str = ""

    @property
    def hostname(self) -> str:
        """The host without its port and brackets."""
        if self.host.startswith("["):
            return self.host[1:].partition("]")[0]
        return self.host.partition(":")[0]


def _escape(text: str, kept: frozenset[int]) -> str:
    return "".join(
        chr(byte) if byte in kept else f"%{byte:02X}" for byte in to_bytes(text)
    )


def _unescape(text: str) -> str:
    def byte(found: re.Match[bytes]) -> bytes:
        if found[1] is None:
            raise EvaluationError(f"bad escape in the URL part {text!r}")
        return bytes((int(found[1], 16),))

    return from_bytes(_ESCAPE.sub(byte, to_bytes(text)))


def parse_url(text: str) -> Url:
    """Cut a URL into its parts."""
    if any(letter < " " or letter == "\x7f" for letter in text):
        raise EvaluationError(f"the URL {text!r} has a control character")
    rest, _, fragment = text.partition("#")
    fragment = _unescape(fragment)
    if rest.startswith(":"):
        raise EvaluationError(f"the URL {text!r} has no scheme before its colon")
    found = _SCHEME.fullmatch(rest)
    scheme, rest = (found[1].lower(), found[2]) if found else ("", rest)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, opaque=rest, query=query, fragment=fragment)
        if ":" in rest.partition("/")[0]:
            raise EvaluationError(f"the first path segment of {text!r} has a colon")
    userinfo = host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        userinfo, host = _authority(authority)
        rest = slash + path
    path = _unescape(rest)
    return Url(scheme, "", userinfo, host, path, query, fragment)


def _authority(text: str) -> tuple[str, str]:
    user, at, host = text.rpartition("@")
    host = _host(host)
    if not at:
        return "", host
    if not _USER.fullmatch(user):
        raise EvaluationError(f"bad user {user!r} in a URL")
    name, colon, password = user.partition(":")
    shown = _escape(_unescape(name), _IN_USER)
    return shown + colon + _escape(_unescape(password), _IN_USER), host


def _host(text: str) -> str:
    address, bracket, port = text.rpartition("]")
    if text.startswith("["):
        if not bracket or not _PORT.fullmatch(port):
            raise EvaluationError(f"bad host {text!r} in a URL")
        address, percent, zone = address.partition("%25")
        if any(byte not in _IN_HOST for byte in to_bytes(address) if byte < 128):
            raise EvaluationError(f"bad host {text!r} in a URL")
        return address + ("%" if percent else "") + _unescape(zone) + bracket + port
    name, colon, port = text.partition(":")
    if not _PORT.fullmatch(colon + port):
        raise EvaluationError(f"bad port in the host {text!r} of a URL")
    for escape in re.finditer("%(..)", name):
        if escape[1][0] in "01234567" and escape[1] != "25":
            raise EvaluationError(f"bad escape in the host {text!r} of a URL")
    plain = re.sub("%..", "", name)
    if any(byte not in _IN_HOST for byte in to_bytes(plain) if byte < 128):
        raise EvaluationError(f"bad host {text!r} in a URL")
    return _unescape(name) + colon + port


def url_parse(text: str) -> AnyMap:
    """Return the parts of a URL as a map."""
    url = parse_url(text)
    parts = AnyMap(url._asdict())
    parts["hostname"] = url.hostname
    return parts


def url_join(parts: AnyMap | None) -> str:
    """Make a URL of the parts that `urlParse` gives."""
    given = {part: (parts or AnyMap()).get(part, "") for part in _PARTS}
    for part, value in given.items():
        if not isinstance(value, str):
            raise EvaluationError(
                f"expected a string as {part}, found {go_type(value)}"
            )
    userinfo = given["userinfo"]
    if userinfo:
        userinfo = parse_url(f"proto://{userinfo}@host").userinfo + "@"
    text = f"{given['scheme']}:" if given["scheme"] else ""
    text += given["opaque"] or _after_scheme(given, userinfo, is_first=not text)
    text += f"?{given['query']}" if given["query"] else ""
    fragment = given["fragment"]
    return text + (f"#{_escape(fragment, _IN_FRAGMENT)}" if fragment else "")


def _after_scheme(given: dict[str, Any], userinfo: str, *, is_first: bool) -> str:
    host, path = given["host"], given["path"]
    escaped = path if path == "*" else _escape(path, _IN_PATH)
    text = ""
    if (given["scheme"] or host or userinfo) and (host or path or userinfo):
        text = f"//{userinfo}{_escape(host, _IN_HOST)}"
    if host and path and path[0] != "/":
        text += "/"
    if is_first and not text and ":" in escaped.partition("/")[0]:
        text = "./"
    return text + escaped


FUNCTIONS = {
    **{name: Function(call, "string") for name, call in _PATHS.items()},
    **{
        f"os{name[0].upper()}{name[1:]}": Function(call, "string")
        for name, call in _PATHS.items()
    },
    "urlJoin": Function(url_join, "map"),
    "urlParse": Function(url_parse, "string"),
}
