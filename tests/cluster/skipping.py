"""Tests that need what a machine may lack: skipped there, failed in CI."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.binaries import UnavailableError


@contextmanager
def skip_where_unavailable(what: str) -> Iterator[None]:
    """Skip the test when `what` cannot be had on this machine; in CI, fail it."""
    try:
        yield
    except UnavailableError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no {what}: {error}")
