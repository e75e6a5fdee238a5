"""Publishing to a file or a stream: sorted `key=value` lines, written atomically."""

import contextlib
import os
from collections.abc import Mapping


def label_lines(labels: Mapping[str, str]) -> str:
    """Return the features.d form: one sorted `key=value` line a label."""
    return "".join(f"{key}={value}\n" for key, value in sorted(labels.items()))


def read_labels(path: str) -> dict[str, str]:
    """Read what `label_lines` wrote; nothing where there is no such file.

    Raises:
        OSError: It cannot be read.

    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {key: value for key, _, value in pairs}


def write_if_changed(path: str, text: str) -> bool:
    """Replace a file in one step, readable by all; unchanged content is not written.

    A reader sees the old or the new file, never a part; the temporary file begins
    with a dot, so that features.d passes over it.

    Raises:
        OSError: The file or its folder cannot be written; nothing is left behind.

    """
    data = text.encode()
    try:
        with open(path, "rb") as file:
            if file.read() == data:
                return False
    except FileNotFoundError:
        pass
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), 0o644)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return True
