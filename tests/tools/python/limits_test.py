#!/usr/bin/env python3
"""Power limits of plans: set once, and given back as they were found. guard_test.py kills their trainer."""

import time

from parts import OnMachine, TWO_PASSES, document, plan, run_tests, until

import rubato

SAFE = dict(guard=False)


class PowerLimits(OnMachine):
    def test_it_is_set_once_and_given_back(self):
        machine = self.machine()
        machine.limit(450, gpu=0)
        with rubato.Applier(document([dict(segments=TWO_PASSES)], limit_w=300), **SAFE) as applier:
            self.assertEqual(machine.read()["limit_w"], 300)
            sets = machine.read()["sets"]
            for _ in range(3):
                applier.mark("forward")
                time.sleep(0.01)
                applier.mark("backward")
                time.sleep(0.01)
                applier.step()
            machine.synchronize()
            self.assertEqual(machine.read()["limit_w"], 300)
            self.assertGreater(machine.read()["sets"], sets)  # clocks
        self.assertEqual(machine.read()["limit_w"], 450)
        self.assertEqual(applier.report().errors, [])

    def test_a_pause_gives_it_back(self):
        machine = self.machine()
        with rubato.Applier(document([dict(segments=TWO_PASSES)], limit_w=300), **SAFE) as applier:
            applier.pause()
            self.assertTrue(until(lambda: machine.read()["limit_w"] == 1000))
            applier.resume()
            applier.mark("forward")
            self.assertTrue(until(lambda: machine.read()["limit_w"] == 300))
        self.assertEqual(machine.read()["limit_w"], 1000)

    def test_plans_without_limits_leave_them_alone(self):
        machine = self.machine()
        with rubato.Applier(plan(), **SAFE):
            machine.limit(450)  # somebody else's
        self.assertEqual(machine.read()["limit_w"], 450)

    def test_a_limit_that_the_card_does_not_take(self):
        machine = self.machine()
        applier = rubato.Applier(document([dict(segments=TWO_PASSES)], limit_w=50), **SAFE)
        self.assertIn("nvidia-smi -q -d POWER lists what it takes", applier.close().errors[0])
        self.assertEqual((machine.read()["limit_w"], machine.read()["core_asked"]), (1000, 0))


if __name__ == "__main__":
    run_tests()
