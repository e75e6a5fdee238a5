"""Control planes for tests, each started once a session.

`control_plane` is etcd and API server with our CRDs, `upstream_control_plane` the same
with CRDs of upstream's shape, `whole_control_plane` has ours and everything that makes
pods run. Use names of your own in them.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.binaries import KUBERNETES, KWOK, Module, binaries
from tests.cluster.controlplane import ControlPlane
from tests.cluster.skipping import skip_where_unavailable
from tests.cluster.tools import tools

ROOT = Path(__file__).resolve().parents[2]
DEFINITIONS = ROOT / "deploy" / "crds"
UPSTREAM_DEFINITIONS = ROOT / "fixtures" / "crds-upstream-shape"


@pytest.fixture(scope="session")
def helm() -> Path:
    """The real helm."""
    with skip_where_unavailable("helm"):
        return tools()["helm"]


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd and API server with our CRDs."""
    require(KUBERNETES)
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as running:
        running.apply_files(*sorted(DEFINITIONS.glob("*.yaml")))
        yield running


@pytest.fixture(scope="session")
def upstream_control_plane(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """etcd and API server with CRDs as upstream ships them."""
    require(KUBERNETES)
    with ControlPlane(tmp_path_factory.mktemp("upstream-control-plane")) as running:
        running.apply_files(*sorted(UPSTREAM_DEFINITIONS.glob("*.yaml")))
        yield running


@pytest.fixture(scope="session")
def whole_control_plane(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """Everything: controller manager, scheduler, and kwok as every Node's kubelet."""
    require(KUBERNETES, KWOK)
    folder = tmp_path_factory.mktemp("whole-control-plane")
    with ControlPlane(
        folder, controller_manager=True, scheduler=True, kwok=True
    ) as running:
        running.apply_files(*sorted(DEFINITIONS.glob("*.yaml")))
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs here, so that `-m 'not cluster'` leaves it out."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.cluster)


def require(*modules: Module) -> None:
    """Skip the test where the programs cannot be had; fail it in CI."""
    with skip_where_unavailable("control plane"):
        for module in modules:
            binaries(module)
