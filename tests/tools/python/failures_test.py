#!/usr/bin/env python3
"""Plans that cannot be applied, wholly or for a while: one clear error, clocks given back, training never stopped."""

import json
import os
import time
from unittest import mock

from parts import OnMachine, TWO_PASSES, document, plan, run_tests, until

import rubato
from rubato import devices, held_clocks
from rubato.hardware import nvml
from rubato.hardware.backends import NvmlBackend, release
from rubato.errors import DataError, IoError, UsageError
from rubato.hardware.guard import Guard

SAFE = dict(guard=False)


class Failures(OnMachine):
    def apply_quietly(self, machine, **options):
        """A whole run with a plan that cannot be applied: training must not notice."""
        with rubato.apply(options.pop("plan", plan()), **{**SAFE, **options}) as applier:
            for _ in range(3):
                applier.mark("forward")
                applier.mark("backward")
                applier.step()
                time.sleep(0.01)
        return applier.report()

    def refused(self, expected, error=IoError, **options):
        with self.assertRaisesRegex(error, expected):
            rubato.Applier(options.pop("plan", plan()), strict=True, **{**SAFE, **options})

    def test_no_rights(self):
        machine = self.machine()
        machine.fail("refuse", 4)
        self.refused("Insufficient Permissions")
        report = self.apply_quietly(machine)
        self.assertIn("needs root, or zeusd", report.errors[0])
        self.assertEqual(report.requests, 0)

    def test_mig(self):
        self.machine().fail("mig", 1)
        self.refused("MIG is on")

    def test_another_process(self):
        machine = self.machine()
        machine.fail("other_pid", os.getppid())
        self.refused(f"process {os.getppid()} computes on it too")
        with rubato.Applier(plan(), strict=True, shared_gpu=True, **SAFE):
            pass

    def test_refused_clocks_are_told_with_the_clock(self):
        self.machine().fail("refuse", 2)
        self.refused(r"nvmlDeviceSetGpuLockedClocks\(900, 900\): Invalid Argument")

    def test_plan_for_another_gpu(self):
        machine = self.machine(name="NVIDIA H100 80GB HBM3")
        self.refused("the plan is for NVIDIA A100-SXM4-80GB; GPU 0 is NVIDIA H100 80GB HBM3", UsageError)
        with rubato.Applier(plan(), strict=True, any_gpu=True, **SAFE):
            pass
        self.assertEqual(machine.read()["sets"], 1)

    def test_refused_in_the_middle_gives_back_once_and_goes_quiet(self):
        machine = self.machine()
        with rubato.Applier(plan(), **SAFE) as applier:
            applier.mark("forward")
            self.assertTrue(until(lambda: machine.read()["core_asked"] == 900))
            machine.fail("refuse", 999)
            for _ in range(5):
                applier.mark("backward")
                applier.mark("forward")
                time.sleep(0.01)
            self.assertTrue(until(lambda: machine.read()["core_asked"] == 0))
        self.assertEqual(len(applier.report().errors), 1)

    def test_device_lost_in_mid_step(self):
        machine = self.machine()
        with rubato.Applier(plan(), **SAFE) as applier:
            applier.mark("forward")
            time.sleep(0.02)
            machine.fail("lost_after_s", 0)
            for _ in range(5):
                applier.mark("backward")
                applier.step()
                applier.mark("forward")
                time.sleep(0.01)
        self.assertIn("GPU is lost", applier.report().errors[0])

    def test_clocks_changed_by_somebody_else_are_noticed_and_set_again(self):
        machine = self.machine()
        with mock.patch.object(held_clocks, "READ_BACK_S", 0.05), rubato.Applier(plan(), **SAFE) as applier:
            applier.mark("forward")
            time.sleep(0.1)
            NvmlBackend().set_core(0, None)  # somebody else
            time.sleep(0.05)
            for _ in range(20):
                applier.mark("forward")
                time.sleep(0.01)
            self.assertEqual(machine.read()["core_asked"], 900)
        self.assertGreaterEqual(applier.report().foreign_clocks, 1)

    def test_lower_clocks_are_somebody_elses_where_the_gpu_names_no_reason(self):
        for reason, found in ((0, True), (0x4, False), (0x1, False)):  # none; power limit; idle
            with self.subTest(reason=reason):
                machine = self.machine()
                machine.fail("throttle", reason)
                with mock.patch.object(held_clocks, "READ_BACK_S", 0.02), rubato.Applier(plan(), **SAFE) as applier:
                    applier.mark("forward")
                    time.sleep(0.05)
                    NvmlBackend().set_core(0, 510)
                    for _ in range(20):
                        applier.mark("forward")
                        time.sleep(0.01)
                    self.assertEqual(machine.read()["core_asked"], 900 if found else 510)
                self.assertEqual(applier.report().foreign_clocks > 0, found)
                self.assertEqual("runs at 510 MHz and was set to 900 MHz" in str(applier.report()), found)

    def test_bad_plan_files(self):
        path = self.folder / "plan.json"
        cases = {"": "is not JSON", "[]": "is no plan file", json.dumps({**plan(), "schema": 9}): "has schema 9",
                 json.dumps({**plan(), "clocks": []}): "the plan is damaged", json.dumps({**plan(), "plans": []}): "holds no plan"}
        for text, expected in cases.items():
            path.write_text(text, encoding="utf-8")
            with self.assertRaisesRegex(DataError, f"plan.json: {expected}"):
                rubato.Applier(path)
        with self.assertRaisesRegex(IoError, "none.json: No such file"):
            rubato.Applier(self.folder / "none.json")

    def test_plan_older_than_the_models_kernels(self):
        found = rubato.match_launches(document([dict(segments=TWO_PASSES)], kernels=["gemm_a"]),
                                      [("gemm_a", 0.75), ("gemm_new", 0.25), ("gemm_a", 1.0)])
        self.assertEqual((found.launches, found.unmatched_launches, found.unmatched_names), (3, 1, ("gemm_new",)))
        self.assertAlmostEqual(found.applied_time_frac, 1.75 / 2.0)

    def test_launches_of_another_shape_are_not_the_plans(self):
        file = document([dict(segments=TWO_PASSES)], kernels=["gemm"])
        file["kernels"][0]["launched_as"] = {"name": "void gemm<4>()", "grid": [8, 1, 1], "block": [256, 1, 1]}
        block = (256, 1, 1)
        found = rubato.match_launches(file, [("void gemm<4>()", 1.0, ((8, 1, 1), block)), ("void gemm<4>()", 2.0, ((16, 1, 1), block)),
                                             ("void gemm<4>()", 4.0), ("gemm", 8.0)])
        self.assertEqual((found.launches, found.unmatched_launches), (4, 2))
        self.assertAlmostEqual(found.unmatched_time_s, 10.0)

    def test_what_cannot_start_is_no_error_of_training(self):
        self.machine(gpus=2)
        for environment, expected in (({"CUDA_VISIBLE_DEVICES": "MIG-1234"}, "apply plans to whole GPUs only"), ({"LOCAL_RANK": "7"}, "there is no GPU 7"),
                                      ({"CUDA_VISIBLE_DEVICES": "GPU-none"}, "CUDA_VISIBLE_DEVICES names GPU GPU-none: Not Found"),
                                      ({"CUDA_VISIBLE_DEVICES": "0,1", "LOCAL_RANK": "2"}, "names 2 GPUs"), ({"RANK": "first"}, "RANK is 'first'")):
            with self.subTest(environment=environment), mock.patch.dict(os.environ, environment):
                self.assertIn(expected, self.apply_quietly(None).errors[0])
        for options in (dict(latency_s=-1.0), dict(backend=object())):
            self.assertEqual(len(self.apply_quietly(None, **options).errors), 1)
    def test_ranks_of_launchers(self):
        self.machine(gpus=4)
        for environment, expected in (({}, (0, 0, None)), ({"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "SLURM_PROCID": "0"}, (5, 1, 8)),
                                      ({"SLURM_PROCID": "7", "SLURM_LOCALID": "3", "SLURM_STEP_NUM_TASKS": "8", "CUDA_VISIBLE_DEVICES": "3,2,1,0"}, (7, 0, 8)),
                                      ({"SLURM_PROCID": "7", "SLURM_LOCALID": "3", "CUDA_VISIBLE_DEVICES": "2"}, (7, 2, None)),  # srun --gpus-per-task=1
                                      ({"OMPI_COMM_WORLD_RANK": "6", "OMPI_COMM_WORLD_LOCAL_RANK": "2", "OMPI_COMM_WORLD_SIZE": "8"}, (6, 2, 8))):
            with self.subTest(environment=environment), mock.patch.dict(os.environ, environment):
                self.assertEqual((devices.rank_of("RANK"), devices.local_gpu(), devices.count_of("WORLD_SIZE")), expected)

    def test_a_dry_run_needs_no_gpu(self):
        with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "0", "LOCAL_RANK": "3"}):
            rubato.Applier(plan(), backend="dry", strict=True, **SAFE).close()

    def test_a_gpu_that_is_lost_before(self):
        machine = self.machine(gpus=2)
        machine.fail("lost_after_s", 0)
        self.refused("GPU 0: GPU is lost")
        NvmlBackend().set_core(1, 900)
        self.assertEqual([str(error) for error in release(NvmlBackend(), [0, 1])], ["GPU 0: GPU is lost"] * 2)
        self.assertEqual(machine.read(1)["core_asked"], 0)  # the other is given back all the same

    def test_a_guard_that_finds_no_gpu_does_not_start(self):
        self.machine()
        with self.assertRaisesRegex(IoError, "the guard process does not start"):
            Guard(NvmlBackend(), [0, 1])

    def test_an_event_that_fails_is_asked_once(self):
        class Event:
            queries = 0

            def query(self):
                Event.queries += 1
                raise OSError("an illegal memory access was encountered")

        def no_event():
            raise OSError("an illegal memory access was encountered")

        for event in (Event, no_event):
            machine = self.machine()
            with rubato.Applier(plan(), event=event, **SAFE) as applier:
                applier.mark("forward")
                self.assertTrue(until(lambda: applier.report().errors))
                for name in ("backward", "forward"):
                    applier.mark(name)
                applier.step()
                self.assertTrue(until(lambda: applier.report().steps == 1))  # goes on counting, at the host's time
                self.assertEqual(machine.read()["core_asked"], 0)
            self.assertIn("illegal memory access", applier.report().errors[0])
            self.assertEqual(applier.report().planned_time_s, 0.0)
        self.assertEqual(Event.queries, 1)

    def test_no_driver(self):
        with mock.patch.object(nvml, "LIBRARY", "no-such-library.so"):
            self.refused("NVML is not there")


if __name__ == "__main__":
    run_tests()
