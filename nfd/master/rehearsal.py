"""The dry run of another master's image, in a Pod: what would it write here?

The Pod is that of the running master but for its image, and without what serves and
probes it: so flags, configuration and rights are those that an upgrade would find.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import attrs

from nfd.errors import NfdError
from nfd.kube.client import Client
from nfd.kube.errors import NotFound
from nfd.kube.resources import PODS, JsonObject

LABEL = "nfd.node.kubernetes.io/rehearsal"  # no selector of the master's matches it
PATIENCE = 300.0  # seconds for pulling the image and for the run
_POLL = 1.0  # seconds
_LAST_LINES = 5
_DRY_RUN = "-dry-run"
_NAMES = ("master", "nfd-master")  # of containers: this chart's, and older manifests'
_OF_POD = (
    "affinity",
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "hostAliases",
    "hostNetwork",
    "imagePullSecrets",
    "nodeSelector",
    "priorityClassName",
    "runtimeClassName",
    "securityContext",
    "serviceAccountName",
    "tolerations",
)
_OF_CONTAINER = (
    "command",
    "env",
    "envFrom",
    "imagePullPolicy",
    "name",
    "resources",
    "securityContext",
)
_TOKEN = "kube-api-access-"  # noqa: S105 - a volume's name; each Pod gets its own
_HOPELESS = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
    }
)


@attrs.frozen(slots=True)
class Rehearsed:
    """What the image printed, and the exit status of its `-dry-run`."""

    status: int
    text: str


def rehearse(client: Client, namespace: str, image: str) -> Rehearsed:
    """Run the dry run of `image` beside the master of a namespace; takes seconds.

    Raises:
        NfdError: No master runs there, the image does not start, or it fails.
        ApiError: The API server refuses: it takes the rights to list, create and
            delete Pods there and to read their logs.

    """
    pod = rehearsal_pod(client.list(PODS, namespace), image)
    if pod is None:
        raise NfdError(f"no Pod of a master runs in namespace {namespace!r}")
    made = client.create(PODS, pod)["metadata"]
    name, uid = made["name"], made["uid"]
    try:
        status = _wait(client, namespace, name)
        path = PODS.path(name, namespace, "log")
        text = client.raw(path, accept="text/plain, */*").decode(errors="replace")
    finally:
        with suppress(NotFound):
            client.delete(PODS, name, namespace, uid=uid)
    return Rehearsed(status, text)


def _wait(client: Client, namespace: str, name: str) -> int:
    until = client.clock.monotonic() + PATIENCE
    while True:
        pod = client.get(PODS, name, namespace)
        status = exit_status(pod)
        if status is not None:
            return status
        if client.clock.monotonic() > until:
            phase = (pod.get("status") or {}).get("phase")
            raise NfdError(f"Pod {name} is {phase} after {PATIENCE:g} s")
        if client.clock.wait(client.stop, _POLL):
            raise NfdError("stopped")


def rehearsal_pod(pods: Iterable[JsonObject], image: str) -> JsonObject | None:
    """Make the Pod out of that of a running master; None where there is none."""
    for pod in pods:
        metadata, spec = pod["metadata"], pod["spec"]
        running = (pod.get("status") or {}).get("phase") == "Running"
        if not running or LABEL in (metadata.get("labels") or {}):
            continue
        master = next((c for c in spec["containers"] if _is_master(c)), None)
        if master is not None:
            return {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "generateName": "nfd-rehearsal-",
                    "namespace": metadata["namespace"],
                    "labels": {LABEL: "true"},
                },
                "spec": {
                    **_only(spec, _OF_POD),
                    "restartPolicy": "Never",
                    "activeDeadlineSeconds": round(PATIENCE),
                    "volumes": _own(spec.get("volumes")),
                    "containers": [
                        {
                            **_only(master, _OF_CONTAINER),
                            "image": image,
                            "args": [*(master.get("args") or ()), _DRY_RUN],
                            "volumeMounts": _own(master.get("volumeMounts")),
                        }
                    ],
                },
            }
    return None


def exit_status(pod: Mapping[str, Any]) -> int | None:
    """Return the exit status of a Pod's container, None while it has none.

    Raises:
        NfdError: It will never have one; the text is the cluster's reason.

    """
    status = pod.get("status") or {}
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        if ended := state.get("terminated"):
            return int(ended["exitCode"])
        waiting = state.get("waiting") or {}
        if waiting.get("reason") in _HOPELESS:
            raise NfdError(
                f"{container.get('image')}: {waiting['reason']}:"
                f" {waiting.get('message', '')}"
            )
    if status.get("phase") == "Failed":
        why = status.get("message") or status.get("reason") or "no reason given"
        raise NfdError(f"Pod {pod['metadata']['name']} failed: {why}")
    return None


def last_lines(text: str) -> str:
    """Return the end of an output, for an error."""
    return " | ".join(text.strip().splitlines()[-_LAST_LINES:])


def _is_master(container: Mapping[str, Any]) -> bool:
    words = container.get("command") or [""]
    return container["name"] in _NAMES or words[0].endswith("nfd-master")


def _only(plain: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: plain[key] for key in keys if key in plain}


def _own(named: Iterable[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    return [each for each in named or () if not each["name"].startswith(_TOKEN)]
