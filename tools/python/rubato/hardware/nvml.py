"""NVML through ctypes: the functions that Rubato calls, under the names of nvidia-ml-py, so that nothing has to be installed.

`Nvml` stands where the module `pynvml` would. Units are NVML's own: MHz, mW, mJ; rubato.hardware.gpu converts them.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_longlong, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass
from typing import Any, Optional, Sequence

LIBRARY = "libnvidia-ml.so.1"  #: found where the dynamic linker looks

_TEXT_BYTES = 96  # NVML_DEVICE_UUID_V2_BUFFER_SIZE and NVML_DEVICE_NAME_V2_BUFFER_SIZE
_MOST_CLOCKS = 1024


class NVMLError(Exception):
    """A call that NVML answered with an error; `value` is its nvmlReturn_t."""

    def __init__(self, value: int, text: str):
        super().__init__(text)
        self.value = value


class _ProcessInfo(ctypes.Structure):  # nvmlProcessInfo_t of the _v3 call
    _fields_ = [("pid", c_uint), ("used_bytes", c_ulonglong), ("gpu_instance", c_uint), ("compute_instance", c_uint)]


class _Value(ctypes.Union):
    _fields_ = [("uint", c_uint), ("ulonglong", c_ulonglong), ("double", ctypes.c_double)]


class _FieldValue(ctypes.Structure):  # nvmlFieldValue_t
    _fields_ = [("field", c_uint), ("scope", c_uint), ("timestamp_us", c_longlong), ("latency_us", c_longlong),
                ("value_type", c_int), ("status", c_int), ("value", _Value)]


@dataclass(frozen=True)
class Process:
    """A process that computes on a GPU."""

    pid: int


class Nvml:
    """The library, initialised. Calls raise NVMLError with the driver's own text.

    Raises OSError where the library cannot be loaded.
    """

    NVMLError = NVMLError
    NVML_SUCCESS = 0
    NVML_ERROR_INVALID_ARGUMENT = 2
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_NOT_FOUND = 6
    NVML_ERROR_INSUFFICIENT_SIZE = 7
    NVML_ERROR_FUNCTION_NOT_FOUND = 13
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2
    NVML_TEMPERATURE_GPU = 0
    NVML_FI_DEV_POWER_INSTANT = 186
    NVML_RESTRICTED_API_SET_APPLICATION_CLOCKS = 0

    def __init__(self) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        self._library.nvmlErrorString.restype = c_char_p
        self._functions: dict[str, Any] = {}
        self._call("nvmlInit_v2")

    def _function(self, name: str) -> Any:
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = getattr(self._library, name, None)
        if found is None:
            raise NVMLError(self.NVML_ERROR_FUNCTION_NOT_FOUND, f"this driver has no {name}")
        return found

    def _call(self, name: str, *arguments: Any) -> None:
        status = self._function(name)(*arguments)
        if status != self.NVML_SUCCESS:
            text = self._library.nvmlErrorString(status)
            raise NVMLError(status, text.decode() if text else f"error {status}")

    def _number(self, name: str, handle: c_void_p, *arguments: Any, kind: Any = c_uint) -> int:
        value = kind()
        self._call(name, handle, *arguments, byref(value))
        return value.value

    def _text(self, name: str, handle: c_void_p) -> str:
        buffer = ctypes.create_string_buffer(_TEXT_BYTES)
        self._call(name, handle, buffer, c_uint(_TEXT_BYTES))
        return buffer.value.decode("utf-8", "replace")

    def _clocks(self, name: str, handle: c_void_p, *arguments: Any) -> list[int]:
        count, clocks = c_uint(_MOST_CLOCKS), (c_uint * _MOST_CLOCKS)()
        self._call(name, handle, *arguments, byref(count), clocks)
        return list(clocks[:count.value])

    # Devices.

    def nvmlShutdown(self) -> None:
        self._call("nvmlShutdown")

    def nvmlDeviceGetCount(self) -> int:
        count = c_uint()
        self._call("nvmlDeviceGetCount_v2", byref(count))
        return count.value

    def nvmlDeviceGetHandleByIndex(self, index: int) -> c_void_p:
        handle = c_void_p()
        self._call("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(handle))
        return handle

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> c_void_p:
        handle = c_void_p()
        self._call("nvmlDeviceGetHandleByUUID", c_char_p(uuid.encode()), byref(handle))
        return handle

    def nvmlDeviceGetIndex(self, handle: c_void_p) -> int:
        return self._number("nvmlDeviceGetIndex", handle)

    def nvmlDeviceGetName(self, handle: c_void_p) -> str:
        return self._text("nvmlDeviceGetName", handle)

    def nvmlDeviceGetUUID(self, handle: c_void_p) -> str:
        return self._text("nvmlDeviceGetUUID", handle)

    def nvmlSystemGetDriverVersion(self) -> str:
        buffer = ctypes.create_string_buffer(_TEXT_BYTES)
        self._call("nvmlSystemGetDriverVersion", buffer, c_uint(_TEXT_BYTES))
        return buffer.value.decode("utf-8", "replace")

    def nvmlDeviceGetCudaComputeCapability(self, handle: c_void_p) -> tuple[int, int]:
        major, minor = c_int(), c_int()
        self._call("nvmlDeviceGetCudaComputeCapability", handle, byref(major), byref(minor))
        return major.value, minor.value

    def nvmlDeviceGetMigMode(self, handle: c_void_p) -> tuple[int, int]:
        """Current and pending; 1 is on."""
        now, pending = c_uint(), c_uint()
        self._call("nvmlDeviceGetMigMode", handle, byref(now), byref(pending))
        return now.value, pending.value

    def nvmlDeviceGetComputeRunningProcesses(self, handle: c_void_p) -> list[Process]:
        count, infos = c_uint(256), (_ProcessInfo * 256)()
        self._call("nvmlDeviceGetComputeRunningProcesses_v3", handle, byref(count), infos)
        return [Process(info.pid) for info in infos[:count.value]]

    # Readings.

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: c_void_p) -> int:
        return self._number("nvmlDeviceGetTotalEnergyConsumption", handle, kind=c_ulonglong)

    def nvmlDeviceGetPowerUsage(self, handle: c_void_p) -> int:
        return self._number("nvmlDeviceGetPowerUsage", handle)

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: c_void_p) -> int:
        return self._number("nvmlDeviceGetEnforcedPowerLimit", handle)

    def nvmlDeviceGetPowerManagementLimit(self, handle: c_void_p) -> int:
        return self._number("nvmlDeviceGetPowerManagementLimit", handle)

    def nvmlDeviceGetClockInfo(self, handle: c_void_p, kind: int) -> int:
        return self._number("nvmlDeviceGetClockInfo", handle, c_uint(kind))

    def nvmlDeviceGetTemperature(self, handle: c_void_p, sensor: int) -> int:
        return self._number("nvmlDeviceGetTemperature", handle, c_uint(sensor))

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: c_void_p) -> int:
        return self._number("nvmlDeviceGetCurrentClocksThrottleReasons", handle, kind=c_ulonglong)

    def nvmlDeviceGetFieldValues(self, handle: c_void_p, fields: Sequence[int]) -> list[Optional[int]]:
        """Unsigned fields; None for those that this GPU has not."""
        values = (_FieldValue * len(fields))()
        for value, field in zip(values, fields):
            value.field = field
        self._call("nvmlDeviceGetFieldValues", handle, c_int(len(fields)), values)
        return [value.value.uint if value.status == self.NVML_SUCCESS else None for value in values]

    def nvmlDeviceGetSupportedMemoryClocks(self, handle: c_void_p) -> list[int]:
        return self._clocks("nvmlDeviceGetSupportedMemoryClocks", handle)

    def nvmlDeviceGetSupportedGraphicsClocks(self, handle: c_void_p, mem_mhz: int) -> list[int]:
        return self._clocks("nvmlDeviceGetSupportedGraphicsClocks", handle, c_uint(mem_mhz))

    def nvmlDeviceGetPowerManagementLimitConstraints(self, handle: c_void_p) -> tuple[int, int]:
        """Least and most, in mW."""
        least, most = c_uint(), c_uint()
        self._call("nvmlDeviceGetPowerManagementLimitConstraints", handle, byref(least), byref(most))
        return least.value, most.value

    def nvmlDeviceGetPowerManagementDefaultLimit(self, handle: c_void_p) -> int:
        return self._number("nvmlDeviceGetPowerManagementDefaultLimit", handle)

    def nvmlDeviceGetApplicationsClock(self, handle: c_void_p, kind: int) -> int:
        return self._number("nvmlDeviceGetApplicationsClock", handle, c_uint(kind))

    def nvmlDeviceGetDefaultApplicationsClock(self, handle: c_void_p, kind: int) -> int:
        return self._number("nvmlDeviceGetDefaultApplicationsClock", handle, c_uint(kind))

    def nvmlDeviceGetAPIRestriction(self, handle: c_void_p, api: int) -> bool:
        """Whether only root may."""
        return bool(self._number("nvmlDeviceGetAPIRestriction", handle, c_uint(api)))

    # Clocks and power limits.

    def nvmlDeviceSetPowerManagementLimit(self, handle: c_void_p, limit_mw: int) -> None:
        self._call("nvmlDeviceSetPowerManagementLimit", handle, c_uint(limit_mw))

    def nvmlDeviceSetGpuLockedClocks(self, handle: c_void_p, low_mhz: int, high_mhz: int) -> None:
        self._call("nvmlDeviceSetGpuLockedClocks", handle, c_uint(low_mhz), c_uint(high_mhz))

    def nvmlDeviceResetGpuLockedClocks(self, handle: c_void_p) -> None:
        self._call("nvmlDeviceResetGpuLockedClocks", handle)

    def nvmlDeviceSetMemoryLockedClocks(self, handle: c_void_p, low_mhz: int, high_mhz: int) -> None:
        self._call("nvmlDeviceSetMemoryLockedClocks", handle, c_uint(low_mhz), c_uint(high_mhz))

    def nvmlDeviceResetMemoryLockedClocks(self, handle: c_void_p) -> None:
        self._call("nvmlDeviceResetMemoryLockedClocks", handle)

    def nvmlDeviceSetApplicationsClocks(self, handle: c_void_p, mem_mhz: int, core_mhz: int) -> None:
        self._call("nvmlDeviceSetApplicationsClocks", handle, c_uint(mem_mhz), c_uint(core_mhz))

    def nvmlDeviceResetApplicationsClocks(self, handle: c_void_p) -> None:
        self._call("nvmlDeviceResetApplicationsClocks", handle)
