"""The grammar of source selections (spec/worker.md section 2)."""

import pytest

from nfd.config.selection import select, words

KNOWN = ("cpu", "fake", "kernel", "pci")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (["all"], ["cpu", "kernel", "pci"]),
        (["all", "fake"], ["cpu", "fake", "kernel", "pci"]),
        (["all", "-cpu"], ["kernel", "pci"]),
        (["-cpu", "all"], ["cpu", "kernel", "pci"]),
        (["cpu", "-cpu"], []),
        (["cpu", "-cpu", "cpu"], ["cpu"]),
        (["pci", "cpu", "pci"], ["cpu", "pci"]),
        ([], []),
        (["-all"], []),
    ],
)
def test_words_in_order(wanted: list[str], expected: list[str]) -> None:
    chosen, _ = select(wanted, KNOWN, off=lambda name: name == "fake")

    assert expected == list(chosen)


def test_unknown_names_are_skipped_with_the_nearest() -> None:
    chosen, warnings = select(
        ["pcii", "-nope", "cpu"], KNOWN, off=lambda _: False, where="x"
    )

    assert chosen == ("cpu",)
    assert warnings == (
        "x: there is no source 'pcii', did you mean 'pci'?; skipped",
        "x: there is no source 'nope' (known: cpu, fake, kernel, pci); skipped",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cpu, pci", ("cpu", "pci")),
        ("a,,b", ("a", "b")),
        ("", ()),
        (", ,\t,", ()),
    ],
)
def test_comma_lists(text: str, expected: tuple[str, ...]) -> None:
    assert expected == words(text)
