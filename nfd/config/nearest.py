"""Finds the known word that a wrong one is nearest to."""

from collections.abc import Iterable


def suggest(word: str, known: Iterable[str]) -> str:
    """Return `, did you mean 'x'?`, or the list of known words when none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only after a mistake

    by_fold = {name.casefold(): name for name in known}
    near = get_close_matches(word.casefold(), by_fold, n=1)
    if near:
        return f", did you mean {by_fold[near[0]]!r}?"
    return f" (known: {', '.join(sorted(by_fold.values()))})" if by_fold else ""
