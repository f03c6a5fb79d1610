#!/usr/bin/env python3
"""NVML's binding against the stand-in library, latency as measured."""

import json
import os
import types
from unittest import mock

from parts import ROOT, OnMachine, rubato as program, run_tests, until

import rubato
from rubato.hardware import latency
from rubato.hardware.backends import NvmlBackend
from rubato.errors import DataError, IoError, UsageError
from rubato.hardware.nvml import Nvml, NVMLError


class Binding(OnMachine):
    def test_every_call_answers_in_its_unit(self):
        machine = self.machine(gpus=2, counter_step_s=0.0)
        nvml = Nvml()
        self.assertEqual(nvml.nvmlDeviceGetCount(), 2)
        handle = nvml.nvmlDeviceGetHandleByIndex(1)
        self.assertEqual(nvml.nvmlDeviceGetName(handle), "NVIDIA A100-SXM4-80GB")
        self.assertEqual(nvml.nvmlDeviceGetUUID(handle), machine.uuids[1])
        self.assertEqual(nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByUUID(machine.uuids[1])), 1)
        self.assertEqual(nvml.nvmlDeviceGetSupportedMemoryClocks(handle), [1593])
        self.assertEqual(nvml.nvmlDeviceGetSupportedGraphicsClocks(handle, 1593), [510, 705, 900, 1110, 1305, 1410])
        self.assertEqual(nvml.nvmlDeviceGetMigMode(handle), (0, 0))
        self.assertEqual(nvml.nvmlDeviceGetComputeRunningProcesses(handle), [])
        machine.fail("other_pid", 4711, gpu=1)
        self.assertEqual([process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)], [4711])
        nvml.nvmlDeviceSetGpuLockedClocks(handle, 900, 900)
        self.assertTrue(until(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) == 900))
        self.assertEqual(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM), 1593)
        before = nvml.nvmlDeviceGetTotalEnergyConsumption(handle), machine.lib.sim_now()
        machine.launch("gemm", gpu=1)
        machine.synchronize(gpu=1)
        after = nvml.nvmlDeviceGetTotalEnergyConsumption(handle), machine.lib.sim_now()
        busy_j = 0.010 * 1410 / 900 * (60 + 300 * (900 / 1410) ** 2)
        idle_j = (after[1] - before[1] - 0.010 * 1410 / 900) * 60
        self.assertAlmostEqual((after[0] - before[0]) * 1e-3, busy_j + idle_j, delta=0.1)
        nvml.nvmlDeviceResetGpuLockedClocks(handle)
        self.assertTrue(until(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) == 1410))

    def test_errors_carry_code_and_the_drivers_text(self):
        machine = self.machine()
        nvml = Nvml()
        handle = nvml.nvmlDeviceGetHandleByIndex(0)
        for code, text in ((4, "Insufficient Permissions"), (2, "Invalid Argument"), (15, "GPU is lost")):
            machine.fail("refuse", code)
            with self.assertRaises(NVMLError) as caught:
                nvml.nvmlDeviceSetGpuLockedClocks(handle, 900, 900)
            self.assertEqual((caught.exception.value, str(caught.exception)), (code, text))
        with self.assertRaisesRegex(NVMLError, "this driver has no nvmlDeviceGetFieldValues"):
            nvml.nvmlDeviceGetFieldValues(handle, [186])


class Latency(OnMachine):
    def test_it_is_the_machines(self):
        self.machine(core_latency_s=0.006, jitter_s=0.001, call_s=0.002)
        found = rubato.measure_latency([900, 1410], repeats=8, guard=False)
        self.assertEqual([(pair.from_mhz, pair.to_mhz, len(pair.latency_s)) for pair in found.pairs], [(900, 1410, 8), (1410, 900, 8)])
        for pair in found.pairs:
            self.assertGreaterEqual(min(pair.latency_s), 0.006)
            self.assertGreaterEqual(min(pair.call_s), 0.002)
        self.assertLess(min(min(pair.latency_s) for pair in found.pairs), latency.SETTLE_S)  # 6 to 7 ms, and the settling before is no part of it
        self.assertIsNone(found.quantile_s("mem", 0.5))

    def test_changes_that_are_never_seen_are_told(self):
        machine = self.machine(core_latency_s=0.002)
        machine.fail("stuck_below_mhz", 1305)
        with mock.patch.object(latency, "LONGEST_S", 0.1):
            found = rubato.measure_latency([900, 1305, 1410], repeats=2, guard=False)
        seen = {(pair.from_mhz, pair.to_mhz): (len(pair.latency_s), pair.unseen, pair.median_s is None) for pair in found.pairs}
        self.assertEqual(seen, {(a, b): (0, 2, True) if 900 in (a, b) else (2, 0, False) for a in (900, 1305, 1410) for b in (900, 1305, 1410) if a != b})
        self.assertIn("never seen in 2 tries", str(found.pairs[0]))
        self.assertIn("median of 4 changes over 2 pairs", found.switching()["source"])
        self.assertIn("8 more were not seen within", found.switching()["source"])

    def test_clocks_that_cannot_be_given_back_are_left_to_the_guard(self):
        machine = self.machine()
        with mock.patch.object(latency, "release", lambda *_: [IoError("the driver is away")]), self.assertLogs("rubato", "ERROR") as logged:
            rubato.measure_latency([900, 1410], repeats=1)
        self.assertIn("clocks may still be locked: the driver is away", logged.output[0])
        self.assertTrue(until(lambda: machine.read()["core_asked"] == 0))

    def test_the_load_is_on_the_gpu_that_is_measured(self):
        machine = self.machine(gpus=2)
        names = [uuid.removeprefix("GPU-") for uuid in machine.uuids]
        gpus = [NvmlBackend().gpu(index) for index in (0, 1)]

        def torch(*uuids):
            properties = [types.SimpleNamespace(uuid=uuid) if uuid else types.SimpleNamespace() for uuid in uuids]
            return types.SimpleNamespace(cuda=types.SimpleNamespace(device_count=lambda: len(uuids), get_device_properties=properties.__getitem__))

        self.assertEqual([latency.cuda_device(torch(*names[::-1]), gpu) for gpu in gpus], [1, 0])  # CUDA's order is another
        for one in (torch(names[0]), torch(None), torch(None, None)):
            with self.assertRaisesRegex(UsageError, f"{machine.uuids[1]} is none of PyTorch's"):
                latency.cuda_device(one, gpus[1])
        self.machine()
        self.assertEqual(latency.cuda_device(torch(None), NvmlBackend().gpu(0)), 0)  # there is but one

    def test_it_goes_into_a_spec(self):
        machine = self.machine()
        found = rubato.measure_latency(repeats=2, guard=False)
        self.assertEqual(len(found.pairs), 6)
        spec = ROOT / "models" / "data" / "a100-sxm4-80gb.json"
        found.write_spec(spec, self.folder / "spec.json")
        written = json.loads((self.folder / "spec.json").read_text())
        self.assertEqual(written["switching"], found.switching())
        self.assertIn("median of 12 changes over 6 pairs", written["switching"]["source"])
        self.assertEqual({k: v for k, v in json.loads(spec.read_text()).items() if k != "switching"},
                         {k: v for k, v in written.items() if k != "switching"})
        with self.assertRaisesRegex(DataError, "is no GPU spec"):
            (self.folder / "list.json").write_text("[]")
            found.write_spec(self.folder / "list.json", self.folder / "out.json")
        self.assertEqual(machine.read()["core_asked"], 0)

    def test_memory_clocks_have_their_own_latency_and_a_spec_with_both_is_planned_with(self):
        def at(mem_mhz, core_mhz):
            return 0.01, 100.0

        kernels = {"gemm": {(mem, core): at(mem, core) for mem in (810, 1593) for core in (900, 1410)}}
        machine = self.machine(kernels=kernels, core_latency_s=0.004, mem_latency_s=0.03, jitter_s=0.001)
        found = rubato.measure_latency(repeats=3, guard=False)
        self.assertEqual({(pair.clock, pair.from_mhz, pair.to_mhz) for pair in found.pairs},
                         {("core", 900, 1410), ("core", 1410, 900), ("mem", 810, 1593), ("mem", 1593, 810)})
        for pair in found.pairs:
            self.assertEqual(len(pair.latency_s), 3)
            self.assertGreaterEqual(pair.quantile_s(0.0), 0.03 if pair.clock == "mem" else 0.004)
            self.assertEqual((pair.quantile_s(0.0), pair.quantile_s(0.5), pair.quantile_s(1.0)), tuple(sorted(pair.latency_s)))
        section = found.switching()
        self.assertGreater(section["mem_s"], section["core_s"] + 0.02)
        self.assertEqual((machine.read()["core_asked"], machine.read()["mem_asked"]), (0, 0))
        with mock.patch.dict(os.environ, {"RUBATO": os.path.abspath(program(self))}):
            found.write_spec(ROOT / "models" / "data" / "a100-sxm4-80gb.json", self.folder / "mine.json")
            spec = json.loads(rubato.run("gpus", self.folder / "mine.json"))
            self.assertEqual((spec["switching"]["core_s"], spec["switching"]["mem_s"]), (section["core_s"], section["mem_s"]))
            rubato.explore("gpt3-xl", gpu=self.folder / "mine.json", switching="spec", per="segment", slack=2)

    def test_refused_clocks_are_given_back(self):
        machine = self.machine()
        NvmlBackend().set_core(0, 900)
        machine.fail("refuse", 2)
        with self.assertRaises(IoError):
            rubato.measure_latency([900, 1410], guard=False)
        self.assertEqual(machine.read()["core_asked"], 0)
        with self.assertRaisesRegex(UsageError, "two clocks at least"):
            rubato.measure_latency([900], guard=False)


if __name__ == "__main__":
    run_tests()
