"""The worker's one impure module: looks, publishes, and waits for reasons to look again.

The main thread looks at the host and sleeps in `Events`; a second one publishes; two
more follow the own NodeFeature and the demand of the cluster's rules.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from nfd._version import __version__
from nfd.config.worker import CoreConfig, WorkerConfig, load
from nfd.custom import FOLDER as CUSTOM_D
from nfd.errors import ConfigError, NfdError
from nfd.hostroot import HostRoot
from nfd.http_status import Answer
from nfd.kube.client import Client
from nfd.kube.clock import SYSTEM_CLOCK, Clock, Stop
from nfd.kube.errors import ApiError
from nfd.library import read_config
from nfd.publish.demand import trimmed_sets
from nfd.publish.files import label_lines, write_if_changed
from nfd.publish.nodefeature import TRIMMED, Identity, read_back, unknown_sets
from nfd.registry import Registry
from nfd.source import Watch
from nfd.worker.demand import DemandFeed
from nfd.worker.events import Events
from nfd.worker.look import Looker, Seen, summary, unmatched
from nfd.worker.memory import read_back_features, read_back_labels
from nfd.worker.owners import Pod
from nfd.worker.publisher import NODE, OBJECT, Published, Publisher, Result, Self
from nfd.worker.status import Status
from nfd.worker.troubles import Troubles

CONFIG, CUSTOM = "config", "custom"  # names of events beside those of sources
FILE = "file"
_QUIET, _MOST_QUIET = 0.1, 0.5  # seconds: events come in bursts
_JITTER = 0.1  # share of the poll interval
_JOIN = 1.0  # seconds that threads have to end


@attrs.frozen(slots=True, kw_only=True)
class Options:
    """What the command line and the environment say."""

    node: str = ""
    namespace: str = ""
    pod_name: str = ""
    pod_uid: str = ""
    config_file: str = ""
    config_text: str = ""  # of `-options`
    overrides: Mapping[str, Any] = attrs.field(factory=dict)  # of `core`
    version: str = __version__


def load_settings(options: Options, registry: Registry) -> WorkerConfig:
    """Read the configuration that the options name; a missing file is an empty one.

    Raises:
        ConfigError: It is wrong or cannot be read.

    """
    path = options.config_file
    text = read_config(path, required=False) if path else None
    return load(
        registry, file=text, options=options.config_text, overrides=options.overrides
    )


def targets_of(core: CoreConfig) -> tuple[str, ...]:
    """Return where to publish, in the order in which it is done."""
    wanted = () if core.no_publish else core.publish
    return tuple(t for t in (NODE, OBJECT, FILE) if t in wanted)


class Worker:
    """Looks at one host and publishes what it finds."""

    def __init__(  # noqa: PLR0913 - the parts of a worker
        self,
        options: Options,
        config: WorkerConfig,
        host: HostRoot,
        registry: Registry,
        client: Client | None,
        *,
        log: Any,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Prepare everything; nothing is read or asked yet.

        Raises:
            ConfigError: The configuration or the environment lacks something.

        """
        self._options = options
        self._config = config
        self._host = host
        self._registry = registry
        self._client = client
        self._log = log
        self._clock = clock
        self._targets = targets_of(config.core)
        self._check()
        self.troubles = Troubles(log, clock.monotonic)
        self._looker = Looker(host, registry, config)
        self._demand: DemandFeed | None = None
        self.publisher = self._make_publisher()
        self.status = Status(options.node, self.troubles, self.publisher)
        self._seen: Seen | None = None
        self._back: Published | None = None  # read back, not yet taken in
        self._may_submit = self.publisher is None
        self._said: dict[str, str] = {}
        self._events: Events | None = None
        self._stamps: dict[str, Any] = {}
        self._failure: BaseException | None = None

    def _check(self) -> None:
        core, options = self._config.core, self._options
        if FILE in self._targets and not core.publish_file:
            raise ConfigError("core.publishFile: not set, but core.publish names file")
        if not {NODE, OBJECT} & set(self._targets):
            return
        if not options.node:
            raise ConfigError(
                "NODE_NAME: not set in the environment; it names the Node to label"
            )
        if OBJECT in self._targets and not options.namespace:
            raise ConfigError(
                "namespace: unknown; set KUBERNETES_NAMESPACE in the environment"
            )
        if self._client is None:
            raise ConfigError("publishing needs a connection to an API server")

    def _make_publisher(self) -> Publisher | None:
        targets = tuple(t for t in self._targets if t != FILE)
        if not targets or self._client is None:
            return None
        options = self._options
        core = self._config.core
        if OBJECT in targets and not core.publish_all_features:
            self._demand = DemandFeed(self._publisher_again)
        return Publisher(
            self._client,
            Self(
                options.node,
                Identity(options.namespace, options.version, options.pod_uid),
                Pod(options.namespace, options.pod_name, options.pod_uid),
            ),
            targets,
            core,
            troubles=self.troubles,
            read_back=self._came_back,
            demand=self._demand,
        )

    def _publisher_again(self) -> None:
        if self.publisher is not None:
            self.publisher.again()

    def readyz(self) -> Answer:
        """Answer `/readyz`."""
        return self.status.readyz(self._clock.monotonic())

    # --- once -------------------------------------------------------------------------

    def run_once(self, stop: Stop, patience: float = 60.0) -> Seen | None:
        """Look once and publish once; None where that failed within `patience` seconds.

        Why it failed has been logged.
        """
        seen = self._look(None)
        publisher = self.publisher
        if publisher is None:
            return seen
        if self._demand is not None and self._client is not None:
            self._demand.read(self._client, self._options.namespace)
        until = self._clock.monotonic() + patience
        while not stop.is_set():
            wait = publisher.attempt()
            if self._take_back():
                continue
            if publisher.up_to_date:
                return self._seen
            if wait is None or self._clock.monotonic() + wait > until:
                break
            self._clock.wait(stop, wait)
        grave = any(t.grave for t in self.troubles.now().values())
        return None if grave or stop.is_set() else self._seen

    # --- for ever -----------------------------------------------------------------------

    def run(
        self,
        stop: Stop,
        *,
        signals: bool = False,
        settled: Callable[[], None] = lambda: None,
    ) -> None:
        """Work until `stop` is set; leaves everything published as it is.

        `signals`: this is the main thread, and signals are to end its waits.
        `settled` is called once the first pass is over.

        Raises:
            Exception: Whatever a thread of ours failed of.

        """
        self._events = events = Events(self._host, self._cannot_watch)
        threads = self._start_threads(stop)
        try:
            if signals:
                events.wake_on_signals()
            with stop.calling(events.wake):
                self._stamp_files()
                self._look(None)
                self._take_back()
                self._watch()
                settled()
                self._loop(stop, events)
        finally:
            stop.set()
            until = self._clock.monotonic() + _JOIN
            for thread in threads:
                thread.join(max(0.0, until - self._clock.monotonic()))
            self._events = None
            events.close()
        if self._failure is not None:
            raise self._failure

    def _loop(self, stop: Stop, events: Events) -> None:
        next_poll = self._clock.monotonic() + self._interval()
        while not stop.is_set():
            left = next_poll - self._clock.monotonic()
            touched = events.wait(left if self._interval() else None)
            if touched:
                touched |= self._quiet_down(events)
            if stop.is_set():
                return
            self._take_back()
            polled = bool(self._interval()) and self._clock.monotonic() >= next_poll
            if touched or polled:
                changed = self._reload(touched, polled=polled)
                self._look(None if polled or changed else touched)
            if polled:
                next_poll = self._clock.monotonic() + self._interval()

    def _quiet_down(self, events: Events) -> set[str]:
        """Wait until a burst of events is over, but not for long."""
        touched: set[str] = set()
        until = self._clock.monotonic() + _MOST_QUIET
        while self._clock.monotonic() < until:
            more = events.wait(_QUIET)
            if not more:
                break
            touched |= more
        return touched

    def _interval(self) -> float:
        """Return the seconds between two polls, a little different on every node."""
        seconds = self._config.core.sleep_interval.seconds
        digest = hashlib.sha256(self._options.node.encode()).digest()
        share = int.from_bytes(digest[:4], "big") / 2**32
        return max(0.0, seconds * (1 + _JITTER * (2 * share - 1)))

    def _start_threads(self, stop: Stop) -> list[threading.Thread]:
        work: dict[str, Callable[[], None]] = {}
        publisher = self.publisher
        if publisher is not None:
            work["nfd-publisher"] = lambda: publisher.run(stop)
            if publisher.object is not None:
                own = publisher.object.reflector(self._cannot_follow_own)
                publisher.watching = own
                work["nfd-own"] = lambda: own.run(stop)
        if self._demand is not None and self._client is not None:
            reflector = self._demand.reflector(
                self._client, self._options.namespace, self._cannot_follow_demand
            )
            work["nfd-demand"] = lambda: reflector.run(stop)

        def guarded(each: Callable[[], None]) -> None:
            try:
                each()
            except BaseException as error:  # noqa: BLE001 - raised in `run`
                self._failure = error
                stop.set()

        threads = []
        for name, each in work.items():
            thread = threading.Thread(
                target=guarded, args=(each,), name=name, daemon=True
            )
            thread.start()
            threads.append(thread)
        return threads

    # --- looking ------------------------------------------------------------------------

    def _look(self, only: Iterable[str] | None) -> Seen:
        """Look, at the named sources alone if any, tell what is new, and hand it on."""
        start = self._clock.monotonic()
        seen = self._looker.look(
            self._clock.wall(), None if only is None else frozenset(only)
        )
        seconds = self._clock.monotonic() - start
        if only is None:
            self.status.durations.observe(seconds)
        self._tell(seen, seconds)
        self._seen = self.status.seen = seen
        self._hand_on(seen)
        return seen

    def _hand_on(self, seen: Seen) -> None:
        if self.publisher is not None and self._may_submit:
            self.publisher.submit(Result.of(seen))
        if FILE in self._targets:
            path = self._config.core.publish_file
            try:
                plain = {k: v.value for k, v in seen.labels.items()}
                write_if_changed(path, label_lines(plain))
            except OSError as error:
                text = f"{path}: {error.strerror}"
                self.troubles.begin("publishing to the file", text, grave=True)
            else:
                self.troubles.end("publishing to the file")

    def _tell(self, seen: Seen, seconds: float) -> None:
        before = {} if self._seen is None else _values(self._seen)
        changes = summary(before, _values(seen))
        if changes or self._seen is None:
            self._log.info(
                "labels changed", seconds=round(seconds, 3), total=len(seen.labels),
                **changes,
            )  # fmt: skip
        self.troubles.settle("source", {n: _told(seen, n) for n in seen.failed})
        self.troubles.settle("configuration", _numbered(self._looker.warnings))
        limit = self._config.core.sleep_interval.seconds / 2
        if 0 < limit < seconds:
            self._say(
                "discovery", f"takes over half of the interval of {2 * limit:g} s"
            )
        refused = {f"{r.kind} {r.key}": r.reason for r in seen.refused}
        for what in [w for w in self._said if w not in refused and " " in w]:
            del self._said[what]
        for what, reason in refused.items():
            self._say(what, reason)
        for entry in unmatched(seen.features, self._config.core.no_publish_features):
            self._say(f"core.noPublishFeatures: {entry}", "names no feature")

    def _say(self, what: str, reason: str) -> None:
        """Log something that is as it should be, once and when it changes."""
        if self._said.get(what) != reason:
            self._said[what] = reason
            self._log.info("note", what=what, reason=reason)

    # --- reading back ---------------------------------------------------------------------

    def _came_back(self, published: Published) -> None:
        """Take in, from the publisher's thread, what an earlier worker published."""
        self._back = published
        if self._events is not None:
            self._events.wake()

    def _take_back(self) -> bool:
        """Remember what was read back, and publish with it; tell if there was any."""
        published, self._back = self._back, None
        if published is None:
            return False
        memory, labels = {}, dict(published.node_labels)
        makers: Mapping[str, str] = {}
        if published.obj is not None:
            metadata = published.obj["metadata"]
            found = read_back(published.obj)
            problems = list(found.problems)
            partial = set(unknown_sets(metadata))
            try:
                notes = metadata.get("annotations") or {}
                partial |= trimmed_sets(str(notes.get(TRIMMED) or "")).keys()
            except NfdError as error:
                problems.append(str(error))
            whole = found.features.only(k for k in found.features if k not in partial)
            memory = read_back_features(whole, found.stale, self._clock.wall())
            labels |= found.labels
            makers = found.makers
            self.troubles.settle("reading back", _numbered(problems))
        names = [s.name for s in self._looker.plan.sources]
        self._looker.remember(memory, read_back_labels(labels, makers, names))
        self._may_submit = True
        self._look(())
        return True

    # --- configuration ----------------------------------------------------------------------

    def _reload(self, touched: set[str], *, polled: bool) -> bool:
        """Read configuration and rules again where they changed; tell if they did."""
        before = dict(self._stamps)
        if not (polled or touched & {CONFIG, CUSTOM}):
            return False
        self._stamp_files()
        if self._stamps == before:
            return False
        config = self._config
        if self._stamps[CONFIG] != before[CONFIG]:
            try:
                config = load_settings(self._options, self._registry)
            except ConfigError as error:
                self._refused_config(error)
        try:
            self._looker.configure(config)
        except ConfigError as error:
            self._refused_config(error)
            return False
        if config is not self._config:
            self.troubles.end("configuration file")
            self._log.info("configuration reloaded")
            if targets_of(config.core) != self._targets:
                self.troubles.begin(
                    "core.publish", "changed; it counts after a restart"
                )
            self._config = config
            if self.publisher is not None:
                self.publisher.configure(config.core)
        self._watch()
        return True

    def _refused_config(self, error: ConfigError) -> None:
        self.status.config_errors.add("file")
        self.troubles.begin("configuration file", f"{error}; the old one stays")

    def _stamp_files(self) -> None:
        path = self._options.config_file
        self._stamps = {
            CONFIG: _stamp(path) if path else None,
            CUSTOM: [_stamp(f) for f in self._real(CUSTOM_D)],
        }

    def _real(self, path: str) -> list[str]:
        return [] if self._events is None else self._events.real_paths(path)

    # --- watching -----------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._events is None:
            return
        watches = dict(self._looker.watches)
        watches[CUSTOM] = (Watch("path", CUSTOM_D),)
        path = self._options.config_file
        self._events.watch(watches, {path: CONFIG} if path else {})

    def _cannot_watch(self, what: str, why: str) -> None:
        self._say(what, f"not to be had, polling instead: {why}")

    def _cannot_follow_own(self, error: ApiError) -> None:
        self._say("watching the NodeFeature", str(error))

    def _cannot_follow_demand(self, error: ApiError) -> None:
        self._say("following the demand for features", str(error))


def _values(seen: Seen) -> dict[str, str]:
    return {key: label.value for key, label in seen.labels.items()}


def _told(seen: Seen, source: str) -> str:
    error = seen.failed[source]
    kept = "its last good features stay" if source in seen.stale else "nothing is known"
    return f"{error}; {kept}"


def _numbered(texts: Iterable[str]) -> dict[str, str]:
    """Name texts that have no name by their beginning."""
    return {text.partition(":")[0]: text for text in texts}


def _stamp(path: str) -> Any:
    """Return what changes when a file, or anything in a folder, changes."""
    try:
        if os.path.isdir(path):
            with os.scandir(path) as entries:
                inside = sorted(e.path for e in entries)
            return [(path, os.path.isdir(path)), *(_stamp(p) for p in inside)]
        found = os.stat(path)
    except OSError as error:
        return error.errno
    return (path, found.st_ino, found.st_mtime_ns, found.st_size)
