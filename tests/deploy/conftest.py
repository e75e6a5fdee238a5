"""helm is needed to render the chart."""

from pathlib import Path

import pytest

from tests.cluster.skipping import skip_where_unavailable
from tests.cluster.tools import tools


@pytest.fixture(scope="session")
def helm() -> Path:
    """The real helm."""
    with skip_where_unavailable("helm"):
        return tools()["helm"]
