"""What the command line says, and how it becomes a configuration and a client."""

import os
from collections.abc import Mapping
from typing import Any

import attrs

from nfd.errors import ConfigError
from nfd.kube import connect
from nfd.kube.client import Client
from nfd.kube.config import in_cluster
from nfd.kube.http_transport import HttpTransport
from nfd.kube.transport import Connection
from nfd.master import config as configuration

GATES = {
    "DisableAutoPrefix": False,
    "NodeFeatureAPI": True,
    "NodeFeatureGroupAPI": False,
}


@attrs.frozen(slots=True, kw_only=True)
class Options:
    """What the command line and the environment say."""

    config: str = configuration.DEFAULT_PATH
    options: str = ""
    overrides: Mapping[str, Any] = attrs.field(factory=dict)
    kubeconfig: str = ""
    port: int = 8080
    instance: str = ""
    leader_election: bool = False
    gates: Mapping[str, bool] = attrs.field(factory=lambda: GATES)
    node_name: str = ""
    namespace: str = ""


def read_file(path: str) -> str | None:
    """Return the text of the configuration file, None where there is none.

    Raises:
        ConfigError: It is there and cannot be read.

    """
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None


def load(options: Options) -> configuration.Loaded:
    """Load the configuration in its layers.

    Raises:
        ConfigError: A part of it is wrong.

    """
    return configuration.load(
        file=read_file(options.config),
        options=options.options,
        overrides=options.overrides,
    )


def connection_of(kubeconfig: str) -> Connection:
    """Return the cluster that a kubeconfig names, or the one around this pod.

    Raises:
        ConfigError: There is none.

    """
    if not kubeconfig:
        return in_cluster()
    from nfd.kube import kubeconfig as files  # noqa: PLC0415 - not in a pod

    return files.load(*kubeconfig.split(os.pathsep))


def client_of(
    component: str, connection: Connection, *, idle: int, **more: Any
) -> Client:
    """Return a client that keeps `idle` connections open: one for each writer."""
    made = connect.client(component, connection, **more)
    return made.but(transport=HttpTransport(connection, idle=idle))
