"""Sweeps without a GPU: clocks are given back, errors told, measurements right, interrupted ones go on."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import unittest

from scratch import TOOLS, Scratch, rubato, run_tests  # before what it finds
from rubato.capture.cli import main
from rubato.hardware.gpu import AUTO, Clocks, Gpu
from rubato.capture.kernels import Shape, gpt_kernels
from rubato.capture.plan import IDLE
from rubato.capture.sweep import COLUMNS
from fakes import FakeNvml, FakeRunner, FakeWorld


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

    def test_entry_script_without_a_driver(self):
        script = TOOLS / "capture" / "capture"
        (self.csv.parent / "libnvidia-ml.so.1").write_bytes(b"no library")
        done = subprocess.run([sys.executable, "-B", script, "sweep", "-o", self.csv], capture_output=True, text=True,
                              env={**os.environ, "LD_LIBRARY_PATH": str(self.csv.parent)})
        self.assertEqual(done.returncode, 4)
        self.assertIn("hint: is the NVIDIA driver installed?", done.stderr)

    def test_dry_run_without_a_driver(self):
        """As many measurements as on a GPU with so many clocks: 2 idle ones of each memory clock, and every kernel at each pair."""
        (self.csv.parent / "libnvidia-ml.so.1").write_bytes(b"no library")
        for words, pairs, idle in (([], 12, 2), (["--core", "900,1200", "--mem", "5001,9251"], 4, 4), (["--core", "900"], 1, 1)):
            done = subprocess.run([sys.executable, "-B", TOOLS / "capture" / "capture", "sweep", "-o", self.csv, "--dry-run", "--kernels", "00_*,01_*",
                                   "--repeats", "2", *words], capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": str(self.csv.parent)})
            self.assertEqual(done.returncode, 0, done.stderr)
            tasks = 2 * (2 * pairs + idle)
            self.assertIn(f"{tasks} of {tasks} measurements", done.stdout)
            self.assertIn("none found; clocks are not checked", done.stdout)
        self.assertFalse(self.csv.exists())


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


class Calibrate(Scratch):
    def test_rubato_reads_what_is_written(self):
        self.sweep(FakeWorld(), options=["--core", "600:1800:300", "--mem", "5001,9501", "--kernels", "02_*,11_gelu"])
        fitted = self.csv.with_name("fitted.json")
        done = subprocess.run([rubato(self), "calibrate", self.csv, "--gpu", "rtx-3080-ti", "--kernels-only",
                               "--no-validation", "-o", fitted], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = fitted.read_text(encoding="utf-8")
        classes = {kernel["name"]: kernel["class"] for kernel in json.loads(text)["kernels"]["list"]}
        self.assertEqual((classes["02_gemm_qkv"], classes["11_gelu"]), ("gemm", "gelu"))

    def test_kernels_are_of_the_classes_that_the_shipped_spec_has(self):
        described = subprocess.run([rubato(self), "gpus", "rtx-3080-ti"], capture_output=True, text=True, check=True)
        shipped = {kernel["name"]: kernel["class"] for kernel in json.loads(described.stdout)["kernels"]["list"]}
        ours = {kernel.name: kernel.kind for kernel in gpt_kernels(Shape())}
        self.assertGreaterEqual(len(ours.keys() & shipped.keys()), 46)
        self.assertEqual({name: ours[name] for name in shipped}, shipped)


if __name__ == "__main__":
    run_tests()
