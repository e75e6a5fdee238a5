"""`nfd explain KEY`: where a label or feature comes from, or why it is not there."""

import argparse
from typing import Any

from nfd.cli import options
from nfd.cli.fleet import add_cluster, connected
from nfd.cli.output import to_json
from nfd.discovery import Runner, discover
from nfd.explain import Explanation, explain
from nfd.hostroot import Recorder
from nfd.registry import installed

EXAMPLES = """\
  nfd explain pci-10de.present                      a label, prefix left out
  nfd explain feature.node.kubernetes.io/cpu-hardware_multithreading
  nfd explain pci.device --root host.tar.xz         a feature of a captured machine
  nfd explain kernel.version.full -o json           one element of a feature
  nfd explain vendor.io/gpu --node worker-1         in a cluster: rules, owners, why not
"""


def add_parser(commands: Any) -> None:
    """Add the parser of `nfd explain`."""
    parser = options.add_parser(
        commands,
        "explain",
        "say where a label or feature comes from, or why it is absent",
        EXAMPLES,
    )
    parser.add_argument("key", metavar="KEY", help="label or feature")
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="format"
    )
    group = parser.add_argument_group("cluster")
    group.add_argument("--node", metavar="NAME", help="explain a key of this Node")
    group.add_argument(
        "--master-config", metavar="FILE", help="the master's configuration, if any"
    )
    add_cluster(group)
    options.add_root(parser)
    options.add_discovery(parser)


def run(args: argparse.Namespace) -> int:
    """Print the explanation; 1 when the key is not there."""
    answer = _of_cluster(args) if args.node else _of_host(args)
    print(to_json(answer.to_plain()) if args.output == "json" else text(answer), end="")
    return 0 if answer.found else 1


def _of_host(args: argparse.Namespace) -> Explanation:
    recorder = Recorder()
    with options.open_root(args, recorder) as host:
        registry = installed()
        plan = options.plan_discovery(args, host, registry)
        found = discover(host, plan, Runner(args.timeout))
    return explain(args.key, found, plan, recorder, registry.names)


def _of_cluster(args: argparse.Namespace) -> Explanation:
    from nfd.library import read_config  # noqa: PLC0415 - only with a cluster
    from nfd.master import config as configuration  # noqa: PLC0415 - as above
    from nfd.master.explain import explain_key, read_node  # noqa: PLC0415 - as above
    from nfd.master.namespaces import selected_now  # noqa: PLC0415 - as above

    file = read_config(args.master_config) if args.master_config else None
    loaded = configuration.load(file=file)
    with connected(args) as (client, namespace):
        config = configuration.fleet_config(
            loaded.config,
            namespace=namespace,
            selected=selected_now(client, loaded.config),
        )
        return explain_key(read_node(client, config, args.node), args.node, args.key)


def text(answer: Explanation) -> str:
    """Write an explanation for people."""
    state = "" if answer.found else ": not there"
    lines = [f"{answer.kind} {answer.key}{state}"]
    lines += [f"  {name + ':':<14} {said}" for name, said in answer.facts]
    if answer.elements:
        lines.append("  elements:")
        lines += [f"    {element}" for element in answer.elements]
    if answer.files:
        lines.append("  files:")
    for file in answer.files:
        shown = file.content.replace("\n", "\n" + " " * 8)
        said = f"({file.error})" if file.error else f"= {shown}"
        lines.append(f"    {file.path} {said}")
    if answer.more_files:
        lines.append(f"    and {answer.more_files} more")
    if answer.nearest:
        lines.append("  nearest:")
        lines += [f"    {key}" for key in answer.nearest]
    return "\n".join(lines) + "\n"
