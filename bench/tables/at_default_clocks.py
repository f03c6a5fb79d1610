#!/usr/bin/env python3
"""Kernels of GPT-3 XL (batch 8) at the clocks that the driver chooses, measured beside the specs: a table of docs/models.md.

    bench/tables/at_default_clocks.py build/release/rubato

For each GPU of models/data/measured/hopper_defaults and each class: mean absolute error of time, power and energy, and of the clock where the power limit acts,
over kernels, in %; the sign is that of the mean error. Nothing was fitted to these numbers.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import tempfile

MEASURED = pathlib.Path(__file__).resolve().parent.parent.parent / "models/data/measured/hopper_defaults/kernels.csv"
SPECS = {"H100 SXM 80GB": "h100-sxm5", "H200 SXM 141GB": "h200-sxm5"}
QUERY = """SELECT x.name, x.class, x.time_s, x.energy_j, x.effective_core_mhz
           FROM v_cells x JOIN v_clocks c USING (run_id, clock_id) WHERE c.is_default"""


def rubato(program, *options):
    return subprocess.run([program, *options], check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def modelled(program, spec, batch):
    """By name of the kernel: class, time, power and clock at the default clocks."""
    with tempfile.TemporaryDirectory() as folder:
        trace, database = f"{folder}/step.json", f"{folder}/step.db"
        rubato(program, "trace", "gen", "gpt3-xl", "--batch", str(batch), "-o", trace)
        rubato(program, "explore", trace, "--gpu", spec, "--per", "kernel", "--slack", "0", "--db", database)
        rows = json.loads(rubato(program, "query", "--db", database, QUERY, "--json"))
    return {r["name"]: (r["class"], r["time_s"], r["energy_j"] / r["time_s"], r["effective_core_mhz"]) for r in rows}


def error(pairs):
    """Mean absolute error in %, with the sign of the mean error."""
    errors = [100 * (model / seen - 1) for model, seen in pairs]
    if not errors:
        return "-"
    return f"{'+' if statistics.fmean(errors) > 0 else '-'}{statistics.fmean(map(abs, errors)):.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    program = parser.parse_args().program
    rows = list(csv.DictReader(MEASURED.open()))
    print("| GPU | Class | Kernels | Time % | Power % | Energy % | At the limit | Clock there % |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for gpu, spec in SPECS.items():
        seen = [r for r in rows if r["gpu"] == gpu]
        model = modelled(program, spec, seen[0]["batch"])
        both = [(r, *model[r["kernel"]]) for r in seen if r["kernel"] in model]
        classes = sorted({b[1] for b in both}, key=lambda c: -sum(float(r["time_s"]) for r, k, *_ in both if k == c))
        for name in [*classes, "all"]:
            of = [b for b in both if name in (b[1], "all")]
            time = [(t, float(r["time_s"])) for r, _, t, _, _ in of]
            power = [(p, float(r["power_w"])) for r, _, _, p, _ in of]
            energy = [(t * p, float(r["time_s"]) * float(r["power_w"])) for r, _, t, p, _ in of]
            limited = [(clock, float(r["core_mhz"])) for r, _, _, _, clock in of if float(r["core_mhz"]) < 1965]
            print(f"| {gpu} | {name} | {len(of)} | {error(time)} | {error(power)} | {error(energy)} | {len(limited)} | {error(limited)} |")


if __name__ == "__main__":
    main()
