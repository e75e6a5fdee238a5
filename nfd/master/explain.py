"""Explains a key of one Node in a cluster: who wants it, who holds it, why it is so.

Pure over a `Fleet`; `read_node` reads one with a single Node in it.
"""

from collections.abc import Iterator
from difflib import get_close_matches

from nfd.explain import CUTOFF, NEAREST, Explanation
from nfd.kube.client import Client
from nfd.kube.errors import NotFound
from nfd.kube.resources import NODEFEATURES, NODES
from nfd.labels import FEATURE_NS
from nfd.master.evaluate import Evaluation
from nfd.master.feeds import rules_of
from nfd.master.fleet import Fleet, FleetConfig
from nfd.master.merging import ORIGIN
from nfd.master.plan import plan
from nfd.master.snapshot import read_rules
from nfd.master.state import NodeState
from nfd.publish.ownership import NODE_NAME_LABEL, node_name_label, tracked_keys
from nfd.rules.explain import explain_rule, lines
from nfd.rules.model import Rule
from nfd.rules.output import Output
from nfd.rules.sets import Matched


def read_node(client: Client, config: FleetConfig, name: str) -> Fleet:
    """Read one Node, its NodeFeatures and all rules.

    Raises:
        ApiError: Something could not be read; `NotFound` for a Node that is not there.

    """
    fleet = Fleet(config)
    found = read_rules(client)
    fleet.rules_put({n: rules_of(loaded) for n, loaded in found.items()}, 0.0)
    selector = f"{NODE_NAME_LABEL}={node_name_label(name)}"
    fleet.feature_list_begin()
    for obj in client.list(NODEFEATURES, label_selector=selector):
        fleet.feature_put(obj)
    fleet.feature_list_end(0.0)
    fleet.node_list_begin()
    fleet.node_put({"kind": "Node", **client.get(NODES, name)})
    fleet.node_list_end(0.0)
    return fleet


def explain_key(fleet: Fleet, name: str, key: str) -> Explanation:
    """Explain a label, annotation, extended resource or `key:Effect` of a taint."""
    node = fleet.nodes.get(name)
    if node is None:
        raise NotFound("no such Node", verb="get", resource="nodes", name=name)
    evaluation = fleet.evaluate(name)
    full, kind, now = _find(key, node, evaluation)
    facts = [
        *_on_node(full, kind, now, node, fleet),
        *_wanted(full, kind, evaluation),
        *_told(full, evaluation),
        *_plan(full, node, evaluation, fleet),
        *_objects(fleet, evaluation),
    ]
    if now is None and _output(full, kind, evaluation) is None:
        facts += _why_not(full, fleet, name)
    known = [*node.labels, *evaluation.output.labels]
    return Explanation(
        key=full,
        kind=kind,
        found=now is not None,
        facts=tuple(facts),
        nearest=() if now else tuple(get_close_matches(full, known, NEAREST, CUTOFF)),
    )


def _find(
    key: str, node: NodeState, evaluation: Evaluation
) -> tuple[str, str, str | None]:
    """Tell what a key is: its whole name, its kind, its value on the Node now."""
    output = evaluation.output
    taints = {
        f"{t['key']}:{t['effect']}": str(t.get("value") or "")
        for t in node.taints or ()
    }
    kinds = (
        ("label", node.labels, output.labels),
        ("annotation", node.annotations, output.annotations),
        ("extendedResource", node.capacity or {}, output.extended_resources),
        ("taint", taints, {t.ident: t for t in output.taints}),
    )
    names = (key,) if "/" in key else (f"{FEATURE_NS}/{key}", key)
    for full in names:
        for kind, there, wanted in kinds:
            if full in there or full in wanted:
                return full, kind, there.get(full)
    return names[0], "label", None


def _on_node(
    key: str, kind: str, now: str | None, node: NodeState, fleet: Fleet
) -> Iterator[tuple[str, str]]:
    yield "on the node", "not there" if now is None else repr(now)
    tracking = fleet.config.tracking
    note = {
        "label": tracking.labels,
        "annotation": tracking.annotations,
        "extendedResource": tracking.resources,
    }.get(kind, "")
    managers = {"label": node.managers.labels, "annotation": node.managers.annotations}
    writer = managers.get(kind, {}).get(key, "")
    if writer:
        yield "written by", writer
    if note and now is not None:
        ours = key in tracked_keys(node.annotations.get(note))
        yield "tracked", f"yes, in {note}" if ours else f"no, {note} does not list it"


def _output(key: str, kind: str, evaluation: Evaluation) -> Output | str | None:
    output = evaluation.output
    if kind == "taint":
        taints = {t.ident: str(t) for t in output.taints}
        return taints.get(key)
    found = {
        "label": output.labels,
        "annotation": output.annotations,
        "extendedResource": output.extended_resources,
    }[kind]
    return found.get(key)


def _wanted(key: str, kind: str, evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    output = _output(key, kind, evaluation)
    if output is None:
        yield "wanted", "by nobody"
    elif isinstance(output, str):
        yield "wanted", output
    else:
        made = output.provenance
        yield "wanted", repr(output.value)
        if made.rule:
            yield "rule", f"{made.rule!r} of NodeFeatureRule {made.source}"
            yield "reads", made.feature or "nothing: it matches every node"
        elif made.source:
            yield "from", made.source


def _told(key: str, evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """Yield conflicts, refusals and doubts about a key."""
    for conflict in evaluation.output.conflicts:
        if conflict.key == key:
            for who, value in conflict.wants:
                yield "wants", f"{who}: {value!r}"
    for refusal in (*evaluation.output.refused, *evaluation.refused):
        if key in (refusal.key, f"{FEATURE_NS}/{refusal.key}"):
            who = refusal.provenance.rule or refusal.provenance.source
            yield "refused", f"{who}: {refusal.reason}"
    for kept in evaluation.output.kept:
        if kept.key == key:
            yield "unknown", f"{kept.rule}: {kept.reason}; the value of before is kept"


def _plan(
    key: str, node: NodeState, evaluation: Evaluation, fleet: Fleet
) -> Iterator[tuple[str, str]]:
    config = fleet.config
    planned = plan(
        node,
        evaluation.wanted(),
        config.tracking,
        allow_overwrite=config.allow_overwrite,
    )
    if key in planned.added:
        yield "next", "the master will add it"
    elif key in planned.changed:
        yield "next", "the master will change it"
    elif key in {r.key for r in planned.removals}:
        yield "next", "the master will remove it, unless the guard holds it"
    elif key in planned.held:
        yield "next", "kept: its rule failed, or reads what is unknown on this node"
    for conflict in planned.conflicts:
        if conflict.key == key:
            outcome = "will be taken over" if conflict.taken else "is left to them"
            holder = conflict.manager or "somebody else"
            yield "held by", f"{holder}: {conflict.found!r}, which {outcome}"


def _objects(fleet: Fleet, evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    for stored in evaluation.heard.objects:
        about = fleet.features.about(stored)
        said = f"{stored.key[0]}/{stored.key[1]}"
        if about.get("stale"):
            said += f", stale: {about['stale']}"
        if about.get("unknown"):
            said += f", unknown: {', '.join(about['unknown'])}"
        yield ORIGIN, said
    for stored, reason in evaluation.heard.ignored:
        yield "ignored", f"{stored.key[0]}/{stored.key[1]}: {reason}"
    for (namespace, name), reason in fleet.problems.items():
        yield "ignored", f"{namespace}/{name}: {reason}"
    if not evaluation.heard.objects:
        yield ORIGIN, "none that counts"


def _why_not(key: str, fleet: Fleet, node: str) -> Iterator[tuple[str, str]]:
    """Say of every rule that could write the key why it does not."""
    sets = fleet.sets_of(node)
    results = {r.rule: r for r in fleet.evaluate(node).output.results}
    for rule, result in results.items():
        if not _may_write(rule, key):
            continue
        yield (
            "rule",
            f"{rule.name!r} of {rule.origin}: {result.outcome} {result.reason}".rstrip(),
        )
        if sets is not None:
            told = explain_rule(rule, sets, Matched.start(sets))
            for line in lines(told)[1:]:
                yield "because", line.removeprefix("  ")


def _may_write(rule: Rule, key: str) -> bool:
    short = key.removeprefix(f"{FEATURE_NS}/")
    static = {
        *rule.labels,
        *rule.annotations,
        *rule.extended_resources,
        *(t.ident for t in rule.taints),
    }
    return bool({short, key} & static) or bool(rule.labels_template)
