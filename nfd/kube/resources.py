"""Kubernetes resources as values: where each one lives in the API."""

from typing import Any, TypeAlias
from urllib.parse import quote

import attrs

JsonObject: TypeAlias = dict[str, Any]
"""A decoded JSON object, keys as on the wire."""


@attrs.frozen(slots=True)
class Resource:
    """One served resource: API group ("" for core), version, plural and kind."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """`apiVersion` as written in objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """Path of the group and version, such as `/apis/coordination.k8s.io/v1`."""
        return f"/apis/{self.group}/{self.version}" if self.group else "/api/v1"

    def path(self, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, an object or its subresource."""
        parts = [self.root]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


_NFD = "nfd.k8s-sigs.io"

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod", namespaced=True)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
EVENTS = Resource("", "v1", "events", "Event", namespaced=True)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
NODEFEATURES = Resource(
    _NFD, "v1alpha1", "nodefeatures", "NodeFeature", namespaced=True
)
NODEFEATURERULES = Resource(
    _NFD, "v1alpha1", "nodefeaturerules", "NodeFeatureRule", namespaced=False
)
NODEFEATUREGROUPS = Resource(
    _NFD, "v1alpha1", "nodefeaturegroups", "NodeFeatureGroup", namespaced=True
)
