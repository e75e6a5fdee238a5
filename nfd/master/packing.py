"""Plain values as bytes, and these made small: in memory only, never on a wire."""

import marshal
import zlib
from typing import Any

_VERSION = 2  # of marshal: later ones refer back to shared objects
_LEVEL = 1  # of compression: a third of the time of 6 for a fifth more bytes


def dump(value: Any) -> bytes:
    """Return a plain value as bytes, three times as fast as JSON.

    Equal values have equal bytes where their maps have the same order.
    """
    return marshal.dumps(value, _VERSION)


def load(data: bytes) -> Any:
    """Undo `dump`."""
    return marshal.loads(data)  # noqa: S302 - `dump` wrote it, in this process


def pack(data: bytes) -> bytes:
    """Compress."""
    return zlib.compress(data, _LEVEL)


def unpack(data: bytes) -> bytes:
    """Undo `pack`."""
    return zlib.decompress(data)
