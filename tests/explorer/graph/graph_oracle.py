#!/usr/bin/env python3
"""Compares lower bounds on random execution graphs with HiGHS, an LP solver.

Usage: graph_oracle.py GRAPH_LP_DATA; exit status 77: skipped.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tools")]
from highs import coo_matrix, linprog, np  # noqa: E402

GRAPHS = 150
TOLERANCE = 1e-9  # relative


def least_energy_j(graph, deadline_s):
    """Every launch on the hull of its clocks: shares of each, starts, and the last end T.

    Times and energies are scaled to about 1, where HiGHS' tolerances are small.
    """
    options, scale_s, scale_j = graph["options"], deadline_s, max(graph["idle_w"] * deadline_s, 1e-9)
    first = np.concatenate([[0], np.cumsum([len(o) for o in options])])
    shares, count = int(first[-1]), len(options)
    start, end = shares, shares + count  # columns: shares, starts, T
    time_of = np.array([t for o in options for t, _ in o]) / scale_s
    cost_of = np.array([e for o in options for _, e in o]) / scale_j
    rows, columns, values, limits = [], [], [], []

    def add(terms, limit):
        for column, value in terms:
            rows.append(len(limits))
            columns.append(column)
            values.append(value)
        limits.append(limit)

    def duration(i):
        return [(c, time_of[c]) for c in range(first[i], first[i + 1])]

    for before, after, lag_s in graph["arcs"]:
        add([(start + before, 1.0), (start + after, -1.0), *duration(before)], -lag_s / scale_s)
    for i in range(count):
        add([(start + i, 1.0), (end, -1.0), *duration(i)], 0.0)
    one_each = coo_matrix((np.ones(shares), (np.repeat(np.arange(count), np.diff(first)), np.arange(shares))),
                          shape=(count, end + 1))
    found = linprog(np.concatenate([cost_of, np.zeros(count), [graph["idle_w"] * scale_s / scale_j]]),
                    A_ub=coo_matrix((values, (rows, columns)), shape=(len(limits), end + 1)), b_ub=limits,
                    A_eq=one_each, b_eq=np.ones(count), bounds=[(0, None)] * end + [(0, 1.0)], method="highs-ds",
                    options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10})
    return found.fun * scale_j if found.status == 0 else None


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graphs.jsonl"
        subprocess.run([sys.argv[1], str(path)], check=True, capture_output=True,
                       env={**os.environ, "RC_PARAMS": f"seed=20261122 max_success={GRAPHS}"})
        graphs = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(graphs) == GRAPHS
    worst, compared = 0.0, 0
    for graph in graphs:
        for bound in graph["bounds"]:
            highs_j = least_energy_j(graph, bound["deadline_s"])
            if highs_j is None:
                continue
            compared += 1
            difference = bound["bound_j"] / highs_j - 1
            worst = max(worst, abs(difference))
            assert abs(difference) <= TOLERANCE, f"bound {bound['bound_j']!r} J, HiGHS {highs_j!r} J: {graph}"
    assert compared >= 3 * GRAPHS
    print(f"{compared} bounds of {GRAPHS} graphs: largest difference {worst:.1e}")


main()
