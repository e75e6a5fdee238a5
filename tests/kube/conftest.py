"""The fake API server for tests of the client, plain and with TLS."""

from collections.abc import Iterator

import pytest

from tests.fakeapi import FakeApi


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as running:
        yield running
