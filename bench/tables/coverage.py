#!/usr/bin/env python3
"""How often 90 % intervals hold what was measured, over all shipped sweeps: the tables of docs/gpus.md, "Do intervals hold?".

Usage: bench/tables/coverage.py RUBATO FOLDER [NAME ...]   (the folder keeps what each `rubato validate --intervals` printed: what is there
is not run again; with names of SWEEPS, e.g. 'a40, 8 curves', these rows alone)
Some ten minutes of CPU time. Standard library only.
"""
import csv
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEASURED = ROOT / "models" / "data" / "measured"
EXAMPLES = ROOT / "docs" / "examples"
# Of each spec the sweep it is fitted to (models/validation/shipped_fits.cpp), with six kernels or more; of the A40 also that with a second
# network, which its errors are learned from.
SWEEPS = {
    "v100-sxm2": [MEASURED / "v100_33workloads/sweep.csv", "--curve-points", "757,952,1207,1530"],
    "rtx-3080-ti-2": [MEASURED / "rtx3080ti_kernels/kernels.csv"],
    "a100-sxm4-80gb": [MEASURED / "dcgm_core_sweeps/a100.csv", "--idle", MEASURED / "dcgm_core_sweeps/a100_idle.csv"],
    "gtx-1080-ti": [MEASURED / "pascal_turing_grid/gtx1080ti.csv"],
    "rtx-2070-super": [MEASURED / "pascal_turing_grid/rtx2070super.csv"],
    "a40, 4 curves": [EXAMPLES / "gpt3-175b-a40.csv"],
    "a40, 8 curves": [EXAMPLES / "gpt3-175b-a40.csv", EXAMPLES / "bloom-176b-a40.csv"],
    "v100-pcie": [MEASURED / "dcgm_core_sweeps/v100.csv"],
    "rtx-8000": [MEASURED / "dcgm_core_sweeps/rtx8000.csv"],
    "rtx-4050-laptop": [MEASURED / "rtx4050laptop_kernels/kernels.csv"],
}
POINTS = ("1", "3", "5", "4 of 5")
# Their intervals are scaled by what campaigns inside their sweep say.
SCALED = ("v100-sxm2", "rtx-3080-ti-2", "a100-sxm4-80gb", "gtx-1080-ti", "rtx-2070-super", "rtx-4050-laptop")


def one_sweep(folder, name, files):
    """Stage profiles of several networks as one: the stages of the second go on behind those of the first."""
    text, stages = "", 0
    for number, file in enumerate(files):
        head, *rows = file.read_text().splitlines()
        text += "" if number else head + "\n"
        for row in rows:
            stage, rest = row.split(",", 1)
            text += f"{int(stage) + stages},{rest}\n"
        stages += 1 + max(int(row.split(",", 1)[0]) for row in rows)
    joined = folder / f"{name}, sweep.csv"
    joined.write_text(text)
    return joined


def rows_of(rubato, folder, name, arguments):
    file, spec = folder / f"{name}.csv", name.split(",")[0]
    if not file.exists() or not file.stat().st_size:
        if name == "a40, 8 curves":
            arguments = [one_sweep(folder, name, arguments)]
        command = [rubato, "validate", *arguments, "--gpu", spec, "--intervals", "--csv", "--quiet"]
        file.write_text(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout)
    return {(row["points"], row["predicted"]): row for row in csv.DictReader(file.read_text().splitlines())}


def number(row, name):
    return f"{float(row[name]):.0f}"


def shares(row):
    return f"{number(row, 'time_inside_pct')} / {number(row, 'energy_inside_pct')}" if row and int(row["count"]) else "no plan"


def widths(row):
    return f"{number(row, 'time_width_pct')} / {number(row, 'energy_width_pct')}" if row and int(row["count"]) else ""


def line(*cells):
    print("| " + " | ".join(cells) + " |")


def summary(found, predicted, quantity):
    """Of all rows of GPUs whose intervals are scaled."""
    all_shares = [float(found[spec][points, predicted][f"{quantity}_inside_pct"]) for spec in SCALED for points in POINTS]
    below, above = (sum(share < 84.5 for share in all_shares), sum(share > 95.5 for share in all_shares))
    print(f"{predicted}, {quantity}, {len(SCALED)} scaled GPUs: mean {sum(all_shares) / len(all_shares):.1f} %, "
          f"{len(all_shares) - below - above} of {len(all_shares)} rows in 85 to 95 %, {below} below, {above} above, least {min(all_shares):.0f}")


def main():
    rubato, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    names = sys.argv[3:] or list(SWEEPS)
    found = {name: rows_of(rubato, folder, name, SWEEPS[name]) for name in names}
    line("", "", *POINTS)
    for spec, rows in found.items():
        for predicted in ("cells", "plans"):
            line(spec if predicted == "cells" else "", predicted, *(shares(rows.get((points, predicted))) for points in POINTS))
    print()
    line("", "captured time", "width", *POINTS, "width")
    for spec, rows in found.items():
        of = {points: rows.get((points, "captured plans")) for points in ("captured time", *POINTS)}
        line(spec, shares(of["captured time"]), widths(of["captured time"]), *(shares(of[points]) for points in POINTS), widths(of[POINTS[-1]]))
    if len(found) < len(SWEEPS):
        return
    print()
    for predicted in ("cells", "plans"):
        for quantity in ("time", "energy"):
            summary(found, predicted, quantity)


if __name__ == "__main__":
    main()
