"""YAML as sigs.k8s.io/yaml reads it: go-yaml v2 typing of plain scalars, then JSON.

YAML 1.1 with `y` and `n` as booleans, leading-zero octal, `0b40` as text, keys made
text. PyYAML parses; only the meaning of scalars is ours. Source: spec/worker.md
section 2 ("YAML typing").
"""

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from nfd.errors import ConfigError

MAX_DEPTH = 100  # nested lists and maps
MAX_NODES = 200_000  # aliases counted each time they are used

_BOOLS = {
    **dict.fromkeys(
        "y Y yes Yes YES on On ON true True TRUE".split(),  # noqa: SIM905
        True,
    ),
    **dict.fromkeys(
        "n N no No NO off Off OFF false False FALSE".split(),  # noqa: SIM905
        False,
    ),
}
_SPECIAL: dict[str, Any] = {
    **_BOOLS,
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INT = re.compile(
    r"[-+]?(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO](?P<oct>[0-7]+)"
    r"|0(?P<old>[0-7]+)|(?P<dec>0|[1-9][0-9]*))",
    re.ASCII,
)
_BASES = {"hex": 16, "bin": 2, "oct": 8, "old": 8, "dec": 10}
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII
)
_PLAIN_EXPONENTS = (-4, 6)  # strconv writes others as 1e+06
_PLAIN = "!plain"  # our tag of unquoted scalars without a tag of their own
_TAG = "tag:yaml.org,2002:"

_Parser: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class _Loader(_Parser):  # type: ignore[misc] # chosen at run time
    """Tells plain scalars from quoted ones and leaves their meaning to us."""


_Loader.add_implicit_resolver(_PLAIN, re.compile(""), [None])


def load(text: str) -> Any:
    """Parse the first document of `text` into plain data; empty text is None.

    Maps keep the last of equal keys and have text keys. Aliases and `<<` work.

    Raises:
        ConfigError: The text is no YAML; the message holds line and column.

    """
    return next(_documents(text, unique=False), None)


def load_all(text: str, *, unique: bool = False) -> list[Any]:
    """Parse all documents of `text`; with `unique`, equal keys in a map are an error.

    Raises:
        ConfigError: As `load`.

    """
    return list(_documents(text, unique=unique))


def _documents(text: str, *, unique: bool) -> Iterator[Any]:
    loader = None
    try:
        loader = _Loader(text)
        while loader.check_node():
            yield _Reader(unique=unique).value(loader.get_node())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ConfigError(f"{where}{error.problem or error.context}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise ConfigError(str(error).replace("\n", " ")) from None
    except RecursionError:
        raise ConfigError("lists and maps are nested too deeply") from None
    finally:
        if loader is not None:
            loader.dispose()


class _Reader:
    """Turns nodes into values and counts them, so that aliases cannot explode."""

    def __init__(self, *, unique: bool) -> None:
        self._left = MAX_NODES
        self._unique = unique

    def value(self, node: yaml.Node, depth: int = 0) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _at(node, f"more than {MAX_NODES} values, aliases expanded")
        if depth > MAX_DEPTH:
            raise _at(node, f"more than {MAX_DEPTH} nested lists and maps")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return self._map(node, depth)

    def _map(self, node: Any, depth: int) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _PLAIN and key_node.value == "<<":
                parts = (
                    value_node.value
                    if isinstance(value_node, yaml.SequenceNode)
                    else [value_node]
                )
                for part in reversed(parts):
                    if not isinstance(part, yaml.MappingNode):
                        raise _at(part, "map merge requires a map or a list of maps")
                    merged.update(self._map(part, depth + 1))
                continue
            key = self._key(key_node, depth)
            if self._unique and key in own:
                raise _at(key_node, f"key {key!r} is given twice")
            own[key] = self.value(value_node, depth + 1)
        return {**merged, **own}

    def _key(self, node: yaml.Node, depth: int) -> str:
        key = self.value(node, depth + 1)
        if key is None or isinstance(key, list | dict):
            raise _at(node, "a map key must be text, a number or a boolean")
        return as_text(key)


def as_text(value: str | float) -> str:
    """Write a scalar as the text that a text field receives.

    Booleans `true`/`false`, integers decimal, floats as Go's FormatFloat(f, 'g', -1,
    32): `1.10` becomes `1.1`, 1e10 `1e+10`.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return _float_text(value)


def _float_text(value: float) -> str:
    try:
        single = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        single = math.copysign(math.inf, value)
    if math.isnan(single):
        return "NaN"
    if math.isinf(single):
        return "+Inf" if single > 0 else "-Inf"
    for digits in range(9):
        text = f"{single:.{digits}e}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == single:
            break
    mantissa, _, exponent_text = text.partition("e")
    exponent = int(exponent_text)
    if not _PLAIN_EXPONENTS[0] <= exponent < _PLAIN_EXPONENTS[1]:
        return f"{mantissa}e{exponent:+03d}"
    decimals = max(len(mantissa.lstrip("-").replace(".", "")) - 1 - exponent, 0)
    return f"{single:.{decimals}f}"


def _scalar(node: yaml.ScalarNode) -> Any:
    text = node.value
    tag = node.tag
    if tag == _PLAIN:
        return resolve(text)
    if not tag.startswith(_TAG):
        return text
    kind = tag.removeprefix(_TAG)
    if kind == "binary":
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode(
                "utf-8", "replace"
            )
        except (binascii.Error, ValueError):
            raise _at(node, "!!binary value contains invalid base64 data") from None
    fits = _EXPLICIT.get(kind)
    if fits is None:
        return text
    value = resolve(text)
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not fits(value):
        raise _at(node, f"cannot decode {text!r} as a !!{kind}")
    return value


_EXPLICIT: dict[str, Callable[[Any], bool]] = {
    "int": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "float": lambda v: isinstance(v, float),
    "bool": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
}


def resolve(text: str) -> Any:
    """Give a plain scalar its value: None, bool, int, float or the text itself.

    Dates stay text, as they do on their way into JSON.
    """
    if text in _SPECIAL:
        return _SPECIAL[text]
    first = text[0]
    if first == ".":
        return _float(text, text)
    if first not in "+-0123456789":
        return text
    plain = text.replace("_", "")
    match = _INT.fullmatch(plain)
    if match:
        kind = str(match.lastgroup)
        number = int(match[kind], _BASES[kind])
        number = -number if plain[0] == "-" else number
        if -(1 << 63) <= number < 1 << 64 and not (
            plain[0] == "+" and number >= 1 << 63  # ParseUint takes no sign
        ):
            return number
    return _float(plain, text)


def _float(plain: str, text: str) -> Any:
    if not _FLOAT.fullmatch(plain):
        return text
    value = float(plain)
    return text if math.isinf(value) else value  # out of range is an error in Go


def _at(node: yaml.Node, problem: str) -> ConfigError:
    mark = node.start_mark
    return ConfigError(f"line {mark.line + 1}, column {mark.column + 1}: {problem}")
