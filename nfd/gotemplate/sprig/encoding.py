"""Sprig's encodings and checksums. A text that cannot be decoded gives a message."""

import base64
import binascii
import hashlib
import string
import zlib

from nfd.gotemplate.functions import Function
from nfd.gotemplate.values import charge_text, from_bytes, to_bytes

_BASE64 = frozenset(string.ascii_letters + string.digits + "+/")
_BASE32 = string.ascii_uppercase + "234567"


def base64_encode(text: str) -> str:
    """Encode in base64 with padding."""
    encoded = base64.b64encode(to_bytes(text)).decode()
    charge_text(len(encoded))
    return encoded


def base64_decode(text: str) -> str:
    """Decode base64 with padding; line ends are skipped."""
    try:
        data = to_bytes(text).translate(None, b"\r\n")
        return from_bytes(base64.b64decode(data, validate=True))
    except binascii.Error:
        return f"illegal base64 data at input byte {_bad_base64(text)}"


def _bad_base64(text: str) -> int:
    """Return the position that Go's decoder complains about."""
    data = to_bytes(text).decode("latin-1")
    in_quantum = 0
    for at, letter in enumerate(data):
        if letter in "\r\n":
            continue
        if letter in _BASE64:
            in_quantum = (in_quantum + 1) % 4
        elif letter != "=" or in_quantum < 2:
            return at
        else:
            return _bad_padding(data, at + 1, wants_more=in_quantum == 2)
    return len(data) - in_quantum


def _bad_padding(data: str, at: int, *, wants_more: bool) -> int:
    rest = data[at:].lstrip("\r\n")
    at = len(data) - len(rest)
    if wants_more:
        if not rest:
            return len(data)
        if rest[0] != "=":
            return at - 1
        rest = rest[1:].lstrip("\r\n")
    return len(data) - len(rest)


def base32_encode(text: str) -> str:
    """Encode in base32 with padding."""
    encoded = base64.b32encode(to_bytes(text)).decode()
    charge_text(len(encoded))
    return encoded


def base32_decode(text: str) -> str:
    """Decode base32 with padding; line ends are skipped, as is what follows it."""
    data = to_bytes(text).translate(None, b"\r\n").decode("latin-1")
    padding = -1
    for at, letter in enumerate(data):
        in_quantum = at % 8
        if letter == "=" and in_quantum >= 2 and len(data) - at <= 8:
            wanted = 8 - in_quantum
            if len(data) - at < wanted:
                return _bad_base32(len(data))
            for after, pad in enumerate(data[at + 1 : at + wanted]):
                if pad != "=":
                    return _bad_base32(at + after)
            if in_quantum in (3, 6):
                return _bad_base32(at)
            padding = at
            break
        if letter not in _BASE32:
            return _bad_base32(at)
    if padding < 0 and len(data) % 8:
        return _bad_base32(len(data) - len(data) % 8)
    kept = data[:padding] if padding >= 0 else data
    return from_bytes(base64.b32decode(kept + "=" * (-len(kept) % 8)))


def _bad_base32(at: int) -> str:
    return f"illegal base32 data at input byte {at}"


FUNCTIONS = {
    "adler32sum": Function(lambda text: str(zlib.adler32(to_bytes(text))), "string"),
    "b32dec": Function(base32_decode, "string"),
    "b32enc": Function(base32_encode, "string"),
    "b64dec": Function(base64_decode, "string"),
    "b64enc": Function(base64_encode, "string"),
    "sha1sum": Function(
        lambda text: hashlib.sha1(to_bytes(text), usedforsecurity=False).hexdigest(),
        "string",
    ),
    "sha256sum": Function(
        lambda text: hashlib.sha256(to_bytes(text)).hexdigest(), "string"
    ),
    "sha512sum": Function(
        lambda text: hashlib.sha512(to_bytes(text)).hexdigest(), "string"
    ),
}
