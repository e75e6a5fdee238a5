"""The worker: looks at its host again and again and publishes what it finds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nfd.hostroot import HostRoot
    from nfd.kube.client import Client
    from nfd.worker.look import Seen


def run_once(
    client: "Client | None",
    node: str,
    namespace: str = "",
    *,
    root: "str | HostRoot" = "/",
    config: Mapping[str, Any] | None = None,
) -> "Seen | None":
    """Look at a host once and publish what is found, as `nfd worker -oneshot` does.

    Args:
        client: The API server to publish to; None for publish modes without one.
        node: The name of the Node that the host is.
        namespace: Where the NodeFeature goes.
        root: The host: `/`, a mounted root, a capture, or an open HostRoot.
        config: The configuration in the shape of its file; `core.publish` says where
            to publish.

    Returns:
        What was found; None where it could not be published within a minute.

    Raises:
        ConfigError: The configuration is wrong, or something is missing for it.
        HostError: The root cannot be used.

    """
    from nfd.worker.once import run_once as run  # noqa: PLC0415 - a whole worker

    return run(client, node, namespace, root, config or {})
