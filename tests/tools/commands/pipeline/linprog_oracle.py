#!/usr/bin/env python3
"""Compares frontiers with HiGHS, an LP solver, on random activity graphs, also in other units.

Usage: linprog_oracle.py RUBATO; exit status 77: skipped.
"""
import json
import random
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
from checks import finished  # noqa: E402
from highs import lil_matrix, linprog, np  # noqa: E402

RUBATO = sys.argv[1]
TOLERANCE = 1e-6  # relative; HiGHS keeps constraints to 1e-7


class Case:
    """Random passes of random stages, with random dependencies and lags beside the stages' order."""

    def __init__(self, rng):
        stages = rng.randint(1, 4)
        self.passes = [(rng.randrange(stages), rng.choice(["forward", "backward"])) for _ in range(rng.randint(2, 24))]
        self.passes += [(stage, kind) for stage in range(stages) for kind in ("forward", "backward")]
        self.stages = stages
        count = len(self.passes)
        self.edges = {}
        for after in range(1, count):
            for before in rng.sample(range(after), min(after, rng.randint(1, 3))):
                self.edges[before, after] = rng.choice([0.0, 0.0, rng.uniform(0, 0.02)])
        self.options = {}
        for stage in range(stages):
            for kind in ("forward", "backward"):
                self.options[stage, kind] = [(rng.uniform(0.01, 0.1), rng.uniform(5, 40))
                                             for _ in range(rng.choice([1, 2, 5, 38]))]
        self.blocked_w = rng.uniform(0, 90)

    def all_edges(self):
        edges = dict(self.edges)
        last = {}
        for i, (stage, _) in enumerate(self.passes):
            if stage in last:
                edges.setdefault((last[stage], i), 0.0)
            last[stage] = i
        return edges

    def write(self, folder, time_scale=1.0, energy_scale=1.0):
        ops = ["op,stage,kind,mb,pos"] + [f"{i},{s},{k},{i},{i}" for i, (s, k) in enumerate(self.passes)]
        edges = ["src,dst,lag_s"] + [f"{a},{b},{lag * time_scale}" for (a, b), lag in self.edges.items()]
        rows = ["stage,instruction,frequency,time,energy"]
        for (stage, kind), options in self.options.items():
            rows += [f"{stage},{kind},{1400 - i},{t * time_scale!r},{e * energy_scale!r}"
                     for i, (t, e) in enumerate(options)]
        for name, lines in (("ops", ops), ("edges", edges), ("profile", rows)):
            (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        return ["--ops", str(folder / "ops.csv"), "--edges", str(folder / "edges.csv"), "--profile",
                str(folder / "profile.csv"), "--blocked-power", repr(self.blocked_w * energy_scale / time_scale)]

    def least_energy_j(self, time_s):
        """Durations free between options, everything done by time_s, waiting paid until then."""
        count = len(self.passes)
        owner, time, cost = [], [], []
        for i, key in enumerate(self.passes):
            for t, e in self.options[key]:
                owner.append(i)
                time.append(t)
                cost.append(e - self.blocked_w * t)
        shares = len(owner)
        edges = self.all_edges()
        before = lil_matrix((len(edges) + count, shares + count))
        limit = np.zeros(len(edges) + count)
        lengths = lil_matrix((count, shares))
        one = lil_matrix((count, shares + count))
        for j, i in enumerate(owner):
            lengths[i, j] = time[j]
            one[i, j] = 1
        for row, ((a, b), lag) in enumerate(edges.items()):
            before[row, :shares] = lengths[a]
            before[row, shares + a] = 1
            before[row, shares + b] = -1
            limit[row] = -lag
        for i in range(count):
            before[len(edges) + i, :shares] = lengths[i]
            before[len(edges) + i, shares + i] = 1
            limit[len(edges) + i] = time_s
        found = linprog(np.array(cost + [0.0] * count), A_ub=before.tocsr(), b_ub=limit, A_eq=one.tocsr(),
                        b_eq=np.ones(count), bounds=(0, None), method="highs")
        assert found.status == 0, found.message
        return found.fun + self.blocked_w * self.stages * time_s


def frontier(arguments):
    rows = json.loads(finished(RUBATO, "pipeline", "front", "--json", *arguments).stdout)
    return np.array([[row["time_s"], row["energy_j"], row["lower_bound_j"]] for row in rows])


def main():
    rng = random.Random(20261120)
    worst = points = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(25):
            case = Case(rng)
            ours = frontier(case.write(folder))
            times = [ours[-1, 0], ours[0, 0] * (1 + 1e-9)] + [rng.uniform(ours[0, 0], ours[-1, 0]) for _ in range(4)]
            for time_s in times:
                # On a segment of the frontier, waiting at time_s included, energy is linear.
                energy_j = np.interp(time_s, ours[:, 0], ours[:, 1])
                highs_j = case.least_energy_j(time_s)
                difference = energy_j / highs_j - 1
                worst, points = max(worst, abs(difference)), points + 1
                assert abs(difference) < TOLERANCE, (number, time_s, energy_j, highs_j)
            for time_scale, energy_scale in ((1e-3, 1e-3), (1000, 1000), (1, 0.5)):  # powers stay those of a GPU
                other = frontier(case.write(folder, time_scale, energy_scale))
                assert other.shape == ours.shape, (number, time_scale, energy_scale)
                assert np.allclose(other / [time_scale, energy_scale, energy_scale], ours, rtol=1e-9, atol=0)
    print(f"{points} points of 25 graphs: largest difference from HiGHS {worst:.1e}; the same in other units")


main()
