"""What PCI and USB labels share: class white lists and names built from fields."""

from collections.abc import Iterable, Mapping, Sequence

from nfd_sources._reading import WARNING, report


def class_prefixes(whitelist: Iterable[str]) -> tuple[str, ...]:
    """Normalise white-list entries: lower case, no space around, no `0x`."""
    return tuple(e.strip().lower().removeprefix("0x") for e in whitelist)


def matching_prefix(device_class: str, prefixes: Iterable[str]) -> str | None:
    """Return the first prefix that `device_class` starts with, or None."""
    for prefix in prefixes:
        if device_class.startswith(prefix):
            return prefix
    return None


def chosen_fields(
    wanted: Iterable[str], known: Sequence[str], fallback: tuple[str, ...], where: str
) -> tuple[str, ...]:
    """Return the wanted fields in their fixed order; unknown ones are logged.

    With none left the fallback is returned. `where` is the setting's path.
    """
    wanted = [field.strip() for field in wanted]
    for field in wanted:
        if field not in known:
            report(
                WARNING,
                "unknown label field ignored setting=%s field=%s allowed=%s",
                where,
                field,
                ",".join(known),
            )
    return tuple(field for field in known if field in wanted) or fallback


def joined(device: Mapping[str, str], fields: Iterable[str]) -> str | None:
    """Join the values of the fields by `_`; None when the device lacks one."""
    values = [device.get(field) for field in fields]
    return None if None in values else "_".join(v for v in values if v is not None)
