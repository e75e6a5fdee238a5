"""Sprig's encodings and checksums. A text that cannot be decoded gives a message."""

import base64
import binascii
import hashlib
import re
import zlib

from nfd.gotemplate.functions import Function
from nfd.gotemplate.values import charge_text, from_bytes, to_bytes

_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]")
_NOT_BASE32 = re.compile(rb"[^A-Z2-7]")


def base64_encode(text: str) -> str:
    """Encode in base64 with padding."""
    encoded = base64.b64encode(to_bytes(text)).decode()
    charge_text(len(encoded))
    return encoded


def base64_decode(text: str) -> str:
    """Decode base64 with padding; line ends are skipped."""
    data = to_bytes(text).translate(None, b"\r\n")
    try:
        return from_bytes(base64.b64decode(data, validate=True))
    except binascii.Error:
        return f"illegal base64 data at input byte {_bad_byte(data, _NOT_BASE64, 4)}"


def base32_encode(text: str) -> str:
    """Encode in base32 with padding."""
    encoded = base64.b32encode(to_bytes(text)).decode()
    charge_text(len(encoded))
    return encoded


def base32_decode(text: str) -> str:
    """Decode base32 with padding; line ends are skipped."""
    data = to_bytes(text).translate(None, b"\r\n")
    try:
        return from_bytes(base64.b32decode(data))
    except binascii.Error:
        return f"illegal base32 data at input byte {_bad_byte(data, _NOT_BASE32, 8)}"


def _bad_byte(data: bytes, wrong: re.Pattern[bytes], quantum: int) -> int:
    found = wrong.search(data)
    if found is None:
        return len(data) - len(data) % quantum
    return found.start()


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
