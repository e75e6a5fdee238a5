"""Command lines in the style of Go's `flag` package, which the agents keep.

`-x` and `--x` are one flag; a value follows as `-x=v` or `-x v`, for a boolean only
as `-x=false`. Parsing stops at the first word that is no flag. Sources: the Go
documentation of package flag, spec/worker.md section 3.1, spec/master.md section 2.12.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

import attrs

from nfd.config.duration import Duration
from nfd.errors import UsageError

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_WIDTH = 80


def split(value: str) -> tuple[str, ...]:
    """Split a comma list; entries are trimmed, blanks dropped."""
    return tuple(word for part in value.split(",") if (word := part.strip()))


def _boolean(value: str) -> bool:
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise ValueError("expected true or false")


def _integer(value: str) -> int:
    try:
        sign, digits = ("-", value[1:]) if value[:1] == "-" else ("", value)
        if digits[:1] == "0" and digits[1:2].isdigit():
            digits = "0o" + digits[1:]
        return int(sign + digits, 0)
    except ValueError:
        raise ValueError("expected a whole number") from None


def _duration(value: str) -> Duration:
    try:
        return Duration.parse(value)
    except ValueError:
        raise ValueError("expected a duration with units, as 60s or 1h30m") from None


@attrs.frozen(slots=True)
class Flag:
    """One flag; `parse` raises ValueError with what is allowed.

    `unite` makes of the value so far and a further one the new value; without it
    the last one wins.
    """

    name: str
    help: str
    default: Any
    parse: Callable[[str], Any]
    kind: str = ""  # shown in the usage; "" for a boolean
    unite: Callable[[Any, Any], Any] | None = None

    @property
    def boolean(self) -> bool:
        """Whether the flag alone means true."""
        return not self.kind


def text(name: str, help: str, default: str = "") -> Flag:  # noqa: A002 - as argparse
    """Declare a flag that takes any text."""
    return Flag(name, help, default, str, "string")


def switch(name: str, help: str, *, default: bool = False) -> Flag:  # noqa: A002
    """Declare a boolean flag."""
    return Flag(name, help, default, _boolean)


def integer(name: str, help: str, default: int = 0) -> Flag:  # noqa: A002
    """Declare a flag that takes a number; 0x, 0o, 0b and leading zeros as in Go."""
    return Flag(name, help, default, _integer, "int")


def words(name: str, help: str, default: Sequence[str] = ()) -> Flag:  # noqa: A002
    """Declare a flag that takes a comma list; entries are trimmed, blanks dropped."""
    return Flag(name, help, tuple(default), split, "list")


def duration(name: str, help: str, default: str) -> Flag:  # noqa: A002
    """Declare a flag that takes a duration as `60s` or `1h30m`."""
    return Flag(name, help, Duration.parse(default), _duration, "duration")


def gates(known: Mapping[str, bool], locked: Iterable[str] = ()) -> Flag:
    """Declare `-feature-gates`: `Name=bool` pairs, which accumulate.

    `known` maps the gates to their defaults; a gate in `locked` keeps its own.
    """
    fixed = frozenset(locked)

    def parse(value: str) -> dict[str, bool]:
        found = {}
        for pair in split(value):
            name, equals, word = (part.strip() for part in pair.partition("="))
            if name not in known:
                raise ValueError(f"unrecognized feature gate: {name}")
            if not equals:
                raise ValueError(f"missing bool value for {name}")
            found[name] = _boolean(word)
            if name in fixed and found[name] != known[name]:
                held = str(known[name]).lower()
                raise ValueError(f"feature gate {name} is locked to {held}")
        return found

    listed = ", ".join(
        f"{n}=true|false (default {str(on).lower()})"
        for n, on in sorted(known.items())
        if n not in fixed
    )
    return Flag(
        "feature-gates",
        f"features to switch, as a comma list: {listed}",
        dict(known),
        parse,
        "gates",
        unite=lambda before, more: {**before, **more},
    )


KLOG: tuple[Flag, ...] = (
    switch("add_dir_header", "accepted for compatibility, without effect"),
    switch("alsologtostderr", "log to standard error as well as to files"),
    text("log_backtrace_at", "accepted for compatibility, without effect"),
    text("log_dir", "write the log into a file in this folder"),
    text("log_file", "write the log into this file"),
    integer("log_file_max_size", "accepted for compatibility, without effect", 1800),
    switch("logtostderr", "log to standard error instead of files", default=True),
    switch("one_output", "accepted for compatibility, without effect"),
    switch("skip_headers", "leave time and level out of log lines"),
    switch("skip_log_headers", "accepted for compatibility, without effect"),
    text("stderrthreshold", "with files: lines of this level also to standard error"),
    integer("v", "verbosity: from 1 details, from 4 debugging"),
    text("vmodule", "accepted for compatibility, without effect"),
    switch(
        "legacy_stderr_threshold_behavior",
        "accepted for compatibility, without effect",
        default=True,
    ),
    text("alsologtostderrthreshold", "accepted for compatibility, without effect"),
)


def camel(name: str) -> str:
    """Return the configuration key of a klog flag: `an_arg` is `anArg`."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


KLOG_KEYS: Mapping[str, Flag] = {camel(flag.name): flag for flag in KLOG}


def klog_values(
    configured: Mapping[str, str], parsed: "Parsed"
) -> tuple[dict[str, Any], list[str]]:
    """Unite klog settings: the command line beats the configuration.

    Returns the values by flag name, and the keys of the configuration that no klog
    flag has.

    Raises:
        UsageError: A value of the configuration is wrong.

    """
    values = {flag.name: parsed[flag.name] for flag in KLOG}
    unknown = []
    for key, given in configured.items():
        flag = KLOG_KEYS.get(key)
        if flag is None:
            unknown.append(key)
        elif flag.name not in parsed.given:
            try:
                values[flag.name] = flag.parse(given)
            except ValueError as error:
                raise UsageError(f"core.klog.{key}: {error}") from None
    return values, unknown


class HelpWanted(Exception):  # noqa: N818 - no error: someone asked
    """`-h` or `-help` was given."""


@attrs.frozen(slots=True)
class Parsed:
    """The value of every flag, and which ones were given."""

    values: Mapping[str, Any]
    given: frozenset[str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


@attrs.frozen(slots=True)
class FlagSet:
    """The flags of one program."""

    program: str
    flags: Sequence[Flag]
    drop_empty: bool = False  # leave out empty words first, as upstream's master does

    def parse(self, argv: Sequence[str]) -> Parsed:
        """Parse a command line; words beside flags are refused.

        Raises:
            HelpWanted: `-h` or `-help` was given.
            UsageError: A flag or value is wrong; the text says which.

        """
        values = {flag.name: flag.default for flag in self.flags}
        given: set[str] = set()
        left = [word for word in argv if word or not self.drop_empty]
        while left:
            word = left.pop(0)
            if word == "--" and not left:
                break
            flag, value = self._flag(word, left)
            try:
                parsed = flag.parse(value)
            except ValueError as error:
                raise UsageError(f"flag -{flag.name}: {value!r}: {error}") from None
            if flag.unite is not None:
                parsed = flag.unite(values[flag.name], parsed)
            values[flag.name] = parsed
            given.add(flag.name)
        return Parsed(values, frozenset(given))

    def _flag(self, word: str, left: list[str]) -> tuple[Flag, str]:
        """Tell which flag a word is, and its value, taken from `left` if need be."""
        if len(word) < 2 or word[0] != "-" or word == "--":
            named = left[0] if word == "--" else word
            raise UsageError(f"unknown command line argument: {named}")
        name, equals, value = word[1:].removeprefix("-").partition("=")
        if not name or name[0] == "-":
            raise UsageError(f"bad flag syntax: {word}")
        flag = next((f for f in self.flags if f.name == name), None)
        if flag is None:
            if name in {"h", "help"}:
                raise HelpWanted
            raise UsageError(f"there is no flag -{name}")
        if equals:
            return flag, value
        if flag.boolean:
            return flag, "true"
        if not left:
            raise UsageError(f"flag -{name} needs a value")
        return flag, left.pop(0)

    def usage(self) -> str:
        """Return the text of `-help`."""
        import textwrap  # noqa: PLC0415 - only for help

        lines = [f"Usage of {self.program}:"]
        for flag in sorted(self.flags, key=lambda f: f.name):
            lines.append(f"  -{flag.name} {flag.kind}".rstrip())
            said = flag.help + _default(flag)
            lines += textwrap.wrap(
                said, _WIDTH, initial_indent="      ", subsequent_indent="      "
            )
        return "\n".join(lines) + "\n"

    def parse_or_exit(
        self, argv: Sequence[str], out: TextIO | None = None, err: TextIO | None = None
    ) -> "Parsed | int":
        """Parse; return the exit status where there is nothing to run.

        0 after help, 2 after a mistake, each with the usage, as Go's programs do.
        """
        try:
            return self.parse(argv)
        except HelpWanted:
            (out or sys.stdout).write(self.usage())
            return 0
        except UsageError as error:
            (err or sys.stderr).write(f"{self.program}: {error}\n{self.usage()}")
            return 2


def _default(flag: Flag) -> str:
    if not flag.default or flag.kind == "gates":
        return ""
    value = flag.default
    shown = ",".join(value) if isinstance(value, tuple) else str(value)
    return f" (default {shown.lower() if flag.boolean else shown})"
