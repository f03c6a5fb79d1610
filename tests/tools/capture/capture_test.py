"""tools/capture against a fake NVML and a fake PyTorch: no GPU is needed."""

import csv
import io
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "capture"))

import cli  # noqa: E402
import sweep  # noqa: E402
from workloads import Workload  # noqa: E402

MEM, CORE = 1593, [510, 810, 1110, 1410]


class FakeNvml:
    """One GPU whose power rises with the core clock. `calls` lists what was set and reset."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    class NVMLError(Exception):
        pass

    def __init__(self, rights=True, counter=True, throttle=0):
        self.rights, self.counter, self.throttle = rights, counter, throttle
        self.core, self.calls, self.energy_mj = CORE[-1], [], 0.0

    def nvmlInit(self):
        pass

    def nvmlDeviceGetHandleByIndex(self, index):
        if index != 0:
            raise self.NVMLError("not found")
        return "gpu"

    def nvmlDeviceGetName(self, _):
        return b"Fake A100"

    def nvmlDeviceGetSupportedMemoryClocks(self, _):
        return [MEM]

    def nvmlDeviceGetSupportedGraphicsClocks(self, _, __):
        return CORE[::-1]

    def nvmlDeviceGetPowerManagementLimit(self, _):
        return 400000

    def nvmlDeviceGetTotalEnergyConsumption(self, _):
        if not self.counter:
            raise self.NVMLError("not supported")
        self.energy_mj += 1000.0  # a joule passes between two looks
        return self.energy_mj

    def nvmlDeviceGetClockInfo(self, _, which):
        return self.core if which == self.NVML_CLOCK_SM else MEM

    def nvmlDeviceGetPowerUsage(self, _):
        return 80000 + 100 * self.core

    def nvmlDeviceGetTemperature(self, *_):
        return 55

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _):
        return self.throttle

    def _set(self, what, mhz):
        if not self.rights:
            raise self.NVMLError("Insufficient Permissions")
        self.calls.append((what, mhz))

    def nvmlDeviceSetMemoryLockedClocks(self, _, low, __):
        self._set("mem", low)

    def nvmlDeviceSetGpuLockedClocks(self, _, low, __):
        self._set("core", low)
        self.core = low

    def nvmlDeviceResetGpuLockedClocks(self, _):
        self.calls.append(("reset core", None))

    def nvmlDeviceResetMemoryLockedClocks(self, _):
        self.calls.append(("reset mem", None))


class FakeTimer:
    """A launch takes 1e9 cycles and 1 ms; `fail` is called after some runs."""

    def __init__(self, nvml, fail=None, after=0):
        self.nvml, self.fail, self.after, self.runs = nvml, fail, after, 0

    def run(self, launch, seconds):
        launch()
        self.runs += 1
        if self.fail and self.runs > self.after:
            self.fail()
        return 1e9 / (self.nvml.core * 1e6) + 1e-3, 1e-5, 10


WORKLOADS = [Workload("gemm", lambda torch: lambda: None, 2e12, 1e9), Workload("copy", lambda torch: lambda: None, 0.0, 4e9)]
SETTINGS = dict(warm_up_s=0.0, measure_s=0.0, repeats=2, idle_s=0.0, settle_s=0.0)


class SweepTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.csv = os.path.join(self.folder.name, "sweep.csv")

    def run_sweep(self, nvml, fail=None, after=0):
        gpu = cli.Gpu(nvml)
        settings = sweep.SweepSettings(pairs=sweep.clock_pairs(gpu), **SETTINGS)
        sweep.run_sweep(gpu, None, WORKLOADS, settings, self.csv, log=lambda _: None, sleep=lambda _: None,
                        timer=FakeTimer(nvml, fail, after))

    def rows(self):
        with open(self.csv, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def assert_given_back(self, nvml):
        self.assertEqual(nvml.calls[-2:], [("reset core", None), ("reset mem", None)])

    def test_writes_every_pair_with_units(self):
        nvml = FakeNvml()
        self.run_sweep(nvml)
        rows = self.rows()
        self.assertEqual(len(rows), len(CORE) * (2 * len(WORKLOADS) + 1))
        row = next(r for r in rows if r["kernel"] == "gemm" and r["core_mhz"] == "1110")
        self.assertAlmostEqual(float(row["time_s"]), 1e9 / 1110e6 + 1e-3, places=8)
        self.assertAlmostEqual(float(row["energy_j"]) / (float(row["time_s"]) * float(row["power_w"])), 1.0, places=6)
        self.assertEqual((row["gpu"], row["mem_mhz"], row["temperature_c"], row["throttled"], row["power_cap_w"]),
                         ("Fake A100", "1593", "55", "0", "400"))
        idle = [r for r in rows if r["kernel"] == "idle"]
        self.assertEqual(len(idle), len(CORE))
        self.assertTrue(all(r["time_s"] == "" and float(r["power_w"]) > 0 for r in idle))
        self.assert_given_back(nvml)

    def test_order_is_random_but_seeded(self):
        orders = []
        for _ in range(2):
            nvml = FakeNvml()
            self.run_sweep(nvml)
            orders.append([mhz for what, mhz in nvml.calls if what == "core"])
            os.remove(self.csv)
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], sorted(orders[0]))

    def test_gives_clocks_back_after_an_error(self):
        nvml = FakeNvml()

        def fail():
            raise RuntimeError("CUDA out of memory")

        with self.assertRaises(RuntimeError):
            self.run_sweep(nvml, fail, after=3)
        self.assert_given_back(nvml)

    def test_gives_clocks_back_after_signals_and_continues(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                nvml = FakeNvml()
                before = signal.getsignal(number)
                with self.assertRaises(cli.Interrupted):
                    self.run_sweep(nvml, lambda: os.kill(os.getpid(), number), after=4)
                self.assert_given_back(nvml)
                self.assertEqual(signal.getsignal(number), before)
                partial = len(self.rows())
                self.assertGreater(partial, 0)
                self.run_sweep(FakeNvml())
                rows = self.rows()
                self.assertEqual(len(rows), len(CORE) * (2 * len(WORKLOADS) + 1))
                keys = {(r["kernel"], r["core_mhz_requested"], r["repeat"]) for r in rows}
                self.assertEqual(len(keys), len(rows))
                os.remove(self.csv)

    def test_finished_sweep_sets_no_clock(self):
        self.run_sweep(FakeNvml())
        nvml = FakeNvml()
        self.run_sweep(nvml)
        self.assertEqual([c for c in nvml.calls if c[0] in ("core", "mem")], [])

    def test_refuses_without_rights(self):
        nvml = FakeNvml(rights=False)
        with self.assertRaisesRegex(cli.CaptureError, "takes root") as caught:
            self.run_sweep(nvml)
        self.assertEqual(caught.exception.status, 4)
        self.assert_given_back(nvml)

    def test_marks_throttled_rows_and_samples_power_without_a_counter(self):
        nvml = FakeNvml(counter=False, throttle=0x4)
        self.run_sweep(nvml)
        rows = [r for r in self.rows() if r["kernel"] == "gemm"]
        self.assertTrue(all(r["throttled"] == "1" for r in rows))
        for row in rows:
            self.assertAlmostEqual(float(row["power_w"]), 80 + 0.1 * float(row["core_mhz"]), places=3)

    def test_refuses_a_file_of_another_kind(self):
        Path(self.csv).write_text("a,b\n1,2\n", encoding="utf-8")
        with self.assertRaisesRegex(cli.CaptureError, "is no sweep of this tool"):
            self.run_sweep(FakeNvml())

    def test_rubato_reads_it(self):
        rubato = os.environ.get("RUBATO")
        if not rubato:
            self.skipTest("RUBATO does not name the program")
        self.run_sweep(FakeNvml(counter=False))
        out = os.path.join(self.folder.name, "spec.json")
        done = subprocess.run([rubato, "calibrate", self.csv, "--gpu", "a100-sxm4-80gb", "--kernels-only", "-o", out],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"name":"gemm"', Path(out).read_text(encoding="utf-8"))


class CommandTest(unittest.TestCase):
    def run_cli(self, *arguments, nvml=None):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = cli.main(list(arguments), nvml=nvml or FakeNvml(), torch=object())
        return status, out.getvalue(), err.getvalue()

    def test_dry_run_touches_nothing(self):
        nvml = FakeNvml()
        with tempfile.TemporaryDirectory() as folder:
            status, out, _ = self.run_cli("sweep", "--dry-run", "-o", os.path.join(folder, "s.csv"), "--core", "500:1400:300", nvml=nvml)
            self.assertEqual(os.listdir(folder), [])
        self.assertEqual((status, nvml.calls), (0, []))
        self.assertIn("clock pairs  4: 1593/510, 1593/810, 1593/1110, 1593/1410", out)
        self.assertIn("root", out)
        status, out, _ = self.run_cli("trace", "--dry-run", nvml=nvml)
        self.assertEqual((status, nvml.calls), (0, []))
        self.assertIn("changes no clock", out)

    def test_pairs_from_suggest(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pairs.csv")
            Path(path).write_text("step,mem,core,saving_sigma_pct\nnow,,,1.2\n1,1593,1305,0.1\n2,1593,auto,0.1\nall 12,,,0.05\n",
                                  encoding="utf-8")
            status, out, _ = self.run_cli("sweep", "--dry-run", "--pairs", path)
        self.assertEqual(status, 0)
        self.assertIn("clock pairs  1: 1593/1410", out)  # 1305 and auto: the nearest is 1410

    def test_clear_errors(self):
        status, _, err = self.run_cli("sweep", "--kernels", "gem", "--dry-run")
        self.assertEqual(status, 2)
        self.assertIn("kernel 'gem' is not known; there are gemm_qkv", err)
        status, _, err = self.run_cli("sweep", "--gpu", "3", "--dry-run")
        self.assertEqual(status, 2)
        self.assertIn("there is no GPU 3", err)


if __name__ == "__main__":
    unittest.main()
