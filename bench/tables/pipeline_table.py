#!/usr/bin/env python3
"""The table of docs/pipeline.md: plans of every shipped profile for many deadlines, how far they are from the bound, whether
a later deadline is ever dearer, and how much CPU time all deadlines take.

Usage: pipeline_table.py RUBATO [DEADLINES] [OTHER_RUBATO]

With a second program both are run in turn, and the last columns are its gaps and CPU time.
"""
import json
import resource
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/tools"))
from stages import explored  # noqa: E402

RUBATO = sys.argv[1]
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 100
OTHER = sys.argv[3] if len(sys.argv) > 3 else None
EXAMPLES = Path(__file__).resolve().parent.parent.parent / "docs" / "examples"
PROFILES = [("gpt3-175b-a100", 83.64), ("gpt3-175b-a40", 70.38), ("bloom-176b-a100", 83.64), ("bloom-176b-a40", 70.38)]
SHAPES = [("0,1,6,7", 4), ("", 12), ("", 24), ("", 96)]


TOO_FAR_PCT = 0.3


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(program, common, slacks_pct):
    before = cpu_s()
    listed = json.loads(explored(program, [*common, "--slack", ",".join(map(repr, slacks_pct)), "--json"], check=True).stdout)
    took = cpu_s() - before
    plans = listed["plans"][1:]
    gaps = [plan["gap_pct"] for plan in plans]
    cheapest, dearer = float("inf"), 0
    for plan in plans:  # deadlines rise
        dearer += plan["energy_j"] > cheapest
        cheapest = min(cheapest, plan["energy_j"])
    late = sum(plan["time_s"] > plan["deadline_s"] for plan in plans)
    far = sum(gap > TOO_FAR_PCT for gap in gaps)
    return f"{max(gaps):.3f} | {sum(gaps) / len(gaps):.3f} | {far} | {dearer} | {late} | {took:.2f} |"


HEAD = f"Worst gap % | Mean gap % | Above {TOO_FAR_PCT} % | Dearer than an earlier one | Late | CPU s |"
print(f"| Profile | Pipeline | {HEAD}" + (f" before: {HEAD}" if OTHER else ""))
print("|" + " --- |" * (14 if OTHER else 8))
for name, blocked in PROFILES:
    for stage_map, microbatches in SHAPES:
        common = ["--profile", str(EXAMPLES / f"{name}.csv"), "--blocked-power", str(blocked), "--microbatches", str(microbatches)]
        common += ["--stage-map", stage_map] if stage_map else []
        front = json.loads(subprocess.run([RUBATO, "pipeline", "front", *common, "--json"], capture_output=True, text=True, check=True).stdout)
        fastest, slowest = front[0]["time_s"] * (1 + 1e-9), min(front, key=lambda v: v["energy_j"])["time_s"]
        usual_s = front[0]["time_s"] / (1 + front[0]["time_change_pct"] / 100)
        slacks_pct = [100 * ((fastest + (slowest - fastest) * i / (COUNT - 1)) / usual_s - 1) for i in range(COUNT)]
        row = f"| {name} | {4 if stage_map else 8} x {microbatches} | {measure(RUBATO, common, slacks_pct)}"
        if OTHER:
            row += " " + measure(OTHER, common, slacks_pct)
        print(row, flush=True)
