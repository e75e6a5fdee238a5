"""What an API server refuses or fails to do, as exceptions that name the request."""

import re
from typing import Self

from nfd.errors import NfdError

_RBAC = re.compile(
    r' cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)"'
    r' in API group "(?P<group>[^"]*)"(?P<scope>.*)',
    re.DOTALL,
)


class ApiError(NfdError):
    """A request to the API server failed; the text says which one and why.

    `status` is the HTTP status, 0 when there was no answer; `reason` and `message`
    are the server's. `retry_after` is in seconds, None when the server named none.
    """

    retryable = False

    def __init__(
        self,
        message: str,
        *,
        verb: str = "",
        resource: str = "",
        name: str = "",
        namespace: str = "",
        status: int = 0,
        reason: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.verb = verb
        self.resource = resource
        self.name = name
        self.namespace = namespace
        self.status = status
        self.reason = reason
        self.retry_after = retry_after

    def __str__(self) -> str:
        where = "/".join(part for part in (self.namespace, self.name) if part)
        what = " ".join(part for part in (self.verb, self.resource, where) if part)
        code = " ".join(p for p in (str(self.status or ""), self.reason) if p)
        return ": ".join(part for part in (what, code, self.message) if part)


class BadRequest(ApiError):
    """400: the server could not make sense of the request."""


class Unauthorized(ApiError):
    """401: the server does not accept the credentials."""


class Forbidden(ApiError):
    """403: a permission is missing, or admission refused the content."""

    @property
    def missing_permission(self) -> str:
        """The right to grant, as `verb resource[.group] [scope]`; "" for admission."""
        found = _RBAC.search(self.message)
        if not found:
            return ""
        group = found["group"]
        resource = found["resource"] + (f".{group}" if group else "")
        return f"{found['verb']} {resource}{found['scope']}"

    def __str__(self) -> str:
        missing = self.missing_permission
        return super().__str__() + (f" (missing permission: {missing})" * bool(missing))


class NotFound(ApiError):
    """404: the object, or its whole resource, does not exist on this server."""


class Conflict(ApiError):
    """409: the object changed since it was read, or a precondition failed."""


class AlreadyExists(Conflict):
    """409: an object of this name is already there."""


class Gone(ApiError):
    """410: the resourceVersion or continue token is too old; list again."""


class Invalid(ApiError):
    """422: the object, or a `test` of a JSON patch, does not hold."""


class TooManyRequests(ApiError):
    """429: the server asks for less; `retry_after` says when to come back."""

    retryable = True


class ServerError(ApiError):
    """5xx: the server failed."""

    retryable = True


class BadAnswer(ApiError):
    """The answer is not what an API server says (no JSON, wrong shape)."""

    retryable = True


class Unreachable(ApiError):
    """No answer, or a broken one: connection refused or reset, time-out, bad TLS."""

    retryable = True


class TransportError(NfdError):
    """Raised by transports for anything that is not an HTTP answer."""

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Wrap a library's exception, keeping its kind in the text."""
        text = str(error)
        return cls(f"{type(error).__name__}: {text}" if text else type(error).__name__)


class NotLeader(NfdError):
    """The lease is not held, so nothing may be written."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def error_class(status: int, reason: str) -> type[ApiError]:
    """Return the exception class for an HTTP status and the reason beside it."""
    if reason == "AlreadyExists":
        return AlreadyExists
    if status >= 500:
        return ServerError
    return _BY_STATUS.get(status, ApiError)
