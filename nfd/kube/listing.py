"""Lists decoded item by item, so that a page never exists as a whole in memory.

A page of 200 NodeFeatures is 8 to 60 MB of JSON and several times that as objects.
"""

import codecs
import json
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from nfd.kube.resources import JsonObject

_SPACE = " \t\n\r"


@attrs.define(slots=True)
class ListMetadata:
    """What a list says about itself; complete once its items were all read."""

    resource_version: str = ""
    continue_token: str = ""


def items(chunks: Iterable[bytes], metadata: ListMetadata) -> Iterator[JsonObject]:
    """Yield the items of one list answer as its body arrives; fill in `metadata`.

    Raises:
        ValueError: The body is no list of objects.

    """
    text = _Text(chunks)
    text.expect("{")
    if text.accept("}"):
        raise ValueError("empty object instead of a list")
    seen = False
    while True:
        key = text.value()
        text.expect(":")
        if key == "items" and not text.accept_null():
            seen = True
            yield from _array(text)
        elif key == "items":
            seen = True
        elif key == "metadata":
            about = text.value()
            metadata.resource_version = about.get("resourceVersion", "")
            metadata.continue_token = about.get("continue", "")
        else:
            text.value()
        if not text.accept(","):
            break
    text.expect("}")
    if not seen:
        raise ValueError("a list without items")


def _array(text: "_Text") -> Iterator[JsonObject]:
    text.expect("[")
    if text.accept("]"):
        return
    while True:
        item = text.value()
        if not isinstance(item, dict):
            raise ValueError(f"a list item is {type(item).__name__}, not an object")
        yield item
        if not text.accept(","):
            break
    text.expect("]")


class _Text:
    """A window on the text of a body: decodes one value after the other."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._decode = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            raise ValueError(
                f"expected {sign!r}, found {self._text[self._at :][:20]!r}"
            )

    def accept(self, sign: str) -> bool:
        found = self._peek() == sign
        self._at += found
        return found

    def accept_null(self) -> bool:
        if self._peek() != "n":
            return False
        self.value()
        return True

    def value(self) -> Any:
        """Return the next value; it must be followed by something."""
        self._peek()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except ValueError:
                # Growing twofold keeps the retries linear in the size of the value.
                if not self._grow(len(self._text) - self._at):
                    raise
                continue
            if end < len(self._text) or not self._grow(1):
                self._at = end
                return value

    def _peek(self) -> str:
        """Return the next sign that is no space, "" at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._grow(1):
                return ""

    def _grow(self, least: int) -> bool:
        """Read on by `least` characters or more; return whether there were any."""
        parts = [self._text[self._at :]]
        size = 0
        for chunk in self._chunks:
            parts.append(self._utf8.decode(chunk))
            size += len(parts[-1])
            if size >= least and size:
                break
        self._text, self._at = "".join(parts), 0
        return size > 0
