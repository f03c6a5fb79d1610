#!/usr/bin/env python3
"""How far times and powers under power limits are from measured ones that were left out: the table of docs/gpus.md.

Usage: power_caps.py RUBATO DATA [--each]. DATA has the folders of measurements that the table names. A series (one workload and batch on one GPU)
is fitted to every second of its limits, and to every second clock where it has clocks; the others are compared. Limits that a card did not
keep (it drew more than 2 % above) are apart.
"""
import csv
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

SPECS = {"A100-PCIe-80GB": "a100-pcie-80gb", "RTX PRO 6000 Blackwell": "rtx-pro-6000", "RTX PRO 6000": "rtx-pro-6000", "A40": "a40", "V100": "v100-sxm2",
         "RTX 5000 Ada": "rtx-5000-ada", "RTX 5090": "rtx-5090", "RTX 4090": "rtx-4090", "Quadro RTX 6000": "rtx-8000"}


KEPT = 1.02  # of the limit: what a card may draw that keeps it


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def series(data):
    """{(folder, gpu, name): [(core or auto, cap, time, power)]}"""
    found = defaultdict(list)
    for row in rows(data / "powercap_freq/data.csv"):
        found["powercap_freq", row["gpu"], f"{row['workload']} {row['kernel']}"].append((row["core_mhz_requested"], row["power_cap_w"], row["time_s"], row["power_w"]))
    for row in rows(data / "dnn_training/power_limit.csv"):
        found["dnn_training", row["gpu"], f"{row['workload']} b{row['batch_size']} {row['optimizer']}"].append(("auto", row["power_cap_w"], row["time_s"], row["power_w"]))
    for row in rows(data / "rtx5000ada_intensity_caps/caps.csv"):
        found["rtx5000ada_intensity_caps", "RTX 5000 Ada", f"intensity {row['intensity']}"].append(
            ("auto", row["power_cap_w"], str(0.256 / float(row["gb_per_s"])), row["power_w"]))
    for row in rows(data / "rtx_llm_serving/sweeps.csv"):
        if row["power_cap_w"] and row["core_mhz_set"] in ("", "auto"):
            found["rtx_llm_serving", row["gpu"], row["workload"]].append(("auto", row["power_cap_w"], row["time_s"], row["power_w"]))
    for row in rows(data / "rtx_pro_llm_decode_caps/decode.csv"):  # powers are estimates
        found["rtx_pro_llm_decode_caps", row["gpu"], f"{row['run']} {row['workload']}"].append(("auto", row["power_cap_w"], row["time_s"], row["power_w"]))
    return found


def compared(rubato, spec, points, folder):
    """[(kept, time error, power error)] of the points that were left out."""
    def table(name, chosen):
        path = folder / name
        path.write_text("kernel,core_mhz_requested,power_cap_w,time_s,power_w\n" + "".join(f"k,{core},{cap},{time},{power}\n" for core, cap, time, power in chosen))
        return path
    cores, caps = sorted({p[0] for p in points}), sorted({float(p[1]) for p in points})
    seen = [p for p in points if cores.index(p[0]) % 2 == 0 and (len(caps) - 1 - caps.index(float(p[1]))) % 2 == 0]
    left = [p for p in points if p not in seen]
    seen = [p for p in seen if float(p[3]) <= KEPT * float(p[1])]  # a limit that was not kept says nothing of the kernel
    if len(seen) < 2 or not left:
        return []
    fitted = folder / "fitted.json"
    done = subprocess.run([rubato, "calibrate", table("seen.csv", seen), "--gpu", spec, "-o", fitted, "--kernels-only"], capture_output=True, text=True)
    if done.returncode:
        print(f"  {spec}: {done.stderr.splitlines()[0]}", file=sys.stderr)
        return []
    done = subprocess.run([rubato, "validate", table("left.csv", left), "--gpu", fitted, "--known", "--each-point", "--json"], capture_output=True, text=True)
    if done.returncode > 1:
        print(f"  {spec}: {done.stderr.splitlines()[0]}", file=sys.stderr)
        return []
    return [(float(p[3]) <= KEPT * float(p[1]), abs(q["predicted_time_s"] / q["time_s"] - 1),
             abs(q["predicted_energy_j"] / q["predicted_time_s"] / float(p[3]) - 1)) for p, q in zip(left, json.loads(done.stdout))]


def main():
    rubato, data, each = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), "--each" in sys.argv
    errors, left_out = defaultdict(list), defaultdict(int)
    with tempfile.TemporaryDirectory() as name:
        for (source, gpu, work), points in sorted(series(data).items()):
            if gpu not in SPECS:
                left_out[source, gpu] += 1
                continue
            found = compared(rubato, SPECS[gpu], points, Path(name))
            errors[source, gpu] += found
            kept = [(t, p) for is_kept, t, p in found if is_kept]
            if each and kept:
                print(f"{source} {gpu} {work}: {len(kept)}, time {100 * statistics.mean(t for t, _ in kept):.1f}, power {100 * statistics.mean(p for _, p in kept):.1f}")
    print("| Data | GPU | points | time % | of 90 % | power % | of 90 % | not kept |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for (source, gpu), found in errors.items():
        kept = [(t, p) for is_kept, t, p in found if is_kept]
        if not kept:
            continue
        cells = []
        for values in zip(*kept):
            ordered = sorted(values)
            cells += [f"{100 * statistics.mean(ordered):.1f}", f"{100 * ordered[int(0.9 * (len(ordered) - 1))]:.1f}"]
        print("|", " | ".join([source, gpu, str(len(kept)), *cells, str(len(found) - len(kept))]), "|")
    for (source, gpu), count in left_out.items():
        print(f"{source}: {count} series on {gpu}: no spec is shipped")


if __name__ == "__main__":
    main()
