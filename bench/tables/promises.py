#!/usr/bin/env python3
"""How well promises for captured runs hold: the table of docs/trust.md, "Promises for captured runs".

Each measured workload of the shipped sweeps becomes a capture of one kernel at its highest clock. `rubato explore` names a clock for it; the
sweep says what that clock really gives. Between measured clocks curves are interpolated (monotone cubic), since on measured clocks alone
there is often none between the default and the deadline. The workload is left out of the kernels that the spec knows. Where the answer is the
default clocks, there is no plan; a plan whose interval of energy holds zero is named too, as one to measure first.

Usage: bench/tables/promises.py RUBATO [--odds PCT] [--slack PCT,PCT] [--every N] [--class] [--captures 2] [--power] [--kernels N] [--other-gpus]
       [--absolute] [--csv FILE] [NAME ...]
       (--every N: each Nth workload; --class: classes are known, where the sweep names them, as in real captures;
       --captures 2: also captured at the measured clock nearest to three quarters; --power: with a power log of each capture;
       --kernels N: steps of N of a sweep's workloads; --other-gpus: only what kernels of other GPUs are like is known; --absolute: also how often
       the interval of the energy at the default clocks holds, which is said where no power was logged; names of SWEEPS: these alone)
Half a minute of CPU time. Standard library only.
"""
import argparse
import csv
import itertools
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEASURED, EXAMPLES = ROOT / "models" / "data" / "measured", ROOT / "docs" / "examples"
LATE = 0.3  # percentage points beyond the slack: what measured times scatter
# Spec, file, columns that name a workload, its memory clock, and its core clock. Not the RTX 3080 Ti: five clocks, none from 1470 to 1890.
SWEEPS = {
    "A100-SXM4, HPC codes": ("a100-sxm4-80gb", MEASURED / "dcgm_core_sweeps/a100.csv", ("workload",), "1593", "core_mhz"),
    "V100-PCIe": ("v100-pcie", MEASURED / "dcgm_core_sweeps/v100.csv", ("workload_id", "kernel"), "877", "core_mhz"),
    "RTX 8000": ("rtx-8000", MEASURED / "dcgm_core_sweeps/rtx8000.csv", ("workload_id", "kernel"), "6500", "core_mhz"),
    "GTX 1080 Ti": ("gtx-1080-ti", MEASURED / "pascal_turing_grid/gtx1080ti.csv", ("workload", "kernel"), "5500", "core_mhz"),
    "RTX 2070 SUPER": ("rtx-2070-super", MEASURED / "pascal_turing_grid/rtx2070super.csv", ("workload", "kernel"), "7300", "core_mhz"),
    "A100-PCIe": ("a100-pcie-80gb", MEASURED / "powercap_freq/a100_pcie.csv", ("workload",), "1512", "core_mhz_requested"),
    "RTX 4050 Laptop": ("rtx-4050-laptop", MEASURED / "rtx4050laptop_kernels/kernels.csv", ("kernel",), "8001", "core_mhz_requested"),
    "V100-SXM2": ("v100-sxm2", MEASURED / "v100_33workloads/sweep.csv", ("kernel",), "877", "core_mhz"),
    "A100-SXM4, LLM stages": ("a100-sxm4-80gb", EXAMPLES / "gpt3-175b-a100.csv", ("stage", "instruction"), "1593", "frequency"),
    "A40, LLM stages": ("a40", EXAMPLES / "gpt3-175b-a40.csv", ("stage", "instruction"), "7251", "frequency"),
    "A100-SXM4, LLM stages (Bloom)": ("a100-sxm4-80gb", EXAMPLES / "bloom-176b-a100.csv", ("stage", "instruction"), "1593", "frequency"),
    "A40, LLM stages (Bloom)": ("a40", EXAMPLES / "bloom-176b-a40.csv", ("stage", "instruction"), "7251", "frequency"),
}
STEPS_OF_100 = ("gtx-1080-ti", "rtx-2070-super")  # old cards, set in such steps only: no clocks between


class Curve:
    """Monotone cubic interpolation. Source: Fritsch and Carlson, SIAM J. Numer. Anal. 17, 1980."""

    def __init__(self, points):
        self.xs, self.ys = [x for x, _ in points], [y for _, y in points]
        widths = [b - a for a, b in zip(self.xs, self.xs[1:])]
        rises = [(b - a) / width for a, b, width in zip(self.ys, self.ys[1:], widths)]
        slopes = [rises[0]]
        for left, right in zip(rises, rises[1:]):
            slopes.append(2 * left * right / (left + right) if left * right > 0 else 0.0)
        self.slopes = [*slopes, rises[-1]]

    def __call__(self, x):
        i = max(n for n in range(len(self.xs) - 1) if n == 0 or self.xs[n] <= x)
        width = self.xs[i + 1] - self.xs[i]
        t = (x - self.xs[i]) / width
        return ((1 + 2 * t) * (1 - t) ** 2 * self.ys[i] + t * (1 - t) ** 2 * width * self.slopes[i] + t * t * (3 - 2 * t) * self.ys[i + 1]
                + t * t * (t - 1) * width * self.slopes[i + 1])


def workloads(file, keys, memory, core):
    """{workload: {core clock: (time s, energy J)}} at one memory clock, under the largest power cap; and the classes that the file names."""
    found, caps, classes = {}, set(), {}
    rows = list(csv.DictReader(file.read_text().splitlines()))
    caps = {float(row["power_cap_w"]) for row in rows if row.get("power_cap_w")}
    for row in rows:
        if row.get("mem_mhz") and row["mem_mhz"] != memory or row.get("power_cap_w") and float(row["power_cap_w"]) != max(caps):
            continue
        try:
            time_s = float(row.get("time_s") or row["time"])
            energy_j = float(row["energy"]) if "energy" in row else time_s * float(row["power_w"])
            name = ":".join(row[key] for key in keys)
            found.setdefault(name, {})[round(float(row[core]))] = (time_s, energy_j)
            classes[name] = row.get("class", "other")
        except (ValueError, KeyError):
            continue  # auto, or not measured
    return {name: plausible(cells) for name, cells in found.items()}, classes


def plausible(cells):
    """Without clocks at which power fell below 85 % of a lower clock's though the work took no longer, as `calibrate` reads sweeps."""
    power_w = {clock: joules / time_s for clock, (time_s, joules) in cells.items()}
    return {clock: cells[clock] for clock in cells
            if not any(lower < clock and power_w[clock] < 0.85 * power_w[lower] and cells[clock][0] <= cells[lower][0] for lower in cells)}


LAUNCHES = 20
EPOCH_S = 1_780_000_000


def power_log(power_w, busy_s):
    """A reading each 20 ms, from a second before the capture to one after it."""
    times = [i / 50 for i in range(-50, round(50 * busy_s) + 50)]
    return "unix,power\n" + "".join(f"{EPOCH_S + t:.3f},{power_w if 0 <= t <= busy_s else 0.2 * power_w:.3f}\n" for t in times)


def without(described, kernels):
    """A spec that does not know some of its kernels, nor do the draws of its fit."""
    known, own = described["kernels"]["list"], 7  # numbers of each kernel in a draw
    for member in described.get("uncertainty", {}).get("members", []):
        first = len(member) - own * len(known)
        for at in reversed(range(len(known) if first > 0 else 0)):  # else draws of the GPU alone
            if known[at]["name"] in kernels:
                del member[first + own * at:first + own * (at + 1)]
    described["kernels"]["list"] = [one for one in known if one["name"] not in kernels]
    return described


class Step:
    """Kernels one after the other, each with a share of the time at the highest clock: its curves, over time and energy there."""

    def __init__(self, members, most_mhz, shares):
        self.clocks = sorted(clock for clock in set.intersection(*map(set, members.values())) if clock <= most_mhz)
        self.default, self.shares = self.clocks[-1], shares
        costs = [[cells[self.default][i] for cells in members.values()] for i in (0, 1)]
        self.time_s = costs[0][0] if len(members) == 1 else 1e-3
        self.power_w = sum(share * joules / time_s for share, time_s, joules in zip(shares, *costs))
        self.slowdowns = [Curve([(c, cells[c][0] / cells[self.default][0]) for c in self.clocks]) for cells in members.values()]
        self.slower = Curve([(c, sum(share * one(c) for share, one in zip(shares, self.slowdowns))) for c in self.clocks])
        self.cheaper = Curve([(c, sum(share * cells[c][1] / time_s for share, time_s, cells in zip(shares, costs[0], members.values())) / self.power_w)
                              for c in self.clocks])


def capture_of(kinds, durations_s):
    """Launches of each kernel in turn."""
    durations_ns, kernels = [round(one * 1e9) for one in durations_s], len(kinds)
    launches = LAUNCHES * kernels
    ends_ns = list(itertools.accumulate(durations_ns * LAUNCHES))
    return {
        "schema": 1, "kind": "capture", "name": "made", "provenance": {"generator": "promises", "source": "made", "options": ""},
        "epoch_ns": EPOCH_S * 10**9, "origin_ns": 0, "devices": [{"id": 0, "name": ""}], "streams": [{"device": 0, "id": 7}], "step_source": "annotation",
        "steps": [{"name": "ProfilerStep#1", "start_ns": 0, "end_ns": ends_ns[-1] + 1}], "left_out": [],
        "kernels": [{"name": name, "label": name, "class": kind, "pass": "forward", "dtype": "unknown", "work_source": "unknown"}
                    for name, kind in kinds],
        "launches": [{"kernel": list(range(kernels)) * LAUNCHES, "stream": [0] * launches, "start_ns": [0, *ends_ns[:-1]],
                      "duration_ns": durations_ns * LAUNCHES, "step": [0] * launches}],
    }


def plans_of(options, folder, spec, memory, number, members, shares, classes, most_w):
    """One row for each slack: what was promised, and what came."""
    described = json.loads(subprocess.run([options.rubato, "gpus", spec], check=True, text=True, stdout=subprocess.PIPE).stdout)
    step = Step(members, described["core_clocks"]["max_mhz"], shares)
    clocks, default = step.clocks, step.default
    grid = clocks if spec in STEPS_OF_100 else sorted({*range(clocks[0], default, 15), default})
    described = without(described, {known["name"] for known in described["kernels"]["list"]} if options.other_gpus else members)
    described["default_clock"] = {"mem": memory, "core": float(default)}
    limit = described["power_limit"]
    limit["limit_w"] = max(limit["limit_w"], most_w)  # a card with a higher limit than is usual: `--power-limit`
    limit["max_w"] = max(limit["max_w"], most_w)
    gpu, capture = folder / "gpu.json", folder / "capture.json"
    gpu.write_text(json.dumps(described))
    kinds = [(f"captured_kernel_{number}_{i}" if len(members) > 1 else f"captured_kernel_{number}", classes[name] if options.known_class else "other")
             for i, name in enumerate(members)]
    longest_s = 0.1 if options.power else 1e-3  # readings average tens of milliseconds

    taken_s = max(1e-6, longest_s if options.power else min(step.time_s, longest_s))

    def write(file, core, power_w):
        durations_s = [taken_s * share * one(core) for share, one in zip(step.shares, step.slowdowns)]
        file.write_text(json.dumps(capture_of(kinds, durations_s)))
        file.with_suffix(".csv").write_text(power_log(power_w, LAUNCHES * sum(durations_s)))

    write(capture, default, step.power_w)
    command = [options.rubato, "explore", capture, "--gpu", gpu, "--captured-clock", f"{memory}/{default}", "--per", "run",
               "--slack", options.slack, "--odds", options.odds, "--clocks", f"mem={memory} core={','.join(map(str, grid))}", "--json"]
    if options.power:
        command += ["--power", capture.with_suffix(".csv")]
    if options.captures > 1:
        second, core = folder / "second.json", min(clocks, key=lambda clock: abs(clock - 0.75 * default))
        write(second, core, step.power_w * step.cheaper(core) / step.slower(core))
        command += ["--also", f"{second}@{memory}/{core}" + (f",power={second.with_suffix('.csv')}" if options.power else "")]
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"{', '.join(members)}: {done.stderr}")
    said = {"said_low_j": "", "said_high_j": "", "default_j": LAUNCHES * step.power_w * taken_s}
    if options.absolute:
        command.remove("--json")
        screen = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said["said_low_j"], said["said_high_j"] = map(float, re.search(r"no power log; 90\s%: (\S+) to (\S+)\)", " ".join(screen.stdout.split())).groups())
    for plan in json.loads(done.stdout)["plans"][1:]:
        core = float(plan["clocks"].split("/")[1]) if plan["is_answer"] else default
        slack = plan["slack_pct"]
        best = min(step.cheaper(c) for c in grid if 100 * (step.slower(c) - 1) <= slack + 1e-9)
        yield {"slack_pct": slack, "default": core >= default, "known": plan["energy_change_high_pct"] < 0, "odds_in_time_pct": plan["odds_in_time_pct"],
               "time_pct": 100 * (step.slower(core) - 1), "energy_pct": 100 * (step.cheaper(core) - 1), "best_energy_pct": 100 * (best - 1), **said,
               **{key: plan[key] for key in plan if key.endswith("_change_pct") or key.endswith("_low_pct") or key.endswith("_high_pct")}}


def quantile(values, share):
    return sorted(values)[round(share * (len(values) - 1))]


def table_row(name, workloads_seen, rows):
    plans = [row for row in rows if not row["default"]]
    saved = [row["energy_pct"] for row in rows]
    if not plans:
        return f"| {name} | {workloads_seen} | 0 | | | | 0.0 ({statistics.median(row['best_energy_pct'] for row in rows):.1f}) | | | |"
    late = [row for row in plans if row["time_pct"] > row["slack_pct"] + LATE]
    held = [100 * statistics.mean(row[f"{of}_change_low_pct"] - 0.05 <= row[f"{of}_pct"] <= row[f"{of}_change_high_pct"] + 0.05
                                  for row in plans) for of in ("time", "energy")]
    width = [statistics.median(row[f"{of}_change_high_pct"] - row[f"{of}_change_low_pct"] for row in plans) for of in ("time", "energy")]
    error = [quantile([abs(row[f"{of}_pct"] - row[f"{of}_change_pct"]) for row in plans], 0.9) for of in ("time", "energy")]
    known = sum(row["known"] for row in plans)
    return (f"| {name} | {workloads_seen} | {len(plans)} of {len(rows)} | {known} | {100 * len(late) / len(plans):.0f} % | "
            f"{statistics.median(saved):.1f} ({statistics.median(row['best_energy_pct'] for row in rows):.1f}) | {error[0]:.1f}, {error[1]:.1f} | "
            f"{held[0]:.0f}, {held[1]:.0f} | {width[0]:.0f}, {width[1]:.0f} |")


def absolute_row(name, rows):
    each = {row["workload"]: row for row in rows}.values()
    held = sum(row["said_low_j"] <= row["default_j"] <= row["said_high_j"] for row in each)
    return f"{name}: energy at the default clocks held {held} of {len(each)}, ends a factor of {statistics.median(row['said_high_j'] / row['said_low_j'] for row in each):.1f} apart"


def steps_of(chosen, kernels):
    """Each workload alone; or as many steps, at most 40, of some of them with random shares of the time."""
    if kernels == 1:
        return (({name: cells}, [1.0]) for name, cells in chosen)
    dice = random.Random(20261127)
    drawn = ((dict(dice.sample(chosen, kernels)), [10 ** dice.random() for _ in range(kernels)]) for _ in chosen[:40])
    return ((members, [time / sum(times) for time in times]) for members, times in drawn)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rubato")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--odds", default="90")
    parser.add_argument("--slack", default="1,2,5,10,20")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--class", dest="known_class", action="store_true")
    parser.add_argument("--captures", type=int, choices=(1, 2), default=1)
    parser.add_argument("--power", action="store_true")
    parser.add_argument("--kernels", type=int, default=1)
    parser.add_argument("--other-gpus", action="store_true")
    parser.add_argument("--absolute", action="store_true")
    parser.add_argument("--csv")
    options = parser.parse_intermixed_args()
    print("| GPU | workloads | plans | of known saving | late | saving that came (best there was) | error of time, energy: p90 | held, % | width |")
    print("| --- " * 9 + "|")
    rows_of = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (spec, file, keys, memory, core) in SWEEPS.items():
            if options.names and name not in options.names:
                continue
            found, classes = workloads(file, keys, memory, core)
            chosen = [(w, cells) for w, cells in sorted(found.items()) if len(cells) > 2][::options.every]
            if options.kernels >= len(chosen):
                continue  # all steps would be alike
            steps = list(steps_of(chosen, options.kernels))
            most_w = max(joules / time_s for cells in found.values() for time_s, joules in cells.values())
            rows_of[name] = [{"gpu": name, "workload": " ".join(members), **row} for number, (members, shares) in enumerate(steps)
                             for row in plans_of(options, pathlib.Path(folder), spec, memory, number, members, shares, classes, most_w)]
            print(table_row(name, len(steps), rows_of[name]), flush=True)
            if options.absolute:
                print(absolute_row(name, rows_of[name]), flush=True)
    rows = sum(rows_of.values(), [])
    print(table_row("all", len({(row["gpu"], row["workload"]) for row in rows}), rows))
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            out = csv.DictWriter(file, list(rows[0]))
            out.writeheader()
            out.writerows(rows)


if __name__ == "__main__":
    main()
