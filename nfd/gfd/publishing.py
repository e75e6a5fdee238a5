"""Where the labels go: standard output, a file of features.d, or a NodeFeature.

Shape of the object: spec/gpu.md section 1.5.
"""

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import Any, Protocol, TextIO

from nfd.errors import NfdError
from nfd.kube.client import Client
from nfd.kube.errors import Forbidden, NotFound
from nfd.kube.resources import NODEFEATURES, PODS
from nfd.publish.files import label_lines, write_if_changed
from nfd.publish.nodefeature import API_VERSION
from nfd.publish.ownership import NODE_NAME_LABEL, node_name_label

JsonObject = dict[str, Any]


class Output(Protocol):
    """Where labels go."""

    def publish(self, labels: Mapping[str, str]) -> bool:
        """Publish; tell whether anything was written."""
        ...

    def holds_labels(self) -> bool:
        """Tell whether labels of GPUs are there from before."""
        ...

    def remove(self) -> None:
        """Take back what was published."""
        ...


class StreamOutput:
    """Prints every time, as the vendor's tool does."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def publish(self, labels: Mapping[str, str]) -> bool:
        """Print the lines."""
        stream = self._stream or sys.stdout
        stream.write(label_lines(labels))
        stream.flush()
        return True

    def holds_labels(self) -> bool:
        """Nothing is there from before."""
        return False

    def remove(self) -> None:
        """What was printed stays."""


class FileOutput:
    """Replaces a file in one step; unchanged content is not written."""

    def __init__(self, path: str) -> None:
        self.path = path

    def publish(self, labels: Mapping[str, str]) -> bool:
        """Write the lines.

        Raises:
            NfdError: They cannot be written.

        """
        try:
            return write_if_changed(self.path, label_lines(labels))
        except OSError as error:
            raise NfdError(f"{self.path}: {error.strerror or error}") from None

    def holds_labels(self) -> bool:
        """Tell whether the file names a product."""
        try:
            with open(self.path, encoding="utf-8", errors="replace") as file:
                return any(line.startswith("nvidia.com/gpu.product=") for line in file)
        except OSError:
            return False

    def remove(self) -> None:
        """Delete the file."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


class ObjectOutput:
    """Keeps a NodeFeature beside that of the worker."""

    def __init__(
        self, client: Client, namespace: str, node_name: str, pod_name: str = ""
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._node = node_name
        self._pod = pod_name
        self.name = f"nvidia-features-for-{node_name}"

    def publish(self, labels: Mapping[str, str]) -> bool:
        """Create the object, or replace its labels when they differ.

        Raises:
            ApiError: The API server refuses.

        """
        wanted = dict(sorted(labels.items()))
        found = self._found()
        if found is None:
            self._create(wanted)
            return True
        if (found.get("spec") or {}).get("labels") == wanted:
            return False
        spec = {"features": {}, **(found.get("spec") or {}), "labels": wanted}
        self._client.update(NODEFEATURES, {**found, "spec": spec})
        return True

    def holds_labels(self) -> bool:
        """Tell whether the object names a product."""
        found = self._found() or {}
        labels = (found.get("spec") or {}).get("labels") or {}
        return "nvidia.com/gpu.product" in labels

    def remove(self) -> None:
        """Delete the object."""
        with contextlib.suppress(NotFound):
            self._client.delete(NODEFEATURES, self.name, self._namespace)

    def _found(self) -> JsonObject | None:
        try:
            return self._client.get(NODEFEATURES, self.name, self._namespace)
        except NotFound:
            return None

    def _create(self, labels: Mapping[str, str]) -> None:
        metadata: JsonObject = {
            "name": self.name,
            "namespace": self._namespace,
            "labels": {NODE_NAME_LABEL: node_name_label(self._node)},
        }
        owners = self._owners()
        if owners:
            metadata["ownerReferences"] = owners
        made = {
            "apiVersion": API_VERSION,
            "kind": "NodeFeature",
            "metadata": metadata,
            "spec": {
                "features": {"flags": {}, "attributes": {}, "instances": {}},
                "labels": dict(labels),
            },
        }
        self._client.create(NODEFEATURES, made)

    def _owners(self) -> list[JsonObject]:
        """Return DaemonSet and Pod, when this is a pod of a DaemonSet."""
        if not self._pod:
            return []
        try:
            pod = self._client.get(PODS, self._pod, self._namespace)
        except (NotFound, Forbidden):
            return []
        owners = pod["metadata"].get("ownerReferences") or ()
        for owner in owners:
            if owner.get("controller") and owner.get("kind") == "DaemonSet":
                return [
                    {**_reference(owner), "controller": True},
                    _reference(
                        {
                            "apiVersion": "v1",
                            "kind": "Pod",
                            "name": self._pod,
                            "uid": pod["metadata"].get("uid", ""),
                        }
                    ),
                ]
        return []


def _reference(owner: Mapping[str, Any]) -> JsonObject:
    return {key: owner.get(key, "") for key in ("apiVersion", "kind", "name", "uid")}
