#!/usr/bin/env python3
"""What planning with each model costs, over all sweeps there are: the tables of docs/models.md, section 12.
Errors; then the energy of a step with a clock for each kernel within 5 %; then the regret of kernels that are steps of their own.

    bench/tables/regret_table.py build/release/rubato [--shared ../shared/data]

Every model is fitted to five points of every kernel (three of the A100-PCIe, which has four); what kernels of a GPU share is fitted to other kernels where there
are enough (--leave-kernels-out), else it is the spec's, which may have seen the sweep: marked with *.
"""
import argparse
import json
import pathlib
import subprocess

MODELS = ["builtin", "cmos", "guerreiro", "linear"]
SHIPPED = pathlib.Path(__file__).resolve().parent.parent.parent / "models/data/measured"
SLACK = 5.0
OUT = ["--leave-kernels-out"]
# Spec, file, options; files below SHIPPED, else below --shared.
SWEEPS = [
    ("v100-sxm2", "v100_33workloads/sweep.csv", OUT + ["--curve-points", "757,952,1207,1530"], True),
    ("rtx-4050-laptop", "rtx4050laptop_kernels/kernels.csv", OUT, True),
    ("rtx-5090", "rtx_llm_serving/rtx5090.csv", [], True),
    ("h100-sxm5", "hopper_firestarter/dgemm.csv", ["--where", "gpu=H100", "--where", "mode=clock lock"], True),
    ("rtx-3080-ti-2", "rtx3080ti_kernels/data.csv", OUT, False),
    ("a100-sxm4-80gb", "dcgm_core_sweeps/a100.csv", OUT, False),
    ("v100-pcie", "dcgm_core_sweeps/v100_rtx8000.csv", OUT + ["--where", "gpu=V100-PCIe"], False),
    ("rtx-8000", "dcgm_core_sweeps/v100_rtx8000.csv", OUT + ["--where", "gpu=RTX 8000"], False),
    ("gtx-1080-ti", "pascal_turing_grid/data.csv", OUT + ["--where", "gpu=GTX 1080 Ti"], False),
    ("rtx-2070-super", "pascal_turing_grid/data.csv", OUT + ["--where", "gpu=RTX 2070 SUPER"], False),
    ("a100-pcie-80gb", "powercap_freq/data.csv", ["--where", "gpu=A100-PCIe-80GB", "--points", "3"], False),
    ("rtx-pro-6000", "powercap_freq/data.csv", ["--where", "gpu=RTX PRO 6000 Blackwell"], False),
    ("a40", "perseus/profiles/gpt3-175b+a40_bf16.csv", OUT, False),
    ("a100-sxm4-80gb", "perseus/profiles/gpt3-175b+a100_sxm_bf16.csv", OUT, False),
]


def measured(program, shared, sweep):
    gpu, file, options, shipped = sweep
    command = [program, "validate", str((SHIPPED if shipped else shared) / file), "--gpu", gpu, "--json"]
    command += ["--model", ",".join(MODELS)] + options
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return json.loads(done.stdout)


def number(value):
    """Two digits, one after the point at least where there are any."""
    return f"{value:.1f}" if value >= 0.095 or value == 0 else f"{value:.2f}"


def saved(row):
    """Energy of the plan of a step, and by how much it is late."""
    if row is None:
        return "-"
    return f"{row['energy_change_pct']:.1f}" + (f", late by {number(row['late_pct'])}" if row["late"] else "")


def alone(row):
    """Regret of the plans of single kernels, and how many are late by how much."""
    late = f", {row['late']} late by {number(row['late_pct'] * row['count'] / row['late'])}" if row["late"] else ""
    return f"{row['regret_pct']:.1f}" + late


def print_table(columns, rows):
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--shared", type=pathlib.Path, default=pathlib.Path("../shared/data"))
    options = parser.parse_args()
    errors, steps, kernels = [], [], []
    for sweep in SWEEPS:
        if not sweep[3] and not options.shared.exists():
            continue
        found = measured(options.program, options.shared, sweep)
        name = sweep[0] + (", " + pathlib.Path(sweep[1]).stem.split("+")[0] if "perseus" in sweep[1] else "")
        name += "" if "--leave-kernels-out" in sweep[2] else " *"
        of = {row["model"]: row for row in found["models"]}
        keys = ("time_mape_pct", "power_mape_pct", "energy_mape_pct")
        errors.append([name, of["builtin"]["points"]] + [" / ".join(f"{of[m][key]:.1f}" for key in keys) for m in MODELS])
        at = {(r["model"], r["plans"]): r for r in found["regrets"] if r["slack_pct"] == SLACK}
        if ("builtin", "per-kernel") in at:
            steps.append([name, f"{at['builtin', 'per-kernel']['best_energy_pct']:.1f}"] +
                         [saved(at[m, "per-kernel"]) for m in MODELS])
        kernels.append([name, at["builtin", "alone"]["count"], f"{at['builtin', 'alone']['best_energy_pct']:.1f}"] +
                       [alone(at[m, "alone"]) for m in MODELS])
    print_table(["Spec", "Points"] + MODELS, errors)
    print_table(["Spec", "Best"] + MODELS, steps)
    print_table(["Spec", "Kernels", "Best"] + MODELS, kernels)


if __name__ == "__main__":
    main()
