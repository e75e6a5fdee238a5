"""The label source `custom`: worker rules over the features of all sources.

Rules come in this order: two that are built in, `sources.custom` of the
configuration, files in custom.d. Source: spec/worker.md section 5.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs

from nfd.errors import ConfigError, RuleError
from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.labels import Label, Provenance, Refusal
from nfd.rules.engine import RuleResult, evaluate_all
from nfd.rules.model import Expression, Rule, Term

NAME = "custom"
FOLDER = "/etc/kubernetes/node-feature-discovery/custom.d"
MAX_FILE = 1 << 20  # bytes, as much as a ConfigMap holds
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

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """The rules that failed or could not be decided, with the reason."""
        return tuple(
            Refusal(
                "rule",
                result.rule.name,
                "",
                result.reason if result.outcome == "error" else f"unknown: {why}",
                Provenance(NAME, rule=result.rule.name),
            )
            for result in self.results
            if (why := result.reason)
        )

    @property
    def unknown_rules(self) -> frozenset[str]:
        """Names of the rules whose earlier labels must be kept."""
        return frozenset(
            r.rule.name for r in self.results if r.reason and r.outcome != "error"
        )


class CustomSource:
    """Makes labels of all features by rules; keys get no prefix here."""

    name: ClassVar[str] = NAME
    label_priority: ClassVar[int] = 10

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self.rules = (*STATIC_RULES, *rules)

    def rules_of(self, origin: str) -> list[Rule]:
        """Return the rules that came from one file."""
        return [rule for rule in self.rules if rule.origin == origin]

    def evaluate(self, features: Features) -> CustomLabels:
        """Run the rules in order; a rule that fails costs only itself."""
        results, _ = evaluate_all(self.rules, features)
        labels: dict[str, Label] = {}
        for result in results:
            made = Provenance(
                NAME,
                feature=",".join(sorted(result.rule.reads)),
                rule=result.rule.name,
                because=f"rules of {result.rule.origin}",
            )
            for key, value in result.labels.items():
                labels[key] = Label(key, value, made)
        return CustomLabels(tuple(labels[key] for key in sorted(labels)), results)

    def labels(self, features: Features) -> tuple[list[Label], list[Refusal]]:
        """Return the labels that rules make, and the rules that gave no answer."""
        made = self.evaluate(features)
        return list(made.labels), list(made.refused)


def load_custom(
    host: HostRoot, config_rules: Sequence[Any] = (), before: CustomSource | None = None
) -> tuple[CustomSource, tuple[str, ...]]:
    """Load worker rules from the configuration and from custom.d of the host.

    Returns the source and what is wrong with files. A bad file loses only itself; the
    rules that it gave `before` stay.

    Raises:
        ConfigError: A rule of `sources.custom` is wrong.

    """
    rules = list(config_rules_of(config_rules))
    problems: list[str] = []
    for path in _files(host, problems):
        try:
            rules += _file_rules(host, path)
        except (OSError, RuleError) as error:
            kept = [] if before is None else before.rules_of(path)
            rules += kept
            fate = "its earlier rules stay" if kept else "the file is left out"
            problems.append(f"{_describe(path, error)}; {fate}")
    return CustomSource(rules), tuple(problems)


def _file_rules(host: HostRoot, path: str) -> tuple[Rule, ...]:
    from nfd.rules.load import custom_text  # noqa: PLC0415 - needs PyYAML

    return custom_text(host.read(path, MAX_FILE), path).checked()


def _describe(path: str, error: Exception) -> str:
    return f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error)


def config_rules_of(plain: Sequence[Any]) -> tuple[Rule, ...]:
    """Read the value of `sources.custom`; unknown keys mean nothing.

    Raises:
        ConfigError: A rule is wrong.

    """
    if not plain:
        return ()
    from nfd.rules.load import custom_rules  # noqa: PLC0415 - needs PyYAML

    try:
        return custom_rules(list(plain), "sources.custom").checked()
    except RuleError as error:
        raise ConfigError(str(error)) from None


def _files(host: HostRoot, problems: list[str]) -> list[str]:
    """List rule files in name order, one folder deep, hidden files left out.

    Names that begin with `..` are how a mounted ConfigMap keeps its versions; they
    lead to files that are listed under their own names too.
    """
    found: list[str] = []
    for name in _names(host, FOLDER, problems):
        path = f"{FOLDER}/{name}"
        if _is_folder(host, path):
            inner = (f"{path}/{n}" for n in _names(host, path, problems) if n[0] != ".")
            found += (p for p in inner if not _is_folder(host, p))
        elif name[0] != ".":
            found.append(path)
    return found


def _is_folder(host: HostRoot, path: str) -> bool:
    try:
        return host.is_dir(path)
    except OSError:
        return False  # reading it as a file tells the reason


def _names(host: HostRoot, folder: str, problems: list[str]) -> list[str]:
    try:
        return [name for name in host.listdir(folder) if not name.startswith("..")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        problems.append(f"{folder}: {error.strerror}")
        return []
