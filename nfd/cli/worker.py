"""`nfd worker` and `nfd-worker`: the agent on every node, with upstream's flags."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from nfd._version import __version__
from nfd.cli import goflags
from nfd.cli.goflags import Flag, FlagSet, Parsed
from nfd.config import DEFAULT_PATH
from nfd.errors import NfdError

PROGRAM = "nfd-worker"
FLAGS: tuple[Flag, ...] = (
    goflags.text("config", "configuration file; empty: none", DEFAULT_PATH),
    goflags.text("options", "configuration as JSON or YAML, over the file"),
    goflags.text("kubeconfig", "kubeconfig file; empty: the pod's own credentials"),
    goflags.switch("oneshot", "look and publish once, then exit"),
    goflags.integer("port", "port of metrics and health; 0: any", 8080),
    goflags.gates(
        {
            "NodeFeatureAPI": True,
            "DisableAutoPrefix": False,
            "NodeFeatureGroupAPI": False,
        },
        locked=("NodeFeatureAPI",),
    ),
    goflags.switch("no-publish", "publish nothing (core.noPublish)"),
    goflags.switch("no-owner-refs", "deprecated: as an empty -owner-refs"),
    goflags.words(
        "owner-refs",
        "owners of the NodeFeature: node, pod, ds; as core.ownerRefs",
        ("node",),
    ),
    goflags.words("feature-sources", "sources to run (core.featureSources)", ("all",)),
    goflags.words("label-sources", "sources to label by (core.labelSources)", ("all",)),
    goflags.words(
        "no-publish-features", "features to leave out (core.noPublishFeatures)"
    ),
    goflags.words(
        "publish",
        "where to publish: nodefeature, node, file, none; as core.publish",
        ("nodefeature",),
    ),
    goflags.text("publish-file", "file of the mode file (core.publishFile)"),
    goflags.words(
        "label-namespaces",
        "namespaces of the labels that go onto the Node (core.labelNamespaces)",
    ),
    goflags.switch(
        "trust-unfenced",
        "write the Node although no admission policy fences it (core.trustUnfenced)",
    ),
    goflags.switch("prune", "remove what this node's workers published, then exit"),
    goflags.text("root", "host root; default: NFD_HOST_ROOT, else /"),
    goflags.text("log-format", "json or text; default: text on a terminal"),
    goflags.switch("version", "print the version, then exit"),
    *goflags.KLOG,
)
_OVERRIDES = {
    "no-publish": "noPublish",
    "no-owner-refs": "noOwnerRefs",
    "owner-refs": "ownerRefs",
    "feature-sources": "featureSources",
    "label-sources": "labelSources",
    "no-publish-features": "noPublishFeatures",
    "publish": "publish",
    "publish-file": "publishFile",
    "label-namespaces": "labelNamespaces",
    "trust-unfenced": "trustUnfenced",
}


def overrides(parsed: Parsed) -> dict[str, Any]:
    """Return the keys of `core` that flags on the command line set."""
    given = {f: key for f, key in _OVERRIDES.items() if f in parsed.given}
    return {
        key: list(value) if isinstance(value := parsed[flag], tuple) else value
        for flag, key in given.items()
    }


def main(
    argv: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ
) -> int:
    """Run the worker; 0 after a stop or a good pass, 1 after an error, 2 wrong use."""
    flags = FlagSet(PROGRAM, FLAGS)
    parsed = flags.parse_or_exit(sys.argv[1:] if argv is None else argv)
    if isinstance(parsed, int):
        return parsed
    if parsed["version"]:
        print(f"{PROGRAM} {__version__}")
        return 0
    from nfd.worker import start  # noqa: PLC0415 - help needs none of it

    try:
        return start.run(
            start.Start(
                config_file=parsed["config"],
                config_text=parsed["options"],
                overrides=overrides(parsed),
                kubeconfig=parsed["kubeconfig"],
                root=parsed["root"] or environ.get("NFD_HOST_ROOT") or "/",
                port=parsed["port"],
                auto_prefix=not parsed["feature-gates"]["DisableAutoPrefix"],
                mode="prune"
                if parsed["prune"]
                else "once"
                if parsed["oneshot"]
                else "loop",
                log_form=parsed["log-format"],
                klog=lambda configured: goflags.klog_values(configured, parsed),
                environ=environ,
            ),
            signals=(signal.SIGTERM, signal.SIGINT),
        )
    except NfdError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
