"""Each component does its whole work with the chart's rights, and needs them all."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.cluster.api import RefusedError
from tests.cluster.controlplane import ControlPlane
from tests.cluster.masters import ANS, API_VERSION, FNS, NFD, Space
from tests.cluster.processes import Program
from tests.cluster.roles import apply_chart
from tests.deploy.chart import Manifest, rules

pytestmark = pytest.mark.usefixtures("helm")

HOST = Path(__file__).parents[2] / "fixtures" / "hosts" / "sriov-server"
CAPABLE = "network-sriov.capable"
Right = tuple[str, str]  # verb, resource


@attrs.frozen
class Release:
    """The chart's accounts, rights and policies in a namespace named as the release."""

    plane: ControlPlane
    name: str
    manifests: list[Manifest]

    def account(self, component: str) -> str:
        return f"{self.name}-node-feature-discovery{component}"

    def granted(self, component: str) -> set[Right]:
        return {
            (verb, resource)
            for _, verbs, rule in rules(self.manifests, self.account(component))
            for resource in rule["resources"]
            for verb in verbs
        }

    def asked(self, component: str) -> list[dict[str, Any]]:
        """Return what the API server was asked, dry runs left out."""
        user = f"system:serviceaccount:{self.name}:{self.account(component)}"
        return [
            event
            for event in self.plane.audit_events(user=user)
            if "dryRun" not in event["requestURI"] and "resource" in event["objectRef"]
        ]

    def unused(self, component: str) -> set[Right]:
        """Return the rights that were granted and not used; none was missing.

        A watch begins with the list where the server streams lists, as this one does.
        """
        asked = self.asked(component)
        refused = [e for e in asked if e["responseStatus"]["code"] == 403]
        assert refused == []
        used = {(e["verb"], _resource(e["objectRef"])) for e in asked}
        lists = {("list", resource) for verb, resource in used if verb == "watch"}
        return self.granted(component) - used - lists

    @contextmanager
    def running(
        self, component: str, module: str, folder: Path, node: str, *arguments: str
    ) -> Iterator[Program]:
        """Run a program with a token bound to a pod on a node."""
        pod = f"{module}{component}-{node}"
        token = self.plane.bound_token(
            self.name, self.account(component), pod, node=node
        )
        code = f"import sys; from nfd.cli.{module} import main; sys.exit(main())"
        kubeconfig = self.plane.token_kubeconfig(f"{self.name}-{pod}", token)
        program = Program(
            pod,
            [
                *(sys.executable, "-c", code, f"-kubeconfig={kubeconfig}"),
                *arguments,
            ],
            folder / f"{pod}.log",
            {"NODE_NAME": node, "KUBERNETES_NAMESPACE": self.name, "POD_NAME": pod},
        )
        program.start()
        try:
            yield program
        finally:
            program.stop()

    def run(self, *arguments: Any) -> None:
        """Run a program to its good end."""
        with self.running(*arguments) as program:
            self.plane.wait_for(lambda: program.running, wanted=False)
            assert program.status == 0, program.tail()


def _resource(reference: dict[str, str]) -> str:
    below = reference.get("subresource")
    return reference["resource"] + (f"/{below}" if below else "")


@contextmanager
def _release(
    plane: ControlPlane, name: str, values: dict[str, Any]
) -> Iterator[Release]:
    made = Release(plane, name, apply_chart(plane, name, values, release=name))
    yield made
    for manifest in made.manifests:
        with suppress(RefusedError):
            plane.admin.delete(plane.admin.path_of(manifest))


def _found(plane: ControlPlane, path: str) -> Any:
    try:
        return plane.admin.get(path)
    except RefusedError:
        return None


def test_master_collector_and_prune(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    """NodeFeature → all outputs, statuses, notes, Events, demand; orphans; prune."""
    plane, space = control_plane, Space(control_plane, "rights")
    values = {"gc": {"enable": True}}
    with _release(plane, space.name, values) as release:
        node = space.node()
        features = f"{NFD}/namespaces/{space.name}/nodefeatures"
        flags: Any = {"x.y": {"elements": {"here": {}}}}
        labels = {"fine": "1", "kubernetes.io/no": "1"}
        space.feature({"features": {"flags": flags}, "labels": labels})
        space.feature({"labels": {"lost": "1"}}, node="gone")
        rule = {
            "name": "r",
            "labels": {"ruled": "1"},
            "annotations": {"note": "1"},
            "extendedResources": {"v.io/units": "2"},
            "taints": [{"key": "v.io/t", "value": "1", "effect": "PreferNoSchedule"}],
            "matchFeatures": [
                {"feature": "x.y", "matchExpressions": {"here": {"op": "Exists"}}}
            ],
        }
        group_rule = {key: rule[key] for key in ("name", "matchFeatures")}
        options = {
            "enableTaints": True,
            "restrictions": {"nodeFeatureNamespaceSelector": {}},
            "garbageCollection": {"grace": "1s"},
        }
        space.rules("r", [rule])
        group = f"{NFD}/namespaces/{space.name}/nodefeaturegroups/g"
        plane.admin.apply(
            {
                "apiVersion": API_VERSION,
                "kind": "NodeFeatureGroup",
                "metadata": {"name": "g", "namespace": space.name},
                "spec": {"featureGroupRules": [group_rule]},
            }
        )
        arguments = ("-config=", "-port=0", "-instance=rights")
        with release.running(
            "", "master", tmp_path, node, *arguments,
            "-enable-leader-election", "-feature-gates=NodeFeatureGroupAPI=true",
            f"-options={json.dumps(options)}",
        ) as program:  # fmt: skip
            plane.wait_for(space.labels, {"fine": "1", "ruled": "1"})
            plane.wait_for(space.taints, ["v.io/t=1:PreferNoSchedule"])
            plane.wait_for(
                lambda: space.resources(kind="allocatable"), {"v.io/units": "2"}
            )
            path = f"{features}/{space.node_name()}"
            plane.wait_for(
                lambda: (
                    f"{ANS}/refused" in plane.admin.get(path)["metadata"]["annotations"]
                ),
                wanted=True,
            )
            status = f"{NFD}/nodefeaturerules/{space.name}-r"
            plane.wait_for(
                lambda: plane.admin.get(status).get("status", {}).get("matchedNodes"), 1
            )
            plane.wait_for(
                lambda: _found(plane, f"{features}/{space.node_name('gone')}"), None
            )
            plane.wait_for(
                lambda: plane.admin.get(group).get("status", {}).get("nodes"),
                [{"name": node}],
            )
            demand = f"/api/v1/namespaces/{space.name}/configmaps/nfd-feature-demand"
            term = {
                "feature": "kernel.config",
                "matchExpressions": {"NO_HZ": {"op": "Exists"}},
            }
            space.rules("s", [{"name": "s", "matchFeatures": [term]}])
            plane.wait_for(
                lambda: (
                    "NO_HZ" in json.dumps((_found(plane, demand) or {}).get("data"))
                ),
                wanted=True,
            )
            assert program.running, program.tail()
        plane.wait_for(
            lambda: [
                e["reason"]
                for e in plane.admin.get(f"/api/v1/namespaces/{space.name}/events")[
                    "items"
                ]
            ],
            ["OutputRefused"],
        )

        space.feature({"labels": {"lost": "1"}}, node="gone")
        with release.running(
            "-gc", "gc", tmp_path, node, "-gc-interval=1s", "-gc-grace=1s", "-port=0"
        ):
            plane.wait_for(
                lambda: _found(plane, f"{features}/{space.node_name('gone')}"), None
            )
        release.run("-prune", "master", tmp_path, node, "-prune", *arguments)

        assert space.labels() == {}
        assert space.notes() == {}
        assert space.taints() == []
        assert space.resources() == {}
        # What only a race or a repeated Event asks for.
        assert release.unused("") == {
            ("get", "nodes"),
            ("patch", "events"),
        }
        # There is nobody's topology to delete.
        assert release.unused("-gc") == {("delete", "noderesourcetopologies")}
        assert release.unused("-prune") == {("get", "nodes")}
    space.clean()


@pytest.mark.parametrize(
    ("publish", "left"),
    [
        # The token tells the node's uid; only old clusters' do not.
        ("nodefeature", {("get", "nodes")}),
        ("node", set()),
        ("nodefeature,node", set()),
    ],
)
def test_worker(
    control_plane: ControlPlane, tmp_path: Path, publish: str, left: set[Right]
) -> None:
    """Publishes, changes, puts back and prunes with the rights of its mode."""
    plane = control_plane
    name = "rights-" + publish.replace(",", "-")
    space = Space(plane, name)
    values = {"publish": publish, "master": {"enable": publish != "node"}}
    config = tmp_path / "nfd-worker.conf"
    config.write_text("{}")
    arguments = [f"-config={config}", f"-root={HOST}", "-port=0", f"-publish={publish}"]
    with _release(plane, name, values) as release:
        node = space.node()
        path = f"{NFD}/namespaces/{name}/nodefeatures/{node}"

        def published() -> set[str]:
            found = _found(plane, path)
            return {
                key.removeprefix(f"{FNS}/")
                for key in (found["spec"]["labels"] if found else space.labels())
            }

        _wait_for_the_fence(release)
        release.run("-worker", "worker", tmp_path, node, *arguments, "-oneshot")
        with release.running("-worker", "worker", tmp_path, node, *arguments):
            plane.wait_for(lambda: CAPABLE in published(), wanted=True)
            assert (CAPABLE in space.labels()) == ("node" in publish.split(","))
            assert (_found(plane, path) is not None) == ("nodefeature" in publish)
            rule = {"name": "r", "labels": {"made": "true"}}
            config.write_text(json.dumps({"sources": {"custom": [rule]}}))
            plane.wait_for(lambda: "made" in published(), wanted=True)
            config.write_text("{}")
            plane.wait_for(lambda: "made" in published(), wanted=False)
        release.run("-worker", "worker", tmp_path, node, *arguments, "-prune")

        assert _found(plane, path) is None
        assert space.labels() == {}
        assert release.unused("-worker") == left


def _wait_for_the_fence(release: Release) -> None:
    """Policies are in force about a second after they are written."""
    plane = release.plane
    other = plane.node(f"{release.name}-other")["metadata"]["name"]
    loose = plane.client(plane.bound_token(release.name, release.account("-worker")))
    manifest = {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": {"name": other},
        "spec": {},
    }

    features = f"{NFD}/namespaces/{release.name}/nodefeatures"
    tries: tuple[Callable[[], Any], ...] = (
        lambda: loose.patch(f"/api/v1/nodes/{other}", [], dryRun="All"),
        lambda: loose.create(features, manifest, dryRun="All"),
    )

    def refused() -> bool:
        for act in tries:
            try:
                act()
            except RefusedError as error:
                # Without the right, in this mode; or by the policy.
                if not re.search("cannot|not bound to a pod", error.message):
                    return False
            else:
                return False
        return True

    plane.wait_for(refused, wanted=True)
