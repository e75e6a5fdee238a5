"""A plain client for tests: one request, one answer, nothing cleverer.

Deliberately not `nfd.kube`, which is what the tests are about.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import attrs
import urllib3
import yaml

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class RefusedError(Exception):
    """The API server answered with an error status."""

    def __init__(self, status: int, body: str) -> None:
        self.status = status
        try:
            document = json.loads(body)
        except ValueError:
            document = {}
        self.reason: str = document.get("reason", "")
        self.message: str = document.get("message", body)
        super().__init__(f"{status} {self.reason}: {self.message}")


@attrs.define
class Api:
    """The API server seen by one user: a client certificate or a bearer token."""

    url: str
    ca: Path
    certificate: Path | None = None
    key: Path | None = None
    token: str | None = None
    _pool: urllib3.PoolManager = attrs.field(init=False)
    _resources: dict[tuple[str, str], tuple[str, bool]] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._pool = urllib3.PoolManager(
            ca_certs=str(self.ca),
            cert_file=str(self.certificate) if self.certificate else None,
            key_file=str(self.key) if self.key else None,
            retries=False,
        )

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        query: Mapping[str, str] | None = None,
        user_agent: str = "nfd-cluster-test",
        timeout: float = 30,
    ) -> Any:
        """Send one request; the answer's JSON, or its text where it is none.

        Raises:
            RefusedError: the server answered 4xx or 5xx.
        """
        headers = {"Accept": accept, "User-Agent": user_agent}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = body if isinstance(body, str | bytes) else json.dumps(body)
        answer = self._pool.request(
            method,
            self.url + path + ("?" + urlencode(query) if query else ""),
            body=data,
            headers=headers,
            timeout=timeout,
        )
        text = answer.data.decode()
        if answer.status >= 400:
            raise RefusedError(answer.status, text)
        try:
            return json.loads(text)
        except ValueError:
            return text

    def get(self, path: str, **query: str) -> Any:
        """GET one object or list."""
        return self.request("GET", path, query=query)

    def create(self, path: str, body: object, **query: str) -> Any:
        """POST an object to its collection."""
        return self.request("POST", path, body, query=query)

    def replace(self, path: str, body: object, **query: str) -> Any:
        """PUT a whole object."""
        return self.request("PUT", path, body, query=query)

    def patch(
        self, path: str, body: object, *, content_type: str = JSON_PATCH, **query: str
    ) -> Any:
        """PATCH an object, as JSON patch unless told otherwise."""
        return self.request("PATCH", path, body, content_type=content_type, query=query)

    def delete(self, path: str, **query: str) -> Any:
        """DELETE an object, or a collection."""
        return self.request("DELETE", path, query=query)

    def path_of(self, manifest: Mapping[str, Any], *, named: bool = True) -> str:
        """Find where an object lives, by the server's own discovery."""
        version, kind = manifest["apiVersion"], manifest["kind"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if (version, kind) not in self._resources:
            for resource in self.get(root)["resources"]:
                if "/" not in resource["name"]:
                    self._resources[version, resource["kind"]] = (
                        resource["name"],
                        resource["namespaced"],
                    )
        plural, namespaced = self._resources[version, kind]
        metadata = manifest["metadata"]
        if namespaced:
            root += f"/namespaces/{metadata.get('namespace', 'default')}"
        return f"{root}/{plural}" + (f"/{metadata['name']}" if named else "")

    def apply(
        self,
        manifest: Mapping[str, Any],
        *,
        field_manager: str = "nfd-cluster-test",
        **query: str,
    ) -> Any:
        """Apply one object server-side, taking over what others held."""
        return self.request(
            "PATCH",
            self.path_of(manifest),
            manifest,
            content_type=APPLY_PATCH,
            query={"fieldManager": field_manager, "force": "true", **query},
        )


def documents(text: str) -> Iterator[dict[str, Any]]:
    """Read the objects of a YAML stream, lists taken apart."""
    for document in yaml.safe_load_all(text):
        if not document:
            continue
        if document.get("kind") == "List":
            yield from document["items"]
        else:
            yield document
