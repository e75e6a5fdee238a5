"""Settings classes: what their common base gives them is what attrs would."""

import attrs
import pytest

from nfd.source import NoSettings, Settings, setting


@attrs.frozen(slots=True, eq=False, repr=False)
class Some(Settings):
    """Derives from the base."""

    words: tuple[str, ...] = setting("words", ("a",), "words")
    number: int = setting("number", 1, "a number")


@attrs.frozen(slots=True, eq=False, repr=False)
class Others(Settings):
    """Has the same fields."""

    words: tuple[str, ...] = setting("words", ("a",), "words")
    number: int = setting("number", 1, "a number")


def test_equal_values_are_equal() -> None:
    assert Some(("b",), 2) == Some(("b",), 2)
    assert hash(Some(("b",), 2)) == hash(Some(("b",), 2))
    assert attrs.evolve(Some(), number=2) == Some(number=2)


def test_other_values_and_classes_are_not() -> None:
    assert Some() != Some(("b",))
    assert Some() != Others()
    assert Some() != (("a",), 1)
    assert NoSettings() == NoSettings()


def test_it_shows_its_fields() -> None:
    assert repr(Some()) == "Some(words=('a',), number=1)"
    assert repr(NoSettings()) == "NoSettings()"


def test_it_is_frozen_and_has_no_other_attributes() -> None:
    assert not hasattr(Some(), "__dict__")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Some().number = 2  # type: ignore[misc] # the point
