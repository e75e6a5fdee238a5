"""Writes plain data as JSON text.

As `json.dumps(value, indent=2, ensure_ascii=False)`, without importing `json`: its
decoder and its patterns are 2 % of a scan. A test compares the two.
"""

from typing import Any

_ESCAPES = {number: f"\\u{number:04x}" for number in range(0x20)} | {
    ord(character): f"\\{letter}"
    for character, letter in zip('"\\\b\f\n\r\t', '"\\bfnrt', strict=True)
}
_WORDS = {True: "true", False: "false", None: "null"}


def write(value: Any, indent: str = "\n") -> str:
    """Return the JSON text of maps with text keys, lists, texts, numbers and words.

    Args:
        value: The data.
        indent: What begins a line at this depth.

    Raises:
        TypeError: There is something else in it.

    """
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, int | float):
        return repr(value)
    deeper = indent + "  "
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("keys of JSON objects are texts")
        lines = [f"{write(k)}: {write(v, deeper)}" for k, v in value.items()]
        return _block("{", lines, "}", indent)
    if isinstance(value, list | tuple):
        return _block("[", [write(v, deeper) for v in value], "]", indent)
    raise TypeError(f"no JSON for {type(value).__name__}")


def _block(start: str, lines: list[str], end: str, indent: str) -> str:
    if not lines:
        return start + end
    deeper = indent + "  "
    return f"{start}{deeper}{f',{deeper}'.join(lines)}{indent}{end}"
