"""NVML through the vendor's library and `pynvml`, which is imported here alone.

Library and session are opened afresh for every pass and let go after it, so that a
driver that comes, goes or is replaced is seen without a restart. Distribution:
nvidia-ml-py. The C interface: NVML API reference; spec/gpu.md section 6.
"""

import _ctypes
import ctypes
import functools
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from nfd_sources.nvml.library import MigDevice, NvmlError, Session
from nfd_sources.nvml.mig import (
    COMPUTE_INSTANCE_PROFILES,
    GPU_INSTANCE_PROFILES,
    profile_name,
)

SONAME = "libnvidia-ml.so.1"

_ATTRIBUTES = {  # field of nvmlDeviceAttributes_t → name of the label
    "memorySizeMB": "memory",
    "multiprocessorCount": "multiprocessors",
    "gpuInstanceSliceCount": "slices.gi",
    "computeInstanceSliceCount": "slices.ci",
    "sharedCopyEngineCount": "engines.copy",
    "sharedDecoderCount": "engines.decoder",
    "sharedEncoderCount": "engines.encoder",
    "sharedJpegCount": "engines.jpeg",
    "sharedOfaCount": "engines.ofa",
}
_EMPTY_SLOT = ("NOT_FOUND", "INVALID_ARGUMENT")
_NO_PROFILE = ("NOT_SUPPORTED", "INVALID_ARGUMENT")
_NO_NEW_FABRIC_CALL = ("FUNCTION_NOT_FOUND", "ARGUMENT_VERSION_MISMATCH")
_ADDRESSING = {0: "none", 1: "HMM", 2: "ATS"}


class _FabricInfo(ctypes.Structure):
    """nvmlGpuFabricInfo_t; pynvml of 2024 has it with a wrong size."""

    _fields_ = (
        ("clusterUuid", ctypes.c_ubyte * 16),
        ("status", ctypes.c_uint),
        ("cliqueId", ctypes.c_uint),
        ("state", ctypes.c_uint),
    )


class _FabricInfoV2(ctypes.Structure):
    """nvmlGpuFabricInfo_v2_t."""

    _fields_ = (
        ("version", ctypes.c_uint),
        *_FabricInfo._fields_,
        ("healthMask", ctypes.c_uint),
    )


def connect(paths: Iterable[str]) -> Session:
    """Load the library and initialise it: the first of `paths` with which that works.

    Args:
        paths: File names for the dynamic linker; a bare name is looked up by it.

    Raises:
        NvmlError: Package, library, driver or device files are missing, or the
            driver refuses.

    """
    try:
        import pynvml  # noqa: PLC0415 - 6 MB, on hosts with NVIDIA GPUs only
    except ImportError:
        text = "the Python package nvidia-ml-py is not installed"
        raise NvmlError("LIBRARY_NOT_FOUND", text) from None
    reasons: list[NvmlError] = []
    for path in paths:
        try:
            return _open(pynvml, path)
        except NvmlError as error:
            reasons.append(error)
    if not reasons:
        raise NvmlError("LIBRARY_NOT_FOUND", f"no {SONAME}")
    refused = [r for r in reasons if r.code != "LIBRARY_NOT_FOUND"]
    raise (refused or reasons)[0]


def _open(nvml: ModuleType, path: str) -> Session:
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise NvmlError("LIBRARY_NOT_FOUND", str(error)) from None
    loaded = _Loaded(nvml, library)
    try:
        _call(nvml, nvml.nvmlInitWithFlags, nvml.NVML_INIT_FLAG_NO_GPUS)
    except NvmlError:
        loaded.close()
        raise
    return _Session(nvml, loaded)


class _Loaded:
    """Puts a library into pynvml; closing puts back what was there, and unloads."""

    def __init__(self, nvml: ModuleType, library: ctypes.CDLL) -> None:
        self._library = library
        self._names = vars(nvml)
        self._before = self._swap(library, {})

    def close(self) -> None:
        self._swap(*self._before)
        _ctypes.dlclose(self._library._handle)  # noqa: SLF001 - ctypes never does

    def _swap(
        self, library: ctypes.CDLL | None, functions: dict[str, Any]
    ) -> tuple[ctypes.CDLL | None, dict[str, Any]]:
        cache = self._names["_nvmlGetFunctionPointer_cache"]
        before = (self._names["nvmlLib"], dict(cache))
        self._names["nvmlLib"] = library
        cache.clear()
        cache.update(functions)
        return before


def _call(nvml: ModuleType, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of pynvml; its errors become ours."""
    try:
        return function(*args)
    except nvml.NVMLError as error:
        code = _code_names(nvml).get(error.value, str(error.value))
        raise NvmlError(code, _message(error, code)) from None


def _message(error: Any, code: str) -> str:
    return f"{error} ({code})"


@functools.cache
def _code_names(nvml: ModuleType) -> dict[int, str]:
    prefix = "NVML_ERROR_"
    return {
        value: name.removeprefix(prefix)
        for name, value in vars(nvml).items()
        if name.startswith(prefix)
    }


def _text(value: Any) -> str:
    """Structures hold bytes or text, by version of the package."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class _Session:
    def __init__(self, nvml: ModuleType, loaded: _Loaded) -> None:
        self._nvml = nvml
        self._loaded = loaded

    def driver_version(self) -> str:
        return _text(_call(self._nvml, self._nvml.nvmlSystemGetDriverVersion))

    def cuda_version(self) -> int:
        return int(_call(self._nvml, self._nvml.nvmlSystemGetCudaDriverVersion))

    def device_count(self) -> int:
        return int(_call(self._nvml, self._nvml.nvmlDeviceGetCount))

    def device(self, index: int) -> "_Device":
        handle = _call(self._nvml, self._nvml.nvmlDeviceGetHandleByIndex, index)
        return _Device(self._nvml, handle)

    def close(self) -> None:
        try:
            _call(self._nvml, self._nvml.nvmlShutdown)
        finally:
            self._loaded.close()


class _Device:
    def __init__(self, nvml: ModuleType, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle

    def _ask(self, function: str, *args: Any) -> Any:
        found = getattr(self._nvml, function, None)
        if found is None:  # an old package
            raise NvmlError("FUNCTION_NOT_FOUND")
        return _call(self._nvml, found, *args)

    def name(self) -> str:
        return _text(self._ask("nvmlDeviceGetName", self._handle))

    def uuid(self) -> str:
        return _text(self._ask("nvmlDeviceGetUUID", self._handle))

    def bus_id(self) -> str:
        return _text(self._ask("nvmlDeviceGetPciInfo", self._handle).busId)

    def memory(self) -> int:
        return int(self._ask("nvmlDeviceGetMemoryInfo", self._handle).total)

    def compute_capability(self) -> tuple[int, int]:
        major, minor = self._ask("nvmlDeviceGetCudaComputeCapability", self._handle)
        return int(major), int(minor)

    def mig_enabled(self) -> bool:
        current, _ = self._ask("nvmlDeviceGetMigMode", self._handle)
        return bool(current == self._nvml.NVML_DEVICE_MIG_ENABLE)

    def mig_slots(self) -> int:
        return int(self._ask("nvmlDeviceGetMaxMigDeviceCount", self._handle))

    def mig_device(self, slot: int) -> MigDevice | None:
        try:
            mig = self._ask("nvmlDeviceGetMigDeviceHandleByIndex", self._handle, slot)
        except NvmlError as error:
            if error.code in _EMPTY_SLOT:
                return None
            raise
        told = self._ask("nvmlDeviceGetAttributes", mig)
        attributes = {
            label: int(getattr(told, field)) for field, label in _ATTRIBUTES.items()
        }
        gpu_instance = self._ask(
            "nvmlDeviceGetGpuInstanceById",
            self._handle,
            self._ask("nvmlDeviceGetGpuInstanceId", mig),
        )
        gpu_slices, attribute = self._gpu_instance_profile(gpu_instance)
        compute_slices = self._compute_slices(gpu_instance, mig)
        profile = profile_name(
            compute_slices, gpu_slices, attribute, attributes["memory"], self.memory()
        )
        return MigDevice(
            profile, attributes, _text(self._ask("nvmlDeviceGetUUID", mig))
        )

    def _gpu_instance_profile(self, gpu_instance: Any) -> tuple[int, str]:
        wanted = self._ask("nvmlGpuInstanceGetInfo", gpu_instance).profileId
        for number, profile in GPU_INSTANCE_PROFILES.items():
            info = self._profile(
                "nvmlDeviceGetGpuInstanceProfileInfo", self._handle, number
            )
            if info is not None and info.id == wanted:
                return profile
        raise NvmlError("UNKNOWN", f"unknown GPU instance profile {wanted}")

    def _compute_slices(self, gpu_instance: Any, mig: Any) -> int:
        compute_instance = self._ask(
            "nvmlGpuInstanceGetComputeInstanceById",
            gpu_instance,
            self._ask("nvmlDeviceGetComputeInstanceId", mig),
        )
        wanted = self._ask("nvmlComputeInstanceGetInfo", compute_instance).profileId
        for number, slices in COMPUTE_INSTANCE_PROFILES.items():
            info = self._profile(
                "nvmlGpuInstanceGetComputeInstanceProfileInfo",
                gpu_instance,
                number,
                self._nvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED,
            )
            if info is not None and info.id == wanted:
                return slices
        raise NvmlError("UNKNOWN", f"unknown compute instance profile {wanted}")

    def _profile(self, function: str, *args: Any) -> Any:
        try:
            return self._ask(function, *args)
        except NvmlError as error:
            if error.code in _NO_PROFILE:
                return None
            raise

    def fabric(self) -> tuple[str, int] | None:
        info = self._fabric_info()
        uuid = bytes(info.clusterUuid)
        if info.state != self._nvml.NVML_GPU_FABRIC_STATE_COMPLETED:
            return None
        if info.status != self._nvml.NVML_SUCCESS or not any(uuid):
            return None
        digits = uuid.hex()
        parts = (
            digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
        )
        return "-".join(parts), int(info.cliqueId)

    def _fabric_info(self) -> Any:
        # NB: the plain call is deprecated and goes with CUDA 14; drivers before 545
        # have no other.
        info = _FabricInfoV2(version=ctypes.sizeof(_FabricInfoV2) | 2 << 24)
        try:
            self._ask("nvmlDeviceGetGpuFabricInfoV", self._handle, ctypes.byref(info))
            return info
        except NvmlError as error:
            if error.code not in _NO_NEW_FABRIC_CALL:
                raise
        old = _FabricInfo()
        self._ask("nvmlDeviceGetGpuFabricInfo", self._handle, ctypes.byref(old))
        return old

    def c2c(self) -> bool:
        info = self._ask("nvmlDeviceGetC2cModeInfoV", self._handle)
        return bool(info.isC2cEnabled)

    def addressing_mode(self) -> str:
        mode = self._ask("nvmlDeviceGetAddressingMode", self._handle)
        return _ADDRESSING.get(int(mode), str(mode))
