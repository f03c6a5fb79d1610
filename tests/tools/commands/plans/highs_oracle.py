#!/usr/bin/env python3
"""Compares global plans with HiGHS, a MILP solver, on real and random instances.

Usage: highs_oracle.py RUBATO; exit status 77: skipped.
"""
import json
import random
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
from checks import finished  # noqa: E402
from highs import Bounds, LinearConstraint, lil_matrix, milp, np  # noqa: E402

RUBATO = sys.argv[1]
GAP = 1e-7  # what HiGHS is asked to prove, relative


def rubato(*arguments):
    return finished(RUBATO, *arguments).stdout


def query(db, sql):
    return json.loads(rubato("query", "--db", db, sql, "--json"))


def least_energy_j(time_s, energy_j, budget_s):
    """One clock per row, [rows x clocks] arrays, total time within the budget."""
    rows, clocks = time_s.shape
    one_each = lil_matrix((rows, rows * clocks))
    for row in range(rows):
        one_each[row, row * clocks:(row + 1) * clocks] = 1
    found = milp(
        energy_j.ravel(),
        constraints=[LinearConstraint(one_each.tocsr(), 1, 1),
                     LinearConstraint(time_s.ravel()[None, :], -np.inf, budget_s)],
        integrality=np.ones(rows * clocks), bounds=Bounds(0, 1), options={"mip_rel_gap": GAP, "time_limit": 60})
    assert found.status == 0, found.message
    return found.fun


def trace_csv(path, kernels, rng):
    """A trace of random streaming and GEMM kernels."""
    lines = ["segment,repeat,kernel,class,pass,flops,dram_bytes"]
    for k in range(kernels):
        kind = rng.choice(["gemm", "gelu", "softmax", "permute"])
        lines.append(f"s{k},{rng.randint(1, 30)},k{k},{kind},forward,{rng.uniform(1e9, 1e12)},{rng.uniform(1e7, 1e9)}")
    path.write_text("\n".join(lines) + "\n")


def compare(db, trace, slack_pct):
    rubato("explore", trace, "--per", "kernel", "--slack", str(slack_pct), "--db", db)
    run = query(db, "SELECT max(run_id) AS run FROM runs")[0]["run"]
    cells = query(db, "SELECT unit_id AS kernel_id, clock_id, launches * time_s AS t, launches * energy_j AS e "
                      f"FROM v_cells WHERE run_id = {run}")
    rows, clocks = 1 + max(c["kernel_id"] for c in cells), 1 + max(c["clock_id"] for c in cells)
    time_s, energy_j = np.empty((rows, clocks)), np.empty((rows, clocks))
    for c in cells:
        time_s[c["kernel_id"], c["clock_id"]] = c["t"]
        energy_j[c["kernel_id"], c["clock_id"]] = c["e"]
    default = query(db, f"SELECT clock_id FROM clocks WHERE run_id = {run} AND is_default")[0]["clock_id"]
    plan = query(db, f"SELECT energy_j, time_s, status FROM plans WHERE run_id = {run} AND goal LIKE '%waste'")[0]
    budget_s = (1 + slack_pct / 100) * time_s[:, default].sum()
    highs_j = least_energy_j(time_s, energy_j, budget_s)
    difference = plan["energy_j"] / highs_j - 1
    print(f"{Path(trace).name}: {rows} x {clocks}, slack {slack_pct} %: difference {difference:+.1e}")
    assert plan["status"] == "optimal"
    assert plan["time_s"] <= budget_s * (1 + 1e-12)
    # HiGHS may be off by its own gap either way, and by its feasibility tolerance on the budget.
    assert abs(difference) <= 10 * GAP


def main():
    rng = random.Random(20260113)
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        db = str(Path(folder) / "r.db")
        for slack_pct in (0, 2, 10):
            compare(db, "gpt3-xl", slack_pct)
            count += 1
        for kernels in (1, 7, 40):
            trace = Path(folder) / f"random{kernels}.csv"
            trace_csv(trace, kernels, rng)
            compare(db, str(trace), rng.choice([0, 1, 5, 30]))
            count += 1
    print(f"{count} passed, 0 failed")


main()
