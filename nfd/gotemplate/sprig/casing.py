"""Sprig's functions of letter case, which treat one code point at a time."""

import unicodedata
from collections.abc import Callable, Iterator

from nfd.gotemplate.values import charge, to_bytes

_LETTERS_PER_STEP = 8  # looked at one by one


def _charge_letters(text: str) -> None:
    charge(len(text) // _LETTERS_PER_STEP)


_CJK = (
    ("\u2e80", "\u2fd5"),
    ("\u3005", "\u3029"),
    ("\u3400", "\u4dbf"),
    ("\u4e00", "\u9fcc"),
    ("\uf900", "\ufa6d"),
    ("\U00020000", "\U0002fa1d"),
)


def upper_letter(letter: str) -> str:
    """Map one code point to upper case, which never changes the length in Go."""
    mapped = letter.upper()
    if len(mapped) == 1:
        return mapped
    mapped = letter.title()
    return mapped if len(mapped) == 1 else letter


def lower_letter(letter: str) -> str:
    """Map one code point to lower case."""
    return letter.lower()[0]


def title_letter(letter: str) -> str:
    """Map one code point to title case."""
    mapped = letter.title()
    return mapped if len(mapped) == 1 else letter


def upper(text: str) -> str:
    """Map a text to upper case."""
    if text.isascii():
        return text.upper()
    _charge_letters(text)
    return "".join(map(upper_letter, text))


def lower(text: str) -> str:
    """Map a text to lower case."""
    if text.isascii():
        return text.lower()
    _charge_letters(text)
    return "".join(map(lower_letter, text))


def is_space(letter: str) -> bool:
    r"""Tell whether Go's `unicode.IsSpace` holds; it lacks \\x1c to \\x1f."""
    return letter.isspace() and not "\x1c" <= letter <= "\x1f"


def is_upper(letter: str) -> bool:
    """Tell whether a code point is an upper case letter."""
    return unicodedata.category(letter) == "Lu"


def title(text: str) -> str:
    """Put the first letter of each word in title case, as `strings.Title`."""
    _charge_letters(text)
    pieces = []
    before = " "
    for letter in text:
        pieces.append(title_letter(letter) if _separates(before) else letter)
        before = letter
    return "".join(pieces)


def _separates(letter: str) -> bool:
    if letter.isascii():
        return not (letter.isalnum() or letter == "_")
    return is_space(letter)


def untitle(text: str) -> str:
    """Put the first letter of each word in lower case."""
    _charge_letters(text)
    pieces = []
    starts = True
    for letter in text:
        if is_space(letter):
            starts = True
        elif starts:
            letter = lower_letter(letter)  # noqa: PLW2901 - reads best
            starts = False
        pieces.append(letter)
    return "".join(pieces)


def swapcase(text: str) -> str:
    """Swap cases; a lower case letter that begins a word gets title case."""
    _charge_letters(text)
    pieces = []
    starts = True
    for letter in text:
        category = unicodedata.category(letter)
        if category in ("Lu", "Lt"):
            pieces.append(lower_letter(letter))
            starts = False
        elif category == "Ll":
            pieces.append(title_letter(letter) if starts else upper_letter(letter))
            starts = False
        else:
            pieces.append(letter)
            starts = is_space(letter)
    return "".join(pieces)


def _as_latin(text: str) -> str:
    # The library behind these functions takes bytes for code points.
    _charge_letters(text)
    return text if text.isascii() else to_bytes(text).decode("latin-1")


def initials(text: str) -> str:
    """Keep the first letter of each word."""
    letters = _as_latin(text)
    return "".join(
        letter
        for before, letter in zip(" " + letters, letters, strict=False)
        if is_space(before) and not is_space(letter)
    )


def nospace(text: str) -> str:
    """Remove all white space."""
    letters = _as_latin(text)
    kept = "".join(letter for letter in letters if not is_space(letter))
    return kept if len(kept) < len(letters) else text


def _connects(letter: str) -> bool:
    return letter in "-_" or is_space(letter)


def camelcase(text: str) -> str:
    """Join words, each with a capital; connectors in front stay."""
    _charge_letters(text)
    start = next((at for at, c in enumerate(text) if not _connects(c)), len(text))
    lead, body = text[:start], text[start:]
    if not body:
        return text + text[-1:]  # the library writes the last connector twice
    shouting = is_upper(body[0])
    pieces = [lead]
    current = upper_letter(body[0])
    for following in body[1:]:
        before, current = current, following
        if _connects(current) and _connects(before):
            pieces.append(before)
        elif _connects(before):
            shouting = is_upper(current)
            current = upper_letter(current)
        else:
            if shouting and is_upper(current):
                current = lower_letter(current)
            elif shouting:
                shouting = False
            pieces.append(before)
    pieces.append(current)
    return "".join(pieces)


# Words ------------------------------------------------------------------------

_NUMBER, _UPPER, _ALPHABET, _CONNECTOR, _PUNCTUATION, _OTHER, _NONE = range(7)

Word = tuple[int, str]


def delimited(text: str, connector: str) -> str:
    """Write words in lower case with a connector between, numbers with their word."""
    charge(len(text))
    words = list(_words(text))
    count = len(words)
    words.append((_NONE, ""))
    pieces: list[str] = []
    at = 0
    while at + 1 < count:
        kind = words[at][0]
        pieces.append(_lowered(words[at], connector))
        at += 1
        if kind == _NUMBER:
            at = _join_number(words, at, pieces, connector)
        elif kind in (_CONNECTOR, _PUNCTUATION):
            continue
        elif words[at][0] != _NUMBER:
            pieces.append(_between(words[at], connector))
        elif at + 1 < count:
            at += 1
            if words[at][0] == _ALPHABET:
                pieces += (connector, words[at - 1][1])
                at = _join_number(words, at, pieces, connector)
            else:
                # The number belongs to the word before: "Bld4Floor", "bld4_floor".
                pieces += (words[at - 1][1], _between(words[at], connector))
    pieces.append(_lowered(words[at], connector))
    return "".join(pieces)


def _join_number(words: list[Word], at: int, pieces: list[str], connector: str) -> int:
    """Write the small letters and digits that follow a number; return what is next."""
    while words[at][0] in (_ALPHABET, _NUMBER):
        pieces.append(words[at][1])
        at += 1
    pieces.append(_between(words[at], connector))
    return at


def _between(word: Word, connector: str) -> str:
    """Return what separates a word from the one before."""
    return "" if word[0] in (_NONE, _CONNECTOR, _PUNCTUATION) else connector


def _lowered(word: Word, connector: str) -> str:
    kind, text = word
    if kind == _CONNECTOR:
        return connector * len(text)
    return lower(text) if kind == _UPPER else text


def _words(text: str) -> Iterator[Word]:
    at = 0
    while at < len(text):
        kind, end = _word(text, at)
        yield kind, text[at:end]
        at = end


def _word(text: str, at: int) -> tuple[int, int]:
    letter = text[at]
    if _connects(letter):
        return _CONNECTOR, _run(text, at, _connects)
    if unicodedata.category(letter)[0] == "P":
        return _PUNCTUATION, _run(text, at, _punctuates)
    if is_upper(letter):
        end = _run(text, at, is_upper)
        if end - at > 1:
            # The last capital of "HTTPStatus" begins the next word.
            return _UPPER, end - 1 if end < len(text) and _spells(text[end]) else end
        return _UPPER, _run(text, at, _spells_small)
    if _spells(letter):
        return _ALPHABET, _run(text, at, _spells_small)
    if unicodedata.category(letter)[0] == "N":
        return _NUMBER, _run(text, at, _counts)
    return _OTHER, _run(text, at, _is_other)


def _run(text: str, at: int, holds: Callable[[str], bool]) -> int:
    end = at + 1
    while end < len(text) and holds(text[end]):
        end += 1
    return end


def _punctuates(letter: str) -> bool:
    return unicodedata.category(letter)[0] == "P"


def _counts(letter: str) -> bool:
    return unicodedata.category(letter)[0] == "N"


def _spells(letter: str) -> bool:
    if unicodedata.category(letter)[0] != "L":
        return False
    return not any(low <= letter <= high for low, high in _CJK)


def _spells_small(letter: str) -> bool:
    return _spells(letter) and not is_upper(letter)


def _is_other(letter: str) -> bool:
    return not (
        _connects(letter) or _spells(letter) or _counts(letter) or _punctuates(letter)
    )
