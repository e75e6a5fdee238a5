"""GPUs by model: which is the primary one, and what names their labels bear; pure."""

from collections.abc import Iterable, Mapping, Sequence

import attrs

from nfd.features import Attributes
from nfd_sources._sanitize import LIMIT, distinct, fit, hyphenated

_LONGEST = len("gpu..memory")


@attrs.frozen(slots=True)
class Group:
    """The GPUs of one model, in order of address."""

    model: str  # as NVML says it
    devices: tuple[Attributes, ...]

    @property
    def is_compute(self) -> bool:
        """Whether one of them is no display card."""
        return any(d.get("kind") != "display" for d in self.devices)

    @property
    def memory(self) -> int:
        """Memory of one in MiB, 0 if unknown; the biggest where they differ."""
        return max(int(d.get("memory", 0)) for d in self.devices)

    @property
    def compute(self) -> tuple[int, int, str]:
        """Compute capability and architecture of the newest; major 0 if unknown."""
        return max(
            (
                int(d.get("compute.major", 0)),
                int(d.get("compute.minor", 0)),
                d.get("family", ""),
            )
            for d in self.devices
        )

    @property
    def in_mig_mode(self) -> int:
        """How many have MIG mode on."""
        return sum(d.get("mig.enabled") == "true" for d in self.devices)


def groups_of(devices: Iterable[Attributes]) -> tuple[Group, ...]:
    """Group by model, the primary first: most numerous, most memory, then name.

    Compute cards come before display cards; devices without a name are left out.
    """
    by_model: dict[str, list[Attributes]] = {}
    for device in devices:
        if device.get("name"):
            by_model.setdefault(device["name"], []).append(device)
    found = (Group(model, tuple(listed)) for model, listed in by_model.items())
    return tuple(
        sorted(
            found, key=lambda g: (not g.is_compute, -len(g.devices), -g.memory, g.model)
        )
    )


def label_names(groups: Sequence[Group]) -> Mapping[str, str]:
    """Return for each model the word between `gpu.` and `.count`, as in gpu.product.

    Models that would share one, or have none, get digits of their name's hash.
    """
    words = {g.model: fit(hyphenated(g.model), LIMIT - _LONGEST) for g in groups}
    listed = list(words.values())
    return {
        model: word
        if word and listed.count(word) == 1
        else distinct(word, model, LIMIT - _LONGEST)
        for model, word in words.items()
    }
