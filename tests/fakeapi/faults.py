"""Switches that make the fake API server misbehave, for chosen requests."""

import threading
from collections.abc import Callable, Mapping

import attrs

from tests.fakeapi.refusals import Refusal


@attrs.define(kw_only=True, eq=False)
class Asked:
    """A request as faults, admission hooks and the log see it.

    `verb` is Kubernetes' (get, list, watch, create, update, patch, delete); `resource`
    the plural, with `/subresource`. `status` is 0 until it was answered, and stays 0
    where the connection was cut.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    verb: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""
    status: int = 0

    @property
    def user_agent(self) -> str:
        return self.headers.get("user-agent", "")

    @property
    def is_write(self) -> bool:
        return self.method not in {"GET", "HEAD"}


@attrs.define
class Fault:
    """What to do to a request. Made by the functions below."""

    refusal: Refusal | None = None
    hold: threading.Event | None = None
    seconds: float = 0.0
    reset: bool = False
    lose_answer: bool = False
    truncate: int | None = None
    silent: bool = False
    close_stream: bool = False
    empty: bool = False
    status_line: bytes = b""


@attrs.define
class Switch:
    """A fault for the next `left` requests that match (None: for all)."""

    fault: Fault
    matches: Callable[[Asked], bool]
    left: int | None
    hits: int = 0

    def take(self, asked: Asked) -> bool:
        if self.left == 0 or not self.matches(asked):
            return False
        self.hits += 1
        if self.left is not None:
            self.left -= 1
        return True

    def lift(self) -> None:
        """From now on requests pass; what is held goes on."""
        self.left = 0
        if self.fault.hold is not None:
            self.fault.hold.set()


def answer(
    status: int,
    reason: str = "",
    message: str = "made to fail",
    *,
    retry_after: float | None = None,
) -> Fault:
    """Refuse with any status: 403, 409, 410, 422, 429, 500…"""
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return Fault(refusal=Refusal(status, reason, message, {}, headers))


def slow(seconds: float) -> Fault:
    """Answer after a while; the wait ends early when the server stops."""
    return Fault(seconds=seconds)


def held(until: threading.Event) -> Fault:
    """Answer once an event is set."""
    return Fault(hold=until)


def hang() -> Fault:
    """Never answer, until the switch is lifted or the server stops."""
    return Fault(hold=threading.Event())


def reset() -> Fault:
    """Cut the connection (RST) instead of answering; nothing is carried out."""
    return Fault(reset=True)


def lost_answer() -> Fault:
    """Carry the request out, then cut the connection instead of answering."""
    return Fault(lose_answer=True)


def truncated(after: int) -> Fault:
    """Send so many bytes of the body, then cut the connection."""
    return Fault(truncate=after)


def half_open() -> Fault:
    """Answer a watch with its headers, then send nothing, not even its end."""
    return Fault(silent=True)


def dropped() -> Fault:
    """End a watch properly right after its headers."""
    return Fault(close_stream=True)


def empty_list() -> Fault:
    """Answer a list with no items, as if nothing existed."""
    return Fault(empty=True)


def garbage() -> Fault:
    """Answer 200 with HTML, as a captive proxy does."""
    return Fault(status_line=b"<html>Sign in</html>")
