#!/usr/bin/env python3
"""What users wait for, as whole processes: CPU time, wall time and memory of two programs.

Usage: bench/waiting.py OLD NEW [--runs N] [--sweep] [--paper FOLDER SWEEP.csv] [--data FILE.csv] [--captures FILE ...]
OLD and NEW are programs, e.g. of two build folders; they run one after the other, N times each, and the medians
are printed. --sweep adds the sweep of 8,640 units (minutes for older programs), --paper the fit to published
numbers (spaan2026 and rtx3080ti_kernels/kernels.csv of models/data/measured), --data a table to calibrate from,
--captures plans for captured runs on an H100. Answers are shown where they can differ.
The row "nothing" is a process that does nothing: what --help takes beyond it is ours.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
from typing import NamedTuple

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


class Run(NamedTuple):
    cpu_s: float
    wall_s: float
    peak_mb: float
    printed: str


def measured(command: list[str]) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "sweep.toml").write_text(SWEEP)
        start = time.monotonic()
        with open(os.path.join(folder, "printed"), "w+", encoding="utf-8") as printed:
            process = subprocess.Popen(command, cwd=folder, stdout=printed, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                raise SystemExit(f"error: {' '.join(command)} ended with status {process.returncode}")
            wall_s = time.monotonic() - start
            printed.seek(0)
            return Run(usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss / 1024, printed.read())


def answer(run: Run) -> str:
    if not run.printed.startswith("{"):
        return ""
    plan = json.loads(run.printed)["plans"][-1]
    return f"{plan['energy_j']:.3f} J, gap {plan['gap_pct']:.4f} %"


def rows_of(options: argparse.Namespace) -> dict[str, list[str]]:
    rows = dict(ROWS)
    if options.paper:
        folder, sweep = map(os.path.abspath, options.paper)
        rows["calibrate, published"] = ["calibrate", folder, "--sweep", sweep, "-o", "fitted.json"]
    if options.data:
        rows["calibrate"] = ["calibrate", os.path.abspath(options.data), "--gpu", "rtx-3080-ti", "-o", "fitted.json"]
    for file in options.captures:
        rows[f"per kernel, {os.path.basename(file)}"[:34]] = [
            "explore", os.path.abspath(file), "--gpu", "h100-sxm5", "--granularity", "kernel", "--slack", "1", "--json"]
    if options.sweep:
        for threads in ("1", "2"):
            rows[f"8,640 units, {threads} threads"] = ["sweep", "run", "sweep.toml", "--db", "sweep.db", "--threads",
                                                       threads]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--paper", nargs=2, metavar=("FOLDER", "SWEEP"))
    parser.add_argument("--data", help="measured points, for calibrate --gpu rtx-3080-ti")
    parser.add_argument("--captures", nargs="*", default=[], metavar="FILE")
    options = parser.parse_args()
    programs = [os.path.abspath(options.old), os.path.abspath(options.new)]
    print(f"{'':34} {'CPU s old':>10} {'new':>8} {'ratio':>7} {'wall s old':>11} {'new':>8} {'MB old':>7} {'new':>5}  answers")
    commands = {name: [[program, *arguments] for program in programs] for name, arguments in rows_of(options).items()}
    commands["nothing"] = [["/bin/true"], ["/bin/true"]]
    for name, pair in commands.items():
        runs = [[measured(command) for command in pair] for _ in range(options.runs)]
        old, new = (Run(*(statistics.median(run[i][part] for run in runs) for part in range(3)), runs[0][i].printed)
                    for i in range(2))
        answers = f"{answer(old)} -> {answer(new)}" if answer(new) else ""
        print(f"{name:34} {old.cpu_s:10.3f} {new.cpu_s:8.3f} {old.cpu_s / new.cpu_s:7.1f} {old.wall_s:11.3f} "
              f"{new.wall_s:8.3f} {old.peak_mb:7.0f} {new.peak_mb:5.0f}  {answers}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
