"""The fake API server for tests of the client, plain and with TLS."""

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import control_plane
from tests.fakeapi import FakeApi


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as running:
        yield running


# pytest looks for fixtures here, not in the folder that has the control plane.
__all__ = ["control_plane"]
