"""What is measured and in which order, and how: plans, kernels, runs in PyTorch, recorded steps."""

import json
import subprocess
import time
import unittest
import unittest.mock

from scratch import HAS_TORCH, Scratch, rubato, run_tests, torch  # before what it finds
from rubato.capture import plan, trace
from rubato.capture.cli import main
from rubato.errors import DataError, IoError, UsageError
from rubato.hardware.gpu import AUTO, Gpu
from rubato.capture.kernels import Kernel, Shape, choose, gpt_kernels
from rubato.capture.plan import IDLE, Pair
from rubato.capture.runner import BATCH_S, KernelDoesNotFit, TorchRunner
from fakes import FakeNvml, FakeTorch, FakeWorld


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
        shown = subprocess.run([rubato(self), "trace", "show", "gpt3-xl", "--json"], capture_output=True, text=True, check=True)
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
        return Kernel("k", 1.0, 1.0, lambda torch, device: fake.launch, "gemm", **more)

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
        self.assertEqual([rows[0][c] for c in ("timestamp_s", "power_w", "power_instant_w", "core_mhz", "mem_mhz", "temperature_c")],
                         ["1750000000.000000", "50.0", "51.0", "1800", "5001", "60"])
        self.assertEqual(nvml.calls, [])

    def test_power_of_the_moment_is_left_empty_where_there_is_none(self):
        def missing(*_):
            raise FakeNvml.NVMLError(FakeNvml.NVML_ERROR_FUNCTION_NOT_FOUND)

        for break_it in (lambda nvml: setattr(nvml, "instant", False), lambda nvml: setattr(nvml, "nvmlDeviceGetFieldValues", missing)):
            nvml = FakeNvml()
            break_it(nvml)
            self.assertIsNone(Gpu(nvml).power_instant_w())

    def test_readings_that_took_too_long_are_not_dated(self):
        ticks = iter(range(10**6))
        with trace.PowerLog(Gpu(FakeNvml()), self.csv, period_s=0.001, clock=lambda: 1.75e9 + next(ticks)):  # 2 s for each line
            time.sleep(0.02)
        self.assertEqual(self.rows(), [])

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
        with open(written[1], encoding="utf-8") as log:
            times = [float(line.split(",")[0]) for line in log.readlines()[1:]]
        self.assertGreater(times[-1] - times[0], 0.9 * trace.TAIL_S)  # the steps take no time
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


if __name__ == "__main__":
    run_tests()
