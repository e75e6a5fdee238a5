"""The label source `custom`: worker rules over the features of all sources.

Rules come in this order: two that are built in, `sources.custom` of the
configuration, files in custom.d. Source: spec/worker.md section 5.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from nfd.errors import ConfigError, RuleError
from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.labels import Label, Provenance, RuleLabels

if TYPE_CHECKING:  # the rule engine costs a scan without rules a third of its time
    from nfd.rules.model import Rule
    from nfd.rules.worker import CustomLabels

FOLDER = "/etc/kubernetes/node-feature-discovery/custom.d"
MAX_SHOWN = 5  # elements of each term in an explanation
MAX_FILE = 1 << 20  # bytes, as much as a ConfigMap holds


class CustomSource:
    """Makes labels of all features by rules; keys get no prefix here."""

    name: ClassVar[str] = "custom"
    label_priority: ClassVar[int] = 10

    def __init__(self, rules: "Sequence[Rule]" = (), *, complete: bool = True) -> None:
        """`complete`: every rule that there is could be read."""
        self._added = tuple(rules)
        self._complete = complete

    @property
    def rules(self) -> "tuple[Rule, ...]":
        """All rules in their order, the built-in ones first."""
        from nfd.rules.worker import STATIC_RULES  # noqa: PLC0415 - see above

        return (*STATIC_RULES, *self._added)

    def rules_of(self, origin: str) -> "list[Rule]":
        """Return the rules that came from one file."""
        return [rule for rule in self._added if rule.origin == origin]

    def evaluate(self, features: Features) -> "CustomLabels":
        """Run the rules in order; a rule that fails costs only itself."""
        from nfd.rules.worker import run_rules  # noqa: PLC0415 - see above

        return run_rules(self.rules, features)

    def labels(self, features: Features) -> RuleLabels:
        """Return the labels that rules make, and the rules that gave no answer."""
        if self._complete and not self._added and not features.unknown:
            return RuleLabels(_static_labels(features))
        made = self.evaluate(features)
        answered = None if self._complete else frozenset(r.name for r in self.rules)
        return RuleLabels(
            list(made.labels), list(made.refused), made.unknown_rules, answered
        )

    def explain(self, name: str, features: Features) -> list[str]:
        """Tell term by term what the rule of this name found."""
        from nfd.rules.explain import explain_rule, lines  # noqa: PLC0415 - see above
        from nfd.rules.worker import run_rules  # noqa: PLC0415

        for index, rule in enumerate(self.rules):
            if rule.name == name:
                matched = run_rules(self.rules[:index], features).matched
                return lines(explain_rule(rule, features, matched), MAX_SHOWN)
        return []


def _static_labels(features: Features) -> list[Label]:
    """Do what the built-in rules do on features that are all known."""
    made = []
    modules = features.flags.get("kernel.loadedmodule", frozenset())
    if {"ib_uverbs", "rdma_ucm"} <= modules:
        made.append(("rdma.available", "kernel.loadedmodule", "RDMA available"))
    devices = features.instances.get("pci.device", ())
    if any(device.get("vendor") == "15b3" for device in devices):
        made.append(("rdma.capable", "pci.device", "RDMA capable"))
    return [
        Label(
            key,
            "true",
            Provenance(
                "custom", feature=feature, rule=rule, because="rules of built-in"
            ),
        )
        for key, feature, rule in made
    ]


def load_custom(
    host: HostRoot, config_rules: Sequence[Any] = (), before: CustomSource | None = None
) -> tuple[CustomSource, tuple[str, ...]]:
    """Load worker rules from the configuration and from custom.d of the host.

    Returns the source and what is wrong with files. A bad file loses only itself; the
    rules that it gave `before` stay. Where there are none, the source knows that rules
    are missing, so that no label goes for it.

    Raises:
        ConfigError: A rule of `sources.custom` is wrong.

    """
    rules = list(config_rules_of(config_rules))
    problems: list[str] = []
    paths = _files(host, problems)
    complete = not problems
    for path in paths:
        try:
            rules += _file_rules(host, path)
        except (OSError, RuleError) as error:
            kept = [] if before is None else before.rules_of(path)
            rules += kept
            complete = complete and bool(kept)
            fate = "its earlier rules stay" if kept else "the file is left out"
            problems.append(f"{_describe(path, error)}; {fate}")
    return CustomSource(rules, complete=complete), tuple(problems)


def _file_rules(host: HostRoot, path: str) -> "tuple[Rule, ...]":
    from nfd.rules.load import custom_text  # noqa: PLC0415 - needs PyYAML

    return custom_text(host.read(path, MAX_FILE), path).checked()


def _describe(path: str, error: Exception) -> str:
    return f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error)


def config_rules_of(plain: Sequence[Any]) -> "tuple[Rule, ...]":
    """Read the value of `sources.custom`; unknown keys mean nothing.

    Raises:
        ConfigError: A rule is wrong.

    """
    if not plain:
        return ()
    from nfd.rules.load import custom_rules  # noqa: PLC0415 - needs PyYAML

    place = "sources.custom"
    try:
        return custom_rules(list(plain), place).checked()
    except RuleError as error:
        text = str(error).replace(f"{place}: [", f"{place}[", 1)  # one path of a key
        raise ConfigError(text) from None


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
