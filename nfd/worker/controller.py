"""The worker's one impure module: looks, publishes, and waits for reasons to look again.

The main thread looks at the host and sleeps in `Events`; a second one publishes; two
more follow the own NodeFeature and the demand of the cluster's rules.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from nfd.config.worker import WorkerConfig
from nfd.custom import FOLDER as CUSTOM_D
from nfd.errors import ConfigError
from nfd.hostroot import HostRoot
from nfd.http_status import Answer
from nfd.kube.client import Client
from nfd.kube.clock import SYSTEM_CLOCK, Clock, Stop
from nfd.kube.errors import ApiError, Forbidden
from nfd.publish.files import label_lines, read_labels, write_if_changed
from nfd.publish.nodefeature import Identity
from nfd.registry import Registry
from nfd.source import Watch
from nfd.worker.demand import DemandFeed
from nfd.worker.events import Events
from nfd.worker.look import Looker, Seen
from nfd.worker.owners import Pod
from nfd.worker.publisher import Publisher
from nfd.worker.recollection import recollect
from nfd.worker.results import FILE, NODE, OBJECT, Published, Result, Self
from nfd.worker.settings import (
    Options,
    check,
    load_settings,
    poll_interval,
    stamp,
    targets_of,
)
from nfd.worker.status import Status
from nfd.worker.telling import Teller
from nfd.worker.troubles import Troubles

CONFIG, CUSTOM = "config", "custom"  # names of events beside those of sources
_QUIET, _MOST_QUIET = 0.1, 0.5  # seconds: events come in bursts
PATIENCE = 60.0  # seconds that a single pass may take to be published
_JOIN = 1.0  # seconds that threads have to end


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
        check(config.core, options)
        if client is None and {NODE, OBJECT} & {*self._targets}:
            raise ConfigError("publishing needs a connection to an API server")
        self.troubles = Troubles(log, clock.monotonic)
        self._looker = Looker(host, registry, config)
        self._demand: DemandFeed | None = None
        self.publisher = self._make_publisher()
        self.status = Status(options.node, self.troubles, self.publisher)
        self._seen: Seen | None = None
        self._back: list[Published] = []  # read back, not yet taken in
        self._may_submit = self.publisher is None
        self._teller = Teller(log, self.troubles)
        self._events: Events | None = None
        self._stamps: dict[str, Any] = {}
        self._failure: BaseException | None = None

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
                options.auto_prefix,
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

    def run_once(self, stop: Stop) -> Seen | None:
        """Look once and publish once; None where that could not be done in time.

        Why has been logged.
        """
        self._remember_file()
        seen = self._look(None)
        publisher = self.publisher
        if publisher is None:
            return seen
        if self._demand is not None and self._client is not None:
            self._demand.read(self._client, self._options.namespace)
        until = self._clock.monotonic() + PATIENCE
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
        `settled` is called after each pass over all sources.

        Raises:
            Exception: Whatever a thread of ours failed of.

        """
        self._events = events = Events(self._host, self._cannot_watch)
        threads = self._start_threads(stop)
        try:
            if signals:
                events.wake_on_signals()
            with stop.calling(events.wake):
                self._watch()
                self._reload(set(), polled=True)  # what changed since it was loaded
                self._remember_file()
                self._look(None)
                self._take_back()
                settled()
                self._loop(stop, events, settled)
        finally:
            stop.set()
            until = self._clock.monotonic() + _JOIN
            for thread in threads:
                thread.join(max(0.0, until - self._clock.monotonic()))
            self._events = None
            events.close()
        if self._failure is not None:
            raise self._failure

    def _loop(self, stop: Stop, events: Events, settled: Callable[[], None]) -> None:
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
                if polled or changed:
                    settled()
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
        return poll_interval(self._config.core, self._options.node)

    def _start_threads(self, stop: Stop) -> list[threading.Thread]:
        work: dict[str, Callable[[], None]] = {}
        publisher = self.publisher
        if publisher is not None:
            work["nfd-publisher"] = lambda: publisher.run(stop)
            if publisher.object is not None:
                own = publisher.object.reflector(
                    self._cannot_follow("watching the NodeFeature")
                )
                publisher.watching = own
                work["nfd-own"] = lambda: own.run(stop)
        if self._demand is not None and self._client is not None:
            reflector = self._demand.reflector(
                self._client,
                self._options.namespace,
                self._cannot_follow("following the demand for features"),
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
        self._teller.tell(seen, seconds, self._config.core)
        self._teller.problems("warning", self._looker.warnings)
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

    # --- reading back ---------------------------------------------------------------------

    def _came_back(self, published: Published) -> None:
        """Take in, from the publisher's thread, what an earlier worker published."""
        self._back.append(published)
        if self._events is not None:
            self._events.wake()

    def _remember_file(self) -> None:
        """Remember the labels that an earlier worker wrote into the file."""
        if FILE not in self._targets:
            return
        path = self._config.core.publish_file
        try:
            self._remember(Published(node_labels=read_labels(path)))
        except OSError as error:
            self.troubles.begin("reading the file", f"{path}: {error.strerror}")

    def _take_back(self) -> bool:
        """Remember what was read back, and publish with it; tell if there was any."""
        if not self._back:
            return False
        while self._back:
            self._remember(self._back.pop(0))
        self._may_submit = True
        self._look(())
        return True

    def _remember(self, published: Published) -> None:
        names = [s.name for s in self._looker.plan.sources]
        back = recollect(published, names, self._clock.wall())
        self._teller.problems("read-back", back.problems)
        self._teller.published({k: v.value for k, v in back.labels.items()})
        self._looker.remember(back.memory, back.labels)

    # --- configuration ----------------------------------------------------------------------

    def _reload(self, touched: set[str], *, polled: bool) -> bool:
        """Read configuration and rules again where they changed; tell if they did."""
        if not (polled or touched & {CONFIG, CUSTOM}):
            return False
        before, self._stamps = self._stamps, self._new_stamps()
        if self._stamps == before:
            return False
        config = self._config
        if self._stamps[CONFIG] != before.get(CONFIG):
            try:
                config = load_settings(self._options, self._registry)
            except ConfigError as error:
                self._refused_config(error)
            else:
                self.troubles.end("configuration file")
        self._configure(config)
        return True

    def _configure(self, config: WorkerConfig) -> None:
        try:
            self._looker.configure(config)
        except ConfigError as error:
            self._refused_config(error)
            return
        if config != self._config:
            self._log.info("configuration reloaded")
            if targets_of(config.core) != self._targets:
                self.troubles.begin(
                    "core.publish", "changed; it counts after a restart"
                )
            else:
                self.troubles.end("core.publish")
            self._config = config
            if self.publisher is not None:
                self.publisher.configure(config.core)
        self._watch()

    def _refused_config(self, error: ConfigError) -> None:
        self.status.config_errors.add("file")
        self.troubles.begin("configuration file", f"{error}; the old one stays")

    def _new_stamps(self) -> dict[str, Any]:
        path, events = self._options.config_file, self._events
        folders = [] if events is None else events.real_paths(CUSTOM_D)
        return {
            CONFIG: stamp(path) if path else None,
            CUSTOM: [stamp(folder) for folder in folders],
        }

    # --- watching -----------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._events is None:
            return
        watches = dict(self._looker.watches)
        watches[CUSTOM] = (Watch("path", CUSTOM_D),)
        path = self._options.config_file
        self._events.watch(watches, {path: CONFIG} if path else {})

    def _cannot_watch(self, what: str, why: str) -> None:
        self._teller.note(what, f"not to be had, polling instead: {why}")

    def _cannot_follow(self, what: str) -> Callable[[ApiError | None], None]:
        """Return what is told why something cannot be watched, None once it can.

        The right to watch is optional; other errors end by themselves.
        """

        def told(error: ApiError | None) -> None:
            if error is None:
                self.troubles.end(what)
            elif isinstance(error, Forbidden):
                self.troubles.begin(what, str(error), optional=True)
            else:
                self._teller.note(what, str(error))

        return told
