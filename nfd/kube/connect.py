"""From "which cluster" to a client, in one call."""

import os
from typing import Any, Literal

from nfd._version import __version__
from nfd.kube.client import Client
from nfd.kube.config import authorization, in_cluster
from nfd.kube.transport import Connection, Transport

TransportName = Literal["http", "urllib3"]


def connect(
    component: str,
    kubeconfig: str = "",
    *,
    transport: TransportName = "http",
    **attributes: Any,
) -> Client:
    """Return a client for the cluster of a kubeconfig file, or of this pod.

    `component` names us in the user agent (`nfd-<component>/<version>`);
    `attributes` are those of `Client`.

    Raises:
        ConfigError: There is no usable configuration; the text says what is missing.

    """
    if kubeconfig:
        from nfd.kube import kubeconfig as files  # noqa: PLC0415 - not in a pod

        connection = files.load(*kubeconfig.split(os.pathsep))
    else:
        connection = in_cluster()
    return client(component, connection, transport=transport, **attributes)


def client(
    component: str,
    connection: Connection,
    *,
    transport: TransportName = "http",
    **attributes: Any,
) -> Client:
    """Return a client for a connection; see `connect`."""
    return Client(
        transport=_transport(transport, connection),
        authorization=authorization(connection),
        user_agent=f"nfd-{component}/{__version__}",
        **attributes,
    )


def _transport(name: TransportName, connection: Connection) -> Transport:
    if name == "urllib3":
        from nfd.kube.urllib3_transport import (  # noqa: PLC0415 - 5 MB in a worker
            Urllib3Transport,
        )

        return Urllib3Transport(connection)
    from nfd.kube.http_transport import HttpTransport  # noqa: PLC0415 - one of two

    return HttpTransport(connection)
