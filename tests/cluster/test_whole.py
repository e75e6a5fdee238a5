"""The complete control plane: pods are scheduled and run, and go when they should."""

from tests.cluster.controlplane import ControlPlane

LABEL = "feature.node.kubernetes.io/pci-10de.present"


def test_daemon_set_runs_where_the_label_is(whole_control_plane: ControlPlane) -> None:
    """Controller manager, scheduler and kwok together play a cluster."""
    plane = whole_control_plane
    plane.node("whole-gpu", **{LABEL: "true"})
    plane.node("whole-plain")
    plane.admin.create(
        "/apis/apps/v1/namespaces/default/daemonsets",
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "driver"},
            "spec": {
                "selector": {"matchLabels": {"app": "driver"}},
                "template": {
                    "metadata": {"labels": {"app": "driver"}},
                    "spec": {
                        "nodeSelector": {LABEL: "true"},
                        "containers": [{"name": "pause", "image": "pause"}],
                    },
                },
            },
        },
    )

    def running() -> list[str]:
        pods = plane.admin.get(
            "/api/v1/namespaces/default/pods", labelSelector="app=driver"
        )["items"]
        return sorted(
            pod["spec"]["nodeName"]
            for pod in pods
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        )

    plane.wait_for(running, ["whole-gpu"])
    plane.admin.patch(
        "/api/v1/nodes/whole-plain",
        {"metadata": {"labels": {LABEL: "true"}}},
        content_type="application/merge-patch+json",
    )
    plane.wait_for(running, ["whole-gpu", "whole-plain"])
    plane.admin.patch(
        "/api/v1/nodes/whole-gpu",
        {"metadata": {"labels": {LABEL: None}}},
        content_type="application/merge-patch+json",
    )
    plane.wait_for(running, ["whole-plain"])


def test_orphaned_objects_are_collected(whole_control_plane: ControlPlane) -> None:
    """The garbage collector takes a NodeFeature whose Node is deleted."""
    plane = whole_control_plane
    node = plane.node("whole-gone")
    path = "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/default/nodefeatures"
    plane.admin.create(
        path,
        {
            "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
            "kind": "NodeFeature",
            "metadata": {
                "name": "whole-gone",
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Node",
                        "name": "whole-gone",
                        "uid": node["metadata"]["uid"],
                    }
                ],
            },
            "spec": {},
        },
    )

    plane.admin.delete("/api/v1/nodes/whole-gone")

    plane.wait_for(lambda: plane.admin.get(path)["items"], [])
