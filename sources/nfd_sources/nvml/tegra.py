"""The GPU of Tegra chips, which NVML does not know, through CUDA's driver interface.

The C interface: CUDA driver API reference. What NVML alone tells is not supported
here; the driver has no version that could be asked (spec/gpu.md section 1.4).
"""

import ctypes
from collections.abc import Iterable
from typing import Any

from nfd_sources.nvml.library import MigDevice, NvmlError, Session

SONAME = "libcuda.so.1"
FOLDERS = (
    *("usr/lib/aarch64-linux-gnu/tegra", "usr/lib/aarch64-linux-gnu/nvidia"),
    *("usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib"),
)
# Parts of the names by which NVML calls GPUs that it does not serve.
INTEGRATED = ("(nvgpu)", "NVIDIA Thor")

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_NAME_SIZE = 256
_NO_VERSION = "unknown.unknown.unknown"


def connect(paths: Iterable[str]) -> Session:
    """Load the library from the first of `paths` that is one, and initialise it.

    Raises:
        NvmlError: The library is missing, or CUDA cannot be initialised.

    """
    for path in paths:
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        session = _Session(library)
        session.call("cuInit", 0)
        return session
    raise NvmlError("LIBRARY_NOT_FOUND", f"no {SONAME}")


class _Session:
    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def call(self, function: str, *args: Any) -> None:
        """Call a function of CUDA; what is no success becomes an error."""
        try:
            code = getattr(self._library, function)(*args)
        except AttributeError:
            raise NvmlError("FUNCTION_NOT_FOUND") from None
        if code:
            raise NvmlError(f"CUDA_{code}", f"{function}: CUDA error {code}")

    def driver_version(self) -> str:
        return _NO_VERSION

    def cuda_version(self) -> int:
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        return version.value

    def device_count(self) -> int:
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        return count.value

    def device(self, index: int) -> "_Device":
        handle = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(handle), index)
        return _Device(self, handle.value)

    def close(self) -> None:
        """CUDA cannot be shut down; the library stays."""


class _Device:
    def __init__(self, session: _Session, handle: int) -> None:
        self._session = session
        self._handle = handle

    def name(self) -> str:
        text = ctypes.create_string_buffer(_NAME_SIZE)
        self._session.call("cuDeviceGetName", text, _NAME_SIZE, self._handle)
        return text.value.decode("utf-8", "replace")

    def memory(self) -> int:
        size = ctypes.c_size_t()
        self._session.call("cuDeviceTotalMem_v2", ctypes.byref(size), self._handle)
        return size.value

    def compute_capability(self) -> tuple[int, int]:
        return self._attribute(_MAJOR), self._attribute(_MINOR)

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._session.call(
            "cuDeviceGetAttribute", ctypes.byref(value), number, self._handle
        )
        return value.value

    def uuid(self) -> str:
        raise NvmlError("NOT_SUPPORTED")

    bus_id = addressing_mode = uuid

    def mig_enabled(self) -> bool:
        raise NvmlError("NOT_SUPPORTED")

    c2c = mig_enabled

    def mig_slots(self) -> int:
        return 0

    def mig_device(self, slot: int) -> MigDevice | None:
        del slot
        return None

    def fabric(self) -> tuple[str, int] | None:
        return None
