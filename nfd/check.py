"""Checks a node's labels against what programs that read node labels expect.

Pure. What each program expects is in its profile: `nfd.profile`.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from nfd.features import Features
from nfd.profile import Need, Profile

Verdict: TypeAlias = Literal["ok", "broken", "not needed"]


@attrs.frozen(slots=True)
class NeedResult:
    """How a need is met: the labels that are there, none when it is missing."""

    need: Need
    present: tuple[str, ...]


@attrs.frozen(slots=True)
class ProfileResult:
    """How a program fares on a node."""

    profile: Profile
    verdict: Verdict
    needs: tuple[NeedResult, ...]

    @property
    def missing(self) -> tuple[NeedResult, ...]:
        """The needs that are not met and not optional."""
        return tuple(n for n in self.needs if not n.present and not n.need.optional)

    def to_plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "profile": self.profile.name,
            "verdict": self.verdict,
            "needs": [
                {
                    "consumer": result.need.consumer,
                    "anyOf": [str(wanted) for wanted in result.need.any_of],
                    "present": list(result.present),
                    "optional": result.need.optional,
                    "without": result.need.without,
                    "madeBy": result.need.made_by,
                }
                for result in self.needs
            ],
        }


def check(
    profile: Profile, labels: Mapping[str, str], features: Features | None = None
) -> ProfileResult:
    """Say how a program fares with these labels; pure.

    With the features of a host its devices tell whether the program is needed there,
    else the labels do, so that a Node without any sign counts as one without need.
    """
    results = tuple(
        NeedResult(
            need, tuple(text for w in need.any_of for text in w.found_in(labels))
        )
        for need in profile.needs
    )
    verdict: Verdict = "ok"
    if not _concerns(profile, labels, features):
        verdict = "not needed"
    elif any(not r.present and not r.need.optional for r in results):
        verdict = "broken"
    return ProfileResult(profile, verdict, results)


def _concerns(
    profile: Profile, labels: Mapping[str, str], features: Features | None
) -> bool:
    if not profile.hardware:
        return True
    if features is not None and "pci.device" in features:
        return any(
            all(
                device.get(key, "").startswith(values) for key, values in wanted.items()
            )
            for device in features.instances["pci.device"]
            for wanted in profile.devices
        )
    return any(sign.found_in(labels) for sign in profile.signs)
