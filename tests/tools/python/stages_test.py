#!/usr/bin/env python3
"""Plans of pipelines: which stage a rank plays, microbatch by microbatch, and the wait between steps."""

import os
import time
from unittest import mock

from parts import OnMachine, TWO_PASSES, document, run_tests, until

import rubato
from rubato.errors import UsageError
from rubato.hardware.backends import DryBackend
from rubato.plan_file import load_plan
from rubato.schedule import Score, Timing, passes_of

SAFE = dict(guard=False)
STAGES = [[("forward", 900, 0.004), ("forward", 1110, 0.004), ("backward", 1305, 0.008)], [("forward", 705, 0.004), ("backward", 1410, 0.008)]]


def pipeline(**options):
    return document([dict(segments=TWO_PASSES, stages=STAGES, granularity="pass")], **options)


class Stages(OnMachine):
    """A rank plays the part of its pipeline stage, microbatch by microbatch."""

    def first_core(self, environment=None, **options):
        backend = DryBackend()
        with mock.patch.dict(os.environ, environment or {}), rubato.Applier(pipeline(), backend=backend, gpus=[0], strict=True, **options, **SAFE):
            return next(mhz for _, kind, mhz in backend.requests if kind == "core")

    def test_the_stage_is_the_one_given_or_follows_from_the_rank(self):
        self.assertEqual([self.first_core(stage=stage) for stage in (0, 1)], [900, 705])
        self.assertEqual([self.first_core({"RANK": str(rank), "WORLD_SIZE": "8"}) for rank in range(8)], [900] * 4 + [705] * 4)
        self.assertEqual([self.first_core({"RANK": str(rank)}) for rank in range(2)], [900, 705])  # without WORLD_SIZE one GPU a stage
        self.assertEqual(self.first_core({"RANK": "7", "WORLD_SIZE": "8"}, stage=0), 900)
        for environment, options, expected in (({"RANK": "1", "WORLD_SIZE": "3"}, {}, "3 ranks are no whole number for each of 2 stages"),
                                               ({"RANK": "4"}, {}, "no stage 4; it has 0, 1"), ({}, {"stage": 2}, "no stage 2"),
                                               ({"WORLD_SIZE": "x"}, {}, "WORLD_SIZE is 'x'")):
            with self.subTest(expected), self.assertRaisesRegex(UsageError, expected):
                self.first_core(environment, **options)

    def test_a_rank_that_the_plan_does_not_have_is_refused(self):
        file = pipeline()
        for gpu in file["plans"][0]["gpus"]:
            gpu.update(stage=None, rank=gpu["stage"])
        with mock.patch.dict(os.environ, {"RANK": "5"}), self.assertRaisesRegex(UsageError, "no rank 5; it has 0, 1"):
            rubato.Applier(file, backend="dry", gpus=[0], strict=True, **SAFE)

    def test_one_process_does_not_play_several_gpus(self):
        file = pipeline()
        for gpu in file["plans"][0]["gpus"]:
            gpu.update(stage=None, rank=0, device=gpu["stage"])
        with self.assertRaisesRegex(UsageError, "rank 0 has 2 GPUs with clocks of their own"):
            rubato.Applier(file, backend="dry", gpus=[0], strict=True, **SAFE)
        for gpu in file["plans"][0]["gpus"]:
            gpu["segments"] = file["plans"][0]["gpus"][0]["segments"]
        rubato.Applier(file, backend="dry", gpus=[0, 1], strict=True, **SAFE).close()

    def test_each_microbatch_has_its_clock(self):
        machine = self.machine()
        with rubato.Applier(pipeline(), stage=0, **SAFE) as applier:
            asked = []
            for name in ("forward", "forward", "backward"):
                applier.mark(name)
                time.sleep(0.05)
                asked.append(machine.read()["core_asked"])
            applier.step()
        self.assertEqual(asked, [900, 1110, 1305])
        self.assertEqual(applier.report().errors, [])

    def test_the_framework_may_say_the_stage_later(self):
        machine = self.machine()
        with rubato.Applier(pipeline(), **SAFE) as applier:
            self.assertEqual(machine.read()["core_asked"], 900)
            applier.set_stage(1)
            applier.mark("forward")
            self.assertTrue(until(lambda: machine.read()["core_asked"] == 705))

    def test_a_profile_that_names_no_gpu_needs_a_word(self):
        self.machine()
        file = {**pipeline(), "gpu": None}
        with self.assertRaisesRegex(UsageError, "does not say its GPU"):
            rubato.Applier(file, strict=True, **SAFE)
        self.assertEqual(rubato.Applier(file, strict=True, any_gpu=True, **SAFE).close().errors, [])

    def test_the_wait_between_steps_is_learned(self):
        """A stage waits for others there: what comes after the wait is not asked for before it."""
        timing = Timing()
        passes = passes_of(load_plan(pipeline()).chosen.gpu(stage=0))
        at_s = 0.0
        for _ in range(40):
            for name, lasts_s in (("forward", 0.004), ("forward", 0.004), ("backward", 0.008)):
                timing.mark(name, at_s)
                at_s += lasts_s
            timing.step(at_s)
            at_s += 0.1
        begin_s = at_s - 0.1 - 0.008
        timing.mark("forward", at_s)
        timing.mark("forward", at_s + 0.004)
        timing.mark("backward", begin_s := at_s + 0.008)
        due = {clock.core_mhz: when_s - begin_s for when_s, clock, later in Score(passes).requests(timing, begin_s, 0.006) if later}
        self.assertEqual(set(due), {900, 1110})
        self.assertAlmostEqual(due[900], 0.008 + 0.1 - 0.006, places=9)
        self.assertAlmostEqual(due[1110], 0.008 + 0.1 + 0.004 - 0.006, places=9)


if __name__ == "__main__":
    run_tests()
