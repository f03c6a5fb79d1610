#!/usr/bin/env python3
"""One process at a time sets a GPU's clocks, and somebody is always there to give them back. kill -9 many times is guard_test.py."""

import contextlib
import io
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from unittest import mock

from parts import ROOT, OnMachine, plan, run_tests, until

import rubato
from rubato.__main__ import main
from rubato.errors import IoError
from rubato.hardware import guard, lock, nvml
from rubato.hardware.backends import DryBackend, NvmlBackend
from rubato.hardware.hold import Hold
from rubato.hardware.lock import lock_path

PLAY = textwrap.dedent("""
    import os, sys, time
    sys.path[:0] = [sys.argv[1]]
    import rubato
    applier = rubato.Applier(sys.argv[2], strict=True, guard=False)
    print("set", flush=True)
    time.sleep(60)
""")
SWEEP = textwrap.dedent("""
    import os, signal, sys
    sys.path[:0] = sys.argv[1:3]
    from rubato.capture.cli import World, main

    class Killed(World):
        def runner(self, gpu):
            print("set", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)  # before anything is unwound

    main([*sys.argv[4:], "-o", sys.argv[3]], Killed())
""")


class Held(OnMachine):
    def started(self, text, *arguments):
        process = subprocess.Popen([sys.executable, "-B", "-c", text, str(ROOT / "tools" / "python"), *map(str, arguments)],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "set\n")
        return process

    def player(self):
        path = self.folder / "plan.json"
        path.write_text(json.dumps(plan()), encoding="utf-8")
        return self.started(PLAY, path)

    def command(self, *words):
        """(exit status, what is said) of python3 -m rubato."""
        with contextlib.redirect_stderr(io.StringIO()) as said:
            return main(words), said.getvalue()


QUICKLY = mock.patch.object(lock, "HANDOVER_S", 0.05)  # how long a refusal waits


class OneAtATime(Held):
    @QUICKLY
    def test_the_second_says_who_is_first_and_leaves_the_clocks_alone(self):
        machine = self.machine()
        first = self.player()
        resets = machine.read()["resets"]
        who = rf"GPU 0\): its clocks are set by process {first.pid} \('.*python.*'\), since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
        with self.assertRaisesRegex(IoError, who):
            rubato.Applier(plan(), strict=True)
        with rubato.apply(plan()) as applier:  # training goes on
            applier.mark("forward")
        self.assertRegex(applier.report().errors[0], who)
        with self.assertRaisesRegex(IoError, who):
            rubato.measure_latency([900, 1410], repeats=1)
        for words in (["latency", "--core", "900,1410"], ["restore"], ["capture", "sweep", "-o", str(self.folder / "x.csv"), "--kernels", "02_*"]):
            status, said = self.command(*words)
            self.assertEqual(status, 4, words)
            self.assertRegex(said, who)
        self.assertEqual(machine.read()["core_asked"], 900)
        self.assertEqual(machine.read()["resets"], resets)

    @QUICKLY
    def test_within_one_process_too(self):
        self.machine()
        with rubato.Applier(plan(), strict=True, guard=False):
            with self.assertRaisesRegex(IoError, f"process {os.getpid()} "):
                rubato.Applier(plan(), strict=True, guard=False)
        rubato.Applier(plan(), strict=True, guard=False).close()  # given back

    @QUICKLY
    def test_each_gpu_has_its_own_lock(self):
        self.machine(gpus=3)
        with rubato.Applier(plan(), gpus=[0, 2], strict=True, guard=False):
            rubato.Applier(plan(), gpus=[1], strict=True, guard=False).close()
            with self.assertRaisesRegex(IoError, r"GPU 2\): its clocks are set by"):
                rubato.Applier(plan(), gpus=[1, 2], strict=True, guard=False)
            Hold(NvmlBackend(), [1], guard=False).close()  # which the refused one has let go
            with rubato.Applier(plan(), backend="dry", strict=True):
                pass  # sets nothing

    def test_a_fork_that_lives_on_does_not_keep_it(self):
        machine = self.machine()
        hold = Hold(NvmlBackend(), [0], guard=False)
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        hold.close()
        Hold(NvmlBackend(), [0], guard=False).close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.assertEqual(lock_path(machine.uuids[0]).read_bytes(), b"")

    def test_it_waits_for_the_guard_of_one_that_was_killed(self):
        machine = self.machine()
        path = self.folder / "plan.json"
        path.write_text(json.dumps(plan()), encoding="utf-8")
        self.started(PLAY.replace(", guard=False", ""), path).kill()
        with rubato.Applier(plan(), strict=True, guard=False) as applier:  # the guard's second reset comes AGAIN_S later
            time.sleep(2 * guard.AGAIN_S)
            self.assertEqual(machine.read()["core_asked"], 900)
        self.assertEqual(applier.report().errors, [])

    def test_what_one_left_that_died_without_a_guard_is_given_back(self):
        machine = self.machine()
        for command in (True, False):
            left = self.player()
            left.kill()
            left.wait()
            self.assertEqual(machine.read()["core_asked"], 900)
            with self.assertLogs("rubato", "WARNING") as logged:
                if command:
                    self.assertEqual(self.command("restore")[0], 0)
                else:
                    Hold(NvmlBackend(), [0], guard=False).close()
            self.assertIn(f"GPU 0: process {left.pid} ('", logged.output[0])
            self.assertEqual(machine.read()["core_asked"], 0)
        with self.assertNoLogs("rubato", "WARNING"):  # told once
            Hold(NvmlBackend(), [0], guard=False).close()

    def test_what_cannot_be_given_back_is_an_error_and_stays_for_the_next(self):
        machine = self.machine()
        left = self.player()
        left.kill()
        left.wait()
        machine.fail("refuse_reset", 999)
        for _ in (1, 2):
            with self.assertRaisesRegex(IoError, "Unknown Error"), self.assertLogs("rubato", "WARNING"):
                Hold(NvmlBackend(), [0], guard=False)
        machine.fail("refuse_reset", 0)
        with self.assertLogs("rubato", "WARNING"):
            Hold(NvmlBackend(), [0], guard=False).close()
        self.assertEqual(machine.read()["core_asked"], 0)


class Files(OnMachine):
    """The lock's file lies where every user may put something in its place."""

    def test_every_user_may_lock_it_whatever_the_umask(self):
        path = lock_path(self.machine().uuids[0])
        before = os.umask(0o077)
        try:
            Hold(NvmlBackend(), [0], guard=False).close()
        finally:
            os.umask(before)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o666)
        self.assertEqual(path.parent.stat().st_mode & 0o1777, 0o1777)

    def test_no_link_is_followed(self):
        path, precious = lock_path(self.machine().uuids[0]), self.folder / "precious"
        precious.write_text("precious")
        for put in (lambda: path.symlink_to(precious), lambda: os.mkfifo(path), path.mkdir):
            put()
            with self.assertRaisesRegex(IoError, str(path)):
                Hold(NvmlBackend(), [0], guard=False)
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        with mock.patch("rubato.hardware.lock.SHARED_FOLDERS", [str(self.folder)]):
            self.folder.chmod(0o1777)
            os.link(precious, lock_path("GPU-linked"))
            with self.assertRaisesRegex(IoError, "a plain file with one name"), mock.patch.object(NvmlBackend, "lock_name", lambda *_: "GPU-linked"):
                Hold(NvmlBackend(), [0], guard=False)
        self.assertEqual(precious.read_text(), "precious")

    def test_what_stands_in_it_may_be_anything(self):
        path = lock_path(self.machine().uuids[0])
        for text in ("{", "[]", '{"pid": "\\u001b[2J", "command": 7}', "x" * 10000):
            path.write_text(text)
            with contextlib.suppress(AssertionError), self.assertLogs("rubato", "WARNING") as logged:
                Hold(NvmlBackend(), [0], guard=False).close()
            self.assertNotIn("\x1b", "".join(logged.output))
            self.assertEqual(path.read_bytes(), b"")

    def test_a_machine_without_a_folder_for_it(self):
        self.machine()
        with mock.patch("rubato.hardware.lock.SHARED_FOLDERS", [str(self.folder)]), self.assertRaisesRegex(IoError, "every user may make files"):
            Hold(NvmlBackend(), [0], guard=False)


class Guards(Held):
    def test_a_dead_one_is_replaced(self):
        machine = self.machine()
        with rubato.Applier(plan(), strict=True) as applier:
            applier.mark("forward")
            for kill in (1, 2):
                before = applier._hold.guards
                with self.assertLogs("rubato", "WARNING"):
                    for pid in before[:kill]:
                        os.kill(pid, signal.SIGKILL)
                    self.assertTrue(until(lambda: len(set(applier._hold.guards) - set(before)) == kill))
            self.assertEqual(machine.read()["core_asked"], 900)  # and the plan goes on
        self.assertEqual(machine.read()["core_asked"], 0)

    def kill_all(self, pids):
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def test_where_none_can_be_started_the_clocks_are_given_back(self):
        machine = self.machine()
        with rubato.Applier(plan(), strict=True) as applier, self.assertLogs("rubato"):
            applier.mark("forward")
            with mock.patch.object(sys, "executable", "/nowhere/python3"):
                self.kill_all(applier._hold.guards)
                self.assertTrue(until(lambda: machine.read()["core_asked"] == 0))
            applier.mark("backward")
            time.sleep(0.1)
            self.assertEqual(machine.read()["core_asked"], 0)
        self.assertIn("no other can be started: /nowhere/python3: No such file or directory", applier.report().errors[0])

    def test_a_single_one_is_enough_until_another_can_be_started(self):
        machine = self.machine()
        with rubato.Applier(plan(), strict=True) as applier, self.assertLogs("rubato"), mock.patch.object(guard, "MISSING_S", 0.05):
            first, second = applier._hold.guards
            with mock.patch.object(sys, "executable", "/nowhere/python3"):
                os.kill(first, signal.SIGKILL)
                self.assertTrue(until(lambda: applier._hold.guards == [second]))
            self.assertTrue(until(lambda: len(applier._hold.guards) == 2))
            self.assertEqual(machine.read()["core_asked"], 900)

    def test_a_measurement_without_guards_ends(self):
        machine = self.machine()
        hold = Hold(NvmlBackend(), [0])
        NvmlBackend().set_core(0, 900)
        with mock.patch.object(sys, "executable", "/nowhere/python3"), self.assertLogs("rubato", "ERROR") as logged:
            self.kill_all(hold.guards)
            self.assertTrue(until(lambda: machine.read()["core_asked"] == 0))
            self.assertTrue(until(lambda: logged.records))
        with self.assertRaisesRegex(IoError, "no other can be started"):
            hold.check()
        hold.close()

    def test_a_sweep_that_is_killed(self):
        machine = self.machine()
        for command in (["sweep", "--kernels", "02_*"], ["stages", "--stages", "2"]):
            sweep = self.started(SWEEP, ROOT / "tools" / "python", self.folder / f"{command[0]}.csv", *command)
            sweep.wait()
            self.assertEqual(sweep.returncode, -signal.SIGKILL)
            self.assertGreater(machine.read()["sets"], 0)
            self.assertTrue(until(lambda: machine.read()["core_asked"] == 0 and machine.read()["mem_asked"] == 0))


class Driver(OnMachine):
    def test_no_variable_of_the_environment_swaps_its_library(self):
        self.machine()
        self.assertEqual([name for name in vars(nvml) if "VARIABLE" in name], [])
        with mock.patch.dict(os.environ, {"RUBATO_NVML": "no-such-library.so"}):
            self.assertEqual(NvmlBackend().nvml.nvmlDeviceGetCount(), 1)
        self.assertIsNone(DryBackend().lock_name(0))


if __name__ == "__main__":
    run_tests()
