"""`nfd master`: puts configuration, controller, lease, logs and metrics together.

Impure. Start-up and flags: spec/master.md sections 2.1 and 2.11 to 2.14; what is
ours (reload, standby, readiness): DESIGN section 6.
"""

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from nfd._version import __version__
from nfd.errors import NfdError
from nfd.http_status import Answer, StatusServer
from nfd.kube.client import Client
from nfd.kube.clock import Stop
from nfd.kube.config import own_namespace
from nfd.kube.errors import ApiError, Forbidden
from nfd.kube.events import EventRecorder
from nfd.kube.lease import LeaseElector
from nfd.kube.reflector import Reflector
from nfd.kube.resources import NAMESPACES
from nfd.master import config as configuration
from nfd.master.collector import Collector
from nfd.master.controller import Controller
from nfd.master.fleet import FleetConfig
from nfd.master.groups import Groups
from nfd.master.holds import LEASE
from nfd.master.metrics import CONTENT_TYPE, Figures, Metrics
from nfd.master.namespaces import Namespaces
from nfd.master.observers import All, Log
from nfd.master.options import Options, load, read_file
from nfd.master.reporter import Reporter
from nfd.publish.ownership import master_manager

_COLLECT = 60.0  # seconds between two looks for orphans
_LOOK_AT_FILE = 5.0  # seconds between two looks at the configuration file


class Agent:
    """One running master."""

    def __init__(
        self,
        options: Options,
        client: Client,
        logger: Any,
        *,
        set_up_logs: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> None:
        """Load the configuration and put everything together; nothing runs yet.

        Raises:
            ConfigError: The configuration is wrong.

        """
        configuration.check_instance(options.instance)
        self.options = options
        self.log = logger
        self.namespace = options.namespace or own_namespace()
        self._set_up_logs = set_up_logs
        self._client = client
        loaded = load(options)
        self._tell_warnings(loaded)
        self.config = loaded.config
        self._text = read_file(options.config)
        self._set_up_logs(self.config.klog)
        self._configuring = threading.Lock()
        self._namespaces = Namespaces(self._reconfigure)
        self._namespace_feed: Reflector | None = None
        self._selected: frozenset[str] | None = None
        self._is_selected: Callable[[str], bool] | None = None
        self.missing: dict[str, str] = {}  # right → what is left undone without it
        self.metrics = Metrics(self._figures)
        self.reporter = self._make_reporter()
        self.elector = self._make_elector() if options.leader_election else None
        self.groups = self._make_groups()
        more = [] if self.groups is None else [self.groups]
        self.controller = Controller(
            client,
            self._fleet_config(),
            All([self.metrics, Log(logger), self.reporter, *more, self]),
            settings=configuration.controller_config(self.config),
            elector=self.elector,
            timed=self.metrics.evaluated,
        )
        self.reporter.controller = self.controller
        if self.groups is not None:
            self.groups.controller = self.controller

    # --- running ------------------------------------------------------------------

    def run(self, stop: Stop) -> None:
        """Work until `stop` is set.

        Raises:
            Exception: Whatever a thread of ours failed of; all are stopped first.

        """
        self.log.info(
            "starting",
            version=__version__,
            namespace=self.namespace,
            instance=self.options.instance,
        )
        threads: list[threading.Thread] = []
        errors: list[BaseException] = []

        def guarded(work: Callable[[Stop], None]) -> None:
            try:
                work(stop)
            except BaseException as error:  # noqa: BLE001 - raised below
                errors.append(error)
                stop.set()

        def start(name: str, work: Callable[[Stop], None]) -> None:
            thread = threading.Thread(
                target=guarded, args=(work,), name=name, daemon=True
            )
            threads.append(thread)
            thread.start()

        with StatusServer(self.options.port, self.routes()):
            if self.config.restrictions.selector is not None:
                start("nfd-namespaces", self._follow_namespaces)
                self._wait_for_namespaces(stop)
            for name, work in self._side_work():
                start(name, work)
            try:
                self.controller.run(stop)
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
        if errors:
            raise errors[0]
        if self.elector is not None:
            self.elector.release()
        self.log.info("stopped")

    def _side_work(self) -> Iterator[tuple[str, Callable[[Stop], None]]]:
        """Yield what runs beside the controller, each in a thread of its own."""
        yield "nfd-config", self._watch_config
        yield "nfd-reporter", self.reporter.run
        if self.groups is not None:
            yield "nfd-group-feed", self.groups.reflector.run
            yield "nfd-groups", self.groups.run
        if self.config.garbage_collection.enable:
            yield "nfd-collector", self._collect
        if self.elector is not None:
            yield "nfd-lease", self.elector.run

    def routes(self) -> dict[str, Callable[[], Answer]]:
        """Return what the HTTP server answers."""
        return {
            "/healthz": Answer,
            "/livez": Answer,
            "/readyz": self.ready,
            "/metrics": lambda: Answer(self.metrics.page(), content_type=CONTENT_TYPE),
        }

    def ready(self) -> Answer:
        """Say whether all lists are complete, and what is held or missing."""
        synced = self.controller.synced
        told = {
            "synced": synced,
            "leader": self.controller.is_leader,
            "held": [
                {"cause": h.cause, "nodes": len(h.nodes), "reason": h.reason}
                for h in self.controller.held()
            ],
            "missing": dict(sorted(self.missing.items())),
        }
        text = json.dumps(told, indent=2) + "\n"
        return Answer(text, 200 if synced else 503, "application/json")

    def _figures(self) -> Figures:
        fleet = self.controller.fleet
        return Figures(
            synced=self.controller.synced,
            leader=self.controller.is_leader,
            nodes=len(fleet.nodes),
            node_features=len(fleet.features),
            queue=len(fleet.queue),
            held=self.controller.held(),
            matched=self.reporter.matched(),
        )

    # --- configuration --------------------------------------------------------------

    def _tell_warnings(self, loaded: configuration.Loaded) -> None:
        for warning in loaded.warnings:
            self.log.warning("configuration", problem=warning)

    def _watch_config(self, stop: Stop) -> None:
        while not self._client.clock.wait(stop, _LOOK_AT_FILE):
            self.reload()

    def reload(self) -> None:
        """Take in the configuration file if it changed; a wrong one changes nothing."""
        try:
            text = read_file(self.options.config)
            if text == self._text:
                return
            self._text = text
            loaded = load(self.options)
            self._set_up_logs(loaded.config.klog)
        except NfdError as error:
            self.metrics.reloads.labels("failed").inc()
            self.log.warning("configuration not reloaded", reason=str(error))
            return
        self._tell_warnings(loaded)
        before = self.config
        self.config = loaded.config
        if before.leader_election != self.config.leader_election:
            self.log.warning("leaderElection needs a restart")
        if before.parallelism != self.config.parallelism:
            self.log.warning("nfdApiParallelism needs a restart")
        old, new = before.restrictions.selector, self.config.restrictions.selector
        if (old is None) != (new is None):
            # Namespaces are followed from the start, or not at all.
            kept = attrs.evolve(self.config.restrictions, selector=old)
            self.config = attrs.evolve(self.config, restrictions=kept)
            self.log.warning("nodeFeatureNamespaceSelector needs a restart")
        self.metrics.reloads.labels("done").inc()
        self.log.info("configuration reloaded")
        self._reconfigure()

    def _reconfigure(self) -> None:
        with self._configuring:
            config = self._fleet_config()
            settings = configuration.controller_config(self.config)
            controller = self.controller
            if (config, settings) != (controller.fleet.config, controller.settings):
                controller.configure(config, settings)

    def _fleet_config(self) -> FleetConfig:
        selector = self.config.restrictions.selector
        if selector is not None:
            selected = self._namespaces.selected(selector)
            if selected != self._selected:  # or equal configurations would differ
                self._selected, self._is_selected = selected, selected.__contains__
        return configuration.fleet_config(
            self.config,
            namespace=self.namespace,
            instance=self.options.instance,
            auto_prefix=not self.options.gates["DisableAutoPrefix"],
            selected=self._is_selected,
        )

    # --- garbage collection -----------------------------------------------------------

    def _collect(self, stop: Stop) -> None:
        """Delete NodeFeatures whose nodes are gone, by what the fleet knows anyway."""
        grace = self.config.garbage_collection.grace.seconds
        controller = self.controller
        collector = Collector(
            self._client,
            self,
            grace,
            may_delete=lambda: controller.is_leader and controller.settings.publish,
        )
        while not self._client.clock.wait(stop, max(0.05, min(_COLLECT, grace))):
            if controller.synced and controller.is_leader:
                with controller.changing() as fleet:
                    nodes = frozenset(fleet.nodes)
                    objects = {
                        key: (stored.uid, stored.node)
                        for key, stored in fleet.features.objects.items()
                        if stored.node not in nodes
                    }
                collector.features(objects, nodes)

    def deleted(self, kind: str) -> None:
        """Count and say that an orphan was deleted."""
        self.metrics.collection.deleted(kind)
        self.log.info("orphan deleted", kind=kind)

    def not_deleted(self, kind: str, error: ApiError) -> None:
        """Count and say that an orphan was not deleted."""
        self.metrics.collection.not_deleted(kind, error)
        self.trouble(error)
        self.log.warning("orphan not deleted", kind=kind, error=str(error))

    # --- namespaces, lease ------------------------------------------------------------

    def _follow_namespaces(self, stop: Stop) -> None:
        feed = self._namespace_feed = Reflector(
            client=self._client,
            resource=NAMESPACES,
            handler=self._namespaces,
            metadata_only=True,
            on_error=self.trouble,
        )
        feed.run(stop)

    def _wait_for_namespaces(self, stop: Stop) -> None:
        """Nobody is heard before it is known who is selected."""
        while not stop.is_set():
            feed = self._namespace_feed
            if feed is not None and feed.synced.wait(0.2):
                return

    def _make_reporter(self) -> Reporter:
        component = master_manager(self.options.instance)
        recorder = EventRecorder(
            client=self._client,
            component=component,
            instance=self.options.node_name,
            on_error=self.trouble,
        )
        return Reporter(
            self._client.but(field_manager=component),
            self.namespace,
            LEASE,
            recorder,
            on_error=self.trouble,
        )

    def _make_groups(self) -> Groups | None:
        if not self.options.gates["NodeFeatureGroupAPI"]:
            return None
        groups = Groups(
            self._client.but(field_manager=master_manager(self.options.instance)),
            self.namespace,
            on_error=self.trouble,
            demand_changed=self.reporter.demand_changed,
        )
        self.reporter.group_demand = groups.demand
        return groups

    def _make_elector(self) -> LeaseElector:
        times = self.config.leader_election
        return LeaseElector(
            client=self._client,
            name=LEASE,
            namespace=self.namespace,
            identity=f"{self.options.node_name}_{uuid.uuid4()}",
            lease_duration=times.lease_duration.seconds,
            renew_deadline=times.renew_deadline.seconds,
            retry_period=times.retry_period.seconds,
            on_started=lambda: self.log.info("leading"),
            on_stopped=lambda: self.log.warning("not leading any more"),
            on_error=self.trouble,
        )

    # --- Observer: what readiness tells ---------------------------------------------------

    def rules_loaded(self, loaded: Any) -> None:
        """See `nfd.master.reporter`."""

    def planned(self, evaluation: Any, plan: Any) -> None:
        """See `nfd.master.reporter`."""

    def wrote(self, plan: Any, step: Any) -> None:
        """See `nfd.master.reporter`."""

    def failed(self, node: str, error: ApiError, failures: int, /) -> None:
        """Note a missing right."""
        del node, failures
        self._note_missing(error)

    def trouble(self, error: ApiError) -> None:
        """Note a missing right."""
        self._note_missing(error)

    def _note_missing(self, error: ApiError) -> None:
        if isinstance(error, Forbidden) and error.missing_permission:
            self.missing.setdefault(error.missing_permission, str(error.resource))
