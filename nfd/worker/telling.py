"""What of a pass is said in the log: changes of labels, troubles, notes; each once."""

from collections.abc import Iterable, Mapping
from typing import Any

from nfd.config.worker import CoreConfig
from nfd.worker.look import Seen, summary, unmatched
from nfd.worker.troubles import Troubles


class Teller:
    """Compares passes and says what is new."""

    def __init__(self, log: Any, troubles: Troubles) -> None:
        self._log = log
        self._troubles = troubles
        self._labels: Mapping[str, str] | None = None
        self._noted: dict[str, str] = {}
        self._refusals: set[str] = set()

    def published(self, labels: Mapping[str, str]) -> None:
        """Compare with these labels next, which an earlier worker published."""
        if labels:
            self._labels = labels

    def tell(self, seen: Seen, seconds: float, core: CoreConfig) -> None:
        """Say what a pass that took so long found that is new."""
        labels = {key: label.value for key, label in seen.labels.items()}
        if self._labels is None:
            self._log.info("labels found", total=len(labels), seconds=round(seconds, 3))
        elif changes := summary(self._labels, labels):
            self._log.info("labels changed", total=len(labels), **changes)
        self._labels = labels
        self._troubles.settle("source", {n: _failure(seen, n) for n in seen.failed})
        interval = core.sleep_interval.seconds
        if 0 < interval / 2 < seconds:
            self.note(
                "discovery", f"takes more than half of the interval of {interval:g} s"
            )
        self._refused({f"{r.kind} {r.key}": r.reason for r in seen.refused})
        for entry in unmatched(seen.features, core.no_publish_features):
            self.note(f"core.noPublishFeatures: {entry}", "names no feature")

    def _refused(self, refused: Mapping[str, str]) -> None:
        for what in self._refusals - refused.keys():
            del self._noted[what]  # to be said again when it comes back
        self._refusals = set(refused)
        for what, reason in refused.items():
            self.note(what, reason)

    def note(self, what: str, reason: str) -> None:
        """Say something that is no trouble, once and when it changes."""
        if self._noted.get(what) != reason:
            self._noted[what] = reason
            self._log.info("note", what=what, reason=reason)

    def problems(self, kind: str, texts: Iterable[str]) -> None:
        """Make these texts all the troubles of a kind."""
        self._troubles.settle(kind, {t.partition(":")[0]: t for t in texts})


def _failure(seen: Seen, source: str) -> str:
    error = seen.failed[source]
    kept = "its last good features stay" if source in seen.stale else "nothing is known"
    return f"{error}; {kept}"
