"""A training step on the simulated GPU: kernels with the model's time and power, and a runner that sweeps them."""

import collections
import io
import json
import time

import rubato
from rubato.hardware.backends import NvmlBackend
from rubato.hardware.hold import Hold
from rubato.hardware.nvml import Nvml

FORWARD = ("02_gemm_qkv", "05_softmax", "11_gelu")
BACKWARD = ("24_gemm_dw_fcproj", "36_softmax_bwd", "23_gelu_bwd")
CLOCKS = "mem=1593 core=510:1410:75"
POWER_LIMIT_W = 500


def model_kernels(folder):
    """Time and power of each kernel at each clock, as the shipped A100's model says: the truth of the machine.

    At the limit of the card its sweep was measured on, which no kernel reaches.
    """
    db = folder / "truth.db"
    rubato.explore("gpt3-xl", gpu="a100-sxm4-80gb", clocks=CLOCKS, per="run", power_limit=POWER_LIMIT_W, db=db)
    kernels = collections.defaultdict(dict)
    for cell in json.loads(rubato.run("export", "cells", "--db", db, "--json")):
        mem, core = cell["clock"].split("/")
        if core != "auto" and cell["kernel"] in FORWARD + BACKWARD:
            kernels[cell["kernel"]][int(mem), int(core)] = cell["time_s"], cell["energy_j"] / cell["time_s"]
    return dict(kernels)


class Training:
    """step() queues a step and marks its passes; the host stays one step ahead of the GPU."""

    def __init__(self, machine, repeat=3):
        self.machine, self.repeat = machine, repeat
        self.applier = None
        self.last = self.machine.event()
        self.launches, self.passes = [], []

    def step(self):
        for name, kernels in (("forward", FORWARD), ("backward", BACKWARD)):
            if self.applier:
                self.applier.mark(name)
            numbers = [self.machine.launch(kernel) for _ in range(self.repeat) for kernel in kernels]
            self.launches += numbers
            self.passes.append((name, numbers[0], numbers[-1]))
        if self.applier:
            self.applier.step()
        while not self.last.query():
            time.sleep(0.0005)
        self.last = self.machine.event()


class SweptWorld:
    """What `capture sweep` needs, on a machine in virtual time."""

    def __init__(self, machine):
        self.machine = machine
        self.nvml, self.clock, self.sleep = Nvml, machine.lib.sim_now, machine.lib.sim_sleep
        self.out, self.log = io.StringIO(), io.StringIO()

    def hold(self, index, guard=True):
        return Hold(NvmlBackend(applications=True), [index], guard)

    def runner(self, _):
        return self

    def load(self, kernel):
        self.kernel = kernel.name

    def unload(self):
        pass

    def run(self, seconds, poll):
        end, times = self.clock() + seconds, []
        ahead = self.machine.launch(self.kernel)
        while self.clock() < end:
            number, ahead = ahead, self.machine.launch(self.kernel)  # the GPU never waits for the host
            while not self.machine.lib.sim_done(0, number):
                self.sleep(0.0005)
                poll()
            _, start_s, end_s = self.machine.span(number)
            times.append(end_s - start_s)
        self.machine.synchronize()
        return times
