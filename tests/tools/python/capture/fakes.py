"""A GPU, its driver and PyTorch as far as capture uses them, on a clock of their own."""

import contextlib
import io
import types


class FakeError(Exception):
    def __init__(self, value):
        super().__init__(f"code {value}")
        self.value = value


class FakeNvml:
    """Looks like pynvml. Power is 50 W idle, and 50 + core_mhz / 10 while `busy`; units as in NVML."""

    NVMLError = FakeError
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_FUNCTION_NOT_FOUND = 13
    NVML_FI_DEV_POWER_INSTANT = 186
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    DEFAULT_CORE, DEFAULT_MEM, COUNTER_STEP_S = 1800, 5001, 0.05

    def __init__(self, rights=True, counter=True, mem_lock=True, cap_core_mhz=None):
        self.rights, self.counter, self.mem_lock, self.cap_core_mhz = rights, counter, mem_lock, cap_core_mhz
        self.now_s = 0.0
        self.energy_mj = 0.0
        self.shown_mj = 0.0
        self.busy = False
        self.locked_core = self.locked_mem = self.applications = None
        self.processes, self.temperature, self.calls = [], 60, []
        self.failing, self.instant = set(), True

    # The world of the tests.

    def sleep(self, seconds):
        step_before = int(self.now_s / self.COUNTER_STEP_S)
        self.energy_mj += self.power_mw() * seconds
        self.now_s += seconds
        if int(self.now_s / self.COUNTER_STEP_S) != step_before:
            self.shown_mj = self.energy_mj

    def clock(self):
        return self.now_s

    def power_mw(self):
        return 50e3 + (self.core() * 100.0 if self.busy else 0.0)

    def core(self):
        core = self.locked_core or (self.applications or (0, self.DEFAULT_CORE))[1]
        return min(core, self.cap_core_mhz) if self.cap_core_mhz and self.busy else core

    def mem(self):
        return self.locked_mem or (self.applications or (self.DEFAULT_MEM, 0))[0]

    @property
    def touched(self):
        return any((self.locked_core, self.locked_mem, self.applications))

    def _set(self, name, supported=True):
        self.calls.append(name)
        if not supported:
            raise FakeError(self.NVML_ERROR_NOT_SUPPORTED)
        if not self.rights:
            raise FakeError(self.NVML_ERROR_NO_PERMISSION)
        if name in self.failing:
            raise FakeError(999)

    # What pynvml has.

    def nvmlDeviceGetCount(self):
        return 1

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetName(self, _):
        return b"Fake GPU"

    def nvmlDeviceGetUUID(self, _):
        return "GPU-fake"

    def nvmlDeviceGetCudaComputeCapability(self, _):
        return 8, 6

    def nvmlDeviceGetTotalEnergyConsumption(self, _):
        if not self.counter:
            raise FakeError(self.NVML_ERROR_NOT_SUPPORTED)
        return int(self.shown_mj)

    def nvmlDeviceGetPowerUsage(self, _):
        return int(self.power_mw())

    def nvmlDeviceGetFieldValues(self, _, fields):
        assert list(fields) == [self.NVML_FI_DEV_POWER_INSTANT]
        return [int(self.power_mw()) + 1000 if self.instant else None]

    def nvmlDeviceGetEnforcedPowerLimit(self, _):
        return 350000

    def nvmlDeviceGetClockInfo(self, _, kind):
        return self.core() if kind == self.NVML_CLOCK_SM else self.mem()

    def nvmlDeviceGetTemperature(self, _, __):
        return self.temperature

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _):
        return 0x2 | (0x4 if self.busy and self.cap_core_mhz and self.core() == self.cap_core_mhz else 0x1)

    def nvmlDeviceGetSupportedMemoryClocks(self, _):
        return [405, 5001, 9501]

    def nvmlDeviceGetSupportedGraphicsClocks(self, _, mem):
        return [210, 405] if mem == 405 else list(range(210, 2101, 15))

    def nvmlDeviceGetComputeRunningProcesses(self, _):
        return [types.SimpleNamespace(pid=pid) for pid in self.processes]

    def nvmlDeviceSetGpuLockedClocks(self, _, low, high):
        assert low == high
        self._set("nvmlDeviceSetGpuLockedClocks")
        self.locked_core = low

    def nvmlDeviceSetMemoryLockedClocks(self, _, low, high):
        assert low == high
        self._set("nvmlDeviceSetMemoryLockedClocks", self.mem_lock)
        self.locked_mem = low

    def nvmlDeviceSetApplicationsClocks(self, _, mem, core):
        self._set("nvmlDeviceSetApplicationsClocks")
        self.applications = (mem, core)

    def nvmlDeviceResetGpuLockedClocks(self, _):
        self._set("nvmlDeviceResetGpuLockedClocks")
        self.locked_core = None

    def nvmlDeviceResetMemoryLockedClocks(self, _):
        self._set("nvmlDeviceResetMemoryLockedClocks", self.mem_lock)
        self.locked_mem = None

    def nvmlDeviceResetApplicationsClocks(self, _):
        self._set("nvmlDeviceResetApplicationsClocks")
        self.applications = None


class FakeRunner:
    """A kernel takes `cycles(name)` of the core clock. `on_run` gets the number of the run and may raise."""

    def __init__(self, nvml, on_run=lambda count: None, too_large=(), cycles=lambda name: 1e6):
        self.nvml, self.on_run, self.too_large, self.cycles = nvml, on_run, too_large, cycles
        self.runs, self.loaded = 0, None

    def load(self, kernel):
        from rubato.capture.runner import KernelDoesNotFit

        if kernel.name in self.too_large:
            raise KernelDoesNotFit(kernel.name)
        self.loaded = kernel.name

    def unload(self):
        self.nvml.busy = False

    def run(self, seconds, poll):
        self.runs += 1
        self.nvml.busy = True
        self.on_run(self.runs)
        end = self.nvml.now_s + seconds
        while self.nvml.now_s < end:
            poll()
            self.nvml.sleep(0.005)
        return [self.cycles(self.loaded) * 1e-6 / self.nvml.core()] * 4


class FakeTorch:
    """The part of torch that TorchRunner and trace.record call. A launch takes `launch_s` on the GPU."""

    class OutOfMemoryError(Exception):
        pass

    def __init__(self, launch_s=0.001, fits=True):
        fake = self
        self.launch_s, self.fits = launch_s, fits
        self.gpu_s, self.graphs, self.emptied, self.profiling = 0.0, 0, False, False
        self.captured = None

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing
                self.queries = 0

            def record(self):
                self.at_s = fake.gpu_s

            def query(self):
                self.queries += 1
                return self.queries > 2

            def elapsed_time(self, later):
                return (later.at_s - self.at_s) * 1e3  # ms

        class CUDAGraph:
            def replay(self):
                fake.gpu_s += self.launches * fake.launch_s

        class Capture:
            def __init__(self, graph):
                self.graph = graph

            def __enter__(self):
                fake.captured = 0

            def __exit__(self, *_):
                self.graph.launches, fake.captured = fake.captured, None
                fake.graphs += 1

        class Profile:
            def __init__(self, **_):
                pass

            def __enter__(self):
                fake.profiling = True
                return self

            def __exit__(self, *_):
                fake.profiling = False

            def export_chrome_trace(self, path):
                open(path, "wb").close()

        stream = types.SimpleNamespace(wait_stream=lambda other: None)
        self.cuda = types.SimpleNamespace(
            Event=Event, CUDAGraph=CUDAGraph, graph=Capture, OutOfMemoryError=self.OutOfMemoryError,
            Stream=lambda: stream, current_stream=lambda: stream, stream=lambda _: contextlib.nullcontext(),
            synchronize=lambda: None, empty_cache=lambda: setattr(fake, "emptied", True))
        self.profiler = types.SimpleNamespace(
            ProfilerActivity=types.SimpleNamespace(CPU=0, CUDA=1), profile=Profile)

    def launch(self):
        if not self.fits:
            raise self.OutOfMemoryError
        if self.captured is None:
            self.gpu_s += self.launch_s
        else:
            self.captured += 1


class FakeHold:
    """What rubato.hardware.hold.Hold is to a sweep; `lost` is raised where the guards are gone."""

    def __init__(self):
        self.lost, self.given_back = None, None

    def check(self):
        if self.lost:
            raise self.lost

    def close(self, given_back):
        self.given_back = given_back


class FakeWorld:
    """Stands in for rubato.capture.cli.World."""

    def __init__(self, nvml=None, runner=None, torch=None):
        self.fake = nvml or FakeNvml()
        self.fake_runner = runner or FakeRunner(self.fake)
        self.fake_torch = torch
        self.clock, self.sleep = self.fake.clock, self.fake.sleep
        self.out, self.log = io.StringIO(), io.StringIO()
        self.fake_hold = FakeHold()

    def nvml(self):
        return self.fake

    def hold(self, index, guard=True):
        return self.fake_hold

    def torch(self, _):
        return self.fake_torch

    def runner(self, _):
        return self.fake_runner
