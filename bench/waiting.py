#!/usr/bin/env python3
"""What users wait for, as whole processes: CPU and wall time of two programs, one after the other.

Usage: bench/waiting.py OLD NEW [--sweep] [--data FILE.csv]
OLD and NEW are programs, e.g. of two build folders. --sweep adds the sweep of 8,640 units (minutes for
older programs), --data a table to calibrate from. Answers are shown where they can get better.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import subprocess
import tempfile
import time

SWITCHED = ["explore", "gpt3-xl", "--granularity", "auto", "--json"]
ROWS = {
    "6 ms ahead, 66 clocks": [*SWITCHED, "--switch-latency-us", "6000"],
    "6 ms ahead, 763 clocks": [*SWITCHED, "--switch-latency-us", "6000", "--clocks", "full"],
    "A100, 82 clocks": [*SWITCHED, "--gpu", "a100-sxm4-80gb", "--switching", "spec", "--clocks", "full"],
    "A100, 82 clocks, 2 % slack": [*SWITCHED, "--gpu", "a100-sxm4-80gb", "--switching", "spec", "--clocks", "full",
                                   "--slack", "2"],
    "memory apart, 763 clocks": [*SWITCHED, "--switch-latency-us", "1000", "--mem-switch-latency-us", "6000",
                                 "--clocks", "full"],
    "sweep-latency": ["sweep-latency", "gpt3-xl", "--plot", "latency.svg"],
    "--help": ["--help"],
}
SWEEP = """schema = 1
name = 'waiting'
[axes]
gpu = ['rtx-3080-ti', 'a100-sxm4-80gb', 'a40', 'rtx-8000', 'rtx-pro-6000']
model = ['gpt3-xl', 'gpt3-medium']
batch = [1, 2, 4, 8, 16, 32]
sequence = [1024, 2048]
tensor_parallel = [1, 2, 4, 8]
clocks = 'full'
granularity = ['iteration', 'pass', 'kernel']
slack_pct = [0, 1, 2, 5, 10, 20]
"""


def measured(command: list[str], folder: str) -> tuple[float, float, str]:
    """CPU time, wall time, and what was printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wall = time.monotonic() - start
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall, done.stdout


def answer(printed: str) -> str:
    if not printed.startswith("{"):
        return ""
    plan = json.loads(printed)["plans"][-1]
    return f"{plan['energy_j']:.3f} J, gap {plan['gap_pct']:.4f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--data", help="measured points, for calibrate --gpu rtx-3080-ti")
    options = parser.parse_args()
    programs = [os.path.abspath(options.old), os.path.abspath(options.new)]
    rows = dict(ROWS)
    if options.data:
        rows["calibrate"] = ["calibrate", os.path.abspath(options.data), "--gpu", "rtx-3080-ti", "-o", "fitted.json"]
    if options.sweep:
        for threads in ("1", "2"):
            rows[f"8,640 units, {threads} threads"] = ["sweep", "run", "sweep.toml", "--db", "sweep.db", "--threads",
                                                       threads]
    print(f"{'':28} {'CPU s old':>10} {'new':>8} {'ratio':>7} {'wall s old':>11} {'new':>8}  answers")
    for name, arguments in rows.items():
        results = []
        for program in programs:
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "sweep.toml").write_text(SWEEP)
                results.append(measured([program, *arguments], folder))
        (old_s, old_wall, old), (new_s, new_wall, new) = results
        print(f"{name:28} {old_s:10.3f} {new_s:8.3f} {old_s / new_s:7.1f} {old_wall:11.3f} {new_wall:8.3f}  "
              f"{answer(old)} -> {answer(new)}" if answer(new) else
              f"{name:28} {old_s:10.3f} {new_s:8.3f} {old_s / new_s:7.1f} {old_wall:11.3f} {new_wall:8.3f}",
              flush=True)


if __name__ == "__main__":
    main()
