"""What the source asks of NVML: two protocols, so that tests and others can answer.

`binding` answers with the vendor's library. All methods raise `NvmlError`.
"""

from collections.abc import Mapping
from typing import Protocol

import attrs


class NvmlError(Exception):
    """NVML refused; `code` is the name of its error, as "NOT_SUPPORTED"."""

    def __init__(self, code: str, text: str = "") -> None:
        super().__init__(text or code)
        self.code = code

    @property
    def is_no_answer(self) -> bool:
        """Whether the question does not apply to this device or driver."""
        return self.code in ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND")


@attrs.frozen(slots=True)
class MigDevice:
    """One MIG device; `attributes` are those of NVML under the names of labels."""

    profile: str  # as "1g.5gb+me"
    attributes: Mapping[str, int]
    uuid: str = ""


class Device(Protocol):
    """One GPU."""

    def name(self) -> str:
        """Return the product name."""
        ...

    def uuid(self) -> str:
        """Return the unique name."""
        ...

    def bus_id(self) -> str:
        """Return the PCI address as NVML writes it."""
        ...

    def memory(self) -> int:
        """Return the memory in bytes."""
        ...

    def compute_capability(self) -> tuple[int, int]:
        """Return major and minor version."""
        ...

    def mig_enabled(self) -> bool:
        """Tell whether MIG mode is on; an answer means that the GPU can have it."""
        ...

    def mig_slots(self) -> int:
        """Return how many MIG devices there may be."""
        ...

    def mig_device(self, slot: int) -> MigDevice | None:
        """Return the MIG device in a slot; None for an empty one."""
        ...

    def fabric(self) -> tuple[str, int] | None:
        """Return cluster UUID and clique once the fabric is set up, else None."""
        ...

    def c2c(self) -> bool:
        """Tell whether a chip-to-chip link to the CPU is in use."""
        ...

    def addressing_mode(self) -> str:
        """Return how memory of the CPU is addressed: none, HMM or ATS."""
        ...


class Session(Protocol):
    """NVML, initialised; to be closed."""

    def driver_version(self) -> str:
        """Return the version of the driver, as "550.54.15"."""
        ...

    def cuda_version(self) -> int:
        """Return the newest CUDA version that the driver serves, as 12040."""
        ...

    def device_count(self) -> int:
        """Return how many GPUs there are."""
        ...

    def device(self, index: int) -> Device:
        """Return a GPU."""
        ...

    def close(self) -> None:
        """Shut NVML down and let go of the library."""
        ...
