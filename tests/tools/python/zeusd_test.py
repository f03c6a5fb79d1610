#!/usr/bin/env python3
"""Clocks through zeusd's socket: refusals, a daemon that dies or is started again, clocks given back in any case."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from unittest import mock

from parts import ROOT, OnMachine, plan, run_tests, until

import rubato
from rubato import applier as applier_module
from rubato.hardware import backends
from rubato.hardware.backends import ZeusdBackend, open_backend
from rubato.errors import IoError, UsageError
from simulated.zeusd import Zeusd, ZeusdProcess


class Calls(OnMachine):
    def setUp(self):
        super().setUp()
        self.socket = self.folder / "zeusd.sock"

    def test_a_plan_is_played_and_given_back_by_the_guard_too(self):
        machine = self.machine()
        with mock.patch.dict(os.environ, {"ZEUSD_SOCK_PATH": str(self.socket)}), Zeusd(self.socket) as daemon:
            applier = rubato.Applier(plan(), backend="zeusd", strict=True)
            applier.mark("backward")
            self.assertTrue(until(lambda: machine.read()["core_mhz"] == 1305))
            applier.close()
            self.assertEqual(machine.read()["core_asked"], 0)
            self.assertEqual(daemon.calls[:2], ["/gpu/set_gpu_locked_clocks"] * 2)

    def test_refusals(self):
        machine = self.machine()
        with Zeusd(self.socket) as daemon:
            backend = ZeusdBackend(str(self.socket))
            machine.fail("refuse", 2)
            with self.assertRaisesRegex(IoError, "GPU 0: .*Invalid Argument"):
                backend.set_core(0, 900)
            machine.fail("refuse", 0)
            daemon.token = "secret"
            with self.assertRaisesRegex(IoError, "401"):
                backend.set_core(0, 900)
            ZeusdBackend(str(self.socket), token="secret").set_core(0, 900)
            self.assertEqual(machine.read()["core_asked"], 900)
            daemon.token, daemon.groups = None, False
            with self.assertRaises(IoError) as caught:
                backend.set_core(0, 900)
            self.assertIn("group of calls", caught.exception.hint)

    def test_no_daemon(self):
        with self.assertRaises(IoError) as caught:
            ZeusdBackend(str(self.folder / "none.sock"))
        self.assertIn("is zeusd running?", caught.exception.hint)
        with self.assertRaisesRegex(UsageError, "backend is 'dcgm'; expected auto, nvml, zeusd, dry"):
            open_backend("dcgm")

    def test_mig_and_other_processes_are_found(self):
        machine = self.machine()
        with Zeusd(self.socket):
            for what, value, expected in (("mig", 1, "MIG is on"), ("other_pid", os.getppid(), "computes on it too")):
                machine.fail(what, value)
                with self.assertRaisesRegex(IoError, expected):
                    rubato.Applier(plan(), backend=ZeusdBackend(str(self.socket)), strict=True)
                machine.fail(what, 0)


class Restarts(OnMachine):
    """zeusd as a process, killed as kill -9 does: what it set stays set."""

    def setUp(self):
        super().setUp()
        self.socket = self.folder / "zeusd.sock"
        self.simulated = self.machine()
        self.daemon = ZeusdProcess(self.socket)
        self.daemon.start()
        self.addCleanup(self.daemon.__exit__)

    def core_asked(self):
        return self.simulated.read()["core_asked"]

    def play_until(self, applier, condition):
        """Steps of 2 x 5 ms, until the condition holds or 20 s have passed."""
        def step():
            for name in ("forward", "backward"):
                applier.mark(name)
                time.sleep(0.005)
            applier.step()
            return condition()

        return until(step, 20.0)

    def test_the_plan_goes_on_when_zeusd_is_back(self):
        with mock.patch.object(applier_module, "AWAY_S", 0.05), \
             rubato.Applier(plan(), backend=ZeusdBackend(str(self.socket)), latency_s=0.001, guard=False) as applier:
            self.assertTrue(self.play_until(applier, lambda: self.core_asked() == 1305))
            self.daemon.kill()
            self.assertTrue(self.play_until(applier, lambda: applier.report().interruptions == 1))
            left_s, steps = applier.report().planned_time_s, applier.report().steps
            self.assertTrue(self.play_until(applier, lambda: applier.report().steps > steps + 3))
            self.assertEqual(applier.report().planned_time_s, left_s)
            requests = applier.report().requests
            self.daemon.start()
            self.assertTrue(self.play_until(applier, lambda: applier.report().requests > requests + 4))
            self.assertIn(self.core_asked(), (900, 1305))
        self.assertEqual(self.core_asked(), 0)
        self.assertEqual(applier.report().interruptions, 1)
        self.assertIn("1 times zeusd could not be reached", str(applier.report()))

    def test_clocks_are_given_back_before_the_plan_goes_on(self):
        with mock.patch.object(applier_module, "AWAY_S", 0.05), \
             rubato.Applier(plan(), backend=ZeusdBackend(str(self.socket)), latency_s=0.001, guard=False) as applier:
            applier.mark("forward")
            self.assertTrue(until(lambda: self.core_asked() == 900))
            self.daemon.kill()
            applier.pause()  # training waits, in validation say
            self.assertTrue(until(lambda: applier.report().errors))
            self.assertEqual(self.core_asked(), 900)
            self.daemon.start()
            self.assertTrue(until(lambda: self.core_asked() == 0))

    def test_training_that_ends_without_zeusd_leaves_the_clocks_to_the_guard(self):
        applier = rubato.Applier(plan(), backend=ZeusdBackend(str(self.socket)))
        applier.mark("forward")
        self.assertTrue(until(lambda: self.core_asked() == 900))
        self.daemon.kill()
        report = applier.close()
        self.assertIn("clocks may still be locked", report.errors[0])
        self.assertEqual(self.core_asked(), 900)
        self.daemon.start()
        self.assertTrue(until(lambda: self.core_asked() == 0))

    def test_a_daemon_that_hangs_is_asked_once_and_the_guard_goes_on(self):
        self.daemon.kill()
        self.simulated = self.machine(gpus=2)
        self.daemon.start()
        asked = []
        request = backends._UnixConnection.request

        def counted(connection, *arguments, **named):
            asked.append(arguments)
            request(connection, *arguments, **named)

        with mock.patch.object(backends, "ANSWER_S", 0.2):
            applier = rubato.Applier(plan(), gpus=[0, 1], backend=ZeusdBackend(str(self.socket)))
            applier.mark("forward")
            self.assertTrue(until(lambda: self.simulated.read(1)["core_asked"] == 900))
            self.daemon.process.send_signal(signal.SIGSTOP)
            guards = [guard.process for guard in applier._hold._guard._guards]
            with mock.patch.object(backends._UnixConnection, "request", counted):
                report = applier.close()
        self.assertEqual(len(asked), 1, asked)  # neither again, nor for memory, nor for the other GPU
        self.assertIn("timed out", report.errors[0])
        self.daemon.process.send_signal(signal.SIGCONT)
        self.assertTrue(until(lambda: [self.simulated.read(gpu)["core_asked"] for gpu in (0, 1)] == [0, 0]))
        self.assertTrue(until(lambda: all(guard.poll() is not None for guard in guards)))

    def test_trainer_and_zeusd_killed_in_either_order(self):
        trainer_text = textwrap.dedent("""
            import sys, time
            sys.path[:0] = [sys.argv[1]]
            import rubato
            from rubato.hardware.backends import ZeusdBackend
            applier = rubato.Applier(sys.argv[2], backend=ZeusdBackend(sys.argv[3]), strict=True)
            applier.mark("forward")
            print("ready", flush=True)
            time.sleep(60)
        """)
        path = self.folder / "plan.json"
        path.write_text(json.dumps(plan()), encoding="utf-8")
        for first in ("zeusd", "trainer"):
            with self.subTest(first=first):
                trainer = subprocess.Popen([sys.executable, "-B", "-c", trainer_text, str(ROOT / "tools" / "python"), str(path), str(self.socket)],
                                           stdout=subprocess.PIPE, text=True)
                self.assertEqual(trainer.stdout.readline(), "ready\n")
                self.assertTrue(until(lambda: self.core_asked() == 900))
                kills = [self.daemon.kill, lambda: trainer.send_signal(signal.SIGKILL)]
                for kill in kills if first == "zeusd" else kills[::-1]:
                    kill()
                trainer.wait()
                trainer.stdout.close()
                time.sleep(0.1)
                self.daemon.start()
                self.assertTrue(until(lambda: self.core_asked() == 0))


if __name__ == "__main__":
    run_tests()
