"""The list of behaviour, on the fake API server and on a real one."""

from collections.abc import Callable, Iterator

import pytest

from nfd.kube.connect import connect
from tests.cluster.controlplane import ControlPlane
from tests.fakeapi import FakeApi
from tests.kube.behaviour import CHECKS, World

Check = Callable[[World], None]


def _named(check: Check) -> str:
    return check.__name__.removeprefix("check_")


@pytest.fixture(scope="module")
def fake_world() -> Iterator[Callable[[], World]]:
    with FakeApi() as api:
        api.deny("*", "*", user="nobody")
        api.tokens = {"all": "admin", "none": "nobody"}
        admin = api.client(connection=api.connection(token=lambda: "all"))
        nobody = api.client(connection=api.connection(token=lambda: "none"))
        yield lambda: World(admin, nobody, api.compact)


@pytest.mark.parametrize("check", CHECKS, ids=_named)
def test_fake(fake_world: Callable[[], World], check: Check) -> None:
    check(fake_world())


@pytest.fixture(scope="module", params=["http", "urllib3"])
def real_world(
    request: pytest.FixtureRequest, control_plane: ControlPlane
) -> Iterator[Callable[[], World]]:
    files = (control_plane.kubeconfig, control_plane.certificate_kubeconfig("nobody"))
    clients = [connect("test", str(f), transport=request.param) for f in files]
    yield lambda: World(clients[0], clients[1], _compact)
    for client in clients:
        client.transport.close()


def _compact() -> None:
    pytest.skip("the real API server compacts when it wants, every five minutes")


@pytest.mark.cluster
@pytest.mark.parametrize("check", CHECKS, ids=_named)
def test_real(real_world: Callable[[], World], check: Check) -> None:
    check(real_world())
