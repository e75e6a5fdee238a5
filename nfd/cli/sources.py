"""`nfd sources`: every installed source and what it offers."""

import argparse
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from nfd.cli import options, warn
from nfd.cli.output import to_json
from nfd.config.decode import keys, show
from nfd.registry import PluginError, Registry, installed

EXAMPLES = """\
  nfd sources                 names, origin, default state, features, labels, settings
  nfd sources -o json         the same for programs
"""


def add_parser(commands: Any) -> None:
    """Add the parser of `nfd sources`."""
    parser = options.add_parser(
        commands, "sources", "list the installed sources", EXAMPLES
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="format"
    )


def run(args: argparse.Namespace) -> int:
    """Print the sources; those that cannot be loaded are listed with the reason."""
    registry = installed()
    for problem in registry.problems.values():
        warn(f"warning: {problem}")
    listed = {name: describe(registry, name) for name in registry.names}
    print(to_json(listed) if args.output == "json" else table(listed), end="")
    return 0


def describe(registry: Registry, name: str) -> dict[str, Any]:
    """Return all about one source as plain data."""
    plugin = registry.plugins[name]
    plain: dict[str, Any] = {
        "distribution": f"{plugin.distribution} {plugin.version}".strip(),
        "object": plugin.target,
    }
    try:
        source = registry.load(name)
    except PluginError as error:
        return {**plain, "error": str(error)}
    return {
        **plain,
        "default": "on" if source.on_by_default else "off",
        "features": {
            spec.key: {
                "kinds": list(spec.kinds),
                "elements": None if spec.elements is None else list(spec.elements),
                "help": spec.help,
            }
            for spec in source.feature_specs
        },
        "labels": {
            (
                f"{name}-{spec.name}"
                if source.prefix_labels and "/" not in spec.name
                else spec.name
            ): spec.help
            for spec in source.label_specs
        },
        "settings": {
            f"sources.{name}.{key.path}": {
                "type": type_name(key.type),
                "default": plain_default(key.default),
                "help": key.help,
            }
            for key in keys(source.settings_class)
        },
    }


def table(listed: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the sources for people."""
    lines: list[str] = []
    for name, about in listed.items():
        lines.append(f"{name}  ({about['distribution']}, {about.get('default', '?')})")
        if "error" in about:
            lines += [f"  cannot be loaded: {about['error']}", ""]
            continue
        for title in ("features", "labels", "settings"):
            rows = about[title]
            width = max(map(len, rows), default=0)
            for key, said in rows.items():
                lines.append(f"  {title[:-1]:<8} {key:<{width}}  {_row(title, said)}")
        lines.append("")
    return "\n".join(lines)


def _row(title: str, said: Any) -> str:
    if title == "features":
        return f"{'/'.join(said['kinds'])}: {said['help']}"
    if title == "settings":
        default = said["default"]
        shown = (
            "[" + ", ".join(map(str, default)) + "]"
            if isinstance(default, list)
            and not any(isinstance(d, dict) for d in default)
            else show(default)
        )
        return f"{said['type']}, default {shown}: {said['help']}"
    return str(said)


def type_name(kind: Any) -> str:
    """Name a settings type for people: `list of text`, `map of text`, `true/false`."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return next(type_name(a) for a in get_args(kind) if a is not types.NoneType)
    if origin is Literal:
        return " or ".join(get_args(kind))
    if origin is tuple:
        return f"list of {type_name(get_args(kind)[0])}"
    if origin is not None:
        return f"map of {type_name(get_args(kind)[1])}"
    names = {str: "text", bool: "true/false", int: "number", float: "number"}
    return names.get(kind, getattr(kind, "__name__", str(kind)).lower())


def plain_default(value: Any) -> Any:
    """Turn a default into lists and maps for JSON."""
    if isinstance(value, Mapping):
        return {key: plain_default(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [plain_default(item) for item in value]
    if value is None or isinstance(value, bool | str):
        return value
    return str(value) if type(value) not in (int, float) else value
