"""`nfd fleet`: what a master would write, and what it holds back."""

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from nfd.cli import options as shared
from nfd.cli.output import to_json
from nfd.errors import NfdError, UsageError

EXAMPLES = """\
  nfd fleet plan --rules new.yaml     what a rule file would change; 3: it removes
  nfd fleet plan -o json              the same for machines
  nfd fleet plan --master-image IMAGE what another release would change
  nfd fleet held                      removals that the master holds back
  nfd fleet confirm lost-nodefeatures let them go on
"""
WOULD_REMOVE = 3


def add_parser(commands: Any) -> None:
    """Add the parser of `nfd fleet`."""
    parser = shared.add_parser(
        commands, "fleet", "show and decide what happens to the whole fleet", EXAMPLES
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    plan = actions.add_parser("plan", help="what a master would write now")
    add_cluster(plan)
    plan.add_argument("--config", metavar="FILE", help="the master's configuration")
    plan.add_argument("--options", metavar="TEXT", default="", help="YAML over it")
    plan.add_argument("--instance", default="", help="name of the master instance")
    plan.add_argument(
        "--rules",
        metavar="FILE",
        action="append",
        default=[],
        help="rules that replace those of the same name, or come anew",
    )
    plan.add_argument(
        "--master-image",
        metavar="IMAGE",
        help="run the dry run of this image, in a Pod like the running master's",
    )
    plan.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="format"
    )
    plan.add_argument(
        "--nodes", type=int, default=5, metavar="N", help="nodes named of each group"
    )
    held = actions.add_parser("held", help="what the removal guard holds back")
    confirm = actions.add_parser("confirm", help="let held removals go on")
    confirm.add_argument("cause", metavar="CAUSE", help="as `nfd fleet held` names it")
    add_cluster(held)
    add_cluster(confirm)


def add_cluster(parser: "argparse._ActionsContainer") -> None:
    """Add the options that say which cluster, and where the master lives."""
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, ~/.kube/config"
    )
    parser.add_argument(
        "--namespace",
        "-n",
        help="the master's namespace; default: $KUBERNETES_NAMESPACE",
    )


@contextmanager
def connected(args: argparse.Namespace) -> Iterator[tuple[Any, str]]:
    """Give a client and the master's namespace; the connections close at the end.

    Raises:
        ConfigError: There is no cluster to be found.

    """
    from nfd.kube.connect import client  # noqa: PLC0415 - only with a cluster
    from nfd.kube.kubeconfig import paths  # noqa: PLC0415 - as above
    from nfd.master.options import connection_of  # noqa: PLC0415 - as above

    named = args.kubeconfig or os.pathsep.join(paths())
    connection = connection_of(named)
    space = args.namespace or os.environ.get("KUBERNETES_NAMESPACE", "")
    made = client("fleet", connection)
    try:
        yield made, space or connection.namespace
    finally:
        made.transport.close()


def run(args: argparse.Namespace) -> int:
    """Do what is asked; 3 when a plan takes something away."""
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "plan": _plan,
        "held": _held,
        "confirm": _confirm,
    }
    return actions[args.action](args)


def _plan(args: argparse.Namespace) -> int:
    if args.master_image:
        return _rehearse(args)
    from nfd.library import read_config  # noqa: PLC0415 - only with a cluster
    from nfd.master import config as configuration  # noqa: PLC0415 - as above
    from nfd.master.namespaces import selected_now  # noqa: PLC0415 - as above
    from nfd.master.preview import preview  # noqa: PLC0415 - as above
    from nfd.master.snapshot import read_fleet, rules_of_files  # noqa: PLC0415

    text = read_config(args.config) if args.config else None
    loaded = configuration.load(file=text, options=args.options)
    configuration.check_instance(args.instance)
    rules = rules_of_files([(path, _text(path)) for path in args.rules])
    with connected(args) as (client, namespace):
        config = configuration.fleet_config(
            loaded.config,
            namespace=namespace,
            instance=args.instance,
            selected=selected_now(client, loaded.config),
        )
        pages = loaded.config.page_size
        found = preview(read_fleet(client, config, page_size=pages, rules=rules))
    if args.output == "json":
        print(to_json(found.to_plain()), end="")
    else:
        print(found.text(args.nodes), end="")
    return WOULD_REMOVE if found.removes else 0


def _rehearse(args: argparse.Namespace) -> int:
    """Have an image tell by itself; it has the configuration of the running master."""
    from nfd.master.rehearsal import last_lines, rehearse  # noqa: PLC0415 - as above

    given = ("config", "options", "instance", "rules")
    if args.output == "json" or any(getattr(args, name) for name in given):
        raise UsageError(
            "--master-image takes its flags and configuration from the running master"
            " and prints text: no --rules, --config, --options, --instance, -o json"
        )
    with connected(args) as (client, namespace):
        found = rehearse(client, namespace, args.master_image)
    if found.status not in {0, WOULD_REMOVE}:
        raise NfdError(
            f"{args.master_image}: exit status {found.status}: {last_lines(found.text)}"
        )
    print(found.text, end="")
    return found.status


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None


def _held(args: argparse.Namespace) -> int:
    from nfd.kube.errors import NotFound  # noqa: PLC0415 - only with a cluster
    from nfd.kube.resources import LEASES  # noqa: PLC0415 - as above
    from nfd.master.holds import LEASE, incidents  # noqa: PLC0415 - as above

    with connected(args) as (client, namespace):
        try:
            lease = client.get(LEASES, LEASE, namespace)
        except NotFound:
            lease = {"metadata": {}}
    found = incidents(lease["metadata"].get("annotations") or {})
    for incident in found:
        print(f"{incident.cause}: {incident.reason}")
    if not found:
        print("nothing is held")
    return 0


def _confirm(args: argparse.Namespace) -> int:
    from nfd.master.holds import (  # noqa: PLC0415 - only with a cluster
        CONFIRMED,
        LEASE,
        annotate,
        confirmation,
        incidents,
    )

    nodes = 0

    def change(annotations: dict[str, str]) -> dict[str, str]:
        nonlocal nodes
        found = {i.cause: i for i in incidents(annotations)}
        if args.cause not in found:
            held = ", ".join(found) or "nothing"
            raise UsageError(f"{args.cause!r} is not held; held: {held}")
        nodes = found[args.cause].nodes
        return {**annotations, CONFIRMED: confirmation(found[args.cause])}

    with connected(args) as (client, namespace):
        annotate(client, namespace, LEASE, change)
    print(f"confirmed {args.cause}: removals on {nodes} nodes go on")
    return 0
