"""NVML as a table of GPUs, without a library."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from nfd.features import Features
from nfd.hostroot import HostRoot, Recorder
from nfd.source import LabelValue
from nfd_sources.nvml import NvmlSettings, NvmlSource
from nfd_sources.nvml.library import MigDevice, NvmlError, Session
from nfd_sources.nvml.mig import profile_name
from nfd_sources.nvml.settings import Sharing

MIB = 1 << 20
ATTRIBUTES = (
    *("memory", "multiprocessors", "slices.gi", "slices.ci"),
    *("engines.copy", "engines.decoder", "engines.encoder", "engines.jpeg"),
    "engines.ofa",
)


@attrs.frozen
class FakeMig:
    """A MIG device; `values` are attributes that are not 0."""

    profile: str
    memory: int
    gi: int = 1
    ci: int = 1
    values: Mapping[str, int] = attrs.field(factory=dict)

    def told(self, uuid: str) -> MigDevice:
        values = {
            **dict.fromkeys(ATTRIBUTES, 0),
            "memory": self.memory,
            "slices.gi": self.gi,
            "slices.ci": self.ci,
            **self.values,
        }
        return MigDevice(self.profile, values, uuid)


def real_mig(gi: int, memory: int, total_mib: int, attribute: str = "") -> FakeMig:
    """Make a MIG device whose profile's name is computed."""
    name = profile_name(gi, gi, attribute, memory, total_mib * MIB)
    return FakeMig(name, memory, gi, gi)


@attrs.frozen
class FakeDevice:
    """A GPU; `errors` maps methods to codes that they raise."""

    model: str = "MOCKMODEL"
    mib: int = 300
    cc: tuple[int, int] = (8, 0)
    pci_class: str = "0x030200"
    mig: bool | None = False  # None: not supported
    migs: tuple[FakeMig, ...] = ()
    clique: tuple[str, int] | None = None
    chip_link: bool = False
    errors: Mapping[str, str] = attrs.field(factory=dict)
    slot: int = 0  # where it sits on the bus

    def _say(self, method: str, answer: Any) -> Any:
        if method in self.errors:
            raise NvmlError(self.errors[method])
        return answer

    def name(self) -> str:
        return str(self._say("name", self.model))

    def uuid(self) -> str:
        return str(self._say("uuid", f"GPU-{self.slot}"))

    @property
    def address(self) -> str:
        return f"0000:{self.slot:02x}:00.0"

    def bus_id(self) -> str:
        return str(self._say("bus_id", f"0000{self.address.upper()}"))

    def memory(self) -> int:
        return int(self._say("memory", self.mib * MIB))

    def compute_capability(self) -> tuple[int, int]:
        major, minor = self._say("compute_capability", self.cc)
        return major, minor

    def mig_enabled(self) -> bool:
        if self.mig is None:
            raise NvmlError("NOT_SUPPORTED")
        return bool(self._say("mig_enabled", self.mig))

    def mig_slots(self) -> int:
        return int(self._say("mig_slots", 7))

    def mig_device(self, slot: int) -> MigDevice | None:
        self._say("mig_device", None)
        if slot >= len(self.migs):
            return None
        return self.migs[slot].told(f"MIG-{self.slot}-{slot}")

    def fabric(self) -> tuple[str, int] | None:
        if self.clique is None:
            raise NvmlError(self.errors.get("fabric", "NOT_SUPPORTED"))
        return self.clique

    def c2c(self) -> bool:
        return bool(self._say("c2c", self.chip_link))

    def addressing_mode(self) -> str:
        raise NvmlError("FUNCTION_NOT_FOUND")


@attrs.define
class FakeSession:
    """NVML with these GPUs, in this order."""

    devices: Sequence[FakeDevice | NvmlError]
    version: str = "400.300"
    cuda: int = 8000
    errors: Mapping[str, str] = attrs.field(factory=dict)
    closed: bool = False

    def _check(self, method: str) -> None:
        if method in self.errors:
            raise NvmlError(self.errors[method])

    def driver_version(self) -> str:
        self._check("driver_version")
        return self.version

    def cuda_version(self) -> int:
        self._check("cuda_version")
        return self.cuda

    def device_count(self) -> int:
        self._check("device_count")
        return len(self.devices)

    def device(self, index: int) -> FakeDevice:
        found = self.devices[index]
        if isinstance(found, NvmlError):
            raise found
        return found

    def close(self) -> None:
        self.closed = True


class FakeNvml(NvmlSource):
    """The source over what `answer` is now: a session, or why there is none."""

    answer: FakeSession | NvmlError = NvmlError("LIBRARY_NOT_FOUND", "no library")
    asked = 0

    def _connect(self, paths: Iterable[str]) -> Session:
        assert next(iter(paths)) == "libnvidia-ml.so.1"
        self.asked += 1
        if isinstance(self.answer, NvmlError):
            raise self.answer
        return self.answer


def placed(devices: Iterable[FakeDevice]) -> list[FakeDevice]:
    """Give the GPUs addresses in this order."""
    return [attrs.evolve(d, slot=n + 1) for n, d in enumerate(devices)]


def live_root(folder: Path, record: Recorder | None = None) -> HostRoot:
    """Open a folder as a running host, which always has /sys/class."""
    (folder / "sys/class").mkdir(parents=True, exist_ok=True)
    return HostRoot(str(folder), live=True, record=record)


def gpu_host(folder: Path, devices: Iterable[FakeDevice], **files: bytes) -> HostRoot:
    """Make a running host with these GPUs on its bus."""
    for device in devices:
        path = folder / "sys/bus/pci/devices" / device.address
        path.mkdir(parents=True, exist_ok=True)
        (path / "vendor").write_text("0x10de\n")
        (path / "device").write_text("0x20b2\n")
        (path / "class").write_text(f"{device.pci_class}\n")
        (path / "config").write_bytes(files.get("config", bytes(256)))
        if not (path / "driver").is_symlink():
            (path / "driver").symlink_to("../../../bus/pci/drivers/nvidia")
    return live_root(folder)


def discover(
    folder: Path,
    *devices: FakeDevice,
    settings: NvmlSettings | None = None,
    session: FakeSession | None = None,
) -> Features:
    """Run the source over these GPUs, which are placed in this order."""
    listed = placed(devices)
    source = FakeNvml()
    source.answer = session or FakeSession(listed)
    with gpu_host(folder, listed) as host:
        return source.discover(host, settings or NvmlSettings())


def texts(labels: Mapping[str, LabelValue]) -> dict[str, str]:
    """Return values by name, without the prefix."""
    return {k.removeprefix("nvidia.com/"): v.value for k, v in labels.items()}


def labelled(
    folder: Path,
    *devices: FakeDevice,
    mig: str = "none",
    sharing: Mapping[str, Any] | None = None,
    **settings: Any,
) -> dict[str, str]:
    """Return the labels of a host with these GPUs."""
    made: Any = NvmlSettings(
        mig_strategy=mig,  # type: ignore[arg-type] # a word of the table
        sharing=Sharing.from_config(sharing, "sharing"),
        **settings,
    )
    features = discover(folder, *devices, settings=made)
    return texts(NvmlSource().labels(features, made))
