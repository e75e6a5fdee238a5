"""What a template can call: the functions' types and their table by name."""

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from nfd.gotemplate.values import AnyMap


@attrs.frozen(slots=True)
class GoType:
    """A parameter's type; `python` is None where any value will do."""

    name: str
    python: type | None
    takes_nil: bool = False


TYPES = {
    kind.name: kind
    for kind in (
        GoType("any", None, takes_nil=True),
        GoType("bool", bool),
        GoType("float64", float),
        GoType("int", int),
        GoType("int64", int),
        GoType("map", AnyMap, takes_nil=True),
        GoType("string", str),
    )
}


class Function:
    """A function and the types of its parameters.

    Args:
        call: takes the arguments as converted; raises `EvaluationError`.
        types: words of `TYPES`, or a `GoType`; the last one may end in "..." for
            any number of arguments.
    """

    __slots__ = ("call", "params", "rest")

    def __init__(self, call: Callable[..., Any], *types: str | GoType) -> None:
        self.call = call
        self.rest: GoType | None = None
        if types and isinstance(types[-1], str) and types[-1].endswith("..."):
            self.rest = TYPES[types[-1].removesuffix("...")]
            types = types[:-1]
        self.params = tuple(
            TYPES[word] if isinstance(word, str) else word for word in types
        )

    def type_at(self, index: int) -> GoType:
        """Return the type of an argument; only for counts that `complaint` accepts."""
        if index < len(self.params):
            return self.params[index]
        assert self.rest is not None
        return self.rest

    def complaint(self, count: int) -> str | None:
        """Say what is wrong with a number of arguments, or return None."""
        wanted = len(self.params)
        if self.rest is not None and count < wanted:
            return f"expected at least {wanted} arguments, found {count}"
        if self.rest is None and count != wanted:
            return f"expected {wanted} arguments, found {count}"
        return None


_MODULES = (
    "builtins",
    "sprig.dates",
    "sprig.defaults",
    "sprig.dicts",
    "sprig.encoding",
    "sprig.json",
    "sprig.lists",
    "sprig.numbers",
    "sprig.regexes",
    "sprig.semver",
    "sprig.strings",
    "sprig.urls",
)


@functools.cache
def functions() -> Mapping[str, Function]:
    """Return every function by name; loads their modules on first use."""
    table: dict[str, Function] = {}
    for module in _MODULES:
        table.update(importlib.import_module(f"nfd.gotemplate.{module}").FUNCTIONS)
    return table


# A random text must not reach a label, but its length is the same on every run.
RANDOM_LENGTHS: Mapping[str, Function] = {
    "randAlpha": Function(lambda count: max(count, 0), "int"),
    "randAlphaNum": Function(lambda count: max(count, 0), "int"),
    "randAscii": Function(lambda count: max(count, 0), "int"),
    "randNumeric": Function(lambda count: max(count, 0), "int"),
    "uuidv4": Function(lambda: 36),
}

_RANDOM = "is random, and a label must be the same on every run"
_CLOCK = "reads the clock, and a label must be the same on every run"
_KEYS = "makes keys or secrets, which do not belong in labels"
_HOST = "reads the environment or network of the agent, which rules must not"

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "bcrypt",
            "htpasswd",
            "randAlpha",
            "randAlphaNum",
            "randAscii",
            "randBytes",
            "randInt",
            "randNumeric",
            "shuffle",
            "uuidv4",
        ),
        _RANDOM,
    ),
    **dict.fromkeys(("ago", "now"), _CLOCK),
    **dict.fromkeys(
        (
            "buildCustomCert",
            "decryptAES",
            "derivePassword",
            "encryptAES",
            "genCA",
            "genCAWithKey",
            "genPrivateKey",
            "genSelfSignedCert",
            "genSelfSignedCertWithKey",
            "genSignedCert",
            "genSignedCertWithKey",
        ),
        _KEYS,
    ),
    **dict.fromkeys(("env", "expandenv", "getHostByName"), _HOST),
}
