"""The GPU as NVML shows it: clocks, power, energy, temperature."""

import contextlib
import signal
from dataclasses import dataclass


class CaptureError(Exception):
    """A message for the user. `status` is the exit status."""

    def __init__(self, message, status=2):
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Reading:
    """One look at the GPU. MHz, W, degrees C; `throttle` is NVML's bit mask of reasons."""

    core_mhz: int
    mem_mhz: int
    power_w: float
    temperature_c: int
    throttle: int


# Reasons that make the clocks others than those set: power cap (software and
# hardware), thermal slowdown (software and hardware), hardware slowdown, power brake.
SLOWING = 0x4 | 0x8 | 0x20 | 0x40 | 0x80


def load_nvml():
    try:
        import pynvml
    except ImportError as error:
        raise CaptureError("the module pynvml is missing; install it with: pip install nvidia-ml-py") from error
    return pynvml


class Gpu:
    """One GPU. `nvml` is the module pynvml or something that acts like it."""

    def __init__(self, nvml, index=0):
        self.nvml = nvml
        nvml.nvmlInit()
        try:
            self.handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            raise CaptureError(f"there is no GPU {index}: {error}") from error
        name = nvml.nvmlDeviceGetName(self.handle)
        self.name = name.decode() if isinstance(name, bytes) else name

    def mem_clocks(self):
        return sorted(self.nvml.nvmlDeviceGetSupportedMemoryClocks(self.handle))

    def core_clocks(self, mem_mhz):
        return sorted(self.nvml.nvmlDeviceGetSupportedGraphicsClocks(self.handle, mem_mhz))

    def power_cap_w(self):
        return self.nvml.nvmlDeviceGetPowerManagementLimit(self.handle) / 1e3

    def energy_j(self):
        """Counter since the driver was loaded, J; nothing where the GPU has none."""
        try:
            return self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle) / 1e3
        except self.nvml.NVMLError:
            return None

    def read(self):
        nvml, handle = self.nvml, self.handle
        return Reading(
            core_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            mem_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            power_w=nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
            temperature_c=nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
            throttle=nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
        )

    def set_clocks(self, core_mhz, mem_mhz):
        try:
            self.nvml.nvmlDeviceSetMemoryLockedClocks(self.handle, mem_mhz, mem_mhz)
            self.nvml.nvmlDeviceSetGpuLockedClocks(self.handle, core_mhz, core_mhz)
        except self.nvml.NVMLError as error:
            raise CaptureError(
                f"cannot set the clocks to {mem_mhz}/{core_mhz} MHz: {error}; it takes root, or an "
                "administrator who allows it", status=4) from error

    def reset_clocks(self):
        """Back to the driver's choice. Tries both, whatever happens to the first."""
        failures = []
        for reset in (self.nvml.nvmlDeviceResetGpuLockedClocks, self.nvml.nvmlDeviceResetMemoryLockedClocks):
            try:
                reset(self.handle)
            except self.nvml.NVMLError as error:
                failures.append(str(error))
        if failures:
            raise CaptureError("the clocks could not be given back: " + "; ".join(failures) +
                               "; run: nvidia-smi --reset-gpu-clocks; nvidia-smi --reset-memory-clocks", status=4)


class Interrupted(BaseException):
    """A signal asked to stop; unwinds through everything that cleans up."""


@contextlib.contextmanager
def held_clocks(gpu):
    """Clocks set inside are given back on every way out: the end, an error, Ctrl-C, SIGTERM, SIGHUP."""

    def stop(number, _frame):
        raise Interrupted(signal.Signals(number).name)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number in numbers:  # nothing may break the way back
            signal.signal(number, signal.SIG_IGN)
        try:
            gpu.reset_clocks()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
