"""`nfd rules validate|test|explain`: look at rules before a cluster runs them."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from nfd.cli import options, warn
from nfd.cli.output import to_json, to_yaml
from nfd.cli.targets import (
    Target,
    add_policy,
    add_targets,
    has_targets,
    load_rules,
    make_catalogue,
    make_policy,
    targets,
)
from nfd.errors import UsageError
from nfd.rules.engine import evaluate_all, evaluate_objects
from nfd.rules.explain import explain_rule, lines
from nfd.rules.load import Loaded
from nfd.rules.model import Rule
from nfd.rules.output import RuleOutput, combine
from nfd.rules.policy import Policy
from nfd.rules.sets import Matched, Sets
from nfd.rules.validate import failures, validate

EXAMPLES = """\
  nfd rules validate rules/*.yaml                   mistakes, before anything runs
  nfd rules validate gpu.yaml --known acme --strict
  nfd rules test gpu.yaml                           what they yield on this machine
  nfd rules test gpu.yaml --capture a.tar.xz --capture b.tar.xz
  nfd rules test gpu.yaml --nodefeature node.yaml -o json
  nfd rules explain gpu.yaml my-gpu-rule            why it does (not) match
"""

_WORDS = {"matched": "yes", "no": "no", "unknown": "?", "error": "ERROR"}


def add_parser(commands: Any) -> None:
    """Add the parser of `nfd rules`."""
    parser = options.add_parser(
        commands, "rules", "validate, try and explain rules", EXAMPLES
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_validate(actions)
    _add_test(actions)
    _add_explain(actions)


def _add_validate(actions: Any) -> None:
    parser = actions.add_parser("validate", help="find mistakes in rule files")
    _add_files(parser)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 on warnings too"
    )
    parser.add_argument(
        "--known",
        metavar="PREFIX",
        action="append",
        default=[],
        help="features of this domain come from elsewhere and are taken as known",
    )
    add_targets(parser)
    add_policy(parser)
    parser.set_defaults(action_run=_validate)


def _add_test(actions: Any) -> None:
    parser = actions.add_parser("test", help="show what rules yield")
    _add_files(parser)
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "yaml"), default="table"
    )
    add_targets(parser)
    add_policy(parser)
    parser.set_defaults(action_run=_test)


def _add_explain(actions: Any) -> None:
    parser = actions.add_parser("explain", help="show a rule term by term")
    parser.add_argument("files", metavar="FILE", nargs=1, help="rule file, - for stdin")
    parser.add_argument("rule", metavar="RULE", help="name of the rule, or object/rule")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument(
        "--all", action="store_true", help="show all elements, not the nearest ten"
    )
    add_targets(parser)
    parser.set_defaults(action_run=_explain)


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="rule files, - for stdin"
    )


def run(args: argparse.Namespace) -> int:
    """Run one action; its exit status."""
    return int(args.action_run(args))


# validate


def _validate(args: argparse.Namespace) -> int:
    loaded = load_rules(args.files, strict=True)
    tried = targets(args) if has_targets(args) else []
    problems = list(validate(loaded, make_catalogue(args.known), make_policy(args)))
    for target in tried:
        problems += failures(loaded, target.features, target.name)
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    if args.output == "json":
        plain = {
            "errors": errors,
            "warnings": warnings,
            "problems": [problem.to_plain() for problem in problems],
        }
        print(to_json(plain), end="")
    else:
        for problem in problems:
            print(problem)
        rules = len(loaded.rules)
        print(f"{rules} rules, {errors} errors, {warnings} warnings")
    return 1 if errors or (args.strict and warnings) else 0


# test


def _test(args: argparse.Namespace) -> int:
    loaded = load_rules(args.files)
    _warn_problems(loaded)
    policy = make_policy(args)
    outputs = {
        target.name: _execute(loaded, target, policy) for target in targets(args)
    }
    if args.output == "table":
        print("\n".join(_table(loaded.rules, outputs)))
    else:
        plain: Any = {name: output.to_plain() for name, output in outputs.items()}
        if len(plain) == 1:
            (plain,) = plain.values()
        print(to_json(plain) if args.output == "json" else to_yaml(plain), end="")
    failed = loaded.errors or any(output.errors for output in outputs.values())
    return 1 if failed else 0


def _execute(loaded: Loaded, target: Target, policy: Policy) -> RuleOutput:
    sets = Sets.of(target.features)
    results, matched = evaluate_objects(loaded.objects, sets)
    return combine(results, sets, matched, policy)


def _warn_problems(loaded: Loaded) -> None:
    for problem in loaded.problems:
        warn(str(problem))


def _table(rules: Sequence[Rule], outputs: Mapping[str, RuleOutput]) -> list[str]:
    names = [str(rule) for rule in rules]
    width = max(map(len, ("rule", *names)))
    heads = list(outputs)
    written = [f"{'rule':<{width}}  {'  '.join(heads)}"]
    for index, name in enumerate(names):
        cells = (
            f"{_WORDS[output.results[index].outcome]:<{len(head)}}"
            for head, output in outputs.items()
        )
        written.append(f"{name:<{width}}  {'  '.join(cells)}".rstrip())
    for head, output in outputs.items():
        told = _told(output)
        if told:
            written += ["", f"{head}:", *(f"  {line}" for line in told)]
    return written


def _told(output: RuleOutput) -> list[str]:
    """Write all that rules yield on one target, and what went wrong there."""
    written = []
    for title, made in (
        ("label", output.labels),
        ("annotation", output.annotations),
        ("extended resource", output.extended_resources),
    ):
        written += [
            f"{title} {key}={value.value}  (rule {value.provenance.rule})"
            for key, value in sorted(made.items())
        ]
    written += [f"taint {taint}" for taint in output.taints]
    written += [f"var {key}={value}" for key, value in sorted(output.vars.items())]
    written += [f"error: rule {r.rule.name!r}: {r.reason}" for r in output.errors]
    written += [f"unknown: rule {r.rule.name!r}: {r.reason}" for r in output.unknown]
    written += [
        f"refused: {r.kind} {r.key}={r.value} of rule {r.provenance.rule!r}: {r.reason}"
        for r in output.refused
    ]
    for conflict in output.conflicts:
        wants = ", ".join(f"{rule} wants {value!r}" for rule, value in conflict.wants)
        written.append(f"conflict: {conflict.kind} {conflict.key}: {wants}")
    for result in output.results:
        written += [
            f"bad value: rule {result.rule.name!r}, {bad.feature} {bad.element}: "
            f"{bad.reason}"
            for bad in result.bad_values
        ]
    return written


# explain


def _explain(args: argparse.Namespace) -> int:
    loaded = load_rules(args.files)
    _warn_problems(loaded)
    rule = _find(args.rule, loaded.rules)
    most = 1_000_000 if args.all else 10
    explained = {
        target.name: explain_rule(rule, *_state(rule, loaded, target))
        for target in targets(args)
    }
    if args.output == "json":
        plain: Any = {name: one.to_plain() for name, one in explained.items()}
        if len(plain) == 1:
            (plain,) = plain.values()
        print(to_json(plain), end="")
    else:
        for name, one in explained.items():
            print(*(f"{name}:", *lines(one, most))[len(explained) == 1 :], sep="\n")
    return 1 if any(one.outcome == "error" for one in explained.values()) else 0


def _find(name: str, rules: Sequence[Rule]) -> Rule:
    found = [rule for rule in rules if name in (rule.name, str(rule))]
    if not found:
        from nfd.config.nearest import suggest  # noqa: PLC0415 - after a mistake

        hint = suggest(name, [rule.name for rule in rules])
        raise UsageError(f"there is no rule {name!r}{hint}")
    if len(found) > 1:
        raise UsageError(f"{name!r} names several rules: {', '.join(map(str, found))}")
    return found[0]


def _state(rule: Rule, loaded: Loaded, target: Target) -> tuple[Sets, Matched]:
    """Run the rules before this one, whose outputs it may read."""
    holder = next(found for found in loaded.objects if rule in found.rules)
    peers = [o for o in loaded.objects if o.kind != "NodeFeatureGroup"]
    if holder.kind == "NodeFeatureGroup":  # its rules see only each other
        peers = [holder]
    sets = Sets.of(target.features)
    ordered = Loaded(tuple(peers)).rules
    return sets, evaluate_all(ordered[: ordered.index(rule)], sets)[1]
