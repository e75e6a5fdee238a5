"""Rendering of rule templates: microseconds each, beside gotpl's on the same template.

Prints for each template the best of several rounds for ours and gotpl's (where it is
installed), their ratio, and the time to parse. The budget: at most 3 times gotpl's best;
the aim: 10 microseconds for a small template.
Run: `python benchmarks/bench_gotemplate.py`.
"""

import importlib.util
import sys
import timeit
from collections.abc import Callable

from nfd.gotemplate import parse

ROUNDS = 15
BUDGET = 3.0  # times gotpl
DEVICE = {"class": "0302", "vendor": "10de", "device": "2330"}
DATA = {
    "pci": {"device": [DEVICE] * 2, "many": [DEVICE] * 50},
    "kernel": {
        "version": [
            {"Name": "full", "Value": "6.18.44"},
            {"Name": "major", "Value": "6"},
        ]
    },
}
TEMPLATES = {
    "two devices": "{{ range .pci.device }}pci-{{ .class }}_{{ .vendor }}=true\n{{ end }}",
    "one number": "gpus={{ len .pci.device }}",
    "condition": '{{ range .kernel.version }}{{ if eq .Name "major" }}k={{ .Value }}{{ end }}{{ end }}',
    "index": "gpu={{ (index .pci.device 0).device }}",
    "fifty devices": "{{ range .pci.many }}pci-{{ .class }}_{{ .vendor }}=true\n{{ end }}",
    "functions": '{{ range .kernel.version }}{{ .Name }}={{ .Value | replace "." "_" | trunc 8 }}\n{{ end }}',
}


def best(call: Callable[[], object]) -> float:
    """Return the best time of a call in microseconds."""
    timer = timeit.Timer(call)
    count, _ = timer.autorange()
    return min(timer.repeat(ROUNDS, max(1, count // 10))) / max(1, count // 10) * 1e6


def gotpl_time(text: str, wanted: str) -> float | None:
    """Time gotpl; None where it is not installed or lacks a function."""
    if importlib.util.find_spec("gotpl") is None:
        return None
    import gotpl  # noqa: PLC0415 - a yardstick that may be missing

    try:
        template = gotpl.Environment(missing_key="error").from_string(text)
        if template.render(DATA) != wanted:
            return None
    except gotpl.TemplateError:
        return None
    return best(lambda: template.render(DATA))


def main() -> int:
    """Print the table; 1 when the budget is missed."""
    print(f"{'template':<14} {'ours':>8} {'gotpl':>8} {'ratio':>6} {'parse':>8}  (us)")
    worst = 0.0
    for name, text in TEMPLATES.items():
        template = parse(text)
        ours = best(lambda template=template: template.render(DATA))  # type: ignore[misc]  # bound now
        theirs = gotpl_time(text, template.render(DATA))
        parsing = best(lambda text=text: parse(text))  # type: ignore[misc]  # bound now
        ratio = ours / theirs if theirs else 0.0
        worst = max(worst, ratio)
        shown = f"{theirs:8.2f} {ratio:6.2f}" if theirs else f"{'-':>8} {'-':>6}"
        print(f"{name:<14} {ours:8.2f} {shown} {parsing:8.1f}")
    print(f"worst ratio {worst:.2f} (budget {BUDGET:g})")
    return 1 if worst > BUDGET else 0


if __name__ == "__main__":
    sys.exit(main())
