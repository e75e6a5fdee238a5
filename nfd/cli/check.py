"""`nfd check`: whether the programs that read a node's labels find what they need."""

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from nfd.check import ProfileResult, check
from nfd.cli import options
from nfd.cli.output import to_json
from nfd.cli.targets import read_text
from nfd.config import goyaml
from nfd.discovery import Runner, discover
from nfd.errors import NfdError, UsageError
from nfd.explain import explain
from nfd.hostroot import Recorder
from nfd.profile import Need, load_profiles, profile_names
from nfd.registry import installed

EXAMPLES = """\
  nfd check                                   this host, all profiles
  nfd check --profile gpu-operator,network-operator
  kubectl get node n1 -o json | nfd check --node -
  nfd check --root host.tar.xz -o json
"""
_SKIPPED = ("the key", "nearest")


def add_parser(commands: Any) -> None:
    """Add the parser of `nfd check`."""
    parser = options.add_parser(
        commands,
        "check",
        "check a node's labels against what other programs expect",
        EXAMPLES,
    )
    parser.add_argument(
        "--profile",
        metavar="LIST",
        help=f"programs to check: {', '.join(profile_names())}; default: all",
    )
    parser.add_argument(
        "--node",
        metavar="FILE",
        help="a manifest of Nodes instead of a host; - is standard input",
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="format"
    )
    options.add_root(parser)
    options.add_discovery(parser)


def run(args: argparse.Namespace) -> int:
    """Print the results; 1 when a program is broken on a node.

    Raises:
        UsageError: There is no such profile, or --node comes with --root.
        NfdError: The manifest cannot be read.

    """
    words = profile_names() if args.profile is None else options.split(args.profile)
    profiles = load_profiles(words)
    if args.node is not None:
        if args.root is not None:
            raise UsageError("--node and --root exclude each other")
        checked = {
            name: [check(profile, labels) for profile in profiles]
            for name, labels in read_nodes(args.node).items()
        }
        reasons: Mapping[str, str] = {}
    else:
        name, found, reasons_of = _scan(args)
        labels, features = found
        results = [check(profile, labels, features) for profile in profiles]
        reasons = reasons_of(n.need for r in results for n in r.missing)
        checked = {name: results}
    if args.output == "json":
        plain = {n: [r.to_plain() for r in found] for n, found in checked.items()}
        print(to_json(plain), end="")
    else:
        asked = args.profile is not None
        for name, results in checked.items():
            print(text(name, results, reasons, asked=asked), end="")
    broken = any(r.verdict == "broken" for found in checked.values() for r in found)
    return 1 if broken else 0


def _scan(args: argparse.Namespace) -> Any:
    recorder = Recorder()
    with options.open_root(args, recorder) as host:
        registry = installed()
        plan = options.plan_discovery(args, host, registry)
        found = discover(host, plan, Runner(args.timeout))
        name = host.node_name or host.path
    labels = {key: label.value for key, label in found.labels.items()}

    def reasons(needs: Iterable[Need]) -> dict[str, str]:
        told = {}
        for wanted in (w for need in needs for w in need.any_of):
            if wanted.key not in told and "*" not in wanted.key:
                answer = explain(wanted.key, found, plan, recorder, registry.names)
                facts = [said for name, said in answer.facts if name not in _SKIPPED]
                told[wanted.key] = facts[-1] if facts and not answer.found else ""
        return told

    return name, (labels, found.features), reasons


def read_nodes(path: str) -> dict[str, dict[str, str]]:
    """Read the labels of Nodes from a manifest, one or several or a List.

    Raises:
        NfdError: It cannot be read, or holds no Node.

    """
    nodes: dict[str, dict[str, str]] = {}
    for document in goyaml.load_all(read_text(path)):
        items = document.get("items") if isinstance(document, Mapping) else None
        for item in items if isinstance(items, list) else [document]:
            if isinstance(item, Mapping) and item.get("kind", "Node") == "Node":
                metadata = item.get("metadata") or {}
                labels = metadata.get("labels") or {}
                nodes[str(metadata.get("name", "node"))] = {
                    str(key): str(value) for key, value in labels.items()
                }
    if not nodes:
        raise NfdError(f"{path}: holds no Node")
    return nodes


def text(
    node: str,
    results: Iterable[ProfileResult],
    reasons: Mapping[str, str],
    *,
    asked: bool,
) -> str:
    """Write results for people; programs not needed are one line, if asked for."""
    lines = [f"node {node}"]
    for result in results:
        profile = result.profile
        if result.verdict == "not needed":
            if asked:
                lines.append(
                    f"{profile.name}: not needed, no sign of {profile.hardware}"
                )
            continue
        lines.append(f"{profile.name}: {result.verdict} ({profile.summary})")
        for found in result.needs:
            need = found.need
            if found.present:
                lines.append(f"  ok       {need.consumer}: {', '.join(found.present)}")
                continue
            state = "absent  " if need.optional else "MISSING "
            wanted = " or ".join(str(w) for w in need.any_of)
            lines.append(f"  {state} {need.consumer}: {wanted}")
            lines.append(f"           without it: {need.without}")
            lines.append(f"           made by: {need.made_by}")
            why = next((reasons[w.key] for w in need.any_of if reasons.get(w.key)), "")
            if why:
                lines.append(f"           here: {why}")
    if len(lines) == 1:
        lines.append("no profile is about this node")
    return "\n".join(lines) + "\n"
