"""What a request is about, and reading its answer: objects, lines and errors."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from nfd.errors import NfdError
from nfd.kube.errors import (
    ApiError,
    BadAnswer,
    Unreachable,
    error_class,
)
from nfd.kube.resources import JsonObject, Resource


@attrs.frozen(slots=True)
class Target:
    """What a request is about, for its path and for the text of its errors."""

    verb: str
    resource: Resource
    name: str = ""
    namespace: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        """The URL path; a create goes to the collection."""
        name = "" if self.verb == "create" else self.name
        return self.resource.path(name, self.namespace, self.subresource)

    def refused(
        self, code: int, status: Mapping[str, Any], headers: Mapping[str, str]
    ) -> ApiError:
        """Return the error of an answer that is not a success."""
        reason = str(status.get("reason") or "")
        details = status.get("details") or {}
        after = headers.get("retry-after") or details.get("retryAfterSeconds")
        return error_class(code, reason)(
            str(status.get("message") or ""),
            status=code,
            reason=reason,
            retry_after=_seconds(after),
            **self._said(),
        )

    def unreachable(self, error: NfdError) -> Unreachable:
        """Return the error of a request without a complete answer."""
        return Unreachable(str(error), **self._said())

    def bad_answer(self, error: ValueError) -> BadAnswer:
        """Return the error of an answer that makes no sense."""
        return BadAnswer(f"not the JSON expected: {error}", **self._said())

    def _said(self) -> dict[str, Any]:
        plural, sub = self.resource.plural, self.subresource
        return {
            "verb": self.verb,
            "resource": f"{plural}/{sub}" if sub else plural,
            "name": self.name,
            "namespace": self.namespace,
        }


def decode(body: bytes) -> JsonObject:
    """Return the JSON object in a body.

    Raises:
        ValueError: It is none.

    """
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError(f"a {type(value).__name__} instead of an object")
    return value


def metadata_of(obj: JsonObject) -> JsonObject:
    """Return the metadata of an object that was read or written.

    Raises:
        BadAnswer: It has none, so that some proxy must have answered.

    """
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("uid"):
        raise BadAnswer(f"no object with metadata: {json.dumps(obj)[:80]}")
    return metadata


def status_of(body: bytes) -> JsonObject:
    """Return the Status object in the body of a refusal; any text is a message."""
    try:
        return decode(body)
    except ValueError:
        return {"message": body[:500].decode(errors="replace").strip()}


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream; what follows the last line feed is no line.

    Raises:
        ValueError: The stream ended inside a line.

    """
    parts: list[bytes] = []
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            parts.append(line)
            full = b"".join(parts)
            parts.clear()
            if full:
                yield full
        parts.append(rest)
    if any(parts):
        raise ValueError("the stream ended inside an event")


def _seconds(value: Any) -> float | None:
    try:
        return max(0.0, float(value))
    except (TypeError, ValueError):
        return None  # an HTTP date, or nothing: the back-off decides
