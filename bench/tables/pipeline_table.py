#!/usr/bin/env python3
"""The table of docs/pipeline.md: plans of every shipped profile for many deadlines, how far they are from the bound, whether
a later deadline is ever dearer, and how long a deadline takes.

Usage: pipeline_table.py RUBATO [DEADLINES] [OTHER_RUBATO]

With a second program both are run in turn, and the last columns are its gaps and the ratio of the times.
"""
import json
import subprocess
import sys
import time
from pathlib import Path

RUBATO = sys.argv[1]
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 100
OTHER = sys.argv[3] if len(sys.argv) > 3 else None
EXAMPLES = Path(__file__).resolve().parent.parent.parent / "docs" / "examples"
PROFILES = [("gpt3-175b-a100", 83.64), ("gpt3-175b-a40", 70.38), ("bloom-176b-a100", 83.64), ("bloom-176b-a40", 70.38)]
SHAPES = [("0,1,6,7", 4), ("", 12), ("", 24), ("", 96)]


def run(program, command, *options):
    started = time.monotonic()
    done = subprocess.run([program, "pipeline", command, *options, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout), time.monotonic() - started


def measure(program, common, deadlines):
    listed, took = run(program, "plan", *common, "--deadline", ",".join(map(repr, deadlines)))
    plans = listed["plans"][1:]
    gaps = [plan["gap_pct"] for plan in plans]
    cheapest, dearer = float("inf"), 0
    for plan in plans:  # deadlines rise
        dearer += plan["energy_j"] > cheapest
        cheapest = min(cheapest, plan["energy_j"])
    late = sum(plan["time_s"] > plan["deadline_s"] for plan in plans)
    return max(gaps), sum(gaps) / len(gaps), dearer, late, took


print("| Profile | Pipeline | Worst gap % | Mean gap % | Dearer than an earlier one | Late | s for all |"
      + (" before: worst % | mean % | dearer | time, now over before |" if OTHER else ""))
print("| --- | --- | --- | --- | --- | --- | --- |" + (" --- | --- | --- | --- |" if OTHER else ""))
for name, blocked in PROFILES:
    for stage_map, microbatches in SHAPES:
        common = ["--profile", str(EXAMPLES / f"{name}.csv"), "--blocked-power", str(blocked), "--microbatches", str(microbatches)]
        common += ["--stage-map", stage_map] if stage_map else []
        front, _ = run(RUBATO, "front", *common)
        fastest, slowest = front[0]["time_s"] * (1 + 1e-9), min(front, key=lambda v: v["energy_j"])["time_s"]
        deadlines = [fastest + (slowest - fastest) * i / (COUNT - 1) for i in range(COUNT)]
        worst, mean, dearer, late, took = measure(RUBATO, common, deadlines)
        row = f"| {name} | {4 if stage_map else 8} x {microbatches} | {worst:.3f} | {mean:.3f} | {dearer} | {late} | {took:.2f} |"
        if OTHER:
            before = measure(OTHER, common, deadlines)
            row += f" {before[0]:.3f} | {before[1]:.3f} | {before[2]} | {took / before[4]:.2f} |"
        print(row, flush=True)
