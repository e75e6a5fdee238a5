"""The RE2 seam gives Go's verdicts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nfd import regex


def verdict(pattern: str, text: str) -> str:
    try:
        return str(regex.compile(pattern).search(text)).lower()
    except regex.PatternError:
        return "ERR"


def test_golden_verdicts_match_go(shared_dir: Path) -> None:
    cases = json.loads((shared_dir / "spec" / "goregexp_golden.json").read_text())[
        "cases"
    ]
    wanted = [(case["pattern"], case["text"], case["go"]) for case in cases]
    found = [(pattern, text, verdict(pattern, text)) for pattern, text, _ in wanted]

    assert len(wanted) == 85
    assert wanted == found


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        (r"\C", "a", "ERR"),
        (r"a\\C", r"a\C", "true"),
        (r"\Q\C\E", r"\C", "true"),
        (r"\Qa\E\C", "ab", "ERR"),
        (r"[\C]", "a", "ERR"),
        (r"\Q\C", r"\C", "true"),
        ("\\", "a", "ERR"),
        ("a", "\ud800a", "true"),
        ("^.a", "\ud800a", "true"),
        ("\ud800", "a", "ERR"),
        ("(a+)+$", "a" * 5000 + "b", "false"),
    ],
)
def test_verdict(pattern: str, text: str, wanted: str) -> None:
    assert wanted == verdict(pattern, text)


def test_error_holds_pattern_and_reason() -> None:
    with pytest.raises(regex.PatternError, match=r"'\(a': missing \)") as caught:
        regex.compile("(a")

    assert caught.value.pattern == "(a"
    assert caught.value.reason == "missing ): (a"


def test_pattern_is_compiled_once() -> None:
    assert regex.compile("memo") is regex.compile("memo")
    assert regex.compile.cache_info().maxsize == regex.CACHE_SIZE


def test_nothing_is_logged_and_re2_is_loaded_late() -> None:
    """The library logs bad patterns to standard error unless told not to."""
    program = (
        "import sys, nfd.regex\n"
        "assert 're2' not in sys.modules\n"
        "try: nfd.regex.compile('(')\n"
        "except nfd.regex.PatternError: pass\n"
        "assert 're2' in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_matches_leaves_out_an_empty_match_after_another() -> None:
    spans = [match.span() for match in regex.compile("a*").matches("baac")]

    assert spans == [(0, 0), (1, 3), (4, 4)]
    assert len(list(regex.compile("a").matches("aaa", 1))) == 1
