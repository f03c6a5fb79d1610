#!/usr/bin/env python3
"""capture -> calibrate -> explore -> apply -> measure -> verify on a simulated GPU whose kernels follow the model.

The machine knows times and powers at every clock; Rubato sees only what a user would: a sweep, a profile, an energy counter.
"""

import json

from parts import WithProgram, run_tests
from workload import CLOCKS, FORWARD, BACKWARD, POWER_LIMIT_W, SweptWorld, Training, model_kernels

import rubato
from rubato.capture.cli import main as capture
from rubato.errors import RubatoError


class EndToEnd(WithProgram):
    def setUp(self):
        super().setUp()
        self.kernels = model_kernels(self.folder)

    def idle_w(self):
        return {clock: 64.0 + 0.01 * clock[1] for clock in next(iter(self.kernels.values()))}

    def calibrated_spec(self):
        """A sweep in virtual time, and the spec fitted to it."""
        sweep, spec = self.folder / "sweep.csv", self.folder / "mine.json"
        machine = self.machine(kernels=self.kernels, idle_w=self.idle_w(), virtual=True, jitter_s=0.0)
        world = SweptWorld(machine)
        status = capture(["sweep", "-o", str(sweep), "--kernels", ",".join(FORWARD + BACKWARD), "--core-count", "7", "--repeats", "1",
                          "--warm-up", "0.1", "--window", "0.5"], world)
        self.assertEqual(status, 0, world.log.getvalue())
        self.assertEqual(machine.read()["core_asked"], 0)
        # The sweep repeats exactly. At the usual error of 1 % the prior on split and bytes pulls the fit 0.5 points off in energy.
        rubato.run("calibrate", sweep, "--gpu", "a100-sxm4-80gb", "--kernels-only", "--sigma", "0.003", "--no-validation", "-o", spec)
        return spec

    def captured(self, training):
        """Two profiled steps at the default clocks, as the PyTorch profiler writes them."""
        path = self.folder / "step.pt.trace.json.gz"
        training.step()
        training.launches, training.passes = [], []
        for _ in range(2):
            training.step()
        training.machine.synchronize()
        training.machine.write_kineto(path, training.launches, training.passes)
        return path

    def measured(self, training, plan, name, **options):
        with rubato.Applier(plan, guard=False, event=training.machine.event, latency_s=0.003, strict=True, **options) as applier:
            training.applier = applier
            found = rubato.measure(training.step, applier, pairs=5, steps=8, settle_steps=2, synchronize=training.machine.synchronize)
            training.applier = None
        found.write_csv(self.folder / name)
        return found, applier.report()

    def verify(self, plan, name):
        text = rubato.run("verify", "--plan", plan, "--measured", self.folder / name, "--db", self.db, "--json")
        return {row["quantity"]: row for row in json.loads(text)}

    def test_the_verified_saving_is_the_promised_one(self):
        spec = self.calibrated_spec()
        machine = self.machine(kernels=self.kernels, idle_w=self.idle_w(), core_latency_s=0.002, jitter_s=0.0003, call_s=0.0005)
        training = Training(machine)
        rubato.explore(self.captured(training), gpu=spec, captured_clock="1593/1410", clocks=CLOCKS, slack=10, power_limit=POWER_LIMIT_W,
                       per=["pass", "run"], switching="latency=2ms", db=self.db)
        plan = self.folder / "plan.json"
        rubato.run("export", "--plan", "latest", "--db", self.db, "--per", "pass", "--gpu", spec, "-o", plan)
        promised = rubato.load_plan(plan).chosen.promise
        self.assertLess(promised.energy_change_pct, -5)  # else there is nothing to verify
        # Kernels fitted at several clocks leave no split open; what is left are other fits to the same points and the error of the model.
        self.assertLess(promised.energy_change_low_pct, promised.energy_change_pct - 0.2)
        self.assertGreater(promised.energy_change_high_pct, promised.energy_change_pct + 0.2)
        # 12.12 points wide (-32.58 to -20.46 %); sweep and capture repeat exactly, so that a tenth more is another method.
        self.assertLess(promised.energy_change_high_pct - promised.energy_change_low_pct, 13.3)

        # Kernels take exact times, requests the host's real ones: beside 13 other processes the energy was 0.59 points off with 19 of 104
        # requests late, 0.62 with at most 10, 0.04 with 8. Where other work keeps the applier's thread waiting, the plan is not what is measured.
        for attempt in range(6):
            found, report = self.measured(training, plan, "ab.csv")
            rows = self.verify(plan, "ab.csv")
            print(f"promised energy {promised.energy_change_pct:+.2f} % ({promised.energy_change_low_pct:+.2f} to "
                  f"{promised.energy_change_high_pct:+.2f}), time {promised.time_change_pct:+.2f} %; measured {found}; {report}")
            # Repeats differ by hundredths of a point, less than changes of clock that come a moment early or late: a verdict on
            # time would be one on the machine that runs the test.
            off_pct = max(abs(row["measured_pct"] - row["promised_pct"]) for row in rows.values())
            if off_pct < 0.5:
                break
        setting, reading = found.calls
        self.assertLess(reading.median_s, 0.0005)
        self.assertTrue(0.0005 <= setting.median_s <= setting.p99_s, setting)  # what the simulated call takes
        self.assertEqual(setting.calls, report.requests)
        self.assertRegex(str(found), r"set a clock 0\.[5-9]\d\d ms \(99 %: [\d.]+ ms, \d+ calls\), to read energy 0\.0")
        self.assertEqual(report.granularity, "pass")
        self.assertEqual(machine.read()["core_asked"], 0)
        self.assertEqual(rows["energy"]["verdict"], "kept", rows)
        self.assertLess(off_pct, 0.5, rows)
        self.assertAlmostEqual(rows["energy"]["measured_pct"], 100 * found.energy_change_frac, places=9)  # both worked it out
        self.assertAlmostEqual(rows["energy"]["measured_low_pct"], 100 * found.energy_change_low_frac, places=9)

        with self.subTest("a plan that is not set saves nothing, and that shows"):
            self.measured(training, plan, "dry.csv", backend="dry")
            with self.assertRaisesRegex(RubatoError, ""):
                rubato.run("verify", "--plan", plan, "--measured", self.folder / "dry.csv", ok=[0])
            self.assertEqual(self.verify(plan, "dry.csv")["energy"]["verdict"], "missed")
        with rubato.Results(self.db) as results:
            self.assertEqual([(row["energy_verdict"], row["plan_id"]) for row in results.verified][-2:],
                             [("kept", report.plan_id), ("missed", report.plan_id)])
        self.assertIn("Measured savings beside the promised ones", rubato.run("show", "1", "--db", self.db))
        rubato.run("report", "--run", "1", "--db", self.db, "-o", self.folder / "page.html")
        self.assertRegex((self.folder / "page.html").read_text(encoding="utf-8"), '"verifications":.*"missed"')


if __name__ == "__main__":
    run_tests()
