#!/usr/bin/env python3
"""What a mechanism of the searches is worth: records energies, gaps and CPU time of many questions, and compares two records.
Leave a mechanism out, build, record, and compare with the record of the program before.

Usage: ablation.py record RUBATO OUT.json [GROUP ...]     groups: profiles models stages stalls chains switching captures (all of them)
       ablation.py compare BEFORE.json AFTER.json

ABLATION_ONLY is a regular expression: only questions whose names it matches are asked.
Captures are those of docs/examples; ABLATION_CAPTURES names a file of more, one question a line: options of rubato explore.
"""
import json
import os
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/tools"))
from stages import explored  # noqa: E402

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "docs" / "examples"
PROFILES = [("gpt3-175b-a100", 83.64), ("gpt3-175b-a40", 70.38), ("bloom-176b-a100", 83.64), ("bloom-176b-a40", 70.38)]
SHAPES = ["--stage-map 0,1,6,7 --microbatches 4", "--microbatches 12", "--microbatches 96"]
DEADLINES = 32
GPUS = ["rtx-3080-ti", "a100-sxm4-80gb", "a40", "h100-sxm5", "h200-sxm5", "v100-sxm2", "rtx-5090", "l4"]
STAGES = ["--stages 1 --microbatches 8", "--stages 4 --microbatches 4", "--stages 4 --microbatches 16",
          "--stages 8 --microbatches 32", "--stages 4 --microbatches 8 --schedule gpipe",
          "--stages 4 --microbatches 8 --schedule interleaved --chunks 2", "--stages 4 --microbatches 8 --schedule zb-h1"]
CHANGES = ["latency=1ms", "latency=6ms", "latency=22ms", "stall=100us", "stall=1ms", "latency=1ms,mem.latency=6ms"]
KINDS = "--per run,pass,kernel,launch,segment"


def questions(group):
    """Pairs of a name and a command line."""
    if group == "profiles":
        for name, blocked in PROFILES:
            for shape in SHAPES:
                yield f"{name} {shape}", f"pipeline --profile {EXAMPLES / name}.csv --blocked-power {blocked} {shape}"
    elif group == "models":
        for shape in STAGES:
            for gpu in GPUS[:1] if "--stages 8" in shape else GPUS[:4]:
                for switching in ("free", "spec"):
                    asked = f"--gpu {gpu} {shape} --switching {switching}"
                    yield asked, f"pipeline --model gpt3-xl --batch 4 {asked} --slack 0,1,2,5,10"
    elif group == "stages":
        for name, blocked in PROFILES:
            described = f"--profile {EXAMPLES / name}.csv --blocked-power {blocked} --microbatches 12"
            yield name, f"pipeline {described} --per run,stage --slack 0,1,2,5,10"
        for shape in STAGES[1:3]:
            for gpu in GPUS[:4]:
                asked = f"--gpu {gpu} {shape}"
                yield asked, f"pipeline --model gpt3-xl --batch 4 {asked} --per run,stage --slack 0,1,2,5,10"
    elif group == "stalls":
        for gpu in GPUS[:2]:
            for change in ("stall=20ms", "stall=1ms,energy=1"):
                asked = f"--gpu {gpu} --switching {change}"
                yield asked, f"pipeline --model gpt3-xl --batch 4 --stages 4 --microbatches 8 {asked} --slack 0,5,20"
    elif group == "chains":
        for gpu in GPUS:
            asked = f"--gpu {gpu} --per run,pass,kernel,segment"
            yield asked, f"explore gpt3-xl {asked} --slack 0,1,2,5"
    elif group == "switching":
        for gpu, clocks in (("rtx-3080-ti", "full"), ("a100-sxm4-80gb", "full")):
            for change in CHANGES:
                asked = f"--gpu {gpu} --clocks {clocks} --switching {change}"
                yield asked, f"explore gpt3-xl --per segment {asked} --slack 0,2"
    elif group == "captures":
        yield "run", f"explore {EXAMPLES}/run.pt.trace.json.gz {KINDS} --slack 0,1,2,5"
        yield "core1005", f"explore {EXAMPLES}/clocks/core1005.pt.trace.json.gz {KINDS} --slack 0,1,2,5"
        yield "four ranks", f"explore '{EXAMPLES}/pipeline/rank*.pt.trace.json.gz' {KINDS} --slack 2"
        for line in Path(os.environ.get("ABLATION_CAPTURES", os.devnull)).read_text(encoding="utf-8").splitlines():
            yield line, f"explore {line}"


def ask(program, command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    words = [*shlex.split(command), "--json"]
    if words[1] != "front":
        words += ["--odds", "0"]  # what the search finds, whatever the odds
    if words[0] == "pipeline" and words[1].startswith("--"):
        done = explored(program, words[1:])
    else:
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{command}: {done.stderr}")
    return json.loads(done.stdout), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def slacks(program, command):
    """From the fastest iteration to the one of least energy."""
    front, _ = ask(program, command.replace("pipeline", "pipeline front", 1))
    usual_s = front[0]["time_s"] / (1 + front[0]["time_change_pct"] / 100)
    fastest, cheapest = front[0]["time_s"] * (1 + 1e-9), min(front, key=lambda vertex: vertex["energy_j"])["time_s"]
    return ",".join(repr(100 * ((fastest + (cheapest - fastest) * i / (DEADLINES - 1)) / usual_s - 1)) for i in range(DEADLINES))


def record(program, groups):
    found = {}
    for group in groups:
        for name, command in questions(group):
            if not re.search(os.environ.get("ABLATION_ONLY", ""), name):
                continue
            if group == "profiles":
                command += " --slack " + slacks(program, command)
            listed, cpu_s = ask(program, command)
            plans = [plan for plan in listed["plans"] if plan["status"] != "-"]
            found[f"{group}: {name}"] = {"cpu_s": cpu_s, "plans": [
                [f"{plan.get('granularity', 'pass')} {plan.get('slack_pct', plan.get('deadline_s'))}", plan["energy_j"], plan["gap_pct"]]
                for plan in plans]}
            print(f"{cpu_s:8.2f} s  {len(plans):3d} plans  {group}: {name}", file=sys.stderr)
    return found


def compare(before, after):
    rows = {}
    for name in before.keys() & after.keys():
        row = rows.setdefault(name.split(":")[0], {"energy": [], "gap": [], "cpu": [0.0, 0.0]})
        for one, other in zip(before[name]["plans"], after[name]["plans"], strict=True):
            if one[1] and other[1]:
                row["energy"].append((100 * (other[1] / one[1] - 1), f"{name} {one[0]}"))
            elif one[1] or other[1]:
                print(f"{name} {one[0]}: {one[1]} J before, {other[1]} J after")
            if one[2] is not None and other[2] is not None:
                row["gap"].append((one[2], other[2]))
        row["cpu"] = [row["cpu"][0] + before[name]["cpu_s"], row["cpu"][1] + after[name]["cpu_s"]]
    print("| Group | Plans | Other | Energy: mean % | Worst % | Best % | Gap: mean % | Worst % | CPU time | Where worst |")
    print("|" + " --- |" * 10)
    for group in sorted(rows):
        energy, gap, cpu = rows[group]["energy"], rows[group]["gap"], rows[group]["cpu"]
        changes = [change for change, _ in energy]
        worst = max(energy)
        mean, most = [sum(side) / len(gap) for side in zip(*gap)], [max(side) for side in zip(*gap)]
        print(f"| {group} | {len(energy)} | {sum(change != 0 for change in changes)} | {sum(changes) / len(changes):+.4f} | {worst[0]:+.3f} | "
              f"{min(changes):+.3f} | {mean[0]:.4f} -> {mean[1]:.4f} | {most[0]:.3f} -> {most[1]:.3f} | {cpu[0]:.1f} -> {cpu[1]:.1f} s | "
              f"{worst[1] if worst[0] > 0 else ''} |")


if sys.argv[1] == "record":
    RECORD = record(sys.argv[2], sys.argv[4:] or ["profiles", "models", "stages", "stalls", "chains", "switching", "captures"])
    Path(sys.argv[3]).write_text(json.dumps(RECORD, indent=1), encoding="utf-8")
else:
    compare(*(json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[2:4]))
