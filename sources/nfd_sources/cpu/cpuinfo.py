"""Parsing /proc/cpuinfo, as far as all architectures are alike; pure."""


def first_fields(text: str) -> dict[str, str]:
    """Return the fields of the first processor, and those that stand once for all.

    Lines are `name : value`, both sides trimmed; the first of several lines with
    one name counts.
    """
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            name = name.strip()
            if name == "processor" and name in fields:
                break
            fields.setdefault(name, value.strip())
    return fields


def feature_words(text: str, *names: str) -> frozenset[str]:
    """Return the words of the first of the named lines that is there."""
    fields = first_fields(text)
    return frozenset(next((fields[n] for n in names if n in fields), "").split())


def number(text: str | None) -> int:
    """Return a decimal number, 0 for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() else 0
