#!/usr/bin/env python3
"""How far plans of measured clocks can come to the bound at all: the same problem as a mixed-integer program, by HiGHS.

Usage: pipeline_optimum.py RUBATO PROFILE BLOCKED_W STAGES MICROBATCHES [LEAST_GAP_PCT] [SECONDS]
       pipeline_optimum.py PROFILE BLOCKED_W circle COUNT [SECONDS]

The first takes those of 60 deadlines where our plan is at least LEAST_GAP_PCT (0.25) above the bound; STAGES lists profile
stages (0,1,6,7). The second is the steady state in which COUNT microbatches repeat in the time of the slowest stage.
Needs python3-scipy.
"""
import csv
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/tools"))
from stages import explored  # noqa: E402


def read_options(path, blocked_w):
    """(time, cost) of each stage and kind that no other option beats, fastest first."""
    found = defaultdict(list)
    for row in csv.DictReader(open(path, encoding="utf-8")):
        time, energy = float(row["time"]), float(row["energy"])
        found[int(row["stage"]), row["instruction"]].append((time, energy - blocked_w * time))
    front = {}
    for key, options in found.items():
        kept = front[key] = []
        for option in sorted(options):
            if not kept or option[1] < kept[-1][1]:
                kept.append(option)
    return front


def one_f_one_b(stages, microbatches):
    """Passes (stage, kind, microbatch), and what waits for what, in iterations later (0)."""
    passes, arcs = {}, []
    for s in range(stages):
        ahead = min(stages - s - 1, microbatches)
        row = [("forward", m) for m in range(ahead)]
        for m in range(microbatches - ahead):
            row += [("forward", ahead + m), ("backward", m)]
        row += [("backward", m) for m in range(microbatches - ahead, microbatches)]
        for kind, m in row:
            passes[s, kind, m] = len(passes)
        arcs += [(passes[(s, *a)], passes[(s, *b)], 0) for a, b in zip(row, row[1:])]
    for s in range(stages - 1):
        for m in range(microbatches):
            arcs.append((passes[s, "forward", m], passes[s + 1, "forward", m], 0))
            arcs.append((passes[s + 1, "backward", m], passes[s, "backward", m], 0))
    return passes, arcs


def circle(stages, count):
    """The same where microbatch m + COUNT is microbatch m, an iteration later."""
    passes = {(s, kind, m): (2 * s + k) * count + m
              for s in range(stages) for k, kind in enumerate(("forward", "backward")) for m in range(count)}
    arcs = []

    def arc(before, after):
        (s, kind, m), (t, other, n) = before, after
        arcs.append((passes[s, kind, m % count], passes[t, other, n % count], n // count - m // count))

    for s in range(stages):
        for m in range(count):
            back = m - (stages - s - 1)  # in the steady state it follows forward pass m
            arc((s, "forward", m), (s, "backward", back))
            arc((s, "backward", back), (s, "forward", m + 1))
            if s + 1 < stages:
                arc((s, "forward", m), (s + 1, "forward", m))
                arc((s + 1, "backward", m), (s, "backward", m))
    return passes, arcs


def solve(options, arcs, time_s, repeats, seconds, relaxed=False):
    """Least cost: (of the best plan or None, proven bound). `repeats`: arcs may reach into the next iteration."""
    owner = [i for i, listed in enumerate(options) for _ in listed]
    times = [t for listed in options for t, _ in listed]
    costs = [c for listed in options for _, c in listed]
    choices, count = len(owner), len(options)
    of = [[j for j in range(choices) if owner[j] == i] for i in range(count)]
    rows = lil_matrix((len(arcs) + 2 * count, choices + count))
    low, high = np.zeros(len(arcs) + 2 * count), np.full(len(arcs) + 2 * count, np.inf)
    for r, (a, b, later) in enumerate(arcs):
        rows[r, choices + b] += 1
        rows[r, choices + a] -= 1
        rows[r, of[a]] = [-times[j] for j in of[a]]
        low[r] = -later * time_s
    for i in range(count):
        one, end = len(arcs) + i, len(arcs) + count + i
        rows[one, of[i]] = 1
        low[one] = high[one] = 1
        if not repeats:
            rows[end, choices + i] = 1
            rows[end, of[i]] = [times[j] for j in of[i]]
            high[end] = time_s
    reach = 50 * time_s
    found = milp(np.array(costs + [0.0] * count), constraints=LinearConstraint(rows.tocsr(), low, high),
                 integrality=np.array([0 if relaxed else 1] * choices + [0] * count),
                 bounds=Bounds([0] * choices + [-reach if repeats else 0] * count, [1] * choices + [reach if repeats else time_s] * count),
                 options={"time_limit": seconds, "mip_rel_gap": 1e-4})
    return found.fun, found.fun if relaxed else found.mip_dual_bound


def gap_pct(bound_j, energy_j):
    return 100 * (1 - bound_j / energy_j)


def against_plans(rubato, profile, blocked_w, stages, microbatches, least_pct="0.25", seconds="45"):
    common = ["--profile", profile, "--blocked-power", blocked_w, "--microbatches", microbatches, "--stage-map", stages, "--json"]

    front = json.loads(subprocess.run([rubato, "pipeline", "front", *common], capture_output=True, text=True, check=True).stdout)
    fastest, slowest = front[0]["time_s"] * (1 + 1e-9), min(front, key=lambda v: v["energy_j"])["time_s"]
    deadlines = [fastest + (slowest - fastest) * i / 59 for i in range(60)]
    chosen = list(map(int, stages.split(",")))
    listed = read_options(profile, float(blocked_w))
    passes, arcs = one_f_one_b(len(chosen), int(microbatches))
    options = [listed[chosen[s], kind] for s, kind, _ in passes]
    usual_s = front[0]["time_s"] / (1 + front[0]["time_change_pct"] / 100)
    slacks = ",".join(repr(100 * (deadline / usual_s - 1)) for deadline in deadlines)
    for plan in json.loads(explored(rubato, [*common, "--slack", slacks]).stdout)["plans"][1:]:
        if plan["gap_pct"] < float(least_pct):
            continue
        waiting_j = float(blocked_w) * len(chosen) * plan["deadline_s"]
        best, proven = solve(options, arcs, plan["deadline_s"], False, float(seconds))
        found = f"{gap_pct(plan['lower_bound_j'], best + waiting_j):.3f} %" if best is not None else "none found"
        print(f"{plan['deadline_s']:.4f} s: ours {plan['gap_pct']:.3f} % above the bound, best by HiGHS {found}, "
              f"none below {gap_pct(plan['lower_bound_j'], proven + waiting_j):.3f} %", flush=True)


def steady(profile, blocked_w, _, count, seconds="60"):
    listed = read_options(profile, float(blocked_w))
    stages = 1 + max(stage for stage, _ in listed)
    time_s = int(count) * max(listed[s, "forward"][0][0] + listed[s, "backward"][0][0] for s in range(stages))
    passes, arcs = circle(stages, int(count))
    options = [listed[s, kind] for s, kind, _ in passes]
    waiting_j = float(blocked_w) * stages * time_s
    bound = solve(options, arcs, time_s, True, float(seconds), relaxed=True)[0] + waiting_j
    best, proven = solve(options, arcs, time_s, True, float(seconds))
    found = f"{gap_pct(bound, best + waiting_j):.3f} %" if best is not None else "none found"
    print(f"{count} microbatches in {time_s:.4f} s: best by HiGHS {found} above free durations, none below {gap_pct(bound, proven + waiting_j):.3f} %")


if len(sys.argv) > 3 and sys.argv[3] == "circle":
    steady(*sys.argv[1:])
elif len(sys.argv) > 5:
    against_plans(*sys.argv[1:])
else:
    sys.exit(__doc__)
