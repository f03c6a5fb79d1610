"""What the tests of the package share: the simulated machine, the rubato program, plans made by hand.

Usage: *_test.py LIBRARY [RUBATO] [unittest's arguments]; the library is the stand-in for libnvidia-ml.so.1.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parent)]

from simulated.machine import A100, MEM_MHZ, ROOT, Machine  # noqa: E402,F401

_given = []


class OnMachine(unittest.TestCase):
    """Gives every test a folder and, by machine(), a simulated machine of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def machine(self, **options):
        return Machine(library(), self.folder, **options)


class WithProgram(OnMachine):
    """The package finds the rubato program that was built; `db` is where results go."""

    def setUp(self):
        super().setUp()
        patch = mock.patch.dict(os.environ, {"RUBATO": os.path.abspath(rubato(self))})
        patch.start()
        self.addCleanup(patch.stop)
        self.db = self.folder / "results.db"


def library():
    return _given[0]


def rubato(test):
    """The program given as argument; skips the test where there is none."""
    if len(_given) < 2:
        test.skipTest("no rubato program given")
    return _given[1]


def clock(core_mhz, mem_mhz=MEM_MHZ):
    return {"label": f"{mem_mhz or 'auto'}/{core_mhz or 'auto'}", "mem_mhz": mem_mhz, "core_mhz": core_mhz}


def plan_of(segments, granularity="pass", plan_id=1, slack=0.0, change=-0.1, clocks=(), because=None):
    """One plan from (pass, core MHz, seconds)."""
    total_s = sum(segment[2] for segment in segments)
    expected = dict(time_s=total_s, energy_j=100.0, time_change_frac=0.0, time_change_low_frac=-0.01, time_change_high_frac=0.01,
                    energy_change_frac=change, energy_change_low_frac=change - 0.02, energy_change_high_frac=change + 0.02,
                    lower_bound_j=None, gap_frac=None, clock_changes=2)
    return {"plan_id": plan_id, "granularity": granularity, "goal": "strict_waste" if slack == 0 else "relaxed_waste", "slack_frac": slack, "applicable": because is None, "because": because, "expected": expected,
            "devices": [{"rank": 0, "device": 0, "segments": [
                {"pass": name, "clock": clocks.index(core), "launches": 1, "time_s": time_s, "energy_j": 1.0}
                for name, core, time_s in segments]}]}


def document(plans, slower=(), title=A100, core_s=0.004, kernels=()):
    """A plan file; `plans` are keyword arguments of plan_of without clocks."""
    cores = sorted({core for plan in (*plans, *slower) for _, core, _ in plan["segments"]}, key=str)
    return {"format": "rubato-plan", "schema": 1, "program_version": "0.1.0", "created_utc": "2026-11-22T12:00:00Z",
            "source": {"kind": "trace", "run_id": 1, "name": "hand", "command": ""},
            "gpu": {"spec": "a100-sxm4-80gb", "title": title, "default_clock": f"{MEM_MHZ}/auto", "power_limit_w": 500.0},
            "switching": {"core_s": core_s, "mem_s": None, "core_stall_s": 0.0, "mem_stall_s": 0.0, "dwell_s": 0.0, "source": "hand"},
            "baseline": {"time_s": 0.05, "energy_j": 110.0}, "clocks": [clock(core) for core in cores],
            "plans": [plan_of(clocks=cores, **plan) for plan in plans],
            "slower": [plan_of(clocks=cores, **plan) for plan in slower],
            "kernels": [{"rank": 0, "device": 0, "pass": "forward", "name": name, "clock": 0, "launches": 1, "time_s": 0.01} for name in kernels]}


TWO_PASSES = [("forward", 900, 0.004), ("backward", 1305, 0.004)]  # no longer than the tests' own: else it is another run


def plan(**options):
    return document([dict(segments=TWO_PASSES, **options)])


def ranks(script, path, count=2):
    """What each rank of torch.distributed prints in JSON: `script`, given the package's folder and `path`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    running = [subprocess.Popen([sys.executable, "-B", "-c", script, str(ROOT / "tools" / "python"), str(path)], stdout=subprocess.PIPE, text=True,
                                env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count),
                                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}) for rank in range(count)]
    return [json.loads(process.communicate(timeout=60)[0]) for process in running]


def until(condition, seconds=20.0):
    """Waits for a condition; says whether it came."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.005)
    return condition()


def run_tests():
    while len(sys.argv) > 1 and len(_given) < 2 and Path(sys.argv[1]).exists():
        _given.append(sys.argv.pop(1))
    if not _given:
        print("skipped: no stand-in for libnvidia-ml.so.1 given")
        sys.exit(77)
    unittest.main()
