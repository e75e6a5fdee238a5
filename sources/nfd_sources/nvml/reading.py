"""From NVML and sysfs to feature sets; every question is asked on its own.

One bad device and one unsupported question cost only themselves. Source: spec/gpu.md
sections 1.2 and 1.3.
"""

import contextlib
import functools
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from nfd.errors import NfdError, NotPresentError, NotReadyError
from nfd.features import Attributes, Features
from nfd.hostroot import HostRoot
from nfd_sources._pci import DEVICES, PciFunction
from nfd_sources._reading import Gaps
from nfd_sources._sanitize import hyphenated
from nfd_sources.nvml import FACT, tegra
from nfd_sources.nvml.binding import SONAME
from nfd_sources.nvml.chip import is_tegra
from nfd_sources.nvml.library import Device, MigDevice, NvmlError, Session
from nfd_sources.nvml.settings import NvmlSettings
from nfd_sources.nvml.vgpu import host_driver

DEVICE, MIG, DRIVER = "nvml.device", "nvml.mig", "nvml.driver"
VGPU, MACHINE, AGENT = "nvml.vgpu", "nvml.machine", "nvml.agent"

Connect = Callable[[Iterable[str]], Session]


class Doors(NamedTuple):
    """How to get a session: of NVML, and of CUDA on Tegra chips."""

    nvml: Connect
    cuda: Connect


# Folders of the driver's libraries below a root.
_LIBRARY_FOLDERS = (
    *("usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu"),
    *("usr/lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib"),
    *("usr/lib/wsl/lib", "usr/lib/nvidia", "run/opengl-driver/lib"),
)
# Where a root of a containerised driver is mounted, and the host itself.
_DRIVER_ROOTS = ("/run/nvidia/driver", "/")
_DISPLAY_MODELS = ("DGX Display", "NVIDIA DGX Display")
_GRAPHICS, _COMPUTE = "0300", "0302"
_SMALL = 4  # a display card has less than this fraction of the biggest memory
_MIB = 1 << 20
_MAX_MIG = 64
_FAMILIES = {  # major version of the compute capability → architecture
    1: "tesla",
    2: "fermi",
    3: "kepler",
    5: "maxwell",
    6: "pascal",
    7: "volta",
    8: "ampere",
    9: "hopper",
    10: "blackwell",
    12: "blackwell",
    13: "rubin",
}
_STARTED = int(time.time())
_UNDEFINED = "undefined"

T = TypeVar("T")


def read(
    host: HostRoot,
    settings: NvmlSettings,
    functions: Sequence[PciFunction],
    doors: Doors,
    gaps: Gaps,
) -> Features:
    """Ask NVML and sysfs; `functions` are the NVIDIA functions on the PCI bus.

    Raises:
        NotReadyError: There is a GPU, but NVML cannot be used now.
        NotPresentError: NVML cannot be used, and no GPU is known to be there.
        NfdError: NVML works, but does not say how many GPUs there are.

    """
    for warning in settings.sharing.warnings:
        gaps.refused(DEVICE, "sharing", warning)
    gpus = [f for f in functions if f.class_.startswith("03")]
    absent = NotReadyError if gpus or is_tegra(host) else NotPresentError
    try:
        session = _open(host, settings, doors)
    except NvmlError as error:
        raise absent(f"NVML cannot be used: {error}") from None
    try:
        attributes = {
            DRIVER: _driver(session, gaps),
            VGPU: _vgpu(host, functions, gaps),
            MACHINE: {"product_name": _machine(host, settings.machine_type_file)},
        }
        devices, migs = _devices(host, session, gaps)
    finally:
        with contextlib.suppress(NvmlError):  # it is let go of in any case
            session.close()
    bound = [f.address for f in gpus if f.driver == "nvidia"]
    if not devices and bound and DEVICE not in gaps.unknown:
        raise NotReadyError(
            f"NVML sees none of the GPUs bound to the driver nvidia ({bound[0]}, …); "
            "are the device files accessible?"
        )
    if host.recorder is not None:
        host.fact(FACT, lambda: _to_text(attributes, devices, migs))
    if settings.timestamp:
        attributes[AGENT] = {"started": str(_STARTED)}
    return Features(
        attributes={key: found for key, found in attributes.items() if found},
        instances={DEVICE: tuple(devices), MIG: tuple(migs)},
        unknown=gaps.unknown,
        notes=gaps.notes,
    )


def _to_text(
    attributes: Mapping[str, Attributes],
    devices: Sequence[Attributes],
    migs: Sequence[Attributes],
) -> str:
    instances = {DEVICE: devices, MIG: migs}
    return json.dumps(
        Features.of(attributes=attributes, instances=instances).to_plain()
    )


def replay(text: str) -> Features:
    """Read what `read` told a recorder.

    Raises:
        NfdError: The text is no such record.

    """
    try:
        return Features.from_plain(json.loads(text))
    except (AttributeError, ValueError) as error:
        raise NfdError(f"/.nfd/{FACT}: {error}") from None


def _open(host: HostRoot, settings: NvmlSettings, doors: Doors) -> Session:
    """Open NVML; on Tegra chips CUDA, where NVML is missing or does not serve."""
    cuda = functools.partial(library_paths, host, settings, tegra.SONAME, tegra.FOLDERS)
    try:
        session = doors.nvml(library_paths(host, settings, SONAME, _LIBRARY_FOLDERS))
    except NvmlError as error:
        if error.code == "LIBRARY_NOT_FOUND" and is_tegra(host):
            return doors.cuda(cuda())
        raise
    if _is_integrated(session):
        session.close()
        return doors.cuda(cuda())
    return session


def _is_integrated(session: Session) -> bool:
    """Tell whether NVML names a GPU of a Tegra chip."""
    try:
        names = [session.device(i).name() for i in range(session.device_count())]
    except NvmlError:
        return False  # the same error is met, and told, when the devices are read
    return any(part in name for name in names for part in tegra.INTEGRATED)


def library_paths(
    host: HostRoot, settings: NvmlSettings, name: str, folders: Iterable[str]
) -> list[str]:
    """List where a library may be, as paths for the dynamic linker.

    A root that is given comes first, the places of the host last; the bare name
    between them stands for the linker's own search.
    """
    given = [settings.driver_root] if settings.driver_root else []
    below = functools.partial(_below, host, name, tuple(folders))
    return [*below(given), name, *below(_DRIVER_ROOTS)]


def _below(
    host: HostRoot, name: str, folders: Iterable[str], roots: Iterable[str]
) -> list[str]:
    found = []
    for root in roots:
        for folder in folders:
            path = f"{root.rstrip('/')}/{folder}/{name}"
            with contextlib.suppress(OSError):  # what cannot be read is of no use
                if host.exists(path):
                    found.append(_outside(host, path))
    return found


def _outside(host: HostRoot, path: str) -> str:
    """Return a host path as the dynamic linker of this process sees it."""
    real = host.real_path(path)
    if host.path.endswith("-"):  # upstream's mount style: /host-usr
        return host.path + real.lstrip("/")
    return host.path.rstrip("/") + real


def _driver(session: Session, gaps: Gaps) -> dict[str, str]:
    told: dict[str, str] = {}
    version = _ask(gaps, DRIVER, "version", session.driver_version)
    if version is not None:
        parts = version.split(".")
        if len(parts) in (2, 3):
            told["version"] = version
            names = ("version.major", "version.minor", "version.revision")
            told |= dict(zip(names, (*parts, ""), strict=False))
        else:
            gaps.refused(DRIVER, "version", f"{version!r} has not 2 or 3 parts")
    cuda = _ask(gaps, DRIVER, "cuda", session.cuda_version)
    if cuda is not None:
        major, minor = cuda // 1000, cuda % 1000 // 10
        told |= {
            "cuda": f"{major}.{minor}",
            "cuda.major": str(major),
            "cuda.minor": str(minor),
        }
    return told


def _ask(gaps: Gaps, key: str, element: str, question: Callable[[], T]) -> T | None:
    """Ask one question; None when it does not apply, or (a gap) failed."""
    try:
        return question()
    except NvmlError as error:
        if not error.is_no_answer:
            gaps.unanswered(key, element, str(error))
        return None


def _devices(
    host: HostRoot, session: Session, gaps: Gaps
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    try:
        count = session.device_count()
    except NvmlError as error:
        raise NfdError(f"NVML does not tell the number of GPUs: {error}") from None
    devices: list[dict[str, str]] = []
    migs: list[dict[str, str]] = []
    for index in range(count):
        try:
            device = session.device(index)
        except NvmlError as error:
            for key in (DEVICE, MIG):
                gaps.unanswered(key, f"index {index}", str(error))
            continue
        told = _device(host, device, index, gaps)
        devices.append(told)
        if told.get("mig.enabled") == "true":
            migs += _mig_devices(device, told, index, gaps)
    devices.sort(key=lambda d: (d.get("address", ""), d.get("uuid", ""), *d.values()))
    migs.sort(key=lambda m: (m["parent"], m["profile"], m["uuid"], *m.values()))
    _tell_displays(devices)
    return devices, migs


def _device(host: HostRoot, device: Device, index: int, gaps: Gaps) -> dict[str, str]:
    before = len(gaps.notes)
    bus_id = _ask(gaps, DEVICE, f"index {index}", device.bus_id)
    address = "" if bus_id is None else normal_address(bus_id)
    element = address or f"index {index}"

    def ask(question: Callable[[], T]) -> T | None:
        return _ask(gaps, DEVICE, element, question)

    told: dict[str, str | None] = {
        "address": address or None,
        "uuid": ask(device.uuid),
        "name": ask(device.name),
        "addressing_mode": ask(device.addressing_mode),
    }
    memory = ask(device.memory)
    if memory:
        told["memory"] = str(memory // _MIB)
    capability = ask(device.compute_capability)
    if capability is not None and capability[0]:
        told["compute.major"], told["compute.minor"] = map(str, capability)
        told["family"] = family(*capability)
    told |= _yes_no("c2c", ask(device.c2c))
    told |= _mig_mode(device, element, gaps)
    fabric = ask(device.fabric)
    if fabric is not None:
        told["fabric.cluster"], told["fabric.clique"] = fabric[0], str(fabric[1])
    if address:
        with gaps.reading(DEVICE, address):
            told["class"] = _pci_class(host, address)
    told["health"] = "ok" if len(gaps.notes) == before else "degraded"
    return {key: value for key, value in told.items() if value is not None}


def _mig_mode(device: Device, element: str, gaps: Gaps) -> dict[str, str]:
    """Tell capability, which is that the question has an answer, and mode."""
    try:
        enabled = device.mig_enabled()
    except NvmlError as error:
        if error.is_no_answer:
            return {"mig.capable": "false", "mig.enabled": "false"}
        for key in (DEVICE, MIG):
            gaps.unanswered(key, element, str(error))
        return {}
    return {"mig.capable": "true", "mig.enabled": "true" if enabled else "false"}


def _yes_no(key: str, answer: bool | None) -> dict[str, str | None]:  # noqa: FBT001
    return {} if answer is None else {key: "true" if answer else "false"}


def _pci_class(host: HostRoot, address: str) -> str | None:
    text = host.read_optional(f"{DEVICES}/{address}/class")
    return text.removeprefix("0x")[:4] if text else None


def normal_address(bus_id: str) -> str:
    """Return a PCI address as sysfs writes it: `0000:07:00.0`."""
    domain, _, rest = bus_id.strip().lower().partition(":")
    return f"{domain.lstrip('0').rjust(4, '0')}:{rest}" if rest else ""


def family(major: int, minor: int) -> str:
    """Return the name of an architecture, by compute capability."""
    if major == 7 and minor >= 5:
        return "turing"
    if major == 8 and minor >= 9:
        return "ada-lovelace"
    return _FAMILIES.get(major, _UNDEFINED)


def _mig_devices(
    device: Device, parent: dict[str, str], index: int, gaps: Gaps
) -> list[dict[str, str]]:
    element = parent.get("address", f"index {index}")
    slots = _ask(gaps, MIG, element, device.mig_slots) or 0
    found = []
    for slot in range(min(slots, _MAX_MIG)):
        mig: MigDevice | None = _ask(
            gaps, MIG, f"{element}/{slot}", functools.partial(device.mig_device, slot)
        )
        if mig is not None:
            found.append(
                {
                    "parent": element,
                    "product": parent.get("name", ""),
                    "profile": mig.profile,
                    "uuid": mig.uuid,
                    **{key: str(value) for key, value in mig.attributes.items()},
                }
            )
    return found


def _tell_displays(devices: Sequence[dict[str, str]]) -> None:
    """Set `kind`: a display card is known by name, or small beside compute cards."""
    biggest = max(
        (int(d.get("memory", 0)) for d in devices if d.get("class") == _COMPUTE),
        default=0,
    )
    for device in devices:
        small = int(device.get("memory", 0)) * _SMALL < biggest
        is_display = device.get("name") in _DISPLAY_MODELS or (
            device.get("class") == _GRAPHICS and small
        )
        device["kind"] = "display" if is_display else "compute"


def _vgpu(
    host: HostRoot, functions: Sequence[PciFunction], gaps: Gaps
) -> dict[str, str]:
    if VGPU in gaps.unknown:
        return {}
    told = {"present": "false"}
    for function in functions:
        try:
            config = host.read_bytes(f"{function.path}/config")
        except OSError as error:
            gaps.unread(VGPU, function.address, (error,))
            return {}
        if len(config) < 256:
            gaps.refused(
                VGPU, function.address, "configuration space is for privileged readers"
            )
            return {}
        found = host_driver(config)
        if found is not None:
            told = {
                "present": "true",
                "host-driver-version": found.version,
                "host-driver-branch": found.branch,
            }
    return told


def _machine(host: HostRoot, path: str) -> str:
    text = None
    if path:
        with contextlib.suppress(OSError):  # as the vendor's tool: it is "unknown"
            text = host.read_optional(path)
    return hyphenated(text or "") or "unknown"
