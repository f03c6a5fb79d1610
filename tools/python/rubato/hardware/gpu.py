"""One GPU behind NVML: readings in W, J, MHz and degrees C, and clocks that are always given back."""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import Any, Iterator, Optional, TextIO, Union

from rubato.errors import IoError, Terminated, UsageError
from rubato.hardware.nvml import Nvml, NVMLError

AUTO = "auto"  # a clock that the driver chooses
Request = Union[int, str]  # MHz or AUTO

# NVML_CLOCKS_THROTTLE_REASON_*; idle, application clocks and display are no throttling.
THROTTLE_REASONS = {
    0x04: "sw_power_cap",
    0x08: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
}
THROTTLE_IDLE = 0x01


def load_nvml() -> Nvml:
    """NVML, initialised. Raises IoError where there is no driver."""
    try:
        return Nvml()
    except OSError as error:
        raise IoError(f"NVML is not there: {error}", "is the NVIDIA driver installed? try nvidia-smi") from None
    except NVMLError as error:
        raise IoError(f"NVML does not start: {error}", "is the NVIDIA driver loaded? try nvidia-smi") from None


def text(value: Union[bytes, str]) -> str:
    return value.decode() if isinstance(value, bytes) else value


def is_kind(nvml: Any, error: Exception, kind: str) -> bool:
    """Whether an NVMLError is `kind`, by its code: its classes are made at run time."""
    return getattr(error, "value", None) == getattr(nvml, "NVML_ERROR_" + kind)


class Gpu:
    """Readings of the GPU with NVML index `index`. Missing ones are None. Raises UsageError, IoError where it does not answer."""

    def __init__(self, nvml: Any, index: int = 0):
        self.nvml = nvml
        try:
            count = nvml.nvmlDeviceGetCount()
            if not 0 <= index < count:
                raise UsageError(f"there is no GPU {index}; expected 0 to {count - 1}", "nvidia-smi -L lists the GPUs")
            self.handle = nvml.nvmlDeviceGetHandleByIndex(index)
            self.name = text(nvml.nvmlDeviceGetName(self.handle))
            self.uuid = text(nvml.nvmlDeviceGetUUID(self.handle))
        except nvml.NVMLError as error:
            raise IoError(f"GPU {index}: {error}", "nvidia-smi -L lists the GPUs that answer") from None

    def _read(self, function: str, *arguments: Any) -> Any:
        try:
            return getattr(self.nvml, function)(self.handle, *arguments)
        except self.nvml.NVMLError as error:
            if is_kind(self.nvml, error, "NOT_SUPPORTED"):
                return None
            raise IoError(f"{self.name}: {function}: {error}") from None

    def _scaled(self, function: str, scale: float) -> Optional[float]:
        value = self._read(function)
        return None if value is None else value * scale

    def energy_j(self) -> Optional[float]:
        """Counter since the driver was loaded; Volta and later."""
        return self._scaled("nvmlDeviceGetTotalEnergyConsumption", 1e-3)  # from mJ

    def power_w(self) -> Optional[float]:
        return self._scaled("nvmlDeviceGetPowerUsage", 1e-3)  # from mW

    def power_instant_w(self) -> Optional[float]:
        """Unlike power_w(), no mean of the last second, which that is from Ampere on, except A100. None where the driver has none."""
        try:
            value = self.nvml.nvmlDeviceGetFieldValues(self.handle, [self.nvml.NVML_FI_DEV_POWER_INSTANT])[0]
        except self.nvml.NVMLError as error:
            if is_kind(self.nvml, error, "NOT_SUPPORTED") or is_kind(self.nvml, error, "FUNCTION_NOT_FOUND"):
                return None
            raise IoError(f"{self.name}: nvmlDeviceGetFieldValues: {error}") from None
        return None if value is None else value * 1e-3  # from mW

    def power_cap_w(self) -> Optional[float]:
        return self._scaled("nvmlDeviceGetEnforcedPowerLimit", 1e-3)  # from mW

    def power_limit_w(self) -> Optional[float]:
        """As it was set, by whomever; the one in force may be lower."""
        return self._scaled("nvmlDeviceGetPowerManagementLimit", 1e-3)  # from mW

    def core_mhz(self) -> Optional[int]:
        return self._read("nvmlDeviceGetClockInfo", self.nvml.NVML_CLOCK_SM)

    def mem_mhz(self) -> Optional[int]:
        return self._read("nvmlDeviceGetClockInfo", self.nvml.NVML_CLOCK_MEM)

    def temperature_c(self) -> Optional[int]:
        return self._read("nvmlDeviceGetTemperature", self.nvml.NVML_TEMPERATURE_GPU)

    def throttle_reasons(self) -> set[str]:
        """Names of the reasons that hold the clocks below the request now."""
        mask = self._read("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        return {name for bit, name in THROTTLE_REASONS.items() if mask & bit}

    def is_held_down(self) -> bool:
        """Whether the GPU names a reason of its own for clocks below the request: power, heat, idleness."""
        return bool((self._read("nvmlDeviceGetCurrentClocksThrottleReasons") or 0) & (THROTTLE_IDLE | sum(THROTTLE_REASONS)))

    def supported_mem_mhz(self) -> list[int]:
        """Memory clocks, highest first."""
        return sorted(self._read("nvmlDeviceGetSupportedMemoryClocks") or [], reverse=True)

    def supported_core_mhz(self, mem_mhz: int) -> list[int]:
        """Core clocks at a memory clock, highest first."""
        return sorted(self._read("nvmlDeviceGetSupportedGraphicsClocks", mem_mhz) or [], reverse=True)

    def limits_w(self) -> Optional[tuple[float, float]]:
        """Least and most power limit that can be set."""
        found = self._read("nvmlDeviceGetPowerManagementLimitConstraints")
        return None if found is None else (1e-3 * found[0], 1e-3 * found[1])

    def default_limit_w(self) -> Optional[float]:
        return self._scaled("nvmlDeviceGetPowerManagementDefaultLimit", 1e-3)  # from mW

    def capability(self) -> Optional[float]:
        """CUDA's compute capability: 7.0 Volta, 7.5 Turing, 8.0 Ampere. None where a driver does not say."""
        try:
            major, minor = self.nvml.nvmlDeviceGetCudaComputeCapability(self.handle)
        except self.nvml.NVMLError:
            return None
        return major + minor / 10

    def locks_memory(self) -> bool:
        """Whether memory clocks can be locked at all: from Ampere on."""
        return (self.capability() or 8.0) >= 8.0

    def applications_mhz(self) -> Optional[tuple[tuple[int, int], tuple[int, int]]]:
        """Application clocks (memory, core) as they are set, and the default ones; None where the GPU has none."""
        kinds = (self.nvml.NVML_CLOCK_MEM, self.nvml.NVML_CLOCK_SM)
        try:
            now = [self.nvml.nvmlDeviceGetApplicationsClock(self.handle, kind) for kind in kinds]
            default = [self.nvml.nvmlDeviceGetDefaultApplicationsClock(self.handle, kind) for kind in kinds]
        except self.nvml.NVMLError:
            return None
        return (now[0], now[1]), (default[0], default[1])

    def applications_restricted(self) -> bool:
        """Whether only root may set application clocks (nvidia-smi -acp)."""
        try:
            return self.nvml.nvmlDeviceGetAPIRestriction(self.handle, self.nvml.NVML_RESTRICTED_API_SET_APPLICATION_CLOCKS)
        except self.nvml.NVMLError:
            return True

    def mig_enabled(self) -> bool:
        """Whether the GPU is divided into instances (MIG)."""
        try:
            return self.nvml.nvmlDeviceGetMigMode(self.handle)[0] == 1
        except self.nvml.NVMLError:
            return False  # GPUs without it answer with one of several errors

    def processes(self) -> list[int]:
        """Ids of the processes that compute on the GPU."""
        return [process.pid for process in self._read("nvmlDeviceGetComputeRunningProcesses") or []]


class Clocks:
    """Sets clocks within a `with`; leaving it in any way gives both back to the driver.

    Locked clocks where the GPU has them, else application clocks. NVML cannot tell which
    clocks were locked before, so a lock set by somebody else is lifted too. `hold` (rubato.hardware.hold) is let go at the end.
    """

    def __init__(self, gpu: Gpu, log: TextIO = sys.stderr, hold: Any = None):
        self.gpu = gpu
        self.log = log
        self.hold = hold
        self.touched = False

    def __enter__(self) -> Clocks:
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            with signals_held():
                if self.touched:
                    self.restore()
        finally:
            if self.touched:  # a signal came just before signals were held, or a first try failed
                self.restore()
            if self.hold is not None:
                self.hold.close(not self.touched)

    def set(self, core_mhz: Request, mem_mhz: Request) -> None:
        """Each a clock in MHz or AUTO. Raises IoError without the rights, where clocks are fixed, or nobody would give them back any more."""
        nvml, handle = self.gpu.nvml, self.gpu.handle
        if self.hold is not None:
            self.hold.check()
        self.touched = True
        try:
            try:
                if mem_mhz == AUTO:
                    self._reset_quietly("nvmlDeviceResetMemoryLockedClocks")
                else:
                    nvml.nvmlDeviceSetMemoryLockedClocks(handle, mem_mhz, mem_mhz)
                if core_mhz == AUTO:
                    self._reset_quietly("nvmlDeviceResetGpuLockedClocks")
                else:
                    nvml.nvmlDeviceSetGpuLockedClocks(handle, core_mhz, core_mhz)
            except nvml.NVMLError as error:
                if not is_kind(nvml, error, "NOT_SUPPORTED"):
                    raise
                self._set_applications_clocks(core_mhz, mem_mhz)
        except nvml.NVMLError as error:
            raise self._refusal(error, core_mhz, mem_mhz) from None

    def _set_applications_clocks(self, core_mhz: Request, mem_mhz: Request) -> None:
        if core_mhz == AUTO and mem_mhz == AUTO:
            self.gpu.nvml.nvmlDeviceResetApplicationsClocks(self.gpu.handle)
            return
        mem = mem_mhz if isinstance(mem_mhz, int) else self.gpu.supported_mem_mhz()[0]
        core = self.gpu.supported_core_mhz(mem)[0] if core_mhz == AUTO else core_mhz
        self._reset_quietly("nvmlDeviceResetMemoryLockedClocks")
        self.gpu.nvml.nvmlDeviceSetApplicationsClocks(self.gpu.handle, mem, core)

    def _reset_quietly(self, function: str) -> None:
        with contextlib.suppress(self.gpu.nvml.NVMLError):
            getattr(self.gpu.nvml, function)(self.gpu.handle)

    def _refusal(self, error: Exception, core_mhz: Request, mem_mhz: Request) -> IoError:
        where = f"{self.gpu.name}: core {core_mhz} MHz, memory {mem_mhz} MHz"
        if is_kind(self.gpu.nvml, error, "NO_PERMISSION"):
            return IoError(f"{where}: no rights to set clocks",
                           "run with sudo (sudo -E keeps a virtual environment), or ask the administrator; "
                           "in a container the host must allow it")
        return IoError(f"{where}: the driver refuses: {error}", "nvidia-smi -q -d SUPPORTED_CLOCKS lists what it takes")

    def restore(self) -> bool:
        """Gives both clocks back; True if every way to do so that the GPU knows has worked."""
        nvml, failed = self.gpu.nvml, []
        for function in ("nvmlDeviceResetGpuLockedClocks", "nvmlDeviceResetMemoryLockedClocks",
                         "nvmlDeviceResetApplicationsClocks"):
            try:
                getattr(nvml, function)(self.gpu.handle)
            except nvml.NVMLError as error:
                # Without the rights nothing was set either.
                if not is_kind(nvml, error, "NOT_SUPPORTED") and not is_kind(nvml, error, "NO_PERMISSION"):
                    failed.append(f"{function}: {error}")
        self.touched = bool(failed)
        if failed:
            print(f"warning: {self.gpu.name}: clocks may still be locked: {'; '.join(failed)}\n"
                  "  hint: nvidia-smi -rgc; nvidia-smi -rmc; nvidia-smi -rac", file=self.log)
        return not failed


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the end of the block."""
    held = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, held)


@contextlib.contextmanager
def signals_raise() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind the stack as Ctrl-C does."""

    def end(number: int, _: Any) -> None:
        raise Terminated(number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
