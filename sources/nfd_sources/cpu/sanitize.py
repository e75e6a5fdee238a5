"""Making texts fit for label values; pure."""

import re

_UNFIT = re.compile(r"[^-A-Za-z0-9_.]+")


def label_text(text: str) -> str:
    """Turn each run of characters that a label value cannot hold into `_`."""
    return _UNFIT.sub("_", text)
