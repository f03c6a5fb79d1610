"""Tests of tools/capture without a GPU. Usage: capture_test.py [RUBATO]"""

import csv
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "tools")]

from capture import plan  # noqa: E402
from capture.cli import main  # noqa: E402
from capture.errors import DataError, IoError, UsageError  # noqa: E402
from capture.gpu import AUTO, Clocks, Gpu  # noqa: E402
from capture.kernels import Kernel, Shape, choose, gpt_kernels  # noqa: E402
from capture.plan import IDLE, Pair  # noqa: E402
from capture import trace  # noqa: E402
from capture.runner import BATCH_S, KernelDoesNotFit, TorchRunner  # noqa: E402
from capture.sweep import COLUMNS  # noqa: E402
from fakes import FakeNvml, FakeRunner, FakeTorch, FakeWorld  # noqa: E402

try:
    import torch

    HAS_TORCH = hasattr(torch.nn.functional, "scaled_dot_product_attention")  # 2.0
except ImportError:
    HAS_TORCH = False

RUBATO = None
SMALL = ["--core", "600,1200", "--mem", "5001,9501", "--kernels", "02_*,11_gelu", "--repeats", "2"]


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.csv = Path(folder.name) / "sweep.csv"

    def sweep(self, world, *more, options=SMALL):
        return main(["sweep", "-o", str(self.csv), *options, *more], world)

    def rows(self):
        with open(self.csv, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))


class Restore(Scratch):
    def check_restored(self, world):
        self.assertFalse(world.fake.touched)
        self.assertIn("nvmlDeviceResetGpuLockedClocks", world.fake.calls)

    def test_after_a_whole_sweep(self):
        world = FakeWorld()
        self.assertEqual(self.sweep(world), 0)
        self.check_restored(world)

    def test_after_errors_and_signals_in_any_run(self):
        exits = {RuntimeError("a bug"): None, KeyboardInterrupt(): 130, SystemExit(7): None}
        for error, status in exits.items():
            for at in (1, 2, 5):
                with self.subTest(error=repr(error), run=at):
                    self.csv.unlink(missing_ok=True)
                    nvml = FakeNvml()

                    def stop(count, at=at, error=error, nvml=nvml):
                        self.assertTrue(nvml.touched)
                        if count == at:
                            raise error

                    world = FakeWorld(nvml, FakeRunner(nvml, stop))
                    if status is None:
                        with self.assertRaises(type(error)):
                            self.sweep(world)
                    else:
                        self.assertEqual(self.sweep(world), status)
                    self.check_restored(world)

    def test_after_real_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number):
                self.csv.unlink(missing_ok=True)
                nvml = FakeNvml()
                world = FakeWorld(nvml, FakeRunner(nvml, lambda _, number=number: os.kill(os.getpid(), number)))
                before = signal.getsignal(number)
                self.assertEqual(self.sweep(world), 128 + number)
                self.check_restored(world)
                self.assertIs(signal.getsignal(number), before)

    def test_signal_while_restoring_waits(self):
        nvml = FakeNvml()
        reset = nvml.nvmlDeviceResetGpuLockedClocks

        def interrupted(handle):
            os.kill(os.getpid(), signal.SIGINT)
            reset(handle)

        nvml.nvmlDeviceResetGpuLockedClocks = interrupted
        with self.assertRaises(KeyboardInterrupt), Clocks(Gpu(nvml)) as clocks:
            clocks.set(1200, 9501)
        self.assertFalse(nvml.touched)

    def test_one_failing_reset_does_not_stop_the_others_and_is_told(self):
        world = FakeWorld()
        world.fake.failing = {"nvmlDeviceResetGpuLockedClocks"}
        self.sweep(world)
        self.assertIsNone(world.fake.locked_mem)
        self.assertIn("clocks may still be locked", world.log.getvalue())
        self.assertIn("nvidia-smi -rgc", world.log.getvalue())

    def test_application_clocks_where_memory_cannot_be_locked(self):
        nvml = FakeNvml(mem_lock=False)
        seen = []
        world = FakeWorld(nvml, FakeRunner(nvml, lambda _: seen.append(nvml.applications)))
        self.assertEqual(self.sweep(world), 0)
        self.assertEqual(set(seen), {(m, c) for m in (5001, 9501) for c in (600, 1200)})
        self.check_restored(world)

    def test_restore_command(self):
        world = FakeWorld()
        world.fake.locked_core, world.fake.locked_mem = 900, 405
        self.assertEqual(main(["restore"], world), 0)
        self.assertFalse(world.fake.touched)


class Refusals(Scratch):
    def test_without_rights_nothing_is_written(self):
        world = FakeWorld(FakeNvml(rights=False))
        self.assertEqual(self.sweep(world), 4)
        self.assertIn("no rights to set clocks", world.log.getvalue())
        self.assertIn("hint: run with sudo", world.log.getvalue())
        self.assertNotIn("may still be locked", world.log.getvalue())
        self.assertFalse(self.csv.exists())

    def test_gpu_in_use(self):
        world = FakeWorld()
        world.fake.processes = [4242]
        self.assertEqual(self.sweep(world), 4)
        self.assertIn("process 4242", world.log.getvalue())
        self.assertEqual(world.fake.calls, [])
        self.assertEqual(self.sweep(world, "--shared-gpu"), 0)

    def test_clock_out_of_range(self):
        world = FakeWorld()
        self.assertEqual(self.sweep(world, options=["--core", "2400", "--mem", "9501"]), 2)
        self.assertIn("--core asks for 2400 MHz; the GPU has 210 to 2100 MHz", world.log.getvalue())

    def test_unknown_gpu(self):
        world = FakeWorld()
        self.assertEqual(self.sweep(world, "--gpu", "3"), 2)
        self.assertIn("expected 0 to 0", world.log.getvalue())

    @unittest.skipIf(importlib.util.find_spec("pynvml"), "pynvml is installed")
    def test_entry_script_without_modules(self):
        script = HERE.parents[2] / "tools" / "capture" / "capture"
        done = subprocess.run([sys.executable, "-B", script, "sweep", "-o", self.csv], capture_output=True, text=True)
        self.assertEqual(done.returncode, 4)
        self.assertIn("pip install nvidia-ml-py", done.stderr)


class Measurements(Scratch):
    def kernel_rows(self):
        return [row for row in self.rows() if row["kernel"] != IDLE]

    def test_columns_and_units(self):
        world = FakeWorld()
        self.assertEqual(self.sweep(world), 0)
        self.assertEqual(tuple(self.rows()[0]), COLUMNS)
        rows = self.kernel_rows()
        self.assertEqual(len(rows), 2 * 4 * 2)
        for row in rows:
            core_mhz = float(row["core_mhz"])
            self.assertEqual(row["core_mhz"], row["core_mhz_requested"])
            self.assertEqual(row["mem_mhz"], row["mem_mhz_requested"])
            self.assertAlmostEqual(float(row["power_w"]), 50 + core_mhz / 10, places=1)
            self.assertAlmostEqual(float(row["time_s"]), 1 / core_mhz)
            self.assertAlmostEqual(float(row["energy_j"]), float(row["power_w"]) * float(row["time_s"]))
            self.assertEqual((row["gpu"], row["temperature_c"], row["throttled"], row["power_source"]),
                             ("Fake GPU", "60.0", "", "energy_counter"))
            self.assertEqual(float(row["power_cap_w"]), 350.0)

    def test_idle_at_each_memory_clock(self):
        self.sweep(FakeWorld())
        idle = [row for row in self.rows() if row["kernel"] == IDLE]
        self.assertEqual({(row["mem_mhz"], row["core_mhz"]) for row in idle},
                         {(m, c) for m in ("5001", "9501") for c in ("600", "1200")})
        for row in idle:
            self.assertEqual((row["time_s"], row["energy_j"]), ("", ""))
            self.assertAlmostEqual(float(row["power_w"]), 50.0, places=1)

    def test_power_is_sampled_without_a_counter(self):
        self.sweep(FakeWorld(FakeNvml(counter=False)))
        for row in self.kernel_rows():
            self.assertEqual(row["power_source"], "sampled")
            self.assertAlmostEqual(float(row["power_w"]), 50 + float(row["core_mhz"]) / 10)

    def test_throttling_shows_the_effective_clock(self):
        self.sweep(FakeWorld(FakeNvml(cap_core_mhz=900)))
        for row in self.kernel_rows():
            limited = row["core_mhz_requested"] == "1200"
            self.assertEqual((row["core_mhz"], row["throttled"]), ("900", "sw_power_cap") if limited else ("600", ""))

    def test_memory_request_that_is_not_followed(self):
        nvml = FakeNvml()
        nvml.mem = lambda: 5001
        self.sweep(FakeWorld(nvml))
        self.assertEqual({(row["mem_mhz"], row["mem_mhz_requested"]) for row in self.rows()},
                         {("5001", "5001"), ("5001", "9501")})

    def test_default_clocks_are_not_locked(self):
        nvml, locks = FakeNvml(), []
        world = FakeWorld(nvml, FakeRunner(nvml, lambda _: locks.append(nvml.touched)))
        self.sweep(world, "--default-clocks", "--repeats", "1")
        rows = [row for row in self.kernel_rows() if row["core_mhz_requested"] == AUTO]
        self.assertEqual([(r["core_mhz"], r["mem_mhz"]) for r in rows], [("1800", "5001")] * 2)
        self.assertIn(False, locks)

    def test_kernel_too_large_is_left_out_and_told(self):
        nvml = FakeNvml()
        world = FakeWorld(nvml, FakeRunner(nvml, too_large={"11_gelu"}))
        self.assertEqual(self.sweep(world), 0)
        self.assertEqual({row["kernel"] for row in self.kernel_rows()}, {"02_gemm_qkv"})
        self.assertEqual(world.log.getvalue().count("11_gelu: does not fit"), 1)

    def test_waits_until_cool(self):
        world = FakeWorld()
        world.fake.temperature = 90
        sleep = world.fake.sleep

        def cooling(seconds):
            sleep(seconds)
            if seconds == 1.0:
                world.fake.temperature -= 4

        world.sleep = cooling
        self.sweep(world)
        self.assertTrue(all(float(row["temperature_c"]) <= 80 for row in self.kernel_rows()))


class Resume(Scratch):
    def test_an_interrupted_sweep_ends_like_an_undisturbed_one(self):
        self.sweep(FakeWorld())
        whole = [(r["kernel"], r["core_mhz"], r["mem_mhz"], r["repeat"]) for r in self.rows()]
        self.csv.unlink()

        def stop(count):
            if count == 9:
                raise KeyboardInterrupt

        nvml = FakeNvml()
        self.assertEqual(self.sweep(FakeWorld(nvml, FakeRunner(nvml, stop))), 130)
        self.assertLess(0, len(self.rows()))
        self.assertLess(len(self.rows()), len(whole))
        with open(self.csv, "a", encoding="utf-8") as file:
            file.write("Fake GPU,02_gemm")  # killed while writing
        self.assertEqual(self.sweep(FakeWorld(), "--resume"), 0)
        self.assertEqual([(r["kernel"], r["core_mhz"], r["mem_mhz"], r["repeat"]) for r in self.rows()], whole)

    def test_an_old_file_is_kept(self):
        self.sweep(FakeWorld())
        before = self.csv.read_bytes()
        world = FakeWorld()
        self.assertEqual(self.sweep(world), 2)
        self.assertIn("is there already", world.log.getvalue())
        self.assertEqual(self.csv.read_bytes(), before)
        self.assertFalse(world.fake.touched)

    def test_files_of_others_are_refused(self):
        for content, message in (("a,b\n1,2\n", "columns are not those"),
                                 (",".join(COLUMNS) + "\nOther GPU" + "," * (len(COLUMNS) - 1) + "\n",
                                  "gpu is 'Other GPU'; expected 'Fake GPU'")):
            self.csv.write_text(content, encoding="utf-8")
            world = FakeWorld()
            self.assertEqual(self.sweep(world, "--resume"), 3)
            self.assertIn(message, world.log.getvalue())
            self.assertEqual(self.csv.read_text(encoding="utf-8"), content)


class Plans(Scratch):
    def pairs_file(self, content):
        path = self.csv.with_name("pairs.csv")
        path.write_text(content, encoding="utf-8")
        return path

    def test_pairs_as_suggest_prints_them(self):
        path = self.pairs_file("step,mem,core,saving_sigma_pct\nnow,,,0.3\n1,auto,1470,0.2\n2,9501,210,0.1\n"
                               "3,auto,1470,0.1\nall 66,,,0.05\n")
        self.assertEqual(plan.file_pairs(path), [Pair(1470, AUTO, AUTO), Pair(210, 9501)])

    def test_pairs_that_are_wrong(self):
        with self.assertRaisesRegex(DataError, "pairs.csv:1: no column 'mem'"):
            plan.file_pairs(self.pairs_file("core\n900\n"))
        with self.assertRaisesRegex(DataError, "pairs.csv:2: core is 'fast'"):
            plan.file_pairs(self.pairs_file("mem,core\n9501,fast\n"))
        with self.assertRaisesRegex(UsageError, "pairs.csv:2 asks for 3000 MHz"):
            plan.file_pairs(self.pairs_file("mem,core\n9501,3000\n"), Gpu(FakeNvml()))

    def test_auto_memory_is_written_under_its_name_in_the_spec(self):
        path = self.pairs_file("step,mem,core\n1,auto,1470\n")
        self.sweep(FakeWorld(), options=["--pairs", str(path), "--kernels", "11_gelu"])
        self.assertEqual({(r["mem_mhz"], r["core_mhz"]) for r in self.rows()}, {("auto", "1470")})

    def test_clock_lists(self):
        self.assertEqual(plan.parse_clocks("--core", "300:900:300"), [300, 600, 900])
        for wrong in ("900:300:100", "1:2:0", "fast", "1,,2"):
            with self.assertRaises(UsageError):
                plan.parse_clocks("--core", wrong)

    def test_grid_snaps_and_leaves_out_what_a_memory_clock_does_not_allow(self):
        pairs = plan.grid_pairs(Gpu(FakeNvml()), "403,901")
        self.assertEqual(pairs, [Pair(405, 9501), Pair(900, 9501), Pair(405, 5001), Pair(900, 5001), Pair(405, 405)])

    def test_spread_keeps_both_ends(self):
        self.assertEqual(plan.spread([9, 8, 7, 6, 5], 3), [9, 7, 5])
        self.assertEqual(plan.spread([9, 8], 5), [9, 8])

    def test_order_is_shuffled_complete_and_the_same_for_a_seed(self):
        pairs = [Pair(core, 9501) for core in range(210, 600, 15)]
        first, again, other = (plan.tasks(["a", "b"], pairs, 2, seed) for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        self.assertEqual(set(first), set(other))
        self.assertEqual(len(first), 2 * (2 * len(pairs) + 2))
        self.assertNotEqual([t.pair for t in first if t.kernel == "a"][:len(pairs)], pairs)

    def test_dry_run_touches_nothing_and_prints_the_order(self):
        world = FakeWorld()
        self.assertEqual(self.sweep(world, "--dry-run"), 0)
        self.assertEqual(world.fake.calls, [])
        self.assertEqual(world.fake_runner.runs, 0)
        self.assertFalse(self.csv.exists())
        printed = world.out.getvalue()
        self.assertIn("24 of 24 measurements to do", printed)
        self.assertIn("pairs    4 (core/memory MHz): 600/5001 1200/5001 600/9501 1200/9501", printed)
        self.sweep(world)
        done = [f"{r['core_mhz']}/{r['mem_mhz']}" for r in self.rows() if r["kernel"] == IDLE]
        planned = [line.split()[1].rstrip(":") for line in printed.splitlines() if line.startswith("  ")]
        self.assertEqual(done, planned)


class Kernels(unittest.TestCase):
    def test_work_of_gemms_is_that_of_the_formulas(self):
        by_name = {kernel.name: kernel for kernel in gpt_kernels(Shape())}
        self.assertEqual(by_name["02_gemm_qkv"].flop, 2 * 6144 * 40960 * 2048)
        self.assertEqual(by_name["04_gemm_scores"].flop, 2 * 1024 * 1024 * 128 * 640)
        self.assertEqual(by_name["31_gemm_datt"].dram_bytes, 2 * (2 * 40960 * 2048 + 2048 * 2048))

    def test_names_are_those_of_the_trace(self):
        if not RUBATO:
            self.skipTest("no rubato program given")
        shown = subprocess.run([RUBATO, "trace", "show", "gpt3-xl", "--json"], capture_output=True, text=True, check=True)
        names = {kernel["kernel"] for kernel in json.loads(shown.stdout)}
        self.assertEqual({kernel.name for kernel in gpt_kernels(Shape())} - names, {"attention", "dropout", "adamw"})
        self.assertLessEqual(names, {kernel.name for kernel in gpt_kernels(Shape())})

    def test_choice_by_pattern(self):
        kernels = gpt_kernels(Shape())
        self.assertEqual([k.name for k in choose(kernels, "adamw,0[0-1]_*")], ["00_embedding", "01_layernorm", "adamw"])
        with self.assertRaisesRegex(UsageError, "'gelu' fits no kernel"):
            choose(kernels, "gelu")


class Runner(unittest.TestCase):
    def kernel(self, fake, **more):
        return Kernel("k", 1.0, 1.0, lambda torch, device: fake.launch, **more)

    def test_time_is_per_launch_in_seconds_with_and_without_a_graph(self):
        for capturable in (True, False):
            fake = FakeTorch(launch_s=0.0005)
            runner = TorchRunner(fake)
            runner.load(self.kernel(fake, capturable=capturable))
            self.assertEqual(runner.launches, round(BATCH_S / 0.0005))
            self.assertEqual(fake.graphs, int(capturable))
            polls = []
            times = runner.run(0.01, lambda: polls.append(1))
            self.assertGreaterEqual(len(times), 2)
            for time_s in times:
                self.assertAlmostEqual(time_s, 0.0005)

    def test_out_of_memory_frees_and_tells(self):
        fake = FakeTorch(fits=False)
        with self.assertRaises(KernelDoesNotFit):
            TorchRunner(fake).load(self.kernel(fake))
        self.assertTrue(fake.emptied)

    @unittest.skipUnless(HAS_TORCH, "torch 2 is not installed")
    def test_every_kernel_runs_in_pytorch(self):
        small = Shape(layers=1, channels=32, heads=2, sequence=8, batch=2, vocabulary=50)
        for kernel in gpt_kernels(small):
            with self.subTest(kernel=kernel.name):
                kernel.build(torch, "cpu")()


class Trace(Scratch):
    def test_log_has_units_and_no_clock_is_set(self):
        nvml = FakeNvml()
        with trace.PowerLog(Gpu(nvml), self.csv, period_s=0.001, clock=lambda: 1.75e9):
            time.sleep(0.05)
        rows = self.rows()
        self.assertEqual(tuple(rows[0]), trace.LOG_COLUMNS)
        self.assertGreater(len(rows), 3)
        self.assertEqual([rows[0][c] for c in ("timestamp_s", "power_w", "core_mhz", "mem_mhz", "temperature_c")],
                         ["1750000000.000000", "50.0", "1800", "5001", "60"])
        self.assertEqual(nvml.calls, [])

    def test_log_that_fails_is_an_error_of_the_command(self):
        def broken(_):
            raise FakeNvml.NVMLError(999)

        nvml = FakeNvml()
        nvml.nvmlDeviceGetPowerUsage = broken
        with self.assertRaisesRegex(IoError, "nvmlDeviceGetPowerUsage"):
            with trace.PowerLog(Gpu(nvml), self.csv, period_s=0.001):
                time.sleep(0.02)

    def test_record_writes_both_files_and_profiles_only_the_asked_steps(self):
        nvml, fake, ran = FakeNvml(), FakeTorch(), []
        stem = self.csv.with_name("step")
        with unittest.mock.patch.object(trace, "build_step", lambda *_: lambda: ran.append(fake.profiling)):
            written = trace.record(fake, Gpu(nvml), Shape(), stem, warm_up_steps=3, steps=2)
        self.assertEqual(ran, [False] * 3 + [True] * 2)
        self.assertEqual([path.name for path in written], ["step.json.gz", "step.power.csv"])
        self.assertTrue(all(path.exists() for path in written))
        self.assertEqual(nvml.calls, [])

    def test_dry_run_asks_neither_gpu_nor_torch(self):
        world = FakeWorld()
        world.nvml = world.torch = None
        self.assertEqual(main(["trace", "-o", str(self.csv), "--dry-run"], world), 0)
        self.assertIn("clocks are left alone", world.out.getvalue())

    def test_heads_must_divide_channels(self):
        world = FakeWorld()
        self.assertEqual(main(["trace", "-o", "x", "--heads", "3"], world), 2)
        self.assertIn("--channels 2048 is no multiple of --heads 3", world.log.getvalue())

    @unittest.skipUnless(HAS_TORCH, "torch 2 is not installed")
    def test_step_trains(self):
        small = Shape(layers=2, channels=32, heads=2, sequence=8, batch=2, vocabulary=50)
        step = trace.build_step(torch, small, "cpu")
        losses = [step().item() for _ in range(200)]
        self.assertLess(losses[-1], losses[0])


class Calibrate(Scratch):
    def test_rubato_reads_what_is_written(self):
        if not RUBATO:
            self.skipTest("no rubato program given")
        self.sweep(FakeWorld(), options=["--core", "600:1800:300", "--mem", "5001,9501", "--kernels", "02_*,11_gelu"])
        fitted = self.csv.with_name("fitted.json")
        done = subprocess.run([RUBATO, "calibrate", self.csv, "--gpu", "rtx-3080-ti", "--kernels-only",
                               "--no-validation", "-o", fitted], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = fitted.read_text(encoding="utf-8")
        self.assertIn("02_gemm_qkv", text)
        self.assertIn("11_gelu", text)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        RUBATO = sys.argv.pop(1)
    unittest.main()
