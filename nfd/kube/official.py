"""Bridges to the official `kubernetes` package: credential plug-ins, and a transport.

Only this module imports it (200 ms, 44 MB), and only when asked to.
"""

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

import attrs

from nfd.errors import ConfigError
from nfd.kube.clock import Stop
from nfd.kube.errors import TransportError
from nfd.kube.transport import CHUNK, Connection, Response

if TYPE_CHECKING:
    from kubernetes.client import ApiClient


def credentials(
    connection: Connection, files: tuple[str, ...], context: str
) -> Connection:
    """Return `connection` with what the user's program or provider hands out.

    Tokens are renewed by the package when they expire; client certificates are not.

    Raises:
        ConfigError: The package is missing, or the program failed.

    """
    try:
        from kubernetes.client import Configuration  # noqa: PLC0415 - see above
        from kubernetes.config import kube_config  # noqa: PLC0415 - see above
        from kubernetes.config.config_exception import (  # noqa: PLC0415 - see above
            ConfigException,
        )
    except ImportError as error:
        raise ConfigError(
            f"{os.pathsep.join(files)}: the user of context {context!r} gets its"
            " credentials from a program or provider; for that install the extra"
            " `kubernetes` (pip install 'node-feature-discovery[kubernetes]'),"
            " or use a kubeconfig with a token or a client certificate"
        ) from error
    configuration = Configuration()
    try:
        kube_config.load_kube_config(
            config_file=os.pathsep.join(files),
            context=context,
            client_configuration=configuration,
        )
    except (ConfigException, OSError) as error:
        raise ConfigError(f"{os.pathsep.join(files)}: {error}") from error

    def token() -> str:
        return _authorization(configuration).removeprefix("Bearer ")

    if token():
        connection = attrs.evolve(connection, token=token)
    if configuration.cert_file:
        connection = attrs.evolve(
            connection,
            cert_file=configuration.cert_file,
            key_file=configuration.key_file or "",
        )
    return connection


def _authorization(configuration: Any) -> str:
    """Return the header's value, renewed where it expired."""
    key = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    return str(key or "")


class OfficialTransport:
    """Sends our requests through an `ApiClient` that a program has already.

    Server, trust and credentials are the ApiClient's. It cannot be interrupted: a
    blocked request ends by its time-out.
    """

    def __init__(self, api_client: "ApiClient") -> None:
        self._api = api_client

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float,
        stream: bool,  # noqa: ARG002 - it always streams
        stop: Stop | None,  # noqa: ARG002 - it cannot be interrupted
    ) -> Response:
        """See `Transport.request`."""
        token = _authorization(self._api.configuration)
        own = {"Authorization": token} if token else {}
        url = self._api.configuration.host + path
        pool = self._api.rest_client.pool_manager
        try:
            answer = pool.request(
                method,
                url + ("?" + urlencode(query) if query else ""),
                body=body,
                headers={**headers, **own},
                retries=False,
                timeout=timeout,
                preload_content=False,
            )
        except Exception as error:  # whatever its libraries raise is no answer
            raise TransportError.of(error) from error
        return cast("Response", _OfficialResponse(answer))

    def close(self) -> None:
        """Leave the ApiClient open: it is not ours."""


class _OfficialResponse:
    def __init__(self, answer: Any) -> None:
        self.status: int = answer.status
        self.headers = {name.lower(): v for name, v in answer.headers.items()}
        self._answer = answer

    def read(self) -> bytes:
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        try:
            while data := self._answer.read1(CHUNK):
                yield data
        except Exception as error:
            self.close()
            raise TransportError.of(error) from error
        self._answer.release_conn()

    def patience(self, seconds: float) -> None:
        """Keep the request's time-out: the package does not give its socket away."""

    def close(self) -> None:
        self._answer.close()
