#!/usr/bin/env python3
"""What `rubato validate --intervals` would show of plans if every interval were exactly right, by chance alone.

Campaigns as explorer/confidence/campaigns.cpp plays them: kernels in four groups, eight steps of half of a group's kernels each, eight plans
a step. A plan's error is a part that all kernels share and one of each kernel (Student's t, four degrees of freedom), weighted by how far the plan
takes the kernel's clock; a campaign has one truth for all its plans. Intervals hold 90 % of what plans of that kind miss, by construction.
Prints for so many kernels the share inside: 5th, 50th and 95th percentile of 100 such rows, and how many of them lie in 85 to 95 %, below and above.
Standard library only; about a minute.
"""
import random
import statistics

GROUPS, STEPS, REACHES = 4, 8, (0.6, 0.7, 0.85, 1.0)
SHARED_TO_OWN = 0.5  # as fitted specs have it: 0 to 1


def student(draw):
    return draw.gauss(0, 1) / (sum(draw.gauss(0, 1) ** 2 for _ in range(4)) / 4) ** 0.5


def step_weights(kernels, draw):
    chosen = [k for k in range(kernels) if draw.random() < 0.5] or [draw.randrange(kernels)]
    times = {k: draw.randint(1, 5) for k in chosen}
    total = sum(times.values())
    return [times.get(k, 0) / total for k in range(kernels)]


def plans_of(kernels, draw):
    """Weights of the kernels' errors and of the shared one: one clock for all, and one for each kernel."""
    plans = []
    for _ in range(STEPS):
        weights = step_weights(kernels, draw)
        for reach in REACHES:
            plans.append(([reach * w for w in weights], reach))
            own = [w * min(1.0, reach * draw.choice((0.0, 1.0, 1.2))) for w in weights]
            plans.append((own, sum(own)))
    return [plan for plan in plans if plan[1] > 0]


def miss(plan, errors, shared):
    weights, reach = plan
    return sum(w * e for w, e in zip(weights, errors)) + SHARED_TO_OWN * reach * shared


def row_share(sizes, draw, draws=250):
    inside = count = 0
    for kernels in sizes:
        imagined = [([student(draw) for _ in range(kernels)], draw.gauss(0, 1)) for _ in range(draws)]
        truth = ([student(draw) for _ in range(kernels)], draw.gauss(0, 1))
        for plan in plans_of(kernels, draw):
            misses = sorted(miss(plan, *one) for one in imagined)
            inside += misses[round(0.05 * (draws - 1))] <= miss(plan, *truth) <= misses[round(0.95 * (draws - 1))]
            count += 1
    return 100 * inside / count


def main():
    draw = random.Random(20260113)
    print("kernels  5th 50th 95th  in 85..95  below  above")
    for kernels in (14, 18, 21, 35):
        sizes = [len(range(g, kernels, GROUPS)) for g in range(GROUPS)]
        shares = [row_share(sizes, draw) for _ in range(100)]
        ends = statistics.quantiles(shares, n=20)
        below, above = sum(s < 84.5 for s in shares), sum(s > 95.5 for s in shares)
        print(f"{kernels:7} {ends[0]:4.0f} {ends[9]:4.0f} {ends[-1]:4.0f} {100 - below - above:10} {below:6} {above:6}")


if __name__ == "__main__":
    main()
