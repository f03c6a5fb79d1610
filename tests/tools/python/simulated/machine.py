"""The simulated machine of nvml.c from Python: made, loaded with kernels, broken, and read without NVML."""

from __future__ import annotations

import atexit
import ctypes
import gzip
import json
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve()
ROOT = HERE.parents[4]
sys.path[:0] = [str(ROOT / "tools" / "python")]

from rubato.hardware import nvml  # noqa: E402
from rubato.hardware.lock import lock_path  # noqa: E402

A100 = "NVIDIA A100-SXM4-80GB"
CORE_MHZ = (510, 705, 900, 1110, 1305, 1410)
MEM_MHZ = 1593
IDLE_W = 60.0


def simple_kernels():
    """Time and power by hand: 'gemm' follows the core clock, 'copy' does not; a GPU that gains at lower clocks."""
    def power(core_mhz, watts):
        return IDLE_W + watts * (core_mhz / 1410) ** 2

    return {"gemm": {(MEM_MHZ, core): (0.010 * 1410 / core, power(core, 300)) for core in CORE_MHZ},
            "copy": {(MEM_MHZ, core): (0.008, power(core, 200)) for core in CORE_MHZ}}


class Machine:
    """`kernels`: name -> {(mem_mhz, core_mhz): (time_s, power_w)}, all with the same clocks."""

    def __init__(self, library, folder, kernels=None, idle_w=None, gpus=1, name=A100, virtual=False, core_latency_s=0.004,
                 mem_latency_s=0.01, jitter_s=0.0005, call_s=0.001, counter_step_s=0.02):
        kernels = kernels or simple_kernels()
        self.library_path, self.state = str(library), str(Path(folder) / f"machine{Machine.made}.state")
        Machine.made += 1
        nvml.LIBRARY = self.library_path  # of this process; those it starts find it by its folder
        os.environ.update(self.environment())
        self.uuids = [f"GPU-sim-{os.getpid()}-{Machine.made}-{gpu}" for gpu in range(gpus)]  # locks are the real machine's
        atexit.register(self.remove_locks)
        lib = self.lib = ctypes.CDLL(self.library_path)
        for function, result, *kinds in (
                ("sim_clock", None, ctypes.c_int, ctypes.c_int, ctypes.c_double), ("sim_kernel", ctypes.c_int, ctypes.c_char_p),
                ("sim_cell", None, ctypes.c_int, ctypes.c_int, ctypes.c_double, ctypes.c_double),
                ("sim_gpu", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int, *[ctypes.c_double] * 5),
                ("sim_fail", None, ctypes.c_int, ctypes.c_char_p, ctypes.c_double), ("sim_now", ctypes.c_double),
                ("sim_sleep", None, ctypes.c_double), ("sim_launch", ctypes.c_ulonglong, ctypes.c_int, ctypes.c_int),
                ("sim_queued", ctypes.c_ulonglong, ctypes.c_int), ("sim_done", ctypes.c_int, ctypes.c_int, ctypes.c_ulonglong),
                ("sim_synchronize", None, ctypes.c_int)):
            getattr(lib, function).restype, getattr(lib, function).argtypes = result, list(kinds)
        if lib.sim_create(self.state.encode(), int(virtual)) != 0:
            raise OSError(f"{self.state} cannot be made")
        clocks = sorted(next(iter(kernels.values())))
        self.clocks = clocks
        for mem_mhz, core_mhz in clocks:
            lib.sim_clock(mem_mhz, core_mhz, idle_w[mem_mhz, core_mhz] if idle_w else IDLE_W)
        self.numbers = {}
        for kernel, cells in kernels.items():
            number = self.numbers[kernel] = lib.sim_kernel(kernel.encode())
            for clock, pair in enumerate(clocks):
                lib.sim_cell(number, clock, *cells[pair])
        self.names = list(kernels)
        for gpu in range(gpus):
            lib.sim_gpu(name.encode(), self.uuids[gpu].encode(), max(clocks)[0], max(core for mem, core in clocks if mem == max(clocks)[0]),
                        core_latency_s, mem_latency_s, jitter_s, call_s, counter_step_s)

    made = 0

    def environment(self):
        """Of a process that is to see this machine."""
        folders = [str(Path(self.library_path).absolute().parent), os.environ.get("LD_LIBRARY_PATH", "")]
        return {"LD_LIBRARY_PATH": ":".join(filter(None, dict.fromkeys(":".join(folders).split(":")))), "RUBATO_SIM_STATE": self.state}

    def remove_locks(self):
        for uuid in self.uuids:
            lock_path(uuid).unlink(missing_ok=True)

    def launch(self, kernel, gpu=0):
        return self.lib.sim_launch(gpu, self.numbers[kernel])

    def synchronize(self, gpu=0):
        self.lib.sim_synchronize(gpu)

    def fail(self, what, value, gpu=0):
        self.lib.sim_fail(gpu, what.encode(), float(value))

    def limit(self, watts, gpu=0):
        """Another program sets the power limit."""
        self.fail("limit_mw", 1e3 * watts, gpu)

    def read(self, gpu=0):
        numbers, calls, energy = (ctypes.c_int * 7)(), (ctypes.c_ulonglong * 2)(), ctypes.c_double()
        self.lib.sim_read(gpu, numbers, calls, ctypes.byref(energy))
        return {"core_asked": numbers[0], "mem_asked": numbers[1], "core_mhz": numbers[2], "mem_mhz": numbers[3], "limit_w": 1e-3 * numbers[4],
                "applications": tuple(numbers[5:]),
                "sets": calls[0], "resets": calls[1], "energy_j": energy.value}

    def event(self, gpu=0):
        """Like torch.cuda.Event: done once the GPU has done all that was queued before."""
        return Event(self, gpu, self.lib.sim_queued(gpu))

    def span(self, number, gpu=0):
        kernel, start, end = ctypes.c_int(), ctypes.c_double(), ctypes.c_double()
        if not self.lib.sim_span(ctypes.c_int(gpu), ctypes.c_ulonglong(number), ctypes.byref(kernel), ctypes.byref(start), ctypes.byref(end)):
            return None
        return self.names[kernel.value], start.value, end.value

    def write_kineto(self, path, launches, passes, gpu=0):
        """The launches (numbers of launch()) as the PyTorch profiler writes them; `passes`: (name, first, last) launch."""
        us = 1e6
        events = []
        base_s = self.span(launches[0], gpu)[1]
        for order, number in enumerate(launches):
            name, start_s, end_s = self.span(number, gpu)
            call_us = (start_s - base_s) * us  # host calls come in order and early
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": order * 2.0,
                           "dur": 1.0, "args": {"correlation": number, "cbid": 211}})
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": call_us + 1000.0,
                           "dur": (end_s - start_s) * us,
                           "args": {"correlation": number, "device": 0, "context": 1, "stream": 7,
                                    "grid": [108, 1, 1], "block": [128, 1, 1]}})
        for name, first, last in passes:
            events.append({"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1,
                           "ts": launches.index(first) * 2.0 - 0.5, "dur": (launches.index(last) - launches.index(first)) * 2.0 + 1.5})
        document = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": A100, "totalGlobalMem": 85 * 10**9, "numSms": 108}],
                    "traceEvents": events}
        with gzip.open(path, "wt", encoding="utf-8") as file:
            json.dump(document, file)


class Event:
    def __init__(self, machine, gpu, number):
        self.machine, self.gpu, self.number = machine, gpu, number

    def query(self):
        return bool(self.machine.lib.sim_done(self.gpu, self.number))
