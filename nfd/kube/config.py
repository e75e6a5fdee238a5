"""Where the API server is and who we are: in a cluster, or by a kubeconfig file."""

import base64
import json
import os
from collections.abc import Callable, Mapping

from nfd.errors import ConfigError
from nfd.kube.resources import JsonObject
from nfd.kube.transport import Connection

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class TokenFile:
    """A bearer token in a file that the kubelet rewrites before it expires.

    The file is read for every request (some 20 microseconds); a token that cannot
    be read leaves the last good one.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._token = ""

    def __call__(self) -> str:
        """Return the token, without surrounding space."""
        try:
            with open(self._path, encoding="ascii", errors="replace") as file:
                token = file.read().strip()
        except OSError:
            token = ""  # a moment of the kubelet's swap, or gone: the server decides
        self._token = token or self._token
        return self._token


def in_cluster(
    environ: Mapping[str, str] = os.environ, folder: str = SERVICE_ACCOUNT
) -> Connection:
    """Return the connection that Kubernetes gives every pod.

    Raises:
        ConfigError: This process runs in no pod, or has no service account token.

    """
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigError(
            "kubeconfig: none given, and not in a cluster"
            " (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set)"
        )
    token = TokenFile(f"{folder}/token")
    if not token():
        raise ConfigError(f"kubeconfig: none given, and no token in {folder}/token")
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ca_file=f"{folder}/ca.crt",
        token=token,
        namespace=own_namespace(environ, folder),
    )


def own_namespace(
    environ: Mapping[str, str] = os.environ, folder: str = SERVICE_ACCOUNT
) -> str:
    """Return the namespace of this pod, else KUBERNETES_NAMESPACE, else ""."""
    try:
        with open(f"{folder}/namespace", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return environ.get("KUBERNETES_NAMESPACE", "")


def claims(token: str) -> JsonObject:
    """Return the claims of a service account token, not verified; {} if it has none.

    A bound token names the pod's node: `["kubernetes.io"]["node"]["name"]` and
    `["uid"]` (Kubernetes 1.30 and newer).
    """
    try:
        payload = token.split(".")[1]
        padded = payload + "=" * (-len(payload) % 4)
        found = json.loads(base64.urlsafe_b64decode(padded))
    except (IndexError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def authorization(connection: Connection) -> Callable[[], str] | None:
    """Return what makes the Authorization header, None where TLS says who we are."""
    token = connection.token
    if token is not None:
        return lambda: f"Bearer {token()}"
    if connection.username:
        text = f"{connection.username}:{connection.password}".encode()
        header = "Basic " + base64.b64encode(text).decode()
        return lambda: header
    return None
