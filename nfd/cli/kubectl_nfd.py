"""`kubectl-nfd validate` and `dryrun`, as upstream's kubectl plug-in prints them.

Source: spec/master.md section 6.1. Upstream's `test`, which asks a cluster, is left
to `nfd rules test`.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence

from nfd.cli.targets import read_text
from nfd.config import goyaml
from nfd.errors import NfdError, RuleError
from nfd.rules.engine import RuleResult, evaluate_all
from nfd.rules.expansion import parse
from nfd.rules.load import load_document
from nfd.rules.model import Rule, Taint
from nfd.rules.output import resolve
from nfd.rules.policy import Policy
from nfd.rules.reader import NodeFeature
from nfd.rules.sets import Matched, Sets

# Unprefixed keys are errors here, and nothing is known of a master's settings.
POLICY = Policy(enable_taints=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the plug-in; 1 on errors, which go to standard error."""
    parser = _parser()
    args = parser.parse_args(sys.argv[1:] if argv is None else list(argv))
    if args.action == "validate":
        print(f"Validating NodeFeatureRule {args.rules}")
        errors = _validate(args.rules)
        verdict = "is not valid" if errors else "is valid"
        text = f"NodeFeatureRule {args.rules} {verdict}"
    else:
        names = f'NodeFeatureRule "{args.rules}"', f'NodeFeature "{args.nodefeature}"'
        print(f"Evaluating {names[0]} against {names[1]}")
        errors = _dryrun(args.rules, args.nodefeature)
        verdict = "is not valid" if errors else "is valid"
        text = f"{names[0]} {verdict} for {names[1]}"
    for error in errors:
        print(error, file=sys.stderr)
    print(text)
    return 1 if errors else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kubectl nfd",
        description="Checks NodeFeatureRules without a cluster. "
        "nfd rules does the same and more.",
    )
    actions = parser.add_subparsers(dest="action", metavar="COMMAND", required=True)
    validate = actions.add_parser("validate", help="check a NodeFeatureRule file")
    dryrun = actions.add_parser("dryrun", help="run a rule file on a NodeFeature file")
    for action in (validate, dryrun):
        action.add_argument(
            "-f", "--nodefeaturerule-file", dest="rules", metavar="FILE", required=True
        )
    dryrun.add_argument(
        "-n", "--nodefeature-file", dest="nodefeature", metavar="FILE", required=True
    )
    return parser


def _rules(path: str) -> tuple[Rule, ...]:
    """Read the rules of the first document; unknown fields mean nothing.

    Raises:
        NfdError: It cannot be read.

    """
    loaded = load_document(goyaml.load(read_text(path)), path)
    for problem in loaded.errors:
        raise NfdError(str(problem))
    return loaded.rules


# validate


def _validate(path: str) -> list[str]:
    try:
        rules = _rules(path)
    except NfdError as error:
        return [str(error)]
    errors: list[str] = []
    for rule in rules:
        print(f"Validating rule:  {rule.name}")
        errors += _output_errors(rule.annotations, "annotation")
        errors += _output_errors(rule.labels, "label")
        errors += _taint_errors(rule.taints)
        errors += _output_errors(rule.extended_resources, "extended resource")
        errors += _template_errors(rule)
        errors += (
            f"invalid feature name {term.feature} (not <domain>.<feature>), "
            "cannot be used for templating"
            for term in rule.terms
            if term.feature.count(".") != 1
        )
    return errors


def _output_errors(outputs: Mapping[str, str], kind: str) -> Iterable[str]:
    check = {
        "annotation": POLICY.annotation_problem,
        "label": POLICY.label_problem,
        "extended resource": POLICY.resource_problem,
    }[kind]
    for key, value in sorted(outputs.items()):
        dynamic = value.startswith("@") and kind != "annotation"
        if problem := check(key, "0" if dynamic else value):
            yield f'invalid {kind} "{key}":"{value}" {problem}'


def _taint_errors(taints: Iterable[Taint]) -> Iterable[str]:
    for taint in taints:
        if problem := POLICY.taint_problem(taint):
            yield f"invalid taint {taint}: {problem}"


def _template_errors(rule: Rule) -> Iterable[str]:
    for field, text in (
        ("labelsTemplate", rule.labels_template),
        ("varsTemplate", rule.vars_template),
    ):
        try:
            parse(text, field)
        except RuleError as error:
            yield f"invalid template: {error}"


# dryrun


def _dryrun(rules_path: str, node_path: str) -> list[str]:
    try:
        rules = _rules(rules_path)
        node = _node_feature(node_path)
    except NfdError as error:
        return [str(error)]
    sets = Sets.of(node.features)
    # No feed-back: here no rule sees another, spec/worker.md section 3.5.
    results, matched = evaluate_all(rules, sets, feed_back=False)
    errors: list[str] = []
    for result in results:
        print(f"Processing rule:  {result.rule.name}")
        if result.outcome == "error":
            name = result.rule.name
            errors.append(f'failed to process rule: "{name}" - {result.reason}')
    hits = [result for result in results if result.matched]
    taints = [taint for hit in hits for taint in hit.rule.taints]
    _section("Taints", [_braced(taint) for taint in taints], _taint_errors(taints))
    for title, kind, outputs in _wanted(hits):
        resolved, failed = _resolve(outputs, kind, sets, matched)
        errors += failed
        shown = [f"{key}={value}" for key, value in resolved.items()]
        _section(title, shown, _output_errors(resolved, kind))
    return errors


def _node_feature(path: str) -> NodeFeature:
    loaded = load_document(goyaml.load(read_text(path)), path)
    for problem in loaded.errors:
        raise NfdError(str(problem))
    if not loaded.node_features:
        raise NfdError(f"{path}: holds no NodeFeature")
    return loaded.node_features[0]


def _wanted(
    hits: Iterable[RuleResult],
) -> tuple[tuple[str, str, dict[str, str]], ...]:
    labels: dict[str, str] = {}
    resources: dict[str, str] = {}
    annotations: dict[str, str] = {}
    for hit in hits:
        labels.update(hit.labels)
        resources.update(hit.rule.extended_resources)
        annotations.update(hit.rule.annotations)
    return (
        ("Labels", "label", labels),
        ("Extended Resources", "extended resource", resources),
        ("Annotations", "annotation", annotations),
    )


def _resolve(
    outputs: Mapping[str, str], kind: str, sets: Sets, matched: Matched
) -> tuple[dict[str, str], list[str]]:
    resolved: dict[str, str] = {}
    failed: list[str] = []
    for key, value in outputs.items():
        if kind == "annotation" or not value.startswith("@"):
            resolved[key] = value
            continue
        found = resolve(value, sets, matched)
        if found.value is None:
            failed.append(
                f'failed to get dynamic value for {kind} "{key}": {found.problem}'
            )
        else:
            resolved[key] = found.value
    return resolved, failed


def _section(title: str, lines: Sequence[str], errors: Iterable[str]) -> None:
    if not lines:
        return
    print(f"***\t{title}\t***")
    print(*lines, sep="\n")
    found = list(errors)
    if found:
        print("\t-Validation errors-")
        print(*found, sep="\n")


def _braced(taint: Taint) -> str:
    added = taint.time_added or "<nil>"
    return f"{{{taint.key} {taint.value} {taint.effect} {added}}}"
