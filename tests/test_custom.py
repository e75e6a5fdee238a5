"""Worker rules: static ones, the configuration's and custom.d (spec/worker.md 5)."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nfd.custom import FOLDER, CustomSource, load_custom
from nfd.discovery import collect_labels
from nfd.errors import ConfigError
from nfd.hostroot import HostRoot
from nfd.library import make_plan
from nfd.registry import Registry
from nfd.rules.model import Expression, Rule, Term
from tests.rules.build import host as features
from tests.rules.build import rule, term


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / FOLDER[1:]
    path.mkdir(parents=True)
    return path


def load(
    tmp_path: Path, config: Any = (), before: CustomSource | None = None
) -> tuple[list[str], tuple[str, ...]]:
    with HostRoot.open(str(tmp_path), live=False) as host:
        source, problems = load_custom(host, config, before)
    return [r.name for r in source.rules[2:]], problems


def one(config: Any) -> Rule:
    with HostRoot.open("/", live=False) as host:
        return load_custom(host, [config])[0].rules[2]


def labels(source: CustomSource, **sets: Any) -> dict[str, str]:
    return {
        label.key: label.value for label in source.evaluate(features(**sets)).labels
    }


def test_static_rules() -> None:
    """RDMA labels need a Mellanox device, and both kernel modules."""
    source = CustomSource()

    assert labels(source) == {}
    assert labels(
        source,
        instances={"pci.device": [{"vendor": "8086"}, {"vendor": "15b3"}]},
        flags={"kernel.loadedmodule": ["ib_uverbs"]},
    ) == {"rdma.capable": "true"}
    assert labels(source, flags={"kernel.loadedmodule": ["ib_uverbs", "rdma_ucm"]}) == {
        "rdma.available": "true"
    }


@pytest.mark.parametrize("vendor", ["15b3", "8086", None])
@pytest.mark.parametrize(
    "modules", [["ib_uverbs", "rdma_ucm", "x"], ["rdma_ucm"], None]
)
def test_static_rules_do_without_the_engine(
    vendor: str | None, modules: list[str] | None
) -> None:
    """The short cut gives what the rules give, provenance included."""
    found = features(
        instances={"pci.device": [{"vendor": vendor}]} if vendor else {},
        flags={} if modules is None else {"kernel.loadedmodule": modules},
    )
    made = CustomSource().evaluate(found)

    assert (list(made.labels), ()) == CustomSource().labels(found)[:2]


def test_the_engine_stays_unloaded_without_rules() -> None:
    """It would cost every scan a third of its time."""
    code = (
        "import sys, nfd.custom as c, nfd.features as f\n"
        "c.CustomSource().labels(f.Features())\n"
        "print([m for m in sys.modules if m.startswith(('nfd.rules', 'yaml', 're2'))])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_a_rule_explains_itself() -> None:
    source = CustomSource([rule(term("f.g", a=Expression("Exists")), name="mine")])
    told = source.explain("mine", features(attributes={"f.g": {"a": "1"}}))

    assert told[0] == "rule 'mine' matches"
    assert source.explain("other", features()) == []


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (["A", "B=v"], {"A": Expression("Exists"), "B": Expression("In", ("v",))}),
        ({"A": None}, {"A": Expression("Exists")}),
        ({"A": "v"}, {"A": Expression("In", ("v",))}),
        ({"A": True}, {"A": Expression("In", ("true",))}),
        ({"A": 8086}, {"A": Expression("In", ("8086",))}),
        ({"A": 1e21}, {"A": Expression("In", ("1000000000000000000000",))}),
        ({"A": 1.5}, {"A": Expression("In", ("1.5",))}),
        ({"A": ["v", "w"]}, {"A": Expression("In", ("v", "w"))}),
        ({"A": {"op": "Gt", "value": 5}}, {"A": Expression("Gt", ("5",))}),
        ({"A": {"op": "Exists"}}, {"A": Expression("Exists")}),
        ({"A": {}}, {"A": Expression("")}),
        ({"A": {"OP": "In", "Value": "x"}}, {"A": Expression("In", ("x",))}),
        (
            {"A": {"op": "GeLe", "value": ["1", "2"], "type": "version"}},
            {"A": Expression("GeLe", ("1", "2"), "version")},
        ),
        ({}, {}),
    ],
)
def test_short_forms(short: Any, long: dict[str, Expression]) -> None:
    got = one(
        {"name": "r", "matchFeatures": [{"feature": "f.g", "matchExpressions": short}]}
    )

    assert Term("f.g", long) == got.match_features[0]


def test_short_form_of_a_name() -> None:
    got = one({"matchFeatures": [{"feature": "f.g", "matchName": ["a", "b"]}]})

    assert Term("f.g", None, Expression("In", ("a", "b"))) == got.match_features[0]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ({"op": "Lt", "value": "str"}, "not a 64-bit integer"),
        ({"op": "Equals", "value": "x"}, "unknown operator"),
        ({"op": "Exists", "value": "x"}, "no values"),
        ({"value": "x"}, "no values"),
        ({"op": "GtLt", "value": ["2", "1"]}, "not less"),
        ({"op": "InRegexp", "value": ["("]}, "bad pattern"),
        ({"op": "In"}, "at least 1"),
        ({"op": "In", "value": [1]}, "quote it"),
        ([1], "quote it"),
        ({"op": "In", "value": {"a": "b"}}, "expected text or a list"),
    ],
)
def test_a_bad_rule_spoils_the_configuration(expression: Any, text: str) -> None:
    """The error names the place of the bad expression."""
    term = {"feature": "f.g", "matchExpressions": {"A": expression}}
    place = r"^sources.custom\[0\].matchFeatures\[0\].matchExpressions.A"

    with pytest.raises(ConfigError, match=f"{place}.*{text}"):
        one({"name": "r", "matchFeatures": [term]})


def test_the_configuration_is_lax_about_unknown_keys() -> None:
    got = one({"name": "r", "labels": {"a": True}, "annotations": {"x": "y"}, "z": 1})

    assert (got.labels, got.annotations) == ({"a": "true"}, {})


def test_files_are_read_in_name_order_one_folder_deep(
    tmp_path: Path, folder: Path
) -> None:
    """Hidden files are left out, hidden folders are not (spec/worker.md 5)."""
    for name in ("b.yaml", "a", ".hidden", "d/2", "d/.x", "d/deep/3", ".dot/1", "e"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"- name: {name}\n" if name != "e" else "")

    assert load(tmp_path) == ([".dot/1", "a", "b.yaml", "d/2"], ())


def test_a_mounted_configmap_counts_once(tmp_path: Path, folder: Path) -> None:
    version = folder / "..2026_01_01"
    version.mkdir()
    (version / "rules.yaml").write_text("- name: r")
    os.symlink("..2026_01_01", folder / "..data")
    os.symlink("..data/rules.yaml", folder / "rules.yaml")

    assert load(tmp_path) == (["r"], ())


def test_no_folder_is_fine(tmp_path: Path) -> None:
    assert load(tmp_path) == ([], ())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- name: r\n  nme: x", "unknown key 'nme', did you mean 'name'?"),
        ("- name: r\n  annotations: {a: b}", "unknown key 'annotations'"),
        ("- name: r\n  name: s", "key 'name' is given twice"),
        ("- name: [", "line"),
        ("name: r", "expected a list"),
        ("- r", "expected a map, got 'r'"),
    ],
)
def test_a_bad_file_loses_only_itself(
    tmp_path: Path, folder: Path, text: str, reason: str
) -> None:
    (folder / "a").write_text("- name: good")
    (folder / "b").write_text(text)

    names, problems = load(tmp_path)

    assert names == ["good"]
    (problem,) = problems
    assert f"{FOLDER}/b" in problem
    assert reason in problem


def test_a_file_that_became_bad_keeps_its_rules(tmp_path: Path, folder: Path) -> None:
    (folder / "a").write_text("- name: old")
    with HostRoot.open(str(tmp_path), live=False) as host:
        before, _ = load_custom(host)
    (folder / "a").write_text("- name: [")

    names, problems = load(tmp_path, before=before)

    assert names == ["old"]
    assert "its earlier rules stay" in problems[0]


def test_a_failing_rule_is_named_and_costs_only_itself() -> None:
    bad = rule(term("f.g", a=Expression("Gt")), name="bad")
    good = rule(term("f.g", a=Expression("Exists")), name="good")
    made = CustomSource([bad, good]).evaluate(features(attributes={"f.g": {"a": "1"}}))

    assert [label.key for label in made.labels] == ["good"]
    assert [refusal.key for refusal in made.refused] == ["bad"]
    assert "Gt takes 1 value" in made.refused[0].reason
    assert {"bad"} == made.unknown_rules


def test_rules_over_unread_sets_are_told() -> None:
    """Their labels of before must be kept by whoever publishes."""
    made = CustomSource().evaluate(features(unknown={"pci.device": "I/O error"}))

    assert {"RDMA capable"} == made.unknown_rules
    assert "pci.device: I/O error" in made.refused[0].reason


def test_later_rules_see_earlier_labels_and_vars() -> None:
    first = Rule("first", labels={"a": "1"}, vars={"v.w/x": "2"})
    seen = term("rule.matched", a=Expression("In", ("1",)))
    expressions = {"v.w/x": Expression("In", ("2",))}
    second = rule(seen, Term("rule.matched", expressions), name="second")

    assert labels(CustomSource([first, second])) == {"a": "1", "second": "true"}


def test_a_file_that_is_too_large(tmp_path: Path, folder: Path) -> None:
    (folder / "big").write_bytes(b"#" * ((1 << 20) + 1))
    (folder / "good").write_text("- name: good")

    names, problems = load(tmp_path)

    assert names == ["good"]
    assert [f"{FOLDER}/big: File too large; the file is left out"] == list(problems)


def test_a_folder_that_cannot_be_listed(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del folder

    def refuse(_: HostRoot, path: str) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(HostRoot, "listdir", refuse)

    assert ([], (f"{FOLDER}: Permission denied",)) == load(tmp_path)


@pytest.mark.parametrize("text", ["- name: [", "- {name: r, odd: 1}"])
def test_rules_that_could_not_be_read_are_not_gone(
    tmp_path: Path, folder: Path, text: str
) -> None:
    """A worker that starts with a bad file knows of no rule in it, and says so."""
    (folder / "a").write_text("- name: good")
    (folder / "b").write_text(text)
    with HostRoot.open(str(tmp_path), live=False) as host:
        found, _ = load_custom(host)
        (folder / "b").write_text("- name: better")
        mended, _ = load_custom(host)

    known = frozenset({"RDMA available", "RDMA capable", "good"})
    assert found.labels(features()).answered == known
    assert mended.labels(features()).answered is None


def test_a_new_plan_keeps_the_rules_of_a_file_that_became_bad(
    tmp_path: Path, folder: Path
) -> None:
    registry = Registry([])
    with HostRoot.open(str(tmp_path), live=False) as host:
        (folder / "a").write_text("- {name: old, labels: {old: '1'}}")
        plan, _ = make_plan(registry, host)
        (folder / "a").write_text("- name: [")
        plan, warnings = make_plan(registry, host, before=plan)

    assert list(collect_labels(plan, {}).labels) == ["old"]
    assert any("its earlier rules stay" in warning for warning in warnings)
