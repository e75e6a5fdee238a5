"""What is wrong, or suspicious, in rule files."""

from typing import Any, Literal, TypeAlias

import attrs

Severity: TypeAlias = Literal["error", "warning"]


@attrs.frozen(slots=True)
class Problem:
    """One finding: where it is and what is wrong there."""

    severity: Severity
    place: str  # file, and the document when it has several
    path: str  # "spec.rules[0].matchFeatures[1].feature"
    message: str
    rule: str = ""

    def __str__(self) -> str:
        """Write it in one line for people."""
        parts = [part for part in (self.place, self.path) if part]
        if self.rule:
            parts.append(f"rule {self.rule!r}")
        return f"{self.severity}: {': '.join([*parts, self.message])}"

    def to_plain(self) -> dict[str, Any]:
        """Return the JSON form."""
        return attrs.asdict(self)


def show(value: Any) -> str:
    """Quote a value for a message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
