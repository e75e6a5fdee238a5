"""The page about rules tells the truth: its tables and examples are run."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from nfd.rules.engine import evaluate, evaluate_all
from nfd.rules.load import custom_text, load_text
from nfd.rules.model import Expression, Rule, Term
from nfd.rules.operators import CLUSTER_OPERATORS
from nfd.rules.output import execute
from nfd.rules.policy import Policy
from tests.rules.build import host

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text()
ROWS = re.findall(
    r"^\| `(\w+)` \|[^|]*\|[^|]*\| `(\{op: [^`]*\})` \| (\S+) \| (\S+) \|$",
    PAGE,
    re.MULTILINE,
)
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def element(cell: str) -> dict[str, str]:
    return {} if cell == "*absent*" else {"e": cell.strip("`")}


def matches(expression: dict[str, Any], cell: str) -> bool:
    asked = Expression(
        expression["op"], tuple(expression.get("value", ())), expression.get("type", "")
    )
    rule = Rule("r", match_features=(Term("d.f", {"e": asked}),))
    result = evaluate(rule, host(attributes={"d.f": element(cell)}))
    assert result.outcome in ("matched", "no")
    return result.matched


def test_every_operator_has_an_example() -> None:
    assert set(CLUSTER_OPERATORS) == {row[0] for row in ROWS}


@pytest.mark.parametrize(("op", "text", "yes", "no"), ROWS)
def test_examples_of_operators(op: str, text: str, yes: str, no: str) -> None:
    expression = yaml.safe_load(text)

    assert op == expression["op"]
    assert matches(expression, yes)
    assert not matches(expression, no)


def test_the_example_of_a_version() -> None:
    (text,) = re.findall(r"`(\{op: \w+, value: \[.*?\], type: version\})`", PAGE)

    for value in ("5.14.0-503.el9_5.x86_64", "6.1-rc2"):
        assert f"`{value}`" in PAGE
        assert matches(yaml.safe_load(text), value)


def test_the_whole_rule_and_the_back_reference() -> None:
    loaded = load_text(BLOCKS[0], "rules.md", strict=True)
    later = custom_text(BLOCKS[1], "rules.md").checked()
    features = host(
        instances={
            "pci.device": [{"vendor": "10de", "class": "0302", "device": "20b0"}]
        },
        attributes={
            "kernel.version": {"major": "5"},
            "cpu.security": {"sgx.epc": "4096"},
            "rule.matched": {"example.com/rdma": "true"},
        },
    )
    out = execute((*loaded.rules, *later), features, Policy(enable_taints=True))

    assert loaded.problems == ()
    assert (out.refused, out.errors) == ((), ())
    assert list(out.labels) == [
        "example.com/ai",
        "example.com/gpu",
        "example.com/gpu-20b0",
        "example.com/gpu-ready",
    ]
    assert out.extended_resources["example.com/epc"].value == "4096"
    assert [str(t) for t in out.taints] == ["example.com/gpu=true:PreferNoSchedule"]


def test_the_short_forms() -> None:
    rules = custom_text(BLOCKS[2], "rules.md").checked()
    device = {
        "vendor": "1002",
        "class": "0302",
        "sriov_totalvfs": "1",
        "numa_node": "0",
    }
    features = host(
        flags={"kernel.loadedmodule": ["kvm", "nvidia"]},
        attributes={"kernel.version": {"major": "6"}},
        instances={"pci.device": [device]},
    )

    assert [r.outcome for r in evaluate_all(rules, features)[0]] == ["matched"]


def test_the_library_example(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    text = "- {name: six, labels: {a: b}, matchFeatures: [{feature: kernel.version}]}"
    (tmp_path / "rules.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)

    exec(compile(code, "rules.md", "exec"), {})

    assert capsys.readouterr().out == "feature.node.kubernetes.io/a b six\n"
