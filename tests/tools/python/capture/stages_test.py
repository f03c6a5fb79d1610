"""Pipeline stages without a GPU: passes over clocks, what is written, and a plan made from it."""

import csv
import json
import subprocess
import unittest

from scratch import HAS_TORCH, Scratch, rubato, run_tests, torch  # before what it finds
from rubato.capture import stages
from rubato.capture.cli import main
from rubato.capture.gpt import layers_of
from rubato.capture.kernels import Shape
from rubato.errors import DataError
from fakes import FakeNvml, FakeRunner, FakeWorld

WORK = {"forward": 1e8, "backward": 2e8, "optimizer": 2e7, stages.WAITING: 1e6}


def cycles(name):
    """Later stages take longer; what a pass takes is known."""
    parts = name.split()
    return WORK[parts[-1]] * (1 + 0.1 * int(parts[1]) if len(parts) > 1 else 1)


class Stages(Scratch):
    def world(self, on_run=lambda _: None, too_large=(), **nvml):
        fake = FakeNvml(**nvml)
        return FakeWorld(fake, FakeRunner(fake, on_run, too_large, cycles))

    def measure(self, world, *more, core="600,1200,1800"):
        return main(["stages", "-o", str(self.csv), "--stages", "3", "--core", core, "--repeats", "2", *more], world)

    def test_writes_passes_at_every_clock(self):
        world = self.world()
        self.assertEqual(self.measure(world), 0)
        with open(self.csv, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), ["stage", "instruction", "frequency", "time", "energy"])
        self.assertEqual([(r["stage"], r["instruction"], r["frequency"]) for r in rows],
                         [(str(s), i, str(f)) for s in range(3) for i in stages.PASSES for f in (1800, 1200, 600)])
        for row in rows:
            mhz = int(row["frequency"])
            time_s = cycles(f"stage {row['stage']} {row['instruction']}") * 1e-6 / mhz
            self.assertAlmostEqual(float(row["time"]), time_s)
            self.assertAlmostEqual(float(row["energy"]) / (time_s * (50 + mhz / 10)), 1, places=2)
        self.assertFalse(world.fake.touched)
        self.assertIn("nvmlDeviceResetGpuLockedClocks", world.fake.calls)

    def test_waiting_is_measured_at_every_clock(self):
        world = self.world()
        self.measure(world)
        profile = stages.profile_of(stages.measurements_of(self.csv), 3)
        self.assertAlmostEqual(profile.blocked_w, 50 + 120, places=0)
        self.assertAlmostEqual(profile.blocked_range_w[0], 50 + 60, places=0)
        self.assertAlmostEqual(profile.blocked_range_w[1], 50 + 180, places=0)

    def test_rubato_plans_from_it(self):
        world = self.world()
        self.measure(world, core="600:1800:150")
        command = world.out.getvalue().splitlines()[-1].removeprefix("next: rubato ").split()
        done = subprocess.run([rubato(self), *command, "--slack", "5", "--per", "pass", "--list", "segments", "--json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        tables = json.loads(done.stdout)
        base, plan = tables["plans"]
        # Six microbatches through three stages at 1800 MHz: the last stage is the slowest, its optimizer ends the step.
        forward_s, backward_s, optimizer_s = (cycles(f"stage 2 {i}") * 1e-6 / 1800 for i in stages.PASSES)
        ahead_s = sum(cycles(f"stage {s} {i}") * 1e-6 / 1800 for s in (0, 1) for i in ("forward", "backward"))
        self.assertAlmostEqual(base["time_s"], ahead_s + 6 * (forward_s + backward_s) + optimizer_s, places=6)
        self.assertLess(plan["energy_change_pct"], -3)
        self.assertLessEqual(plan["time_s"], base["time_s"] * 1.05 * (1 + 1e-9))
        self.assertTrue({row["core_mhz"] for row in tables["segments"]} <= set(range(600, 1801, 150)))

    def test_dry_run_touches_nothing(self):
        world = self.world()
        world.runner = None
        self.assertEqual(self.measure(world, "--dry-run"), 0)
        # Two repeats of ten things (nine passes, waiting) at three clocks, and idle at the lowest and the highest.
        self.assertIn("64 of 64 measurements to do", world.out.getvalue())
        self.assertIn("stage 2 backward", world.out.getvalue())
        self.assertEqual(world.fake.calls, [])
        self.assertEqual(list(self.csv.parent.iterdir()), [])

    def test_interrupted_and_resumed_it_ends_the_same(self):
        self.measure(self.world())
        whole = self.csv.read_text(encoding="utf-8")
        self.csv.unlink()
        stages.measurements_of(self.csv).unlink()

        def stop(count):
            if count == 31:
                raise KeyboardInterrupt

        self.assertEqual(self.measure(self.world(stop)), 130)
        self.assertFalse(self.csv.exists())
        with self.assertRaisesRegex(DataError, "no measurement of stage"):
            stages.profile_of(stages.measurements_of(self.csv), 3)
        self.assertEqual(self.measure(self.world()), 2)  # not without --resume
        self.assertEqual(self.measure(self.world(), "--resume"), 0)
        again = [line.rsplit(",", 1)[0] for line in self.csv.read_text(encoding="utf-8").splitlines()]
        self.assertEqual(again, [line.rsplit(",", 1)[0] for line in whole.splitlines()])  # but for readings of energy

    def test_another_run_is_neither_mixed_in_nor_overwritten(self):
        self.assertEqual(self.measure(self.world()), 0)
        whole = self.csv.read_text(encoding="utf-8")
        for more in (["--batch", "8"], ["--layers", "30"], ["--sequence", "512"]):
            world = self.world()
            self.assertEqual(self.measure(world, "--resume", *more), 2)
            self.assertIn("--resume needs the same stages and shape", world.log.getvalue())
        stages.measurements_of(self.csv).unlink()
        world = self.world()
        self.assertEqual(self.measure(world), 2)
        self.assertIn("is there already", world.log.getvalue())
        self.assertEqual(self.csv.read_text(encoding="utf-8"), whole)

    def test_a_pass_too_large_leaves_no_profile(self):
        world = self.world(too_large={"stage 1 backward"})
        self.assertEqual(self.measure(world), 3)
        self.assertIn("no measurement of stage 1 backward at 1800 MHz", world.log.getvalue())
        self.assertIn("smaller --batch", world.log.getvalue())
        self.assertFalse(self.csv.exists())

    def test_throttling_is_told(self):
        world = self.world(cap_core_mhz=1500)
        self.assertEqual(self.measure(world), 0)
        self.assertIn("note: stage 0 forward at 1800 MHz was held back", world.log.getvalue())
        self.assertNotIn("at 1200 MHz was held back", world.log.getvalue())

    def test_refusals(self):
        for options, status, message in ((["--layers", "2"], 2, "--stages is 3 for 2 layers; expected 1 to 2"),
                                         (["--mem", "5001,9501"], 2, "expected one memory clock")):
            world = self.world()
            self.assertEqual(self.measure(world, *options), status)
            self.assertIn(message, world.log.getvalue())
        world = self.world(rights=False)
        self.assertEqual(self.measure(world), 4)
        self.assertFalse(stages.measurements_of(self.csv).exists())

    def test_layers_are_shared_out_whole(self):
        shape = Shape(layers=26)
        self.assertEqual([layers_of(shape, 4, s) for s in range(4)], [6, 7, 6, 7])
        self.assertEqual(sum(layers_of(shape, 7, s) for s in range(7)), 26)

    @unittest.skipUnless(HAS_TORCH, "torch 2 is not installed")
    def test_passes_run_in_pytorch(self):
        shape = Shape(layers=3, channels=32, heads=2, sequence=8, batch=2, vocabulary=50)
        for kernel in stages.StagePasses(shape, 2).kernels()[:-1]:
            with self.subTest(kernel=kernel.name):
                call = kernel.build(torch, "cpu")
                call()
                call()


if __name__ == "__main__":
    run_tests()
