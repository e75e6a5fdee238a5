"""Observers of the controller: one that tells several, and one that logs."""

from collections.abc import Mapping, Sequence
from typing import Any

from nfd.kube.errors import ApiError
from nfd.master.controller import Observer
from nfd.master.evaluate import Evaluation
from nfd.master.metrics import removed
from nfd.master.plan import NodePlan, Step
from nfd.rules.load import Loaded

_TELL_FROM = 3  # failures in a row of one node from which a warning is due


class All:
    """Tells every one of several observers."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def rules_loaded(self, loaded: Mapping[str, Loaded]) -> None:
        """All rule objects were read again."""
        for observer in self._observers:
            observer.rules_loaded(loaded)

    def planned(self, evaluation: Evaluation, plan: NodePlan) -> None:
        """A Node was evaluated."""
        for observer in self._observers:
            observer.planned(evaluation, plan)

    def wrote(self, plan: NodePlan, step: Step) -> None:
        """A step was written."""
        for observer in self._observers:
            observer.wrote(plan, step)

    def failed(self, node: str, error: ApiError, failures: int, /) -> None:
        """A write failed."""
        for observer in self._observers:
            observer.failed(node, error, failures)

    def trouble(self, error: ApiError) -> None:
        """A list or watch failed."""
        for observer in self._observers:
            observer.trouble(error)


class Log:
    """Logs what an operator wants to read; the same refusal or conflict once."""

    def __init__(self, logger: Any) -> None:
        self._log = logger
        self._told: dict[str, int] = {}  # node → hash of what was told of it

    def rules_loaded(self, loaded: Mapping[str, Loaded]) -> None:
        """Say how many rules there are and what is wrong with some."""
        rules = sum(len(o.rules) for found in loaded.values() for o in found.objects)
        self._log.info("rules loaded", objects=len(loaded), rules=rules)
        for name, found in loaded.items():
            for problem in found.errors:
                self._log.warning(
                    "rule left out",
                    object=name,
                    rule=problem.rule,
                    path=problem.path,
                    reason=problem.message,
                )

    def planned(self, evaluation: Evaluation, plan: NodePlan) -> None:
        """Say what was refused and who else holds a key, when that is new."""
        output = evaluation.output
        refused = (*output.refused, *evaluation.refused)
        ignored = evaluation.heard.passed_over
        if not (refused or plan.conflicts or output.errors or ignored):
            self._told.pop(plan.node, None)
            return
        errors = output.errors
        told = hash(
            (
                tuple((r.kind, r.key, r.reason) for r in refused),
                tuple((c.key, c.manager) for c in plan.conflicts),
                tuple((str(r.rule), r.reason) for r in errors),
                tuple((s.key, reason) for s, reason in ignored),
            )
        )
        if self._told.get(plan.node) == told:
            return
        self._told[plan.node] = told
        log = self._log.bind(node=plan.node)
        for r in refused:
            log.warning("output refused", kind=r.kind, key=r.key, reason=r.reason)
        for c in plan.conflicts:
            log.warning(
                "key held by another", key=c.key, manager=c.manager, taken=c.taken
            )
        for result in errors:
            log.warning("rule failed", rule=str(result.rule), reason=result.reason)
        for stored, reason in ignored:
            log.warning(
                "node feature ignored", object="/".join(stored.key), reason=reason
            )

    def wrote(self, plan: NodePlan, step: Step) -> None:
        """Say that a Node was updated; a removal is told louder."""
        gone = removed(plan, step)
        if gone:
            keys = [r.key for r in plan.removals]
            self._log.info("node updated", node=plan.node, removed=keys)
        else:
            self._log.debug("node updated", node=plan.node, target=step.target)

    def failed(self, node: str, error: ApiError, failures: int, /) -> None:
        """Say that a write failed; a conflict that the next try solves is no news."""
        tell = self._log.warning if failures >= _TELL_FROM else self._log.debug
        tell("write failed", node=node, failures=failures, error=str(error))

    def trouble(self, error: ApiError) -> None:
        """Say that a list or watch failed."""
        self._log.warning("request failed", error=str(error))
