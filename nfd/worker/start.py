"""From flags and environment to a running worker."""

import contextlib
import gc
import os
import signal
import threading
import time
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import attrs

from nfd import agentlog
from nfd import registry as registry_module
from nfd._version import __version__
from nfd.config.worker import WorkerConfig
from nfd.errors import ConfigError
from nfd.hostroot import HostRoot
from nfd.http_status import StatusServer
from nfd.kube import connect
from nfd.kube.client import Client
from nfd.kube.clock import Stop
from nfd.kube.config import in_cluster, own_namespace
from nfd.kube.retry import RetryPolicy
from nfd.publish.nodefeature import Identity
from nfd.publish.ownership import WORKER_MANAGER
from nfd.worker.controller import Worker
from nfd.worker.own_node import OwnLabels
from nfd.worker.own_nodefeature import OwnNodeFeature
from nfd.worker.results import FILE, NODE, OBJECT
from nfd.worker.settings import Options, load_settings, targets_of

_TIMEOUT = 10.0  # seconds of a request: one that hangs holds up the other target
_LAST_CALL = 1.5  # seconds after a signal until the process ends all the same

KlogValues = Callable[[Mapping[str, str]], tuple[dict[str, Any], list[str]]]


@attrs.frozen(slots=True, kw_only=True)
class Start:
    """What the command line says, and the environment that it is said in."""

    config_file: str = ""
    config_text: str = ""
    overrides: Mapping[str, Any] = attrs.field(factory=dict)
    kubeconfig: str = ""
    root: str = "/"
    port: int = 8080
    auto_prefix: bool = True
    mode: Literal["loop", "once", "prune"] = "loop"
    log_form: str = ""
    klog: KlogValues = lambda _: ({}, [])
    environ: Mapping[str, str] = attrs.field(factory=dict)


def run(start: Start, *, signals: Iterable[signal.Signals] = ()) -> int:
    """Run a worker until it is stopped by one of `signals`; return the exit status.

    Raises:
        NfdError: It could not start; the text says why.

    """
    if start.log_form not in ("", *agentlog.FORMS):
        raise ConfigError(f"-log-format: {start.log_form!r}: expected json or text")
    spare_memory()
    registry = registry_module.installed()
    environ = start.environ
    options = Options(
        node=environ.get("NODE_NAME", ""),
        pod_name=environ.get("POD_NAME", ""),
        pod_uid=environ.get("POD_UID", ""),
        config_file=start.config_file,
        config_text=start.config_text,
        overrides=start.overrides,
        auto_prefix=start.auto_prefix,
    )
    config = load_settings(options, registry)
    klog, unknown = start.klog(config.core.klog)
    form: Any = start.log_form
    agentlog.configure("nfd-worker", klog, form=form)
    log = agentlog.logger("worker")
    for key in unknown:
        log.warning("unknown key ignored", key=f"core.klog.{key}")
    stop = Stop()
    client, namespace = _connect(start, config, stop)
    options = attrs.evolve(options, namespace=namespace)
    log.info(
        "starting", version=__version__, node=options.node, namespace=namespace,
        publish=",".join(targets_of(config.core)) or "none", root=start.root,
    )  # fmt: skip
    _stop_on(signals, stop)
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(HostRoot.open(start.root))
        if client is not None:
            stack.callback(client.transport.close)
        if start.mode == "prune":
            return prune(options, config, client, log)
        worker = Worker(options, config, host, registry, client, log=log)
        if start.mode == "once":
            return 0 if worker.run_once(stop) is not None else 1
        server = _serve(start.port, worker, log)
        if server is not None:
            stack.callback(server.close)
        worker.run(stop, signals=bool(signals), settled=settle_memory)
    log.info("stopped")
    return 0


def _connect(
    start: Start, config: WorkerConfig, stop: Stop
) -> tuple[Client | None, str]:
    """Connect where something is published there; return the namespace, too."""
    wanted = {NODE, OBJECT} & {*targets_of(config.core)}
    if not wanted and start.mode != "prune":
        return None, own_namespace(start.environ)
    if start.kubeconfig:
        from nfd.kube import kubeconfig  # noqa: PLC0415 - not in a pod

        connection = kubeconfig.load(start.kubeconfig)
    else:
        connection = in_cluster(start.environ)
    client = connect.client(
        "worker",
        connection,
        field_manager=WORKER_MANAGER,
        timeout=_TIMEOUT,
        retry=RetryPolicy(attempts=2),
        stop=stop,
    )
    return client, own_namespace(start.environ) or connection.namespace


def _serve(port: int, worker: Worker, log: Any) -> StatusServer | None:
    status = worker.status
    routes = {
        "/metrics": status.metrics,
        "/healthz": status.healthz,
        "/readyz": worker.readyz,
    }
    try:
        return StatusServer(port, routes)
    except OSError as error:
        log.warning("no metrics and health", port=port, reason=error.strerror)
        return None


def _stop_on(signals: Iterable[signal.Signals], stop: Stop) -> None:
    def end() -> None:
        time.sleep(_LAST_CALL)
        os._exit(0)  # a source hangs; there is nothing to clean up

    def handle(number: int, frame: types.FrameType | None) -> None:
        del number, frame
        stop.set()
        threading.Thread(target=end, name="nfd-end", daemon=True).start()

    for each in signals:
        signal.signal(each, handle)


def prune(
    options: Options, config: WorkerConfig, client: Client | None, log: Any
) -> int:
    """Delete the own NodeFeature, then take the labels off the Node that we wrote.

    Raises:
        ConfigError: NODE_NAME is not set.
        ApiError: The API server refused.

    """
    if not options.node or client is None:
        raise ConfigError("NODE_NAME: not set in the environment")
    targets = targets_of(config.core)
    if OBJECT in targets:
        identity = Identity(options.namespace, options.version)
        gone = OwnNodeFeature(client, identity, options.node).delete()
        log.info("pruned", nodefeature=options.node if gone else "")
    if NODE in targets:
        labels = OwnLabels(client, options.node, trust_unfenced=True)
        wrote = labels.apply({}, config.core.label_namespaces, removals=True)
        log.info("pruned", node=options.node, labels=list(wrote.removed))
    if FILE in targets:
        log.info("left in place", file=config.core.publish_file)
    return 0


def spare_memory() -> None:
    """Have all threads share one heap of the C library, which then stays small."""
    import ctypes  # noqa: PLC0415 - only in a worker

    arena_max = -8  # M_ARENA_MAX of malloc.h
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc only
    if mallopt is not None:
        mallopt(arena_max, 1)


def settle_memory() -> None:
    """Give back what the start needed, and spare what stays from every collection."""
    import ctypes  # noqa: PLC0415 - only in a worker

    gc.collect()
    gc.freeze()
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if malloc_trim is not None:
        malloc_trim(0)
