#!/usr/bin/env python3
"""How well promises for captured runs hold: the table of docs/trust.md, "Promises for captured runs".

Each measured workload of the shipped sweeps becomes a capture of one kernel at its highest clock. `rubato explore` names a clock for it; the
sweep says what that clock really gives. Between measured clocks curves are interpolated (monotone cubic), since on measured clocks alone
there is often none between the default and the deadline.

Usage: bench/tables/promises.py RUBATO [--odds PCT] [--slack PCT,PCT] [--every N] [--class] [--captures 2] [--csv FILE] [NAME ...]
       (--every N: each Nth workload; --class: products and element-wise kernels by their names, as real captures know them;
       --captures 2: also captured at the measured clock nearest to three quarters; names of SWEEPS: these alone)
Half a minute of CPU time. Standard library only.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEASURED, EXAMPLES = ROOT / "models" / "data" / "measured", ROOT / "docs" / "examples"
LATE = 0.3  # percentage points beyond the slack: what measured times scatter
# Spec, file, columns that name a workload, its memory clock, and its core clock.
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
    """{workload: {core clock: (time s, energy J)}} at one memory clock, under the largest power cap."""
    found, caps = {}, set()
    rows = list(csv.DictReader(file.read_text().splitlines()))
    caps = {float(row["power_cap_w"]) for row in rows if row.get("power_cap_w")}
    for row in rows:
        if row.get("mem_mhz") and row["mem_mhz"] != memory or row.get("power_cap_w") and float(row["power_cap_w"]) != max(caps):
            continue
        try:
            time_s = float(row.get("time_s") or row["time"])
            energy_j = float(row["energy"]) if "energy" in row else time_s * float(row["power_w"])
            found.setdefault(" ".join(row[key] for key in keys), {})[round(float(row[core]))] = (time_s, energy_j)
        except (ValueError, KeyError):
            continue  # auto, or not measured
    return found


def class_of(name):
    for words, kind in ((("gemm", "conv", "matmul", "linear"), "gemm"), (("softmax",), "softmax"), (("norm",), "layernorm"),
                        (("relu", "gelu", "sigmoid", "softplus", "tanh", "swish", "add", "mul", "div", "clamp"), "elementwise")):
        if any(word in name.lower() for word in words):
            return kind
    return "other"


def capture_of(name, kind, time_s, slower=1.0):
    """Twenty launches of one kernel. slower: at another clock, over the time at the highest."""
    duration_ns, launches = max(1000, round(min(time_s, 1e-3) * slower * 1e9)), 20
    return {
        "schema": 1, "kind": "capture", "name": "made", "provenance": {"generator": "promises", "source": "made", "options": ""},
        "origin_ns": 0, "devices": [{"id": 0, "name": ""}], "streams": [{"device": 0, "id": 7}], "step_source": "annotation",
        "steps": [{"name": "ProfilerStep#1", "start_ns": 0, "end_ns": launches * duration_ns + 1}], "left_out": [],
        "kernels": [{"name": name, "label": name, "class": kind, "pass": "forward", "dtype": "unknown", "work_source": "unknown"}],
        "launches": [{"kernel": [0] * launches, "stream": [0] * launches, "start_ns": [i * duration_ns for i in range(launches)],
                      "duration_ns": [duration_ns] * launches, "step": [0] * launches}],
    }


def plans_of(options, folder, spec, memory, number, name, cells):
    """One row for each slack: what was promised, and what came."""
    described = json.loads(subprocess.run([options.rubato, "gpus", spec], check=True, text=True, stdout=subprocess.PIPE).stdout)
    clocks = sorted(clock for clock in cells if clock <= described["core_clocks"]["max_mhz"])
    default, (time_s, energy_j) = clocks[-1], cells[clocks[-1]]
    slower, cheaper = (Curve([(c, cells[c][i] / at) for c in clocks]) for i, at in enumerate((time_s, energy_j)))
    grid = clocks if spec in STEPS_OF_100 else sorted({*range(clocks[0], default, 15), default})
    described["default_clock"] = {"mem": memory, "core": float(default)}
    gpu, capture = folder / "gpu.json", folder / "capture.json"
    gpu.write_text(json.dumps(described))
    kind = class_of(name) if options.known_class else "other"
    capture.write_text(json.dumps(capture_of(f"captured_kernel_{number}", kind, time_s)))
    command = [options.rubato, "explore", capture, "--gpu", gpu, "--captured-clock", f"{memory}/{default}", "--granularity", "iteration",
               "--slack", options.slack, "--odds", options.odds, "--clocks", f"mem={memory} core={','.join(map(str, grid))}", "--json"]
    if options.captures > 1:
        second, core = folder / "second.json", min(clocks, key=lambda clock: abs(clock - 0.75 * default))
        second.write_text(json.dumps(capture_of(f"captured_kernel_{number}", kind, time_s, slower(core))))
        command += ["--also", f"{second}@{memory}/{core}"]
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    for plan in json.loads(done.stdout)["plans"][1:]:
        core = float(plan["clocks"].split("/")[1])
        slack = plan["slack_pct"]
        best = min(cheaper(c) for c in grid if 100 * (slower(c) - 1) <= slack + 1e-9)
        yield {"slack_pct": slack, "default": core >= default, "odds_in_time_pct": plan["odds_in_time_pct"],
               "time_pct": 100 * (slower(core) - 1), "energy_pct": 100 * (cheaper(core) - 1), "best_energy_pct": 100 * (best - 1),
               **{key: plan[key] for key in plan if key.endswith("_change_pct") or key.endswith("_low_pct") or key.endswith("_high_pct")}}


def quantile(values, share):
    return sorted(values)[round(share * (len(values) - 1))]


def table_row(name, workloads_seen, rows):
    plans = [row for row in rows if not row["default"]]
    saved = [row["energy_pct"] for row in rows]
    if not plans:
        return f"| {name} | {workloads_seen} | 0 | | | 0.0 ({statistics.median(row['best_energy_pct'] for row in rows):.1f}) | | | |"
    late = [row for row in plans if row["time_pct"] > row["slack_pct"] + LATE]
    held = [100 * statistics.mean(row[f"{of}_change_low_pct"] - 0.05 <= row[f"{of}_pct"] <= row[f"{of}_change_high_pct"] + 0.05
                                  for row in plans) for of in ("time", "energy")]
    width = [statistics.median(row[f"{of}_change_high_pct"] - row[f"{of}_change_low_pct"] for row in plans) for of in ("time", "energy")]
    error = [quantile([abs(row[f"{of}_pct"] - row[f"{of}_change_pct"]) for row in plans], 0.9) for of in ("time", "energy")]
    return (f"| {name} | {workloads_seen} | {len(plans)} of {len(rows)} | {100 * len(late) / len(plans):.0f} % | "
            f"{statistics.median(saved):.1f} ({statistics.median(row['best_energy_pct'] for row in rows):.1f}) | {error[0]:.1f}, {error[1]:.1f} | "
            f"{held[0]:.0f}, {held[1]:.0f} | {width[0]:.0f}, {width[1]:.0f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rubato")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--odds", default="90")
    parser.add_argument("--slack", default="1,2,5,10,20")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--class", dest="known_class", action="store_true")
    parser.add_argument("--captures", type=int, choices=(1, 2), default=1)
    parser.add_argument("--csv")
    options = parser.parse_args()
    print("| GPU | workloads | plans | late | saving that came (best there was) | error of time, energy: p90 | held, % | width |")
    print("| --- " * 8 + "|")
    rows_of = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (spec, file, keys, memory, core) in SWEEPS.items():
            if options.names and name not in options.names:
                continue
            chosen = [(w, cells) for w, cells in sorted(workloads(file, keys, memory, core).items()) if len(cells) > 2][::options.every]
            rows_of[name] = [{"gpu": name, "workload": w, **row} for number, (w, cells) in enumerate(chosen)
                             for row in plans_of(options, pathlib.Path(folder), spec, memory, number, w, cells)]
            print(table_row(name, len(chosen), rows_of[name]), flush=True)
    rows = sum(rows_of.values(), [])
    print(table_row("all", len({(row["gpu"], row["workload"]) for row in rows}), rows))
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            out = csv.DictWriter(file, list(rows[0]))
            out.writeheader()
            out.writerows(rows)


if __name__ == "__main__":
    main()
