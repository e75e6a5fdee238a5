"""Making texts fit for label values and names; pure.

For facts whose vendor's own tool rewrites them, and only for those: all other values
stay as they are, and a value that is no label value is refused with its reason.
"""

import re

LIMIT = 63  # characters of a label value, and of the name part of a key
_EDGES = "-_."
_DIGEST = 8  # hex digits

_UNFIT = re.compile(r"[^-A-Za-z0-9_.]+")
_UNFIT_WORDS = re.compile(r"[^-A-Za-z0-9_. ]+")


def label_text(text: str) -> str:
    """Turn each run of characters that a label value cannot hold into `_`."""
    return _UNFIT.sub("_", text)


def hyphenated(text: str) -> str:
    """Drop what a label value cannot hold, and join the words by `-`.

    Source: spec/gpu.md section 1.3.
    """
    return "-".join(_UNFIT_WORDS.sub("", text).split())


def fit(text: str, limit: int = LIMIT) -> str:
    """Trim the edges and cut to `limit` characters; different texts stay different.

    A text that is too long ends in eight digits of its SHA-256.
    """
    text = text.strip(_EDGES)
    if len(text) <= limit:
        return text
    return distinct(text, text, limit)


def distinct(text: str, origin: str, limit: int = LIMIT) -> str:
    """Append digits of the hash of `origin`, from which `text` was made."""
    import hashlib  # noqa: PLC0415 - OpenSSL: 8 ms that few hosts need

    digest = hashlib.sha256(origin.encode()).hexdigest()[:_DIGEST]
    kept = text.strip(_EDGES)[: limit - _DIGEST - 1].rstrip(_EDGES)
    return f"{kept}-{digest}" if kept else digest
