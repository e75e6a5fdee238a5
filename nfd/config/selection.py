"""The selection grammar of sources: `all`, `name`, `-name` (spec/worker.md 2)."""

from collections.abc import Callable, Iterable

from nfd.config.nearest import suggest


def words(text: str) -> tuple[str, ...]:
    """Split a comma list as flags take it: entries trimmed, blanks dropped."""
    return tuple(word for part in text.split(",") if (word := part.strip()))


def as_words(chosen: str | Iterable[str]) -> tuple[str, ...]:
    """Return a selection, given as list or as comma text, as words."""
    return words(chosen if isinstance(chosen, str) else ",".join(chosen))


def select(
    wanted: Iterable[str],
    known: Iterable[str],
    *,
    off: Callable[[str], bool],
    where: str = "sources",
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Work through the words in order: `all` adds what is not `off` by default.

    `-name` removes, `name` adds. An empty list selects nothing.

    Returns:
        The selected names, sorted, and a warning for each word that names nothing.

    """
    names = list(known)
    chosen: set[str] = set()
    warnings: list[str] = []
    for word in wanted:
        bare = word.removeprefix("-")
        if word == "all":
            chosen.update(name for name in names if not off(name))
        elif bare not in names:
            warnings.append(
                f"{where}: there is no source {bare!r}{suggest(bare, names)}; skipped"
            )
        elif word.startswith("-"):
            chosen.discard(bare)
        else:
            chosen.add(word)
    return tuple(sorted(chosen)), tuple(warnings)
