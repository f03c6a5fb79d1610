#!/usr/bin/env python3
"""What `rubato doctor` says of machines that lack something, and application clocks where locked ones cannot be had."""

import io
import json
import os
import time
from contextlib import redirect_stdout
from unittest import mock

from parts import MEM_MHZ, OnMachine, WithProgram, plan, run_tests, until

import rubato
from rubato import doctor
from rubato.__main__ import main
from rubato.capture.plan import grid_pairs
from rubato.hardware import nvml
from rubato.hardware.backends import NvmlBackend, release
from rubato.hardware.guard import Guard

NO_RIGHTS = 4


class Doctor(WithProgram):
    def found(self, what, gpu=0):
        """(state, found, do) of one finding."""
        rows = [one for one in doctor.examine() if one.what == what and one.gpu in (gpu, None)]
        self.assertEqual(len(rows), 1, rows)
        return rows[0].state, rows[0].found, rows[0].do

    def status(self, *words):
        out = io.StringIO()
        with redirect_stdout(out):
            status = main(["doctor", *words])
        return status, out.getvalue()

    def user(self, admin=False):
        return mock.patch.object(doctor, "is_admin", lambda: admin)

    def test_no_driver(self):
        with mock.patch.object(nvml, "LIBRARY", "libno-such-nvml.so.1"):
            status, said = self.status()
        self.assertEqual(status, 1)
        self.assertIn("NVML is not there", said)
        self.assertIn("Plans can be made here", said)
        self.assertIn("ok    program", said)

    def test_root_on_an_a100_can_do_everything(self):
        self.machine(gpus=2)
        with self.user(admin=True):
            status, said = self.status()
            rows = json.loads(self.status("--json")[1])
        self.assertEqual(status, 0, said)
        self.assertIn("535.104.05, 2 GPUs", said)
        self.assertIn("GPU 1: NVIDIA A100-SXM4-80GB", said)
        self.assertIn("can be locked, 510 to 1410 MHz", said)
        self.assertEqual({row["gpu"] for row in rows}, {None, 0, 1})
        self.assertEqual({row["state"] for row in rows if row["gpu"] is not None}, {"ok"}, rows)

    def test_without_rights_it_says_every_way_there_is(self):
        machine = self.machine()
        with self.user():
            state, _, do = self.found("core clocks")
            self.assertEqual((state, self.status()[0]), ("no", 1))
            self.assertNotIn("-acp", do)  # this card has no application clocks
            machine.fail("acp", 1)
            self.assertIn("nvidia-smi -i 0 -acp 0", self.found("core clocks")[2])
            machine.fail("acp", 2)
            state, found, _ = self.found("core clocks")
            self.assertEqual(state, "ok")
            self.assertIn("application clocks, 510 to 1410 MHz", found)

    def test_before_volta_and_before_ampere(self):
        machine = self.machine(kernels={"gemm": {(mem, core): (0.01, 100.0) for mem in (405, 5001) for core in (810, 1410)}}, name="Tesla P40")
        machine.fail("acp", 1)
        for capability, admin, core, memory in ((61, True, "ok", "note"), (61, False, "no", "note"), (75, True, "ok", "note"), (80, True, "ok", "ok")):
            machine.fail("capability", capability)
            with self.user(admin), self.subTest(capability=capability, admin=admin):
                self.assertEqual((self.found("core clocks")[0], self.found("memory clocks")[0]), (core, memory))
                self.assertEqual("before Volta" in self.found("core clocks")[1], capability < 70 and admin)
                gpu = NvmlBackend().gpu(0)
                self.assertEqual({pair.mem_mhz for pair in grid_pairs(gpu)}, {405, 5001} if capability >= 80 else {"auto"})

    def test_what_else_sets_clocks(self):
        machine = self.machine()
        machine.limit(450)
        self.assertEqual(self.found("power limit")[0], "note")
        self.assertIn("nvidia-smi -i 0 -pl 1000", self.found("power limit")[2])
        machine.fail("acp", 2)
        NvmlBackend().nvml.nvmlDeviceSetApplicationsClocks(NvmlBackend().gpu(0).handle, MEM_MHZ, 900)
        self.assertIn("application clocks are memory 1593, core 900", self.found("sets clocks too")[1])
        NvmlBackend().nvml.nvmlDeviceResetApplicationsClocks(NvmlBackend().gpu(0).handle)
        with rubato.Applier(plan(), guard=False, strict=True):
            self.assertIn(f"process {os.getpid()}", self.found("sets clocks too")[1])
        self.assertEqual([one for one in doctor.examine() if one.what == "sets clocks too" and one.gpu == 0], [])

    def test_counters_that_lie(self):
        machine = self.machine(counter_step_s=1e6)  # stands still
        self.assertEqual(self.found("energy counter")[0], "note")
        machine.fail("no_counter", 1)
        self.assertIn("sampled power", self.found("energy counter")[2])

    def test_mig_and_a_lost_gpu(self):
        machine = self.machine(gpus=2)
        machine.fail("mig", 1)
        machine.fail("throttle", 0x20, gpu=1)
        self.assertEqual(self.found("MIG")[0], "no")
        self.assertIn("sw_thermal", self.found("held down", gpu=1)[1])
        machine.fail("lost_after_s", 0, gpu=1)
        status, said = self.status()
        self.assertEqual(status, 1)
        self.assertIn("GPU is lost", said)


class ApplicationClocks(OnMachine):
    """Where clocks cannot be locked, for lack of rights or of Volta."""

    def machine_of(self, rights):
        machine = self.machine()
        machine.fail("acp", 2)
        machine.fail(*(("refuse", NO_RIGHTS) if rights == "none" else ("no_lock", 1)))
        return machine

    def test_a_plan_is_played_by_them_and_they_are_given_back(self):
        for rights in ("none", "before Volta"):
            machine = self.machine_of(rights)
            with self.subTest(rights), rubato.Applier(plan(), guard=False, strict=True) as applier:
                self.assertEqual(machine.read()["applications"], (900, MEM_MHZ))
                self.assertTrue(until(lambda: machine.read()["core_mhz"] == 900))
                applier.mark("forward")
                applier.mark("backward")
                self.assertTrue(until(lambda: machine.read()["applications"] == (1305, MEM_MHZ)))
            self.assertEqual(machine.read()["applications"], (0, 0))
            self.assertEqual((machine.read()["core_asked"], applier.report().errors), (0, []))

    def test_guards_give_them_back(self):
        machine = self.machine_of("none")
        backend = NvmlBackend()
        backend.find_way(0)
        guard = Guard(backend, [0])
        backend.set_core(0, 900)
        guard.close(given_back=False)  # as after kill -9
        self.assertTrue(until(lambda: machine.read()["applications"] == (0, 0)))

    def test_for_root_only_they_are_no_way_out(self):
        machine = self.machine_of("none")
        machine.fail("acp", 1)
        with self.assertRaisesRegex(rubato.IoError, "nvmlDeviceSetGpuLockedClocks.*Insufficient Permissions"):
            rubato.Applier(plan(), guard=False, strict=True)
        self.assertEqual(machine.read()["applications"], (0, 0))

    def test_core_and_memory_go_together(self):
        machine = self.machine(kernels={"gemm": {(mem, core): (0.01, 100.0) for mem in (810, 1593) for core in (900, 1410)}})
        machine.fail("acp", 2)
        machine.fail("no_lock", 1)
        backend = NvmlBackend()
        backend.find_way(0)
        backend.set_core(0, 900)
        backend.set_mem(0, 810)
        self.assertEqual(machine.read()["applications"], (900, 810))
        backend.set_core(0, None)
        self.assertEqual(machine.read()["applications"], (1410, 810))  # the highest is the driver's choice
        self.assertEqual(release(backend, [0]), [])
        self.assertEqual(machine.read()["applications"], (0, 0))

    def test_locks_are_used_where_they_can_be(self):
        machine = self.machine()
        machine.fail("acp", 2)
        with rubato.Applier(plan(), guard=False, strict=True):
            self.assertEqual((machine.read()["core_asked"], machine.read()["applications"]), (900, (0, 0)))
        time.sleep(0.01)


if __name__ == "__main__":
    run_tests()
