"""What all tests share: recorded hosts, the data beside the checkout, goldens."""

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# CI draws the same examples every time, so that a change is judged and not a draw;
# people draw new ones. Times are no assertion: machines are shared.
settings.register_profile("people", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "people")

ROOT = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what is found into the golden files instead of comparing",
    )


@pytest.fixture(autouse=True)
def logs_of_agents_end() -> Iterator[None]:
    """Take back what an agent set up that ran in this process."""
    root = logging.getLogger()
    level = root.level
    yield
    if "nfd.agentlog" in sys.modules:
        for handler in list(root.handlers):
            if type(handler).__module__ == "nfd.agentlog":
                root.removeHandler(handler)
        root.setLevel(level)
        sys.modules["structlog"].reset_defaults()


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether goldens are to be written."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def host_dir() -> Path:
    """The folder of recorded hosts; each folder in it is a host root."""
    return ROOT / "fixtures" / "hosts"


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The data beside the checkout; NFD_SHARED says where else it lies."""
    path = Path(os.environ.get("NFD_SHARED") or ROOT.parent / "shared")
    if not path.is_dir():
        pytest.skip(f"no shared data at {path}; set NFD_SHARED")
    return path
