"""What the tests of the package share: the simulated machine, the rubato program, plans made by hand.

Usage: *_test.py LIBRARY [RUBATO] [unittest's arguments]; the library is the stand-in for libnvidia-ml.so.1.
"""

import contextlib
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

from simulated.machine import A100, CORE_MHZ, MEM_MHZ, ROOT, Machine  # noqa: E402,F401

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


def clock(core_mhz, mem_mhz=MEM_MHZ, limit_w=None):
    return {"label": f"{mem_mhz or 'auto'}/{core_mhz or 'auto'}", "core_mhz": core_mhz, "mem_mhz": mem_mhz, "power_limit_w": limit_w}


def segments_of(segments, cores):
    """From (pass, core MHz, seconds)."""
    return [{"pass": name, "microbatch": None, "chunk": None, "begins_pass": not before or before[0] != name, "clock": cores.index(core),
             "launches": 1, "time_s": time_s, "energy_j": 1.0, "first": None}
            for before, (name, core, time_s) in zip([None, *segments], segments)]


def plan_of(segments, granularity="pass", plan_id=1, slack=0.0, change=-0.1, clocks=(), because=None, role="answer", stages=None):
    """One plan from (pass, core MHz, seconds); with `stages` a list of such lists, one a pipeline stage."""
    total_s = sum(segment[2] for segment in segments)
    promise = dict(time_s=total_s, energy_j=100.0, time_change_pct=0.0, time_change_low_pct=-1, time_change_high_pct=1,
                   energy_change_pct=100 * change, energy_change_low_pct=100 * change - 2, energy_change_high_pct=100 * change + 2,
                   odds_in_time_pct=None, lower_bound_j=None, gap_pct=None, clock_changes=2)
    gpus = [{"label": "rank 0", "rank": 0, "device": 0, "stage": None, "segments": segments_of(segments, clocks)}] if stages is None else [
        {"label": f"stage {i}", "rank": None, "device": None, "stage": i, "segments": [{**one, "begins_pass": True} for one in segments_of(of, clocks)]}
        for i, of in enumerate(stages)]
    return {"role": role, "plan_id": plan_id, "granularity": granularity, "goal": "energy", "slack_pct": 100 * slack, "odds_pct": None,
            "applicable": because is None, "because": because, "comm_sms": None, "by_hand": None, "promise": promise, "gpus": gpus}


def document(plans, slower=(), title=A100, core_s=0.004, kernels=(), limit_w=None):
    """A plan file; `plans` are keyword arguments of plan_of without clocks."""
    cores = sorted({core for plan in (*plans, *slower) for of in (plan["segments"], *plan.get("stages", ())) for _, core, _ in of}, key=str)
    return {"format": "rubato-plan", "schema": 1, "program_version": "0.1.0", "created_utc": "2026-11-22T12:00:00Z",
            "run": {"kind": "trace", "run_id": 1, "work": "hand", "command": "", "gpus": 1, "default_time_s": 0.05, "default_energy_j": 110.0,
                    "host_power_w": 0.0},
            "gpu": {"spec": "a100-sxm4-80gb", "title": title, "default_clock": f"{MEM_MHZ}/auto", "power_limit_w": 500.0},
            "switching": {"source": "given", "note": None, "core": {"latency_s": core_s, "stall_s": 0.0, "energy_j": 0.0}, "mem": None,
                          "dwell_s": 0.0, "shortest_stretch_s": 2 * core_s},
            "clocks": [clock(core, limit_w=limit_w) for core in cores],
            "plans": [plan_of(clocks=cores, **plan) for plan in plans] + [plan_of(clocks=cores, role="slower", **plan) for plan in slower],
            "kernels": [{"gpu": 0, "pass": "forward", "name": name, "clock": 0, "launches": 1, "time_s": 0.01, "launched_as": None} for name in kernels]}


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
    with contextlib.suppress(PermissionError):
        os.nice(-10)  # tests play in real time: beside other work their threads would wake late
    played = unittest.main(exit=False).result
    for _ in range(2):
        if played.wasSuccessful() or os.getloadavg()[0] < os.cpu_count():
            break
        failed = sorted({getattr(test, "test_case", test).id() for test, _ in played.failures + played.errors})
        print("again, since the processors have other work:", *failed, file=sys.stderr)
        played = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromNames(failed))
    sys.exit(not played.wasSuccessful())
