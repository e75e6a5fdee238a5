"""Go's own answers: same output, or both refuse."""

import json
from pathlib import Path
from typing import Any

import pytest

from nfd.gotemplate import TemplateError, parse

ANSWERS = json.loads((Path(__file__).parent / "go_answers.json").read_text())
CASES = [
    pytest.param(case, id=f"{section}-{at}")
    for section in ("language", "printf", "functions")
    for at, case in enumerate(ANSWERS[section])
]


def outcome(template: str, data: Any) -> str | None:
    """Return the output, or None for a refusal."""
    try:
        return parse(template).render(data)
    except TemplateError:
        return None


def test_shared_golden_cases_match_go(shared_dir: Path) -> None:
    golden = json.loads((shared_dir / "spec" / "gotemplate_golden.json").read_text())
    wanted = {
        case["template"]: None if case["error"] else case["out"]
        for case in golden["cases"]
    }
    found = {template: outcome(template, golden["data"]) for template in wanted}

    assert len(wanted) == 117
    assert wanted == found


@pytest.mark.parametrize("case", CASES)
def test_case_matches_go(case: dict[str, Any]) -> None:
    assert case.get("out") == outcome(case["template"], ANSWERS["data"])
