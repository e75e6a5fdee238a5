"""One watch: the stream of events that the API server answers with."""

from collections.abc import Iterator
from typing import Self

from nfd.kube.answers import Target, decode, lines
from nfd.kube.errors import TransportError
from nfd.kube.resources import JsonObject
from nfd.kube.transport import Response


class Watch:
    """The events of one watch, until the server ends it; close it when done."""

    def __init__(self, target: Target, response: Response) -> None:
        self._target = target
        self._response = response

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield type (ADDED, MODIFIED, DELETED, BOOKMARK) and object of each event.

        Raises:
            ApiError: An event of type ERROR came, or the stream broke.

        """
        target = self._target
        try:
            for line in lines(self._response.chunks()):
                kind, obj = _event(line)
                if kind == "ERROR":
                    raise target.refused(obj.get("code") or 500, obj, {})
                yield kind, obj
        except ValueError as error:
            raise target.bad_answer(error) from error
        except TransportError as error:
            raise target.unreachable(error) from error

    def patience(self, seconds: float) -> None:
        """Wait so long for each further event before the stream counts as broken."""
        self._response.patience(seconds)

    def close(self) -> None:
        """Drop the connection."""
        self._response.close()


def _event(line: bytes) -> tuple[str, JsonObject]:
    event = decode(line)
    kind, obj = event.get("type"), event.get("object")
    if not isinstance(kind, str) or not isinstance(obj, dict):
        raise ValueError("an event without type or object")
    if kind != "ERROR" and not obj.get("metadata", {}).get("resourceVersion"):
        raise ValueError("an event without resourceVersion")
    return kind, obj
