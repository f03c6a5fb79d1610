#!/usr/bin/env python3
"""kill -9 of the trainer, of its guards, and of both, at random moments: clocks and power limits are given back, every time.

Usage: guard_test.py LIBRARY TRIES [nvml | zeusd]; so many tries of each of WAYS
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

from parts import TWO_PASSES, Machine, document, until
from simulated.machine import ROOT
from simulated.zeusd import ZeusdProcess

TRAINER = textwrap.dedent("""
    import os, sys, time
    sys.path[:0] = [sys.argv[1]]
    import rubato
    applier = rubato.Applier(sys.argv[2], gpus=[int(sys.argv[3])], backend=sys.argv[4], strict=True, latency_s=0.002)
    if os.fork() == 0:  # a data loader's worker that outlives the trainer and holds its pipes
        time.sleep(1.0)
        os._exit(0)
    guards = []
    while True:
        if set(applier._hold.guards) != set(guards):  # of these all are ready
            guards = applier._hold.guards
            print(*guards, flush=True)
        for name in ("forward", "backward"):
            applier.mark(name)
            time.sleep(0.006)
        applier.step()
""")
AT_ONCE = 4  # GPUs of the machine, each with a trainer
LIMIT_W, FOUND_W = 300, 450  # of the plan, and as somebody had set it before
NEAR_S = 0.004  # between two kills that are meant to meet


class Trainer:
    def __init__(self, plan, gpu, backend):
        self.gpu, self.replaced_s = gpu, 0.0
        self.process = subprocess.Popen([sys.executable, "-B", "-c", TRAINER, str(ROOT / "tools" / "python"), plan, str(gpu), backend],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)

    def read_guards(self):
        self.guards = [int(word) for word in self.process.stdout.readline().split()]
        assert len(self.guards) == 2, self.guards

    def kill(self):
        self.process.kill()

    def kill_guard(self, which=0):
        os.kill(self.guards[which], signal.SIGKILL)

    def kill_guards_and_wait(self):
        for which in (0, 1):
            self.kill_guard(which)
        killed, killed_s = set(self.guards), time.monotonic()
        while set(self.guards) & killed:
            self.read_guards()
        self.replaced_s = time.monotonic() - killed_s

    def end(self):
        self.process.wait()
        self.process.stdout.close()


def trainer_alone(trainer, pause):
    trainer.kill()


def guard_first(trainer, pause):
    trainer.kill_guard(random.randrange(2))
    pause()
    trainer.kill()


def trainer_first(trainer, pause):
    trainer.kill()
    pause()
    trainer.kill_guard(random.randrange(2))


def all_guards_first(trainer, pause):
    trainer.kill_guards_and_wait()
    trainer.kill()


def all_at_once(trainer, pause):
    """Nobody is left to give the clocks back: the next who takes the GPU does."""
    os.kill(trainer.process.pid, signal.SIGSTOP)  # so that it replaces none
    for which in (0, 1):
        trainer.kill_guard(which)
    trainer.kill()
    trainer.process.wait()
    done = subprocess.run([sys.executable, "-B", "-m", "rubato", "restore", "--gpu", str(trainer.gpu)], cwd=ROOT / "tools" / "python",
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and f"process {trainer.process.pid}" in done.stderr and "was killed" in done.stderr, done.stderr


WAYS = {"the trainer alone": trainer_alone, "a guard, then the trainer": guard_first, "the trainer, then a guard": trainer_first,
        "both guards, then the trainer": all_guards_first, "all of them; then restore": all_at_once}


def main():
    library, tries = sys.argv[1], int(sys.argv[2])
    backend = sys.argv[3] if len(sys.argv) > 3 else "nvml"
    random.seed(tries)
    good = True
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        machine = Machine(library, folder, gpus=AT_ONCE)
        for gpu in range(AT_ONCE):
            machine.limit(FOUND_W, gpu)
        os.environ["ZEUSD_SOCK_PATH"] = os.path.join(folder, "zeusd.sock")
        if backend == "zeusd":
            stack.enter_context(ZeusdProcess(os.environ["ZEUSD_SOCK_PATH"]))
        plan = os.path.join(folder, "plan.json")
        with open(plan, "w", encoding="utf-8") as file:
            json.dump(document([dict(segments=TWO_PASSES)], limit_w=LIMIT_W), file)
        for name, way in WAYS.items():
            restored, slowest_s, replaced_s = kill(machine, plan, backend, way, tries)
            good &= restored == tries
            print(f"kill -9 of {name}: clocks and power limits given back through {backend} in {restored} of {tries}, at most {1e3 * slowest_s:.0f} ms later"
                  + (f"; guards replaced within {1e3 * replaced_s:.0f} ms" if replaced_s else ""), flush=True)
    return 0 if good else 1


def given_back(machine, gpu):
    found = machine.read(gpu)
    return found["core_asked"] == 0 and found["limit_w"] == FOUND_W


def kill(machine, plan, backend, way, tries):
    """How often the clocks came back, the longest time from the trainer's death until then, and until guards were replaced, s."""
    restored, slowest_s, replaced_s = 0, 0.0, 0.0
    for first in range(0, tries, AT_ONCE):
        gpus = range(min(AT_ONCE, tries - first))
        trainers = [Trainer(plan, gpu, backend) for gpu in gpus]  # takes the GPU of one that was killed just before
        for trainer in trainers:
            trainer.read_guards()
        for trainer in trainers:
            time.sleep(random.uniform(0.0, 0.03))
            was_set = until(lambda: machine.read(trainer.gpu)["core_asked"] != 0 and machine.read(trainer.gpu)["limit_w"] == LIMIT_W, 2.0)
            way(trainer, lambda: time.sleep(random.uniform(0.0, NEAR_S)))
            killed_s = time.monotonic()
            trainer.end()
            back = until(lambda: given_back(machine, trainer.gpu))
            slowest_s = max(slowest_s, time.monotonic() - killed_s)
            replaced_s = max(replaced_s, trainer.replaced_s)
            restored += was_set and back
        time.sleep(0.3)  # the guards' second reset, and nothing after it
        restored -= sum(not given_back(machine, gpu) for gpu in gpus)
    return restored, slowest_s, replaced_s


if __name__ == "__main__":
    sys.exit(main())
