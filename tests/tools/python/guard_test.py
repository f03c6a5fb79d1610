#!/usr/bin/env python3
"""kill -9 of the trainer at a random moment: the guard gives the clocks back, every time.

Usage: guard_test.py LIBRARY TRIES [nvml | zeusd]
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
    print("ready", flush=True)
    while True:
        for name in ("forward", "backward"):
            applier.mark(name)
            time.sleep(0.006)
        applier.step()
""")
AT_ONCE = 4  # GPUs of the machine, each with a trainer


def main():
    library, tries = sys.argv[1], int(sys.argv[2])
    backend = sys.argv[3] if len(sys.argv) > 3 else "nvml"
    rng = random.Random(tries)
    restored, slowest_s = 0, 0.0
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        machine = Machine(library, folder, gpus=AT_ONCE)
        os.environ["ZEUSD_SOCK_PATH"] = os.path.join(folder, "zeusd.sock")
        if backend == "zeusd":
            stack.enter_context(ZeusdProcess(os.environ["ZEUSD_SOCK_PATH"]))
        plan = os.path.join(folder, "plan.json")
        with open(plan, "w", encoding="utf-8") as file:
            json.dump(document([dict(segments=[(name, core, 0.02) for name, core, _ in TWO_PASSES])]), file)
        for first in range(0, tries, AT_ONCE):
            gpus = range(min(AT_ONCE, tries - first))
            trainers = [subprocess.Popen([sys.executable, "-B", "-c", TRAINER, str(ROOT / "tools" / "python"), plan, str(gpu), backend],
                                         stdout=subprocess.PIPE, text=True, start_new_session=True) for gpu in gpus]
            for trainer in trainers:
                assert trainer.stdout.readline() == "ready\n"
            for gpu, trainer in zip(gpus, trainers):
                time.sleep(rng.uniform(0.0, 0.03))
                was_set = until(lambda: machine.read(gpu)["core_asked"] != 0, 2.0)
                os.kill(trainer.pid, signal.SIGKILL)
                killed_s = time.monotonic()
                trainer.wait()
                back = until(lambda: machine.read(gpu)["core_asked"] == 0)
                slowest_s = max(slowest_s, time.monotonic() - killed_s)
                restored += was_set and back
            time.sleep(0.3)  # the guards' second reset, and nothing after it
            restored -= sum(machine.read(gpu)["core_asked"] != 0 for gpu in gpus)
            for trainer in trainers:
                trainer.stdout.close()
    print(f"clocks given back through {backend} after kill -9: {restored} of {tries}, at most {1e3 * slowest_s:.0f} ms later")
    return 0 if restored == tries else 1


if __name__ == "__main__":
    sys.exit(main())
