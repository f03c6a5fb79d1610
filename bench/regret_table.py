#!/usr/bin/env python3
"""What planning with each model costs, over all sweeps there are: the tables of docs/models.md, section 12.

    bench/regret_table.py build/release/rubato [--shared ../shared/data]

Every model is fitted to five points of every kernel (three of the A100-PCIe, which has four); what kernels of a GPU share is fitted to other kernels where there
are enough (--leave-kernels-out), else it is the spec's, which may have seen the sweep: marked with *.
"""
import argparse
import json
import pathlib
import subprocess

MODELS = ["builtin", "cmos", "guerreiro", "linear"]
SHIPPED = pathlib.Path(__file__).resolve().parent.parent / "models/data/measured"
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


def row_of(found, model, plans, slack):
    rows = [r for r in found["regrets"] if (r["model"], r["plans"], r["slack_pct"]) == (model, plans, slack)]
    return rows[0] if rows else None


def saved(row):
    """Time and energy of a plan, late ones marked."""
    if row is None:
        return "-"
    late = " late" if row["late"] else ""
    return f"{row['time_change_pct']:+.1f}{late}, {row['energy_change_pct']:+.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--shared", type=pathlib.Path, default=pathlib.Path("../shared/data"))
    options = parser.parse_args()
    sums = {model: [] for model in MODELS}
    errors, plans = [], []
    for sweep in SWEEPS:
        if not sweep[3] and not options.shared.exists():
            continue
        found = measured(options.program, options.shared, sweep)
        name = sweep[0] + (", " + pathlib.Path(sweep[1]).stem.split("+")[0] if "perseus" in sweep[1] else "")
        name += "" if "--leave-kernels-out" in sweep[2] else " *"
        of = {row["model"]: row for row in found["models"]}
        errors.append([name, of["builtin"]["points"]] + [
            " / ".join(f"{of[m][key]:.1f}" for key in ("time_mape_pct", "power_mape_pct", "energy_mape_pct")) for m in MODELS])
        best = row_of(found, "builtin", "per-kernel", 5.0)
        alone = [row_of(found, m, "alone", 5.0) for m in MODELS]
        plans.append([name, f"{best['best_energy_pct']:.1f}" if best else "-"] +
                     [saved(row_of(found, m, "per-kernel", 5.0)) for m in MODELS])
        for model, row in zip(MODELS, alone):
            sums[model].append((name, row))
    print("| Spec | Points | " + " | ".join(MODELS) + " |\n|" + " --- |" * (len(MODELS) + 2))
    for row in errors:
        print("| " + " | ".join(map(str, row)) + " |")
    print("\n| Spec | Best | " + " | ".join(MODELS) + " |\n|" + " --- |" * (len(MODELS) + 2))
    for row in plans:
        print("| " + " | ".join(map(str, row)) + " |")
    print("\n| Spec | " + " | ".join(MODELS) + " |\n|" + " --- |" * (len(MODELS) + 1))
    for i, (name, _) in enumerate(sums[MODELS[0]]):
        cells = [sums[m][i][1] for m in MODELS]
        print(f"| {name} | " + " | ".join(
            f"{c['energy_change_pct']:+.1f}, {c['late']} of {c['count']} late by {c['late_pct'] * c['count'] / max(c['late'], 1):.1f}, "
            f"{c['regret_pct']:.1f}" for c in cells) + " |")


if __name__ == "__main__":
    main()
