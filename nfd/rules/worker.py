"""Worker rules over the features of one host: the built-in ones, and how all run."""

from collections.abc import Sequence

import attrs

from nfd.features import Features
from nfd.labels import Label, Provenance, Refusal
from nfd.rules.engine import RuleResult, evaluate_all
from nfd.rules.model import Expression, Rule, Term
from nfd.rules.sets import Matched

SOURCE = "custom"  # name of the label source
BUILT_IN = "built-in"

STATIC_RULES = (
    Rule(
        "RDMA capable",
        labels={"rdma.capable": "true"},
        match_features=(Term("pci.device", {"vendor": Expression("In", ("15b3",))}),),
        origin=BUILT_IN,
    ),
    Rule(
        "RDMA available",
        labels={"rdma.available": "true"},
        match_features=(
            Term(
                "kernel.loadedmodule",
                {"ib_uverbs": Expression("Exists"), "rdma_ucm": Expression("Exists")},
            ),
        ),
        origin=BUILT_IN,
    ),
)


@attrs.frozen(slots=True)
class CustomLabels:
    """What worker rules give: labels as written, and the fate of every rule."""

    labels: tuple[Label, ...]
    results: tuple[RuleResult, ...]
    matched: Matched  # what a further rule would see

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """The rules that failed or could not be decided, with the reason."""
        return tuple(
            Refusal(
                "rule",
                result.rule.name,
                "",
                why if result.outcome == "error" else f"unknown: {why}",
                Provenance(SOURCE, rule=result.rule.name),
            )
            for result in self.results
            if (why := result.reason)
        )

    @property
    def unknown_rules(self) -> frozenset[str]:
        """Names of the rules whose earlier labels must be kept; failed ones too."""
        return frozenset(r.rule.name for r in self.results if r.reason)


def run_rules(rules: Sequence[Rule], features: Features) -> CustomLabels:
    """Run rules in order; a rule that fails costs only itself."""
    results, matched = evaluate_all(rules, features)
    labels: dict[str, Label] = {}
    for result in results:
        rule = result.rule
        made = Provenance(
            SOURCE,
            feature=",".join(sorted(rule.reads)),
            rule=rule.name,
            because=f"rules of {rule.origin}",
        )
        for key, value in result.labels.items():
            labels[key] = Label(key, value, made)
    return CustomLabels(tuple(labels[k] for k in sorted(labels)), results, matched)
