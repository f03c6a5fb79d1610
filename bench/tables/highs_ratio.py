#!/usr/bin/env python3
"""Times HiGHS and Rubato on the same knapsacks in one run and prints the ratio.

Usage: highs_ratio.py MCKP_INSTANCE [KERNELSxCLOCKS ...] [--limit S]
       (MCKP_INSTANCE: the program of bench/mckp_instance.cpp, such as build/release/mckp_instance)

Both have to prove the optimum: Rubato as always, HiGHS with a relative gap of 0. HiGHS uses one thread; Rubato is timed
on one and on all. Where HiGHS does not end within the limit the ratio is a lower bound and says so. Needs
python3-scipy; skips with status 77.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

try:
    import numpy as np
    import scipy
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_matrix
except ImportError:
    print("skipped: python3-scipy is not on this machine")
    sys.exit(77)

# HiGHS accepts plans that break a constraint by 1e-6 in its units. In microseconds that is below the rounding of a sum
# of times; in seconds or with the budget scaled to 1 it answers an easier question (and is up to twice as fast).
US_PER_S = 1e6
SAME = 1e-9  # relative: HiGHS's absolute gap of 1e-6 J, and rounding
RUNS = 3  # of HiGHS; the median counts


def ours(program, kernels, clocks):
    """Rubato's times and answer; the instance as [kernels x clocks] arrays."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "instance.bin"
        done = subprocess.run([program, str(kernels), str(clocks), str(file)], capture_output=True, text=True, check=True)
        time_s, energy_j = np.fromfile(file).reshape(2, kernels, clocks)
    return json.loads(done.stdout), time_s, energy_j


def highs(time_s, energy_j, budget_s, limit_s):
    """HiGHS's result, its plan's energy and time, and the wall and CPU time it took."""
    rows, clocks = time_s.shape
    cells = rows * clocks
    one_each = csr_matrix((np.ones(cells), np.arange(cells), np.arange(0, cells + 1, clocks)), shape=(rows, cells))
    times_us = csr_matrix(US_PER_S * time_s.ravel()[None, :])
    wall, cpu = time.perf_counter(), time.process_time()
    found = milp(energy_j.ravel(), constraints=[LinearConstraint(one_each, 1, 1),
                                                LinearConstraint(times_us, -np.inf, US_PER_S * budget_s)],
                 integrality=np.ones(cells), bounds=Bounds(0, 1), options={"mip_rel_gap": 0.0, "time_limit": limit_s})
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    plan = None
    if found.x is not None:
        picked = np.arange(rows), found.x.reshape(rows, clocks).argmax(axis=1)
        plan = energy_j[picked].sum(), time_s[picked].sum()
    return found, plan, wall, cpu


def compare(program, kernels, clocks, limit_s):
    """Prints what both took and found; false if the answers contradict each other."""
    mine, time_s, energy_j = ours(program, kernels, clocks)
    runs = []
    while len(runs) < RUNS and (not runs or runs[-1][0].status == 0):
        runs.append(highs(time_s, energy_j, mine["budget_s"], limit_s))
    wall_s, cpu_s = median(run[2] for run in runs), median(run[3] for run in runs)
    found, plan = runs[-1][:2]
    proven = found.status == 0
    bound = "" if proven else ">= "
    print(f"{kernels:,} x {clocks}: Rubato {1e3 * mine['cpu_s']:.3f} ms on one thread (CPU; median of {mine['runs']}), "
          f"{1e3 * mine['wall_all_s']:.3f} ms on {mine['threads']} (wall), {'proven' if mine['proven'] else 'NOT PROVEN'}; "
          f"HiGHS {cpu_s:.3f} s (CPU; wall {wall_s:.3f} s; median of {len(runs)}), "
          f"{'proven' if proven else 'stopped by the limit'}")
    print(f"  ratio {bound}{cpu_s / mine['cpu_s']:,.0f}x of CPU times, {bound}{wall_s / mine['wall_all_s']:,.0f}x of wall times")
    if plan is None:
        print(f"  HiGHS found no plan: {found.message}")
        return mine["proven"]
    above, over = plan[0] / mine["energy_j"] - 1, plan[1] / mine["budget_s"] - 1
    print(f"  HiGHS's plan: energy {above:+.1e} of Rubato's, time {over:+.1e} of the budget", flush=True)
    # Within the budget none costs less than a proven plan, and two proven ones cost the same.
    return mine["proven"] and over <= SAME and above >= -SAME and (not proven or above <= SAME)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="MCKP_INSTANCE")
    parser.add_argument("sizes", nargs="*", metavar="KERNELSxCLOCKS", default=["46x66", "200x66", "1000x66"])
    parser.add_argument("--limit", type=float, default=600, metavar="S", help="seconds for HiGHS on one instance [600]")
    options = parser.parse_args()
    print(f"scipy {scipy.__version__}, relative gap 0, limit {options.limit:g} s")
    agreed = [compare(options.program, *map(int, size.split("x")), options.limit) for size in options.sizes]
    if not all(agreed):
        print("error: the answers contradict each other")
        sys.exit(1)


main()
