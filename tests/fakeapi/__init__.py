"""An API server in the test's process, for what a real one does not do on demand.

    with FakeApi() as api:
        api.node("n1")
        api.fault(answer(429, retry_after=1), verb="patch", resource="nodes")
        client = api.client("worker")

It keeps versions, generations and managedFields, pages, watches and streams lists; its
behaviour is checked against a real API server by `tests/kube/test_behaviour.py`.
Not modelled: finalizers, garbage collection, namespaces that must exist, schemas.
"""

from tests.fakeapi.answers import Review
from tests.fakeapi.clock import FakeClock
from tests.fakeapi.faults import (
    Asked,
    Fault,
    Switch,
    answer,
    dropped,
    empty_list,
    garbage,
    half_open,
    hang,
    held,
    lost_answer,
    reset,
    slow,
    truncated,
)
from tests.fakeapi.refusals import Refusal, forbidden, invalid
from tests.fakeapi.server import Denial, FakeApi

__all__ = [
    "Asked",
    "Denial",
    "FakeApi",
    "FakeClock",
    "Fault",
    "Refusal",
    "Review",
    "Switch",
    "answer",
    "dropped",
    "empty_list",
    "forbidden",
    "garbage",
    "half_open",
    "hang",
    "held",
    "invalid",
    "lost_answer",
    "reset",
    "slow",
    "truncated",
]
