"""Features and labels that other programs write into files of features.d.

Specification: worker.md section 4.
"""

import errno
import re
import stat
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import attrs

from nfd.features import Features
from nfd.hostroot import HostRoot, trim
from nfd.source import (
    FeatureSpec,
    LabelSpec,
    LabelValue,
    Settings,
    Source,
    Watch,
    setting,
)
from nfd_sources._reading import DEBUG, INFO, WARNING, Gaps, entries, report

FEATURES_D = "/etc/kubernetes/node-feature-discovery/features.d"
MAX_FILE = 65536  # bytes

LABEL = "local.label"
FEATURE = "local.feature"

_DIRECTIVE = "# +"
# As Go's time.RFC3339 reads it: capital T and Z, a zone, one or two digits of hours.
_TIME = (
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,][0-9]+)?"
    r"(?:Z|([-+])([0-9]{2}):([0-9]{2}))"
)


@attrs.frozen(slots=True, eq=False, repr=False)
class LocalSettings(Settings):
    """The settings below `sources.local`."""

    strict: bool = setting(
        "strict",
        False,  # noqa: FBT003 - setting() takes the default second
        "refuse files that every user may write, instead of warning about them",
    )


class Remark(NamedTuple):
    """Something worth saying about a line: `name` is its feature, or ""."""

    line: int
    name: str
    reason: str
    level: int = WARNING


class FeatureFile(NamedTuple):
    """What one file states: name to value, each for labels and for rules."""

    labels: Mapping[str, str]
    features: Mapping[str, str]
    remarks: tuple[Remark, ...] = ()


class LocalSource(Source[LocalSettings]):
    """Reads features.d; labels get no prefix and overwrite those of other sources."""

    name = "local"
    label_priority = 20
    prefix_labels = False
    settings_class = LocalSettings
    feature_specs = (
        FeatureSpec(LABEL, ("attribute",), None, "entries that become labels"),
        FeatureSpec(FEATURE, ("attribute",), None, "entries that rules may read"),
    )
    label_specs = (LabelSpec("<name>", "each entry of local.label, as it is"),)

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        """Take the time from `now`, in seconds since the epoch."""
        self._now = now

    def discover(self, host: HostRoot, settings: LocalSettings) -> Features:
        """Read every file, in order of name; a later one wins."""
        gaps = Gaps()
        try:
            names = entries(host, FEATURES_D)
            folder = host.real_path(FEATURES_D)
        except OSError as error:
            _unread(gaps, "", error)
            return Features.of(unknown=gaps.unknown, notes=gaps.notes)
        if names is None:
            report(DEBUG, "no local features path=%s", FEATURES_D)
        now = self._now()
        merged = _Merged(gaps)
        for name in names or ():
            if name.startswith("."):
                continue
            try:
                text = _read_file(host, folder, name, settings, gaps)
            except OSError as error:
                _unread(gaps, name, error)
                continue
            if text is not None:
                merged.add(name, parse_features(text, now))
        return Features.of(
            attributes={LABEL: merged.labels, FEATURE: merged.features},
            unknown=gaps.unknown,
            notes=gaps.notes,
        )

    def labels(
        self, features: Features, settings: LocalSettings
    ) -> Mapping[str, LabelValue]:
        """Return every entry of `local.label`."""
        del settings
        return {
            name: LabelValue(value, LABEL, name)
            for name, value in features.attributes.get(LABEL, {}).items()
        }

    def why_not(self, name: str, features: Features, settings: LocalSettings) -> str:
        """Say which line or file was left out, or that none names the label."""
        del settings
        note = features.notes.get(f"{LABEL}/{name}")
        if note or name in features.attributes.get(LABEL, {}):
            return note or ""
        left_out = [
            f"{key.partition('/')[2]} ({reason})"
            for key, reason in sorted(features.notes.items())
            if key.startswith(f"{FEATURE}/")
        ]
        return f"no line in {FEATURES_D} names it" + (
            f"; left out: {', '.join(left_out)}" if left_out else ""
        )

    def watch(self, settings: LocalSettings) -> tuple[Watch, ...]:
        """Look again when a file in the folder changes."""
        del settings
        return (Watch("path", FEATURES_D),)


def parse_features(text: str, now: float) -> FeatureFile:
    """Parse a file of features.d at the time `now` (seconds since the epoch)."""
    parser = _Parser(now)
    for line in text.split("\n"):
        parser.read(trim(line))
    return FeatureFile(
        parser.sets["no-label"], parser.sets["no-feature"], tuple(parser.remarks)
    )


class _Parser:
    """Reads a file's lines one by one."""

    def __init__(self, now: float) -> None:
        # Each set by the directive that keeps an entry out of it.
        self.sets: dict[str, dict[str, str]] = {"no-label": {}, "no-feature": {}}
        self.remarks: list[Remark] = []
        self._now = now
        self._line = 0
        self._excluded: set[str] = set()  # directives that wait for their line
        self._expiry: float | None = None
        self._expires = ""

    def read(self, line: str) -> None:
        self._line += 1
        if line.startswith(_DIRECTIVE):
            self._directive(line.removeprefix(_DIRECTIVE))
        elif line and not line.startswith("#"):
            self._entry(line)

    def _remark(self, name: str, reason: str, level: int = WARNING) -> None:
        self.remarks.append(Remark(self._line, name, reason, level))

    def _directive(self, text: str) -> None:
        name, equals, value = text.partition("=")
        if name in self.sets:
            self._excluded.add(name)
        elif name == "expiry-time" and equals:
            moment = parse_time(trim(value))
            if moment is None:
                self._remark("", f"no RFC 3339 time: {trim(value)!r}")
            else:
                self._expiry, self._expires = moment, trim(value)
        else:
            self._remark("", f"unknown directive {name!r}")

    def _entry(self, line: str) -> None:
        name, equals, value = (trim(part) for part in line.partition("="))
        if not name:
            self._remark("", "no name before '='")
            return
        if self._expiry is not None and self._expiry < self._now:
            # The directives go on waiting, as upstream's do.
            self._remark(name, f"expired at {self._expires}", INFO)
            return
        if "no-label" in self._excluded:
            self._remark(name, "marked no-label", DEBUG)
        for directive, kept in self.sets.items():
            if directive in self._excluded:
                kept.pop(name, None)
            else:
                kept[name] = value if equals else "true"
        self._excluded.clear()


def parse_time(text: str) -> float | None:
    """Return the seconds since the epoch of an RFC 3339 time; None if it is none."""
    import datetime as dt  # noqa: PLC0415 - 3 ms that few hosts need

    found = re.fullmatch(_TIME, text)
    if not found:
        return None
    day, hour, minute, second, sign, zone_hours, zone_minutes = found.groups()
    try:
        moment = dt.datetime.fromisoformat(
            f"{day}T{hour:0>2}:{minute}:{second}+00:00"
        ).timestamp()
    except ValueError:
        return None
    if sign:
        east = (int(zone_hours) * 60 + int(zone_minutes)) * 60
        moment -= east if sign == "+" else -east
    return moment


class _Merged:
    """The files so far, and which of them each entry is from."""

    def __init__(self, gaps: Gaps) -> None:
        self.labels: dict[str, str] = {}
        self.features: dict[str, str] = {}
        self._gaps = gaps
        self._values: dict[str, tuple[str, str]] = {}  # name to value and file

    def add(self, file: str, parsed: FeatureFile) -> None:
        for remark in parsed.remarks:
            where = f"{file} line {remark.line}"
            if remark.name:
                self._gaps.notes[f"{LABEL}/{remark.name}"] = f"{where}: {remark.reason}"
            else:
                self._gaps.notes[f"{FEATURE}/{where}"] = remark.reason
            report(
                remark.level,
                "features.d line left out file=%s line=%d name=%s reason=%s",
                file,
                remark.line,
                remark.name,
                remark.reason,
            )
        for name, value in sorted({**parsed.features, **parsed.labels}.items()):
            before = self._values.get(name)
            if before is not None and before[0] != value:
                report(
                    WARNING,
                    "features.d entry overridden name=%s file=%s value=%s by=%s with=%s",
                    name,
                    before[1],
                    before[0],
                    file,
                    value,
                )
            self._values[name] = (value, file)
        self.labels.update(parsed.labels)
        self.features.update(parsed.features)


def _unread(gaps: Gaps, element: str, error: OSError) -> None:
    gaps.unread(FEATURE, element, (error,))
    gaps.unknown.setdefault(LABEL, gaps.unknown[FEATURE])


def _read_file(
    host: HostRoot, folder: str, name: str, settings: LocalSettings, gaps: Gaps
) -> str | None:
    """Return a file's text; None of one that is refused, or no regular file."""
    path = f"{FEATURES_D}/{name}"
    real = host.real_path(path)
    if not real.startswith(f"{folder}/"):
        gaps.refused(FEATURE, name, f"a link that leaves the folder, to {real}")
        return None
    mode = host.mode(path)
    if mode is None:
        gaps.refused(FEATURE, name, "a link to nothing")
        return None
    if not stat.S_ISREG(mode):
        return None
    if mode & stat.S_IWOTH:
        if settings.strict:
            gaps.refused(FEATURE, name, "every user may write it, and strict is set")
            return None
        report(WARNING, "every user may write this file path=%s", path)
    try:
        data = host.read_bytes(real, MAX_FILE)
    except FileNotFoundError:
        return None  # removed since it was listed
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        gaps.refused(FEATURE, name, f"larger than {MAX_FILE} bytes")
        return None
    return data.decode("utf-8", "replace")
