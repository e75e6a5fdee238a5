"""From the NodeFeatures of a node to what is wanted of it."""

from typing import Any

from nfd.features import Features
from nfd.labels import FEATURE_NS
from nfd.master.evaluate import Evaluation, Evaluator
from nfd.master.merging import Scope, Trust, TrustRule
from nfd.master.store import FeatureStore
from nfd.publish.ownership import Hold
from nfd.rules.model import Expression, Rule, Taint, Term
from nfd.rules.policy import Policy

GPU = {"vendor": "10de", "class": "0302"}
NIC = {"vendor": "15b3", "class": "0200"}
SCOPE = Scope("nfd")


def devices(*instances: dict[str, str]) -> Features:
    return Features.of(instances={"pci.device": instances})


def rule(name: str, *terms: Term, **outputs: Any) -> Rule:
    return Rule(name, match_features=terms, **outputs)


def has(vendor: str) -> Term:
    return Term("pci.device", {"vendor": Expression("In", (vendor,))})


class Fleet:
    """A store that is filled by name, and the evaluator over it."""

    def __init__(self, *rules: Rule, scope: Scope = SCOPE, **policy: Any) -> None:
        self.store = FeatureStore()
        self.evaluator = Evaluator(self.store, rules, Policy(**policy), scope)

    def put(
        self,
        features: Features,
        labels: dict[str, str] | None = None,
        *,
        node: str = "n1",
        key: tuple[str, str] | None = None,
        published: str = "",
        **about: Any,
    ) -> None:
        self.store.put(
            key or ("nfd", node),
            node,
            uid="u",
            features=features.to_spec(),
            labels=labels or {},
            about={"worker": True, **about},
            published=published,
        )

    def node(self, name: str = "n1") -> Evaluation:
        return self.evaluator.node(name)


def test_equal_sets_are_evaluated_once() -> None:
    """A rule runs once for all nodes that are equal in its eyes."""
    fleet = Fleet(rule("gpu", has("10de"), labels={"gpu": "true"}))
    for i in range(100):
        fleet.put(devices(GPU), {"name": str(i)}, node=f"n{i}")

    found = {
        fleet.node(f"n{i}").output.labels[f"{FEATURE_NS}/gpu"].value for i in range(100)
    }

    assert found == {"true"}
    assert fleet.evaluator.evaluations == 1


def test_results_follow_what_earlier_rules_gave() -> None:
    """A back-reference is an input like any set."""
    back = Term("rule.matched", {"gpu": Expression("IsTrue")})
    fleet = Fleet(
        rule("gpu", has("10de"), labels={"gpu": "true"}),
        rule("both", back, labels={"both": "1"}),
    )
    fleet.put(devices(GPU), node="n1")
    fleet.put(devices(NIC), node="n2")

    assert f"{FEATURE_NS}/both" in fleet.node("n1").output.labels
    assert f"{FEATURE_NS}/both" not in fleet.node("n2").output.labels


def test_rule_wins_over_published_label() -> None:
    """H32: one label, the rule's value, the overlap recorded once."""
    fleet = Fleet(rule("foo", labels={f"{FEATURE_NS}/foo": "baz"}))
    fleet.put(Features(), {"foo": "bar"})

    output = fleet.node().output

    assert {f"{FEATURE_NS}/foo": "baz"} == {
        k: o.value for k, o in output.labels.items()
    }
    assert len(output.conflicts) == 1


def test_old_namespace_left_behind() -> None:
    """H42: the own namespace counts, instances are not doubled, conflict told."""
    fleet = Fleet()
    fleet.put(devices(GPU, NIC), {"x": "old"}, key=("old-ns", "n1"), published="9")
    fleet.put(devices(GPU), {"x": "new"}, published="1")
    fleet.put(Features(), {"y": "1"}, key=("nfd", "vendor-n1"), worker=False)

    evaluation = fleet.node()

    assert {
        k.removeprefix(f"{FEATURE_NS}/"): o.value
        for k, o in evaluation.output.labels.items()
    } == {"x": "new", "y": "1"}
    ((ignored, reason),) = evaluation.heard.ignored
    assert ignored.key == ("old-ns", "n1")
    assert "nfd/n1" in reason


def test_newest_counts_where_none_is_in_the_own_namespace() -> None:
    """The master may live elsewhere."""
    fleet = Fleet(scope=Scope("elsewhere"))
    fleet.put(Features(), {"x": "a"}, key=("a", "n1"), published="2")
    fleet.put(Features(), {"x": "b"}, key=("b", "n1"), published="1")

    assert fleet.node().output.labels[f"{FEATURE_NS}/x"].value == "a"


def test_third_party_order_is_upstreams() -> None:
    """Own namespace first, then name, then namespace; later wins."""
    fleet = Fleet()
    fleet.put(Features(), {"x": "worker", "w": "1"})
    fleet.put(Features(), {"x": "zzz"}, key=("nfd", "zzz"), worker=False)
    fleet.put(Features(), {"x": "other"}, key=("other", "aaa"), worker=False)

    assert fleet.node().output.labels[f"{FEATURE_NS}/x"].value == "other"


def test_prefixed_twin_wins_inside_one_object() -> None:
    """spec/master.md section 2.4."""
    fleet = Fleet()
    fleet.put(Features(), {"x": "bare", f"{FEATURE_NS}/x": "full"})

    assert fleet.node().output.labels[f"{FEATURE_NS}/x"].value == "full"


def test_unknown_rule_holds_its_keys() -> None:
    """A set that could not be read makes the rule unknown; nothing of it goes."""
    fleet = Fleet(
        rule(
            "gpu",
            has("10de"),
            labels={"gpu": "true"},
            taints=(Taint("v.io/t", "NoSchedule", "x"),),
        ),
        enable_taints=True,
    )
    fleet.put(Features(), unknown=["pci.device"])

    wanted = fleet.node().wanted()

    assert wanted.labels == {}
    assert f"{FEATURE_NS}/gpu" in wanted.hold
    assert "v.io/t:NoSchedule" in wanted.hold
    assert "other" not in wanted.hold


def test_unknown_template_holds_all() -> None:
    """Which keys a template would have written cannot be known."""
    made = rule("t", has("10de"), labels_template="{{range .pci.device}}a=1\n{{end}}")
    fleet = Fleet(made)
    fleet.put(Features(), unknown=["pci.device"])

    assert fleet.node().wanted().hold == Hold(everything=True)


def test_failing_rule_holds_what_it_names() -> None:
    """A mistake in a rule, or in our engine, is no proof that a label is wrong."""
    wrong = Term("pci.device", {"vendor": Expression("Gt", ("odd",))})
    failing = rule("f", wrong, labels={"a": "1", "b": "1"}, labels_template="c=1")
    other = rule("o", has("10de"), labels={"b": "2"})
    fleet = Fleet(failing, other)
    fleet.put(devices(GPU))

    wanted = fleet.node().wanted()

    assert fleet.node().output.errors
    assert wanted.hold == Hold(keys=frozenset({"a", f"{FEATURE_NS}/a", "b"}))
    assert wanted.labels == {f"{FEATURE_NS}/b": "2"}


def test_trimmed_element_is_unknown_until_it_is_published() -> None:
    """What the worker looked for and did not find is known to be absent."""
    term = Term("kernel.config", {"A": Expression("Exists")})
    fleet = Fleet(rule("a", term, labels={"a": "1"}))
    empty = Features.of(attributes={"kernel.config": {}})

    fleet.put(empty, trimmed='{"kernel.config":[]}')
    before = fleet.node().output.results[0].outcome
    fleet.put(empty, trimmed='{"kernel.config":["A"]}')
    after = fleet.node().output.results[0].outcome

    assert (before, after) == ("unknown", "no")


def test_untrusted_namespace_reaches_nothing() -> None:
    """H66: a tenant may not label nodes, nor feed rules, unless granted."""
    trust = Trust(
        enforce=True,
        allow=(TrustRule(("vendor",), ("n*",), ("v.io/*",), ("acme.*",)),),
    )
    fleet = Fleet(
        rule("gpu", has("10de"), labels={"gpu": "true"}), scope=Scope("nfd", trust)
    )
    role = {"node-role.kubernetes.io/control-plane": "", "nvidia.com/gpu.present": "1"}
    fleet.put(devices(GPU), role, key=("tenant-a", "x"), worker=False)
    fleet.put(
        Features.of(attributes={"acme.config": {"a": "1"}}),
        {"v.io/ok": "1", "w.io/no": "1"},
        key=("vendor", "y"),
        worker=False,
    )

    evaluation = fleet.node()

    assert set(evaluation.output.labels) == {"v.io/ok"}
    assert {r.key for r in evaluation.refused} == {*role, "w.io/no", "pci.device"}


def test_denied_labels_keep_their_features() -> None:
    """restrictions.denyNodeFeatureLabels drops labels of third parties only."""
    fleet = Fleet(
        rule("gpu", has("10de"), labels={"gpu": "true"}),
        scope=Scope("nfd", deny_labels=True),
    )
    fleet.put(Features(), {"mine": "1"})
    fleet.put(devices(GPU), {"theirs": "1"}, key=("nfd", "vendor"), worker=False)

    evaluation = fleet.node()

    assert set(evaluation.output.labels) == {f"{FEATURE_NS}/mine", f"{FEATURE_NS}/gpu"}
    assert [r.key for r in evaluation.refused] == ["theirs"]


def test_node_without_any_object_gets_rules_without_terms() -> None:
    """A rule with no matchers matches every node (spec/master.md section 2.5)."""
    fleet = Fleet(rule("all", labels={"all": "1"}))

    assert set(fleet.node("alone").output.labels) == {f"{FEATURE_NS}/all"}
