"""What rules are tried on: hosts, captures, NodeFeature manifests, saved features."""

import argparse
import os
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from nfd.cli import warn
from nfd.errors import NfdError, UsageError
from nfd.features import Features, merge
from nfd.library import scan
from nfd.registry import installed
from nfd.rules.catalogue import Catalogue
from nfd.rules.load import Loaded, load_text
from nfd.rules.policy import Policy
from nfd.source import FeatureSpec

_ARCHIVES = (".tar.xz", ".tar.gz", ".tgz", ".tar")
_FILES = (".json", ".yaml", ".yml")
_PARTS = frozenset(("flags", "attributes", "instances"))


@attrs.frozen(slots=True)
class Target:
    """One thing that rules are tried on."""

    name: str
    features: Features


def add_targets(parser: argparse.ArgumentParser) -> None:
    """Add the options that name targets; each may be given several times."""
    group = parser.add_argument_group("what the rules run on (default: this host)")
    for name, metavar, text in (
        ("--root", "PATH", "a host root as for nfd scan; default from NFD_HOST_ROOT"),
        ("--capture", "FILE", "a captured host: an archive or a folder"),
        ("--nodefeature", "FILE", "a manifest of NodeFeature objects"),
        (
            "--features",
            "FILE",
            "saved features: nfd export features, or nfd scan -o json --features",
        ),
    ):
        group.add_argument(name, metavar=metavar, action="append", help=text)


def has_targets(args: argparse.Namespace) -> bool:
    """Tell whether the options name a target."""
    return bool(args.root or args.capture or args.nodefeature or args.features)


def targets(args: argparse.Namespace) -> list[Target]:
    """Read or discover all targets, in the order of their options.

    Raises:
        NfdError: One cannot be read.

    """
    found = [
        *_hosts((*(args.root or ()), *(args.capture or ()))),
        *(t for path in args.nodefeature or () for t in _manifest(path)),
        *(_saved(path) for path in args.features or ()),
    ]
    if not found:
        root = os.environ.get("NFD_HOST_ROOT") or "/"
        found = list(_hosts([root]))
    names = [target.name for target in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"the target {twice[0]!r} is given more than once")
    return found


def _hosts(paths: Iterable[str]) -> Iterator[Target]:
    for path in paths:
        discovery = scan(path)
        for result in discovery.failed:
            warn(f"{path}: source {result.name} failed: {result.error}")
        yield Target(_short(path), _with_unknown(discovery))


def _with_unknown(discovery: Any) -> Features:
    """Mark the sets of failed sources, so that rules over them are unknown."""
    failed = {result.name: result.error for result in discovery.failed}
    unknown = {
        spec.key: failed[spec.key.partition(".")[0]]
        for spec in feature_specs()
        if spec.key.partition(".")[0] in failed
    }
    return merge([discovery.features, Features(unknown=unknown)])


def _short(path: str) -> str:
    name = os.path.basename(path.rstrip("/")) or path
    for ending in (*_ARCHIVES, *_FILES):
        name = name.removesuffix(ending)
    return name


def _manifest(path: str) -> list[Target]:
    loaded = load_text(read_text(path), path)
    if loaded.errors:
        raise NfdError(str(loaded.errors[0]))
    parts: dict[str, list[Features]] = {}
    for manifest in loaded.node_features:
        parts.setdefault(manifest.node or manifest.name, []).append(manifest.features)
    if not parts:
        raise NfdError(f"{path}: holds no NodeFeature")
    return [Target(name, merge(listed)) for name, listed in parts.items()]


def _saved(path: str) -> Target:
    return Target(_short(path), parse_features(read_text(path), path))


def parse_features(text: str, path: str) -> Features:
    """Read features in the form of `spec.features`, of a scan, or of a manifest.

    Raises:
        NfdError: The text has none of these forms.

    """
    from nfd.config import goyaml  # noqa: PLC0415 - JSON is YAML

    try:
        plain = goyaml.load(text)
    except NfdError as error:
        raise NfdError(f"{path}: {error}") from None
    if isinstance(plain, dict) and plain.get("kind") == "NodeFeature":
        plain = plain.get("spec")
    if isinstance(plain, dict) and "features" in plain:
        plain = plain["features"]
    if not isinstance(plain, dict) or not _PARTS.intersection(plain):
        raise NfdError(f"{path}: holds no features")
    sets = [
        s for part in plain.values() if isinstance(part, dict) for s in part.values()
    ]
    wrapped = any(isinstance(s, dict) and set(s) == {"elements"} for s in sets)
    try:
        return Features.from_spec(plain) if wrapped else Features.from_plain(plain)
    except NfdError as error:
        raise NfdError(f"{path}: {error}") from None


def read_text(path: str) -> str:
    """Read a file; `-` is standard input.

    Raises:
        NfdError: It cannot be read.

    """
    import sys  # noqa: PLC0415 - for `-` only

    try:
        if path == "-":
            return sys.stdin.read()
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise NfdError(f"{path}: {reason}") from None


def load_rules(paths: Iterable[str], *, strict: bool = False) -> Loaded:
    """Load rule files one after the other.

    Raises:
        NfdError: A file cannot be read; wrong content is in `problems`.

    """
    parts = [load_text(read_text(path), path, strict=strict) for path in paths]
    return Loaded(
        tuple(o for part in parts for o in part.objects),
        problems=tuple(p for part in parts for p in part.problems),
    )


def feature_specs() -> list[FeatureSpec]:
    """Return what the installed sources document of their features."""
    registry = installed()
    specs: list[FeatureSpec] = []
    for name in registry.names:
        try:
            specs += registry.load(name).feature_specs
        except NfdError as error:
            warn(f"warning: {error}")
    return specs


def make_catalogue(prefixes: Iterable[str]) -> Catalogue:
    """Collect the features of the installed sources, and prefixes taken as known."""
    return Catalogue.of(feature_specs(), prefixes)


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Add the options of the policy, named as those of the master."""
    group = parser.add_argument_group("policy, as the master's options")
    for name, text in (
        ("--deny-label-ns", "namespaces whose labels are refused, comma-separated"),
        ("--extra-label-ns", "namespaces that are allowed all the same"),
    ):
        group.add_argument(name, metavar="LIST", default="", help=text)
    group.add_argument(
        "--label-whitelist", metavar="RE2", default="", help="labels that are allowed"
    )
    group.add_argument("--no-taints", action="store_true", help="refuse taints")
    group.add_argument(
        "--no-auto-prefix",
        action="store_true",
        help="leave keys without a prefix alone",
    )


def make_policy(args: argparse.Namespace) -> Policy:
    """Make the policy that the options describe.

    Raises:
        UsageError: The whitelist is no pattern.

    """
    from nfd import regex  # noqa: PLC0415 - RE2 takes milliseconds

    try:
        regex.compile(args.label_whitelist)
    except regex.PatternError as error:
        raise UsageError(f"--label-whitelist: {error}") from None
    return Policy(
        deny_label_ns=_words(args.deny_label_ns),
        extra_label_ns=_words(args.extra_label_ns),
        label_whitelist=args.label_whitelist,
        disable_auto_prefix=args.no_auto_prefix,
        enable_taints=not args.no_taints,
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))
