"""Sprig's semantic versions and constraints (Masterminds/semver v3.3.0 as judge)."""

import re
from collections.abc import Callable
from itertools import zip_longest
from typing import Any, ClassVar, NamedTuple

import attrs

from nfd import regex
from nfd.gotemplate.errors import EvaluationError
from nfd.gotemplate.functions import Function, GoType
from nfd.gotemplate.values import Uint64

_LONGEST = 1000  # characters of a version or constraint
_UINT64_MAX = (1 << 64) - 1
_TAIL = (
    r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?"
)
_VERSION = re.compile(rf"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?{_TAIL}", re.ASCII)

# One term of a constraint; RE2 runs these, since they backtrack badly elsewhere.
_NUMBERS = r"v?([0-9xX*|]+)(\.[0-9xX*|]+)?(\.[0-9xX*|]+)?"
_OPERATORS = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^"
_TERM = rf"({_OPERATORS})\s*({_NUMBERS}{_TAIL})"
_WHOLE_TERM = rf"^\s*{_TERM}\s*$"
_WHOLE_GROUP = rf"^(\s*{_TERM}\s*)((?:\s+|,\s*){_TERM}\s*)*$"
_RANGE = rf"\s*({_NUMBERS}{_TAIL})\s+-\s+({_NUMBERS}{_TAIL})\s*"
_WILDCARDS = ("", "x", "X", "*")


@attrs.frozen(slots=True, eq=False)
class Version:
    """A semantic version; a part that was not written is 0."""

    GO_TYPE: ClassVar[str] = "*semver.Version"
    GO_KIND: ClassVar[str] = "ptr"
    METHODS: ClassVar[dict[str, Function]]

    major: int
    minor: int
    patch: int
    prerelease: str
    metadata: str
    original: str

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        text += f"-{self.prerelease}" if self.prerelease else ""
        return text + (f"+{self.metadata}" if self.metadata else "")

    def json_text(self) -> str:
        """Return how JSON shows a version."""
        return str(self)

    def compare(self, other: "Version") -> int:
        """Return -1, 0 or 1; metadata does not count."""
        mine = (self.major, self.minor, self.patch)
        theirs = (other.major, other.minor, other.patch)
        if mine != theirs:
            return 1 if mine > theirs else -1
        return _compare_prerelease(self.prerelease, other.prerelease)


def _compare_prerelease(left: str, right: str) -> int:
    if left == right:
        return 0
    if not left or not right:
        return -1 if left else 1
    for mine, theirs in zip_longest(left.split("."), right.split("."), fillvalue=""):
        if mine != theirs:
            return _compare_part(mine, theirs)
    return 0


def _compare_part(left: str, right: str) -> int:
    if not left or not right:
        return 1 if left else -1
    if left.isdecimal() != right.isdecimal():
        return -1 if left.isdecimal() else 1
    if left.isdecimal():
        return 1 if int(left) > int(right) else -1
    return 1 if left > right else -1


def parse(text: str) -> Version:
    """Read a version of one to three numbers, with a prerelease and metadata."""
    found = _VERSION.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise EvaluationError(f"{text[:50]!r} is not a semantic version")
    numbers = [int(found[group] or 0) for group in (1, 2, 3)]
    if max(numbers) > _UINT64_MAX:
        raise EvaluationError(f"a number of the version {text!r} is too large")
    prerelease = found[5] or ""
    for part in prerelease.split("."):
        if part.isdecimal() and len(part) > 1 and part[0] == "0":
            raise EvaluationError(f"{part!r} of the version {text!r} starts with 0")
    major, minor, patch = numbers
    return Version(major, minor, patch, prerelease, found[8] or "", text)


class Term(NamedTuple):
    """One comparison of a constraint, and which numbers it leaves open."""

    operator: str
    version: Version
    any_version: bool = False  # a number is left open, as in 1.2.x or 1
    any_minor: bool = False
    any_patch: bool = False


def parse_constraint(text: str) -> list[list[Term]]:
    """Read a constraint: alternatives (`||`) of terms that must all hold."""
    if len(text) > _LONGEST:
        raise EvaluationError(f"the constraint {text[:20]!r}... is too long")
    text = regex.replace_surrogates(text)
    for found in regex.compile(_RANGE).matches(text):
        low, high = found.group(1), found.group(11)
        text = text.replace(found.group(), f">= {low}, <= {high} ", 1)
    alternatives = []
    for part in text.split("||"):
        if not regex.compile(_WHOLE_GROUP).search(part):
            raise EvaluationError(f"improper constraint {part!r}")
        alternatives.append(
            [_parse_term(found.group()) for found in regex.compile(_TERM).matches(part)]
        )
    return alternatives


def _parse_term(text: str) -> Term:
    found = next(regex.compile(_WHOLE_TERM).matches(text, 1), None)
    if found is None:
        raise EvaluationError(f"improper constraint {text!r}")
    operator = found.group(1) or ""
    major = found.group(3) or ""
    minor = (found.group(4) or "").removeprefix(".")
    patch = (found.group(5) or "").removeprefix(".")
    tail = found.group(6) or ""
    if major in _WILDCARDS:
        return Term(operator, _bound(f"0.0.0{tail}"), any_version=True)
    if minor in _WILDCARDS:
        version = _bound(f"{major}.0.0{tail}")
        return Term(operator, version, any_version=True, any_minor=True)
    if patch in _WILDCARDS:
        version = _bound(f"{major}.{minor}.0{tail}")
        return Term(operator, version, any_version=True, any_patch=True)
    return Term(operator, _bound(found.group(2)))


def _bound(text: str) -> Version:
    try:
        return parse(text)
    except EvaluationError as error:
        raise EvaluationError(f"improper constraint: {error}") from error


def _equal(version: Version, term: Term) -> bool:
    if term.any_version:
        return _tilde(version, term)
    return version.compare(term.version) == 0


def _not_equal(version: Version, term: Term) -> bool:
    bound = term.version
    if not term.any_version:
        return version.compare(bound) != 0
    if version.prerelease and not bound.prerelease:
        return False
    if version.major != bound.major:
        return True
    if term.any_minor:
        return False
    if version.minor != bound.minor:
        return True
    if term.any_patch:
        return _compare_prerelease(version.prerelease, bound.prerelease) != 0
    return version.compare(bound) != 0


def _greater(version: Version, term: Term) -> bool:
    bound = term.version
    if not term.any_version:
        return version.compare(bound) > 0
    if version.major != bound.major:
        return version.major > bound.major
    if term.any_minor:
        return False
    if term.any_patch:
        return version.minor > bound.minor
    return version.compare(bound) > 0


def _less_equal(version: Version, term: Term) -> bool:
    bound = term.version
    if not term.any_version:
        return version.compare(bound) <= 0
    if version.major != bound.major:
        return version.major < bound.major
    return version.minor <= bound.minor or term.any_minor


def _tilde(version: Version, term: Term) -> bool:
    bound = term.version
    if version.compare(bound) < 0:
        return False
    is_zero = not (bound.major or bound.minor or bound.patch)
    if is_zero and not term.any_minor and not term.any_patch:
        return True
    if version.major != bound.major:
        return False
    return term.any_minor or version.minor == bound.minor


def _caret(version: Version, term: Term) -> bool:
    bound = term.version
    if version.compare(bound) < 0:
        return False
    if bound.major or term.any_minor:
        return version.major == bound.major
    if version.major:
        return False
    if bound.minor or term.any_patch:
        return version.minor == bound.minor
    return not version.minor and version.patch == bound.patch


_CHECKS: dict[str, Callable[[Version, Term], bool]] = {
    "": _equal,
    "=": _equal,
    "!=": _not_equal,
    ">": _greater,
    "<": lambda version, term: version.compare(term.version) < 0,
    ">=": lambda version, term: version.compare(term.version) >= 0,
    "=>": lambda version, term: version.compare(term.version) >= 0,
    "<=": _less_equal,
    "=<": _less_equal,
    "~": _tilde,
    "~>": _tilde,
    "^": _caret,
}


def _holds(version: Version, term: Term) -> bool:
    if term.operator != "!=" and version.prerelease and not term.version.prerelease:
        return False
    return _CHECKS[term.operator](version, term)


def satisfies(constraint: str, version: str) -> bool:
    """Tell whether a version satisfies a constraint such as `>=1.2, <2 || ^3.1`."""
    alternatives = parse_constraint(constraint)
    parsed = parse(version)
    return any(all(_holds(parsed, term) for term in terms) for terms in alternatives)


def _increment(part: str) -> Callable[[Version], Version]:
    def run(version: Version) -> Version:
        major, minor, patch = version.major, version.minor, version.patch
        if part == "major":
            major, minor, patch = major + 1, 0, 0
        elif part == "minor":
            minor, patch = minor + 1, 0
        elif not version.prerelease:
            patch += 1
        mark = "v" if version.original.startswith("v") else ""
        return Version(major, minor, patch, "", "", f"{mark}{major}.{minor}.{patch}")

    return run


_VERSION_TYPE = GoType("*semver.Version", Version)


def _number(name: str) -> Callable[[Version], Uint64]:
    return lambda version: Uint64(getattr(version, name))


def _comparison(holds: Callable[[int], Any]) -> Function:
    return Function(lambda version, other: holds(version.compare(other)), _VERSION_TYPE)


Version.METHODS = {
    "Compare": _comparison(lambda order: order),
    "Equal": _comparison(lambda order: order == 0),
    "GreaterThan": _comparison(lambda order: order > 0),
    "GreaterThanEqual": _comparison(lambda order: order >= 0),
    "IncMajor": Function(_increment("major")),
    "IncMinor": Function(_increment("minor")),
    "IncPatch": Function(_increment("patch")),
    "LessThan": _comparison(lambda order: order < 0),
    "LessThanEqual": _comparison(lambda order: order <= 0),
    "Major": Function(_number("major")),
    "Metadata": Function(lambda version: version.metadata),
    "Minor": Function(_number("minor")),
    "Original": Function(lambda version: version.original),
    "Patch": Function(_number("patch")),
    "Prerelease": Function(lambda version: version.prerelease),
    "String": Function(str),
}

FUNCTIONS = {
    "semver": Function(parse, "string"),
    "semverCompare": Function(satisfies, "string", "string"),
}
