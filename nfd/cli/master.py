"""`nfd master` (`nfd-master`): aggregates NodeFeatures and labels Nodes.

Flags: spec/master.md section 2.12.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from nfd.cli import goflags, warn
from nfd.cli.goflags import FlagSet, Parsed
from nfd.config.duration import Duration
from nfd.errors import NfdError
from nfd.kube.client import Client
from nfd.master.agent import Agent
from nfd.master.config import DEFAULT_PATH, check_instance, fleet_config
from nfd.master.namespaces import selected_now
from nfd.master.options import GATES, Options, client_of, connection_of, load

_OVERRIDES = {  # flag: key of the configuration
    "extra-label-ns": "extraLabelNs",
    "deny-label-ns": "denyLabelNs",
    "label-whitelist": "labelWhiteList",
    "enable-taints": "enableTaints",
    "no-publish": "noPublish",
    "resync-period": "resyncPeriod",
    "nfd-api-parallelism": "nfdApiParallelism",
    "informer-page-size": "informerPageSize",
}

FLAGS = FlagSet(
    "nfd-master",
    (
        goflags.text("config", "configuration file", DEFAULT_PATH),
        goflags.text("options", "YAML or JSON over the configuration file"),
        goflags.text("kubeconfig", "kubeconfig file; without: the cluster around"),
        goflags.integer("port", "port of /metrics, /healthz and /readyz", 8080),
        goflags.switch("prune", "take everything of ours off all nodes, then exit"),
        goflags.switch("dry-run", "show what would be written, then exit"),
        goflags.text("instance", "name of this master among several in a cluster"),
        goflags.switch("enable-leader-election", "only one of several replicas writes"),
        goflags.words("extra-label-ns", "label namespaces allowed beyond the rules"),
        goflags.words("deny-label-ns", "label namespaces denied; *x matches the end"),
        goflags.text("label-whitelist", "pattern for the name part of labels"),
        goflags.switch("enable-taints", "let rules taint nodes"),
        goflags.switch("no-publish", "write nothing to nodes"),
        goflags.duration("resync-period", "time between looks at every node", "1h"),
        goflags.integer("nfd-api-parallelism", "writers at the same time", 10),
        goflags.integer("informer-page-size", "objects in a page of a list", 200),
        goflags.gates(GATES, locked=["NodeFeatureAPI"]),
        goflags.switch("version", "print the version and exit"),
        *goflags.KLOG,
    ),
    drop_empty=True,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a master until SIGTERM; returns the exit status."""
    words = sys.argv[1:] if argv is None else argv
    parsed = FLAGS.parse_or_exit(words)
    if isinstance(parsed, int):
        return parsed
    if parsed["version"]:
        from nfd._version import __version__  # noqa: PLC0415 - only here

        print(f"nfd-master {__version__}")
        return 0
    try:
        return _run(parsed)
    except NfdError as error:
        warn(f"error: {error}")
        return 1
    except OSError as error:
        warn(f"error: port {parsed['port']}: {error.strerror}")
        return 1


def options_of(parsed: Parsed, environ: Mapping[str, str] = os.environ) -> Options:
    """Turn flags and environment into options."""
    return Options(
        config=parsed["config"],
        options=parsed["options"],
        overrides={
            key: _plain(parsed[flag])
            for flag, key in _OVERRIDES.items()
            if flag in parsed.given
        },
        kubeconfig=parsed["kubeconfig"],
        port=parsed["port"],
        instance=parsed["instance"],
        leader_election=parsed["enable-leader-election"],
        gates=parsed["feature-gates"],
        node_name=environ.get("NODE_NAME", ""),
    )


def _plain(value: Any) -> Any:
    """Return the form that a configuration file would have."""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Duration) else value


def _run(parsed: Parsed) -> int:
    from nfd import agentlog  # noqa: PLC0415 - not for -help and -version
    from nfd.kube.clock import Stop  # noqa: PLC0415 - as above

    def set_up_logs(klog: Mapping[str, str]) -> None:
        values, unknown = goflags.klog_values(klog, parsed)
        agentlog.configure("nfd-master", values)
        for key in unknown:
            agentlog.logger("master").info("unknown klog option", option=key)

    set_up_logs({})
    options = options_of(parsed)
    stop = Stop()
    idle = max(4, int(parsed["nfd-api-parallelism"])) + 4
    client = client_of(
        "master", connection_of(options.kubeconfig), idle=idle, stop=stop
    )
    log = agentlog.logger("master")
    with contextlib.closing(client.transport):
        if parsed["prune"]:
            return _prune(options, client, log)
        if parsed["dry-run"]:
            return _dry_run(options, client)
        agent = Agent(options, client, log, set_up_logs=set_up_logs)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        agent.run(stop)
    return 0


def _prune(options: Options, client: Client, log: Any) -> int:
    from nfd.master.prune import prune  # noqa: PLC0415 - only here
    from nfd.master.state import Tracking  # noqa: PLC0415 - only here

    check_instance(options.instance)
    if load(options).config.no_publish:
        log.info("nothing is pruned: noPublish is set")
        return 0
    for node in prune(client, Tracking.of(options.instance), options.instance):
        log.info("node pruned", node=node)
    return 0


def _dry_run(options: Options, client: Client) -> int:
    from nfd.cli.fleet import WOULD_REMOVE  # noqa: PLC0415 - only here
    from nfd.kube.config import own_namespace  # noqa: PLC0415 - only here
    from nfd.master.preview import preview  # noqa: PLC0415 - only here
    from nfd.master.snapshot import read_fleet  # noqa: PLC0415 - only here

    check_instance(options.instance)
    loaded = load(options)
    for warning in loaded.warnings:
        warn(f"warning: {warning}")
    config = fleet_config(
        loaded.config,
        namespace=options.namespace or own_namespace(),
        instance=options.instance,
        auto_prefix=not options.gates["DisableAutoPrefix"],
        selected=selected_now(client, loaded.config),
    )
    found = preview(read_fleet(client, config, page_size=loaded.config.page_size))
    print(found.text(), end="")
    return WOULD_REMOVE if found.removes else 0


if __name__ == "__main__":
    sys.exit(main())
