"""Looking and publishing once, for programs that use nfd as a library."""

import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from nfd import registry as registry_module
from nfd.config.worker import decode_tree
from nfd.hostroot import HostRoot
from nfd.kube.client import Client
from nfd.kube.clock import SYSTEM_CLOCK, Stop
from nfd.worker.controller import Worker
from nfd.worker.look import Seen
from nfd.worker.settings import Options


class LibraryLog:
    """Has the interface of the agents' log, and writes to the standard `logging`."""

    def __init__(self) -> None:
        self._log = logging.getLogger("nfd.worker")

    def info(self, event: str, **fields: Any) -> None:
        """Log something that is as it should be."""
        self._log.info("%s %s", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Log something that is wrong."""
        self._log.warning("%s %s", event, fields)


def run_once(
    client: Client | None,
    node: str,
    namespace: str,
    root: str | HostRoot,
    config: Mapping[str, Any],
) -> Seen | None:
    """See `nfd.worker.run_once`."""
    registry = registry_module.installed()
    with contextlib.ExitStack() as stack:
        host = (
            root
            if isinstance(root, HostRoot)
            else stack.enter_context(HostRoot.open(root))
        )
        worker = Worker(
            Options(node=node, namespace=namespace),
            decode_tree(config, registry),
            host,
            registry,
            client,
            log=LibraryLog(),
            clock=SYSTEM_CLOCK if client is None else client.clock,
        )
        return worker.run_once(Stop() if client is None else client.stop)
