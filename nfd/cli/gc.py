"""`nfd gc` (`nfd-gc`): deletes NodeFeatures and topologies of nodes that are gone.

Flags: spec/master.md section 4; `-gc-grace` is ours.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

from nfd.cli import goflags, warn
from nfd.cli.goflags import FlagSet, Parsed
from nfd.errors import NfdError

FLAGS = FlagSet(
    "nfd-gc",
    (
        goflags.duration("gc-interval", "time between two looks at everything", "1h"),
        goflags.duration("gc-grace", "time for which a node must be missing", "1m"),
        goflags.integer("list-size", "objects in a page of a list; 0: no pages", 200),
        goflags.integer("port", "port of /metrics and /healthz", 8080),
        goflags.text("kubeconfig", "kubeconfig file; without: the cluster around"),
        goflags.switch("version", "print the version and exit"),
        *goflags.KLOG,
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Collect until SIGTERM; returns the exit status."""
    parsed = FLAGS.parse_or_exit(sys.argv[1:] if argv is None else argv)
    if isinstance(parsed, int):
        return parsed
    if parsed["version"]:
        from nfd._version import __version__  # noqa: PLC0415 - only here

        print(f"nfd-gc {__version__}")
        return 0
    if parsed["gc-interval"].seconds <= 0:
        warn("error: -gc-interval: expected a time above 0")
        return 2
    try:
        return _run(parsed)
    except NfdError as error:
        warn(f"error: {error}")
        return 1
    except OSError as error:
        warn(f"error: port {parsed['port']}: {error.strerror}")
        return 1


def _run(parsed: Parsed) -> int:
    from prometheus_client import CollectorRegistry  # noqa: PLC0415 - not for -help

    from nfd import agentlog  # noqa: PLC0415 - as above
    from nfd.http_status import Answer, StatusServer  # noqa: PLC0415 - as above
    from nfd.kube.clock import Stop  # noqa: PLC0415 - as above
    from nfd.kube.errors import ApiError  # noqa: PLC0415 - as above
    from nfd.master.collector import Standalone  # noqa: PLC0415 - as above
    from nfd.master.metrics import (  # noqa: PLC0415 - as above
        CONTENT_TYPE,
        CollectionMetrics,
        page,
    )
    from nfd.master.options import client_of, connection_of  # noqa: PLC0415 - as above

    values, _ = goflags.klog_values({}, parsed)
    agentlog.configure("nfd-gc", values)
    log: Any = agentlog.logger("gc")
    registry = CollectorRegistry()

    class Counts(CollectionMetrics):
        def deleted(self, kind: str) -> None:
            super().deleted(kind)
            log.info("orphan deleted", kind=kind)

        def not_deleted(self, kind: str, error: ApiError) -> None:
            super().not_deleted(kind, error)
            log.warning("orphan not deleted", kind=kind, error=str(error))

    stop = Stop()
    client = client_of("gc", connection_of(parsed["kubeconfig"]), idle=2, stop=stop)
    collecting = Standalone(
        client,
        Counts(registry, build_info=True),
        interval=parsed["gc-interval"].seconds,
        grace=parsed["gc-grace"].seconds,
        page_size=parsed["list-size"],
        on_error=lambda error: log.warning("request failed", error=str(error)),
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    routes = {
        "/healthz": Answer,
        "/readyz": lambda: Answer(status=200 if collecting.ready else 503),
        "/metrics": lambda: Answer(page(registry), content_type=CONTENT_TYPE),
    }
    nodes = threading.Thread(target=collecting.feed.run, args=(stop,), daemon=True)
    with contextlib.closing(client.transport), StatusServer(parsed["port"], routes):
        nodes.start()
        collecting.run(stop)
        nodes.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
