"""`nfd rules` and `kubectl-nfd` on rule files, manifests and recorded hosts."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from nfd.cli import main
from nfd.cli.kubectl_nfd import main as kubectl
from nfd.discovery import Discovery, SourceResult

RULES = Path(__file__).parents[2] / "fixtures" / "rules"
GOOD = [str(RULES / name) for name in ("gpu.yaml", "network.yaml", "platform.yaml")]
HOST = str(RULES / "host.json")
BAD = str(RULES / "bad.yaml")

Capture = pytest.CaptureFixture[str]


def nfd(capsys: Capture, *words: str) -> tuple[int, str, str]:
    status = main(["rules", *words])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_bad_rules_are_all_found(capsys: Capture) -> None:
    """Every rule of the fixture has a mistake, and every kind of mistake is there."""
    status, out, _ = nfd(capsys, "validate", BAD, "-o", "json")
    report = json.loads(out)
    names = [
        rule["name"] for rule in yaml.safe_load(Path(BAD).read_text())["spec"]["rules"]
    ]
    found = {problem["rule"] for problem in report["problems"]}
    text = " ".join(problem["message"] for problem in report["problems"])

    assert status == 1
    assert set(names) - found == {"misspelt-key"}, "known by its place only"
    assert report["errors"] + report["warnings"] == len(report["problems"])
    for kind in (
        "unknown key 'labelz'",
        "quote it",
        "unknown operator 'Equals'",
        "Gt takes 1 value",
        "not a 64-bit integer",
        "bad pattern",
        "{{range}}",
        "env",
        "namespace is not allowed",
        "the value may hold",
        "whole number",
        "invalid taint effect",
        "is not @<domain>.<feature>.<element>",
        "has no attributes",
        "nearest: kernel.version",
        "nearest: major",
        "can never match",
        "writes this key too",
        "is not <domain>.<feature>",
        "no earlier rule writes",
        "is never used",
        "does not look at the type",
        "has a rule of this name too",
        "is not looked up here",
    ):
        assert kind in text


def test_good_rules_are_valid(capsys: Capture) -> None:
    status, out, _ = nfd(capsys, "validate", *GOOD, "--strict", "--features", HOST)

    assert (status, out) == (0, "11 rules, 0 errors, 0 warnings\n")


def test_warnings_count_when_strict(capsys: Capture, tmp_path: Path) -> None:
    """Case H36."""
    path = write(tmp_path, "- {name: r, matchFeatures: [{feature: kubernetes.label}]}")

    status, out, _ = nfd(capsys, "validate", path)
    assert status == 0
    assert "no installed source has the feature 'kubernetes.label'" in out
    assert nfd(capsys, "validate", path, "--strict")[0] == 1
    known = ("--strict", "--known", "kubernetes.")
    assert nfd(capsys, "validate", path, *known)[0] == 0


def test_rules_that_fail_on_given_features_are_told(
    capsys: Capture, tmp_path: Path
) -> None:
    text = (
        "- {name: r, labelsTemplate: 'a={{ .kernel.version }}',"
        " matchFeatures: [{feature: pci.device}]}"
    )
    path = write(tmp_path, text)

    assert nfd(capsys, "validate", path)[0] == 0
    status, out, _ = nfd(capsys, "validate", path, "--features", HOST)
    assert status == 1
    assert "rule 'r'" in out


def write(folder: Path, text: str, name: str = "rules.yaml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_example_rules_give_what_is_expected(
    capsys: Capture, *, update_golden: bool
) -> None:
    golden = RULES / "expected.json"

    status, out, err = nfd(capsys, "test", *GOOD, "--features", HOST, "-o", "json")

    assert (status, err) == (0, "")
    if update_golden:
        golden.write_text(out)
    assert json.loads(golden.read_text()) == json.loads(out)


def test_a_matrix_over_captures(capsys: Capture, host_dir: Path) -> None:
    names = ("gpu-server-a100", "mi300x-server", "arm64-server")
    captures = [w for name in names for w in ("--capture", str(host_dir / name))]

    status, out, _ = nfd(capsys, "test", *GOOD, *captures)
    rows = {
        line.split()[0]: line.split()[1:] for line in out.split("\n\n")[0].splitlines()
    }

    assert status == 0
    assert list(names) == rows["rule"]
    assert rows["gpu/nvidia-gpu"] == ["yes", "no", "no"]
    assert rows["gpu/amd-gpu"] == ["no", "yes", "no"]
    assert rows["gpu/any-gpu"] == ["yes", "yes", "no"]
    assert "label example.com/gpu.amd=true  (rule amd-gpu)" in out


MANIFEST = """
apiVersion: nfd.k8s-sigs.io/v1alpha1
kind: NodeFeature
metadata:
  name: n
  labels: {nfd.node.kubernetes.io/node-name: node-1}
spec:
  features:
    attributes: {kernel.version: {elements: {full: 5.15.0, major: "5"}}}
    flags: {}
    instances: {}
"""


def test_one_manifest_as_json_and_yaml(capsys: Capture, tmp_path: Path) -> None:
    path = write(tmp_path, MANIFEST)
    command = ("test", GOOD[2], "--nodefeature", path)

    status, out, _ = nfd(capsys, *command, "-o", "json")
    plain = json.loads(out)

    assert status == 0
    assert plain["labels"] == {"example.com/kernel": "5"}
    assert {"name": "kernel-5.4-or-newer", "matched": True} in plain["rules"]
    assert set(plain) == {
        *("labels", "annotations", "taints", "extendedResources", "vars"),
        *("rules", "errors", "refused", "conflicts"),
    }
    assert plain == yaml.safe_load(nfd(capsys, *command, "-o", "yaml")[1])


def test_several_targets_are_named(capsys: Capture, tmp_path: Path) -> None:
    other = MANIFEST.replace("node-1", "node-2").replace("5.15.0", "4.18.0")
    path = write(tmp_path, f"{MANIFEST}---{other}")

    _, out, _ = nfd(capsys, "test", GOOD[2], "--nodefeature", path, "-o", "json")
    plain = json.loads(out)

    assert list(plain) == ["node-1", "node-2"]
    assert plain["node-2"]["labels"] == {}


def test_failed_rules_and_bad_files_give_1(capsys: Capture, tmp_path: Path) -> None:
    text = """
- name: fails
  matchFeatures: [{feature: kernel.version, matchExpressions: {full: {op: Gt, value: "1"}}}]
- name: refused
  labels: {kubernetes.io/x: "1"}
- name: template
  labelsTemplate: "x={{ fail }}"
  matchFeatures: [{feature: kernel.version}]
"""
    path, manifest = write(tmp_path, text), write(tmp_path, MANIFEST, "n.yaml")
    command = ("test", path, "--nodefeature", manifest)

    status, out, _ = nfd(capsys, *command)
    assert status == 1
    assert "template  ERROR" in " ".join(out.split("  ", 1)[1:]) or "ERROR" in out
    assert "bad value: rule 'fails', kernel.version full" in out
    assert "refused: label kubernetes.io/x=1 of rule 'refused': namespace" in out

    broken = write(tmp_path, "- name: [", "broken.yaml")
    status, _, err = nfd(capsys, "test", broken, "--nodefeature", manifest)
    assert status == 1
    assert "broken.yaml: line" in err


def test_policy_options(capsys: Capture, tmp_path: Path) -> None:
    text = "- name: r\n  labels: {a.io/x: '1', b.kubernetes.io/y: '1', z: '1'}"
    path = write(tmp_path, text)
    words = ("--deny-label-ns", "a.io", "--extra-label-ns", "b.kubernetes.io")
    command = ("test", path, "--features", HOST, "-o", "json", *words)

    plain = json.loads(nfd(capsys, *command)[1])
    assert list(plain["labels"]) == [
        "b.kubernetes.io/y",
        "feature.node.kubernetes.io/z",
    ]
    only_y = json.loads(nfd(capsys, *command, "--label-whitelist", "^y$")[1])
    assert list(only_y["labels"]) == ["b.kubernetes.io/y"]
    bare = json.loads(nfd(capsys, *command, "--no-auto-prefix")[1])
    assert list(bare["labels"]) == ["b.kubernetes.io/y", "z"]
    taints = json.loads(
        nfd(capsys, "test", *GOOD, "--features", HOST, "-o", "json", "--no-taints")[1]
    )
    assert [r["key"] for r in taints["refused"]] == ["example.com/gpu"]
    assert nfd(capsys, *command, "--label-whitelist", "(")[0] == 2


def test_explain_shows_what_failed(capsys: Capture) -> None:
    status, out, _ = nfd(capsys, "explain", GOOD[0], "amd-gpu", "--features", HOST)

    assert status == 0
    assert "rule 'gpu/amd-gpu' does not match" in out
    assert "vendor In 1002: is '10de'" in out


def test_explain_knows_earlier_rules(capsys: Capture) -> None:
    command = ("explain", GOOD[0], "gpu/any-gpu", "--features", HOST, "-o", "json")

    plain: dict[str, Any] = json.loads(nfd(capsys, *command)[1])

    assert plain["outcome"] == "matched"
    assert plain["terms"][0]["elements"][0]["element"] == "has-gpu"


def test_explaining_a_label_leads_into_its_rule(
    capsys: Capture, tmp_path: Path
) -> None:
    """Whether the rule made it or not."""
    folder = tmp_path / "etc/kubernetes/node-feature-discovery/custom.d"
    folder.mkdir(parents=True)
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/osrelease").write_text("6.1.0-13-amd64\n")
    write(
        folder,
        """
- name: new
  labels: {my.new: "1"}
  matchFeatures: [{feature: kernel.version, matchExpressions: {major: "6"}}]
- name: old
  labels: {my.old: "1"}
  matchFeatures: [{feature: kernel.version, matchExpressions: {major: "5"}}]
""",
    )

    assert main(["explain", "my.new", "--root", str(tmp_path)]) == 0
    made = capsys.readouterr().out
    assert main(["explain", "my.old", "--root", str(tmp_path)]) == 1
    absent = capsys.readouterr().out

    assert "rule:          new" in made
    assert "+ attribute major: major In 6: is '6'" in made
    assert "label my.old: not there" in absent
    assert "- attribute major: major In 5: is '6'" in absent


def test_explain_of_an_unknown_rule(capsys: Capture) -> None:
    status, _, err = nfd(capsys, "explain", GOOD[0], "amd-gpv", "--features", HOST)

    assert status == 2
    assert "there is no rule 'amd-gpv', did you mean 'amd-gpu'?" in err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("test", "missing.yaml", "--features", HOST), "missing.yaml: No such file"),
        (("test", GOOD[0], "--features", BAD), "holds no features"),
        (("test", GOOD[0], "--nodefeature", GOOD[0]), "holds no NodeFeature"),
        (("test", GOOD[0], "--features", HOST, "--features", HOST), "more than once"),
    ],
)
def test_wrong_use(capsys: Capture, words: tuple[str, ...], text: str) -> None:
    status, _, err = nfd(capsys, *words)

    assert status in (1, 2)
    assert text in err


# kubectl-nfd: spec/master.md section 6.1


def test_kubectl_validate(capsys: Capture) -> None:
    status = kubectl(["validate", "-f", GOOD[2]])
    out = capsys.readouterr().out

    assert status == 0
    assert out.startswith(
        f"Validating NodeFeatureRule {GOOD[2]}\nValidating rule:  sgx\n"
    )
    assert out.endswith(f"NodeFeatureRule {GOOD[2]} is valid\n")


RULE = """
apiVersion: nfd.k8s-sigs.io/v1alpha1
kind: NodeFeatureRule
metadata: {name: o}
spec:
  rules:
  - name: r
    unknown: is ignored
    labels: {plain: "1", v.io/full: "@kernel.version.full", v.io/none: "@a.b.c"}
    annotations: {v.io/a: "2"}
    extendedResources: {v.io/e: "@kernel.version.major"}
    taints: [{key: v.io/t, value: x, effect: NoSchedule}, {key: t, effect: Never}]
    labelsTemplate: "{{"
    matchFeatures: [{feature: kernel}]
"""


def test_kubectl_validate_finds_mistakes(capsys: Capture, tmp_path: Path) -> None:
    path = write(tmp_path, RULE)

    status = kubectl(["validate", "-f", path])
    said = capsys.readouterr()

    assert status == 1
    assert said.out.endswith(f"NodeFeatureRule {path} is not valid\n")
    assert said.err.splitlines()[:2] == [
        'invalid label "plain":"1" unprefixed keys are not allowed',
        "invalid taint t:Never: unprefixed keys are not allowed",
    ]
    assert "invalid template: labelsTemplate: line 1" in said.err
    assert "invalid feature name kernel (not <domain>.<feature>)" in said.err


def test_kubectl_dryrun(capsys: Capture, tmp_path: Path) -> None:
    """Invalid outputs are told and cost nothing; unresolved values do."""
    rule = RULE.replace('    labelsTemplate: "{{"\n', "").replace(
        "feature: kernel", "feature: kernel.version"
    )
    again = "  - name: alone\n    matchFeatures: [{feature: rule.matched}]\n    labels: {v.io/no: x}\n"
    path, node = write(tmp_path, rule + again), write(tmp_path, MANIFEST, "n.yaml")

    status = kubectl(["dryrun", "-f", path, "-n", node])
    said = capsys.readouterr()

    assert status == 1
    assert said.out == (
        f'Evaluating NodeFeatureRule "{path}" against NodeFeature "{node}"\n'
        "Processing rule:  r\n"
        "Processing rule:  alone\n"
        "***\tTaints\t***\n"
        "{v.io/t x NoSchedule <nil>}\n"
        "{t  Never <nil>}\n"
        "\t-Validation errors-\n"
        "invalid taint t:Never: unprefixed keys are not allowed\n"
        "***\tLabels\t***\n"
        "plain=1\n"
        "v.io/full=5.15.0\n"
        "\t-Validation errors-\n"
        'invalid label "plain":"1" unprefixed keys are not allowed\n'
        "***\tExtended Resources\t***\n"
        "v.io/e=5\n"
        "***\tAnnotations\t***\n"
        "v.io/a=2\n"
        f'NodeFeatureRule "{path}" is not valid for NodeFeature "{node}"\n'
    )
    assert said.err == (
        'failed to get dynamic value for label "v.io/none": '
        "feature 'a.b' not found for '@a.b.c'\n"
    )


def test_kubectl_dryrun_of_a_failing_rule(capsys: Capture, tmp_path: Path) -> None:
    rule = RULE.replace("feature: kernel", "feature: kernel.version")
    path, node = write(tmp_path, rule), write(tmp_path, MANIFEST, "n.yaml")

    assert kubectl(["dryrun", "-f", path, "-n", node]) == 1
    assert 'failed to process rule: "r" - labelsTemplate' in capsys.readouterr().err


def test_kubectl_reads_the_first_document_only(capsys: Capture, tmp_path: Path) -> None:
    path = write(tmp_path, Path(GOOD[0]).read_text() + "---\nkind: [")

    assert kubectl(["validate", "-f", path]) == 0
    assert "amd-gpu" in capsys.readouterr().out


def test_kubectl_without_files(capsys: Capture) -> None:
    assert kubectl(["validate", "-f", "missing.yaml"]) == 1
    assert "missing.yaml" in capsys.readouterr().err
    assert kubectl(["dryrun", "-f", GOOD[0], "-n", GOOD[0]]) == 1
    assert "holds no NodeFeature" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        kubectl(["dryrun", "-f", GOOD[0]])


def test_rules_of_groups(capsys: Capture, tmp_path: Path) -> None:
    text = """
kind: NodeFeatureGroup
metadata: {name: g}
spec:
  featureGroupRules:
  - name: one
    vars: {v: "1"}
    matchFeatures: [{feature: kernel.version}]
  - name: two
    matchFeatures: [{feature: rule.matched, matchExpressions: {v: {op: Exists}}}]
"""
    path, manifest = write(tmp_path, text), write(tmp_path, MANIFEST, "n.yaml")
    target = ("--nodefeature", manifest, "-o", "json")

    plain = json.loads(nfd(capsys, "test", path, *target)[1])
    told = json.loads(nfd(capsys, "explain", path, "two", *target)[1])

    assert [rule["matched"] for rule in plain["rules"]] == [True, True]
    assert told["outcome"] == "matched"


def test_rules_from_standard_input_on_the_default_root(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NFD_HOST_ROOT", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO("- {name: r, labels: {a: b}}"))

    status, out, _ = nfd(capsys, "test", "-", "-o", "json")

    assert (
        status,
        json.loads(out)["labels"],
    ) == (0, {"feature.node.kubernetes.io/a": "b"})


def test_saved_scans_and_manifests_are_features(
    capsys: Capture, tmp_path: Path
) -> None:
    scan = {"labels": {}, "features": json.loads(Path(HOST).read_text())}
    saved = write(tmp_path, json.dumps(scan), "scan.json")
    manifest = write(tmp_path, MANIFEST, "manifest.yaml")
    files = ("--features", saved, "--features", manifest)

    plain = json.loads(nfd(capsys, "test", GOOD[2], *files, "-o", "json")[1])

    assert list(plain) == ["scan", "manifest"]
    assert plain["manifest"]["labels"]["example.com/kernel"] == "5"
    assert plain["scan"]["labels"]["example.com/qat"] == "true"


def test_rules_over_failed_sources_are_unknown(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That a source failed does not mean that there is no device."""
    failed = {"pci": SourceResult("pci", "failed", error="boom")}
    monkeypatch.setattr("nfd.cli.targets.scan", lambda _: Discovery(failed, {}))

    status, out, err = nfd(capsys, "test", GOOD[0], "--root", "/x", "-o", "json")
    unknown = {entry["rule"]: entry["reason"] for entry in json.loads(out)["unknown"]}

    assert status == 0
    assert "source pci failed: boom" in err
    assert {"nvidia-gpu", "amd-gpu", "any-gpu"} == set(unknown)
    assert unknown["nvidia-gpu"] == "pci.device: boom"
