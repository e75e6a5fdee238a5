"""`nfd export autoscaler-template`: a discovered host, as autoscalers want to hear it."""

import argparse
from collections.abc import Iterable
from typing import Any

from nfd import regex
from nfd.autoscaler import FORMS, STARTUP_TAINT, NodeTemplate, is_stable
from nfd.cli import options, warn
from nfd.cli.output import to_json, to_yaml
from nfd.cli.targets import load_rules
from nfd.discovery import Discovery
from nfd.errors import NfdError, UsageError
from nfd.labels import key_problem
from nfd.quantity import Quantity, QuantityError
from nfd.rules.engine import evaluate_objects
from nfd.rules.output import Output, RuleOutput, combine
from nfd.rules.policy import Policy
from nfd.rules.sets import Sets

EXAMPLES = """\
  nfd export autoscaler-template --rules gpu.yaml --name gpu-workers
  nfd export autoscaler-template --form karpenter --labels '^pci-10de|^nvidia.com/'
  nfd export autoscaler-template --form node --capacity cpu=16 --capacity memory=64Gi
"""


def add_parser(actions: Any) -> None:
    """Add the parser of `nfd export autoscaler-template`."""
    parser = options.add_parser(
        actions,
        "autoscaler-template",
        "print what an autoscaler must know of a group's nodes to scale it from zero",
        EXAMPLES,
    )
    parser.add_argument(
        "--form",
        choices=tuple(FORMS),
        default="cluster-api",
        help="who reads it (default: %(default)s)",
    )
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml")
    parser.add_argument(
        "--name", default="nfd-template", help="name of the group or template"
    )
    parser.add_argument(
        "--rules",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="files of NodeFeatureRules, as the cluster's master runs them",
    )
    parser.add_argument(
        "--labels",
        metavar="RE2",
        help="the labels to promise, by key without feature.node.kubernetes.io/; "
        "default: those that state hardware and not installed software",
    )
    parser.add_argument(
        "--capacity",
        metavar="NAME=QUANTITY",
        action="append",
        default=[],
        help="a resource that a kubelet or device plugin will report, as "
        "nvidia.com/gpu=8",
    )
    parser.add_argument(
        "--no-startup-taint",
        action="store_true",
        help=f"leave out {STARTUP_TAINT.key}",
    )
    options.add_root(parser)
    options.add_discovery(parser)


def run(args: argparse.Namespace) -> int:
    """Print the template; a failed source aborts, for half a template would lie.

    Raises:
        NfdError: A source failed, or a rule file is wrong.
        UsageError: An option is wrong.

    """
    wanted = _label_filter(args.labels)
    given = _capacity(args.capacity)
    with options.open_root(args) as host:
        found = options.run_discovery(args, host)
    for result in found.failed:
        raise NfdError(f"source {result.name} failed: {result.error}")
    output = _run_rules(args.rules, found)
    resources = {key: out.value for key, out in output.extended_resources.items()}
    template = NodeTemplate(
        {key: out.value for key, out in output.labels.items() if wanted(key)},
        output.taints,
        resources | given,
        None if args.no_startup_taint else STARTUP_TAINT,
    )
    exported = FORMS[args.form](template, args.name)
    for warning in exported.warnings:
        warn(f"warning: {warning}")
    write = to_json if args.output == "json" else to_yaml
    separator = "---\n" if args.output == "yaml" else ""
    print(separator.join(write(plain) for plain in exported.documents), end="")
    return 0


def _label_filter(pattern: str | None) -> Any:
    if pattern is None:
        return is_stable
    try:
        compiled = regex.compile(pattern)
    except regex.PatternError as error:
        raise UsageError(f"--labels: {error}") from None
    return lambda key: bool(
        compiled.search(key.removeprefix("feature.node.kubernetes.io/"))
    )


def _capacity(words: Iterable[str]) -> dict[str, str]:
    given = {}
    for word in words:
        name, _, quantity = word.partition("=")
        if problem := key_problem(name):
            raise UsageError(f"--capacity {word!r}: {problem}")
        try:
            given[name] = str(Quantity.parse(quantity))
        except QuantityError as error:
            raise UsageError(f"--capacity {word!r}: {error}") from None
    return given


def _run_rules(paths: list[str], found: Discovery) -> RuleOutput:
    """Run the rules over the host as a master does, with taints allowed.

    Raises:
        NfdError: A file or a rule is wrong.

    """
    loaded = load_rules(paths)
    for problem in loaded.errors:
        raise NfdError(str(problem))
    sets = Sets.of(found.features)
    results, matched = evaluate_objects(loaded.objects, sets)
    published = {
        key: Output(label.value, label.provenance)
        for key, label in found.labels.items()
    }
    output = combine(results, sets, matched, Policy(enable_taints=True), published)
    for result in output.errors:
        raise NfdError(f"rule {result.rule.name}: {result.reason}")
    for refusal in output.refused:
        warn(f"warning: {refusal.kind} {refusal.key} is refused: {refusal.reason}")
    return output
