"""The rule engine: evaluations a second, one rule after the other, on one core.

Prints, for each typical rule over a host with 50 PCI devices, the best of several turns
beside the budget (20,000 a second for a rule without a template), then a whole node (20
rules and the policy on it) and what a fleet of 5,000 such nodes costs when nothing is
kept. Run: `python benchmarks/bench_rules.py`.
"""

import sys
import time
from collections.abc import Callable

from nfd.features import Features
from nfd.rules.engine import evaluate
from nfd.rules.model import Expression, Rule, Term
from nfd.rules.output import execute
from nfd.rules.policy import Policy
from nfd.rules.sets import Matched, Sets

BUDGET = 20_000  # evaluations a second
DEVICES = 50
TURNS = 7
SECONDS = 0.1  # each turn


def host() -> Features:
    """Make features as a GPU server has them; only the last device is the one sought."""
    devices = [
        {
            "address": f"0000:{n:02x}:00.0",
            "class": "0604" if n % 3 else "0200",
            "vendor": "8086",
            "device": f"{n:04x}",
            "subsystem_vendor": "8086",
            "subsystem_device": "0000",
            "sriov_totalvfs": "0",
        }
        for n in range(DEVICES - 1)
    ]
    gpu = {**devices[0], "class": "0302", "vendor": "10de", "device": "20b0"}
    return Features.of(
        flags={
            "cpu.cpuid": [f"FLAG{n}" for n in range(80)] + ["AVX512F"],
            "kernel.loadedmodule": [f"module{n}" for n in range(250)],
        },
        attributes={
            "kernel.version": {"full": "5.14.0-503.35.1.el9_5.x86_64", "major": "5"},
            "memory.numa": {"is_numa": "true", "node_count": "8"},
        },
        instances={"pci.device": [*devices, gpu]},
    )


def term(feature: str, **expressions: tuple[str, ...]) -> Term:
    return Term(
        feature,
        {name: Expression(op, tuple(v)) for name, (op, *v) in expressions.items()},
    )


PCI = term("pci.device", vendor=("In", "10de"), **{"class": ("InRegexp", "^03")})
VERSION = Term("kernel.version", {"full": Expression("Ge", ("5.4",), "version")})
RULES = {
    "instances: In and InRegexp": Rule("pci", {"a": "1"}, match_features=(PCI,)),
    "instances: no match, Gt": Rule(
        "gt",
        {"b": "1"},
        match_features=(term("pci.device", sriov_totalvfs=("Gt", "0")),),
    ),
    "attributes: version": Rule("version", {"c": "1"}, match_features=(VERSION,)),
    "flags: two of them": Rule(
        "flags",
        {"d": "1"},
        match_features=(
            term("cpu.cpuid", AVX512F=("Exists",)),
            term("kernel.loadedmodule", module7=("Exists",)),
        ),
    ),
    "matchAny: second of two": Rule(
        "any",
        {"e": "1"},
        match_any=((term("no.such", x=("Exists",)),), (PCI,)),
    ),
    "matchName: 81 flags by pattern": Rule(
        "name",
        {"f": "1"},
        match_features=(
            Term("cpu.cpuid", None, Expression("InRegexp", ("^AVX", "^SSE"))),
        ),
    ),
    "template over instances": Rule(
        "template",
        labels_template="{{range .pci.device}}gpu-{{.device}}={{.class}}\n{{end}}",
        match_features=(PCI,),
    ),
}


def rate(run: Callable[[], object]) -> float:
    """Return the best number of calls in a second of processor time."""
    run()
    best = 0.0
    for _ in range(TURNS):
        calls = 0
        start = time.process_time()
        while (spent := time.process_time() - start) < SECONDS:
            for _ in range(20):
                run()
            calls += 20
        best = max(best, calls / spent)
    return best


def main() -> int:
    sets = Sets.of(host())
    matched = Matched()
    print(f"Python {sys.version.split()[0]}, {DEVICES} devices, one core")
    print(f"{'rule':34} {'evaluations/s':>13} {'budget':>8}")
    slow = 0
    for name, rule in RULES.items():
        got = rate(lambda rule=rule: evaluate(rule, sets, matched))  # type: ignore[misc]
        assert evaluate(rule, sets, matched).outcome == (
            "no" if "no match" in name else "matched"
        )
        budget = 0 if rule.labels_template else BUDGET
        slow += got < budget
        print(f"{name:34} {got:13,.0f} {f'{budget:,}' if budget else '':>8}")
    twenty = [*RULES.values()] * 3
    policy = Policy()
    nodes = rate(lambda: execute(twenty[:20], sets, policy))
    print(f"{'a node: 20 rules and the policy':34} {nodes:13,.0f} nodes/s")
    print(f"{'5,000 nodes, nothing kept':34} {5000 / nodes:13.1f} s")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
