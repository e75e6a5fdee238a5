"""The formats of `nfd scan`: pure functions from a discovery to text."""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from nfd.cli import jsontext
from nfd.discovery import Discovery, SourceResult
from nfd.features import Features
from nfd.labels import FEATURE_NS, Label

FORMATS = ("table", "labels", "json", "yaml", "env")


def render(found: Discovery, form: str, *, features: bool = False) -> str:
    """Write a discovery in one of `FORMATS`; ends with a newline unless empty."""
    if form == "json":
        return to_json(found.to_plain(features=features))
    if form == "yaml":
        return to_yaml(found.to_plain(features=features))
    if form == "env":
        return _lines(_env(found.labels))
    if form == "table":
        return _table(found, features=features)
    lines = [f"{key}={label.value}" for key, label in sorted(found.labels.items())]
    if features:
        lines += feature_lines(found.features)
    return _lines(lines)


def to_json(plain: Any) -> str:
    """Write plain data as JSON with two spaces, in the order given."""
    return jsontext.write(plain) + "\n"


def to_yaml(plain: Any) -> str:
    """Write plain data as YAML, in the order given."""
    import yaml  # noqa: PLC0415 - 15 ms, for YAML only

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(plain, Dumper=dumper, sort_keys=False, allow_unicode=True))


def feature_lines(features: Features) -> list[str]:
    """Write every feature element as one line, in a stable order.

    `key name` for a flag, `key.name=value` for an attribute, and
    `key[0] name=value ...` for an instance.
    """
    lines = []
    for key in features.keys():  # noqa: SIM118 - a method of ours
        lines += [f"{key} {name}" for name in sorted(features.flags.get(key, ()))]
        lines += [
            f"{key}.{name}={value}"
            for name, value in sorted(features.attributes.get(key, {}).items())
        ]
        lines += [
            f"{key}[{i}] " + " ".join(f"{n}={v}" for n, v in sorted(instance.items()))
            for i, instance in enumerate(features.instances.get(key, ()))
        ]
    return lines


def _lines(lines: Iterable[str]) -> str:
    return "".join(line + "\n" for line in lines)


def _env(labels: Mapping[str, Label]) -> list[str]:
    """Write shell assignments; keys that would share a name get a number."""
    taken: dict[str, int] = {}
    lines = []
    for key, label in sorted(labels.items()):
        short = key.removeprefix(FEATURE_NS + "/")
        name = "NFD_" + re.sub(r"[^A-Za-z0-9]", "_", short).upper()
        taken[name] = taken.get(name, 0) + 1
        suffix = f"__{taken[name]}" if taken[name] > 1 else ""
        lines.append(f"{name}{suffix}='{label.value}'")
    return lines


def _table(found: Discovery, *, features: bool) -> str:
    groups = _groups(found)
    width = max(
        (len(_short(key)) for rows in groups.values() for key, _ in rows), default=0
    )
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    paint = _paint if coloured else _plain
    lines = []
    for name, rows in groups.items():
        result = found.results.get(name)
        lines.append(paint(_heading(name, len(rows), result), _colour(result)))
        lines += [f"  {_short(key):<{width}}  {value}".rstrip() for key, value in rows]
    if features:
        lines += ["", paint("features", "bold"), *feature_lines(found.features)]
    total = len(found.labels)
    failed = len(found.failed)
    lines.append("")
    tail = f", {failed} failed" if failed else ""
    lines.append(
        f"{_count(total, 'label')} from {_count(len(found.results), 'source')}{tail}"
    )
    return _lines(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _groups(found: Discovery) -> dict[str, list[tuple[str, str]]]:
    names = {*found.results, *(v.provenance.source for v in found.labels.values())}
    groups: dict[str, list[tuple[str, str]]] = {name: [] for name in sorted(names)}
    for key, label in sorted(found.labels.items()):
        groups[label.provenance.source].append((key, label.value))
    return groups


def _short(key: str) -> str:
    return key.removeprefix(FEATURE_NS + "/")


def _heading(name: str, count: int, result: SourceResult | None) -> str:
    if result is None:
        return f"{name} ({count})"
    state = "" if result.status == "ok" else f" {result.status}: {result.error}"
    return f"{name} ({count}, {result.seconds * 1000:.1f} ms){state}"


def _colour(result: SourceResult | None) -> str:
    if result is None or result.status == "ok":
        return "bold green"
    return "bold red" if result.status == "failed" else "dim"


def _paint(text: str, style: str) -> str:
    codes = {"bold": "1", "dim": "2", "red": "31", "green": "32"}
    return f"\x1b[{';'.join(codes[s] for s in style.split())}m{text}\x1b[0m"


def _plain(text: str, style: str) -> str:
    del style
    return text
