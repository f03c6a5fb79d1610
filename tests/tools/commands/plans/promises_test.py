#!/usr/bin/env python3
"""What every plan promises, over kinds of runs, granularities, slacks and GPUs: it ends in time by the simulator, it is not below
its bound, more slack is never dearer, a late one is not exported, and as played no plan takes energy after its end. Then: where
events stand in a file changes nothing, a generated run is of the GPU that made it, and one stage is planned as one GPU is.

Usage: promises_test.py RUBATO SOURCE_DIR
"""
import contextlib
import gzip
import json
import random
import sqlite3
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from checks import check, exit_status, finished, run  # noqa: E402

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
FOLDER = Path(tempfile.mkdtemp())
CAPTURE = SOURCE / "docs/examples/run.pt.trace.json.gz"
SLACKS = (0, 1, 3, 5, 10, 20)
ROUNDING_PCT = 1e-6


def rubato(*words, status=0):
    return finished(RUBATO, *words, "--quiet", status=status)


def explored(*words):
    """For all of the slack: laws of the planners. Margins for odds are searched for each slack by itself."""
    done = run(RUBATO, "explore", *words, "--odds", 0, "--json", "--quiet")
    check(f"{words}: ends", done.returncode in (0, 1), done.stderr)  # 1: late once switches count
    return json.loads(done.stdout)


def generated(name, *words):
    rubato("trace", "gen", *words, "-o", FOLDER / name)
    files = sorted(FOLDER.glob(name.replace(".json", "*.json")))
    return files


def check_plans(what, plans, time="time_change_pct", energy="energy_change_pct"):
    """Of one kind of plan each: in time, not below the bound, and no dearer with more slack."""
    by_kind = {}
    for plan in plans:
        if plan.get("slack_pct") is None or plan["status"] not in ("optimal", "feasible"):
            continue
        where = f"{what}, {plan['granularity']}, slack {plan['slack_pct']}"
        check(f"{where}: in time", plan[time] <= plan["slack_pct"] + ROUNDING_PCT, plan[time])
        if plan.get("bound_change_pct") is not None:
            check(f"{where}: not below its bound", plan[energy] >= plan["bound_change_pct"] - ROUNDING_PCT, (plan[energy], plan["bound_change_pct"]))
        by_kind.setdefault(plan["granularity"], []).append((plan["slack_pct"], plan[energy]))
    for kind, points in by_kind.items():
        points.sort()
        for (less, dear), (more, cheap) in zip(points, points[1:]):
            # Segments of a graph are searched, for each slack by itself: what the search leaves differs by some hundredths.
            left_pct = 0.05 if kind == "segment" else ROUNDING_PCT
            check(f"{what}, {kind}: slack {more} is no dearer than {less}", cheap <= dear + left_pct, (dear, cheap))


def check_played(what, found):
    """As played: what is said to be kept is, plans that count changes are, and every clock is at or below the default."""
    played = [row for row in found["plans"] if row["counted_time_change_pct"] is not None]
    check_plans(f"{what} as played", [row for row in played if row["granularity"] == "segment"], "counted_time_change_pct", "counted_energy_change_pct")
    for row in played:
        where = f"{what}, {row['granularity']}, slack {row['slack_pct']}"
        late = row["counted_time_change_pct"] > row["slack_pct"] + ROUNDING_PCT
        check(f"{where}: said to be late", late == (not row["in_time"]), row)
        check(f"{where}: a segment plan is in time", row["granularity"] != "segment" or not late, row)
        check(f"{where}: no energy after the end", row["counted_energy_change_pct"] <= 3.0 * row["counted_time_change_pct"] + 1.0, row)


def check_export(what, db, found):
    """A plan that is late with its switches is refused, each other one is written with its promise."""
    with contextlib.closing(sqlite3.connect(db)) as stored:
        plans = stored.execute("SELECT granularity, slack_pct, plan_id FROM v_plans WHERE run_id = (SELECT max(run_id) FROM v_runs)").fetchall()
    for row in found["plans"]:
        if row["counted_time_change_pct"] is None:
            continue
        number = next(plan for per, slack_pct, plan in plans if per == row["granularity"] and abs(slack_pct - row["slack_pct"]) < 1e-9)
        late = not row["in_time"]
        done = run(RUBATO, "export", "--db", db, "--plan", "latest", "--plan-id", number)
        check(f"{what}, {row['granularity']}, slack {row['slack_pct']}: exported if in time", done.returncode == int(late), done.stderr)
        if not late:
            for plan in json.loads(done.stdout)["plans"]:
                check(f"{what}: exported in time", plan["promise"]["time_change_pct"] <= plan["slack_pct"] + 1e-6, plan["promise"])


def check_captured_runs():
    dp = ("--dp", 4, "--graph", "--cluster", "dgx-a100")
    runs = {
        "gpt3-xl, 4 ranks": (generated("dp4.json", "gpt3-xl", "--layers", 8, "--batch", 4, *dp), ()),
        "gpt3-medium, 4 microbatches": (generated("m4.json", "gpt3-medium", "--layers", 8, "--batch", 2, "--microbatches", 4, *dp), ()),
        "two stages": (generated("pp.json", "gpt3-small", "--layers", 4, "--batch", 8, "--pp", 2, "--microbatches", 4, *dp), ()),
        "tensor parallel on an H200": (generated("tp.json", "gpt3-small", "--layers", 4, "--batch", 8, "--tp", 2, "--graph", "--gpu", "h200-sxm5",
                                              "--cluster", "dgx-a100"), ()),
        "a capture": ([CAPTURE], ()),
        "a capture, changes of 100 ms": ([CAPTURE], ("--clocks", "coarse", "--switching", "latency=100ms")),
        "a capture, stalls": ([CAPTURE], ("--clocks", "coarse", "--switching", "latency=5ms,stall=3ms,dwell=20ms")),
    }
    slacks = ",".join(map(str, SLACKS))
    for what, (files, more) in runs.items():
        db = FOLDER / "runs.db"
        found = explored(*files, "--slack", slacks, "--per", "run,kernel,launch,segment", "--db", db, *more)
        check(f"{what}: has plans", len(found["plans"]) == 4 * len(SLACKS) + 1, len(found["plans"]))
        check_plans(what, [plan for plan in found["plans"] if plan["granularity"] != "segment"])
        for plan in found["plans"]:
            if plan["granularity"] == "segment":
                check_plans(f"{what}, alone", [plan])
        check_played(what, found)
        check_export(what, db, found)


def check_traces():
    rubato("trace", "gen", "gpt3-small", "--layers", 4, "--batch", 8, "-o", FOLDER / "step.json")
    for gpu in ("a100-sxm4-80gb", "rtx-3080-ti", "h100-sxm5"):
        for switching in ((), ("--switching", "latency=20ms")):
            asked = ("--per", "run,pass,kernel,segment", "--slack", ",".join(map(str, SLACKS)))
            found = explored(FOLDER / "step.json", "--gpu", gpu, *asked, *switching)
            check(f"{gpu}: has plans", sum(plan["goal"] != "default" for plan in found["plans"]) == 4 * len(SLACKS), len(found["plans"]))
            check_plans(f"a trace on {gpu} {switching}", found["plans"])


def check_pipelines():
    for switching in ((), ("--switching", "latency=20ms"), ("--switching", "latency=20ms,stall=5ms")):
        plans = json.loads(rubato("explore", SOURCE / "docs/examples/gpt3-175b-a100.csv", "--blocked-power", 83, "--microbatches", 4,
                                  "--slack", ",".join(map(str, SLACKS)), "--odds", 0, "--per", "pass", *switching, "--json").stdout)["plans"]
        found = [plan for plan in plans if plan["status"] in ("feasible", "optimal")]
        check(f"pipeline {switching}: has plans", len(found) == len(SLACKS), len(found))
        for plan in found:
            check(f"pipeline {switching}: in time", plan["time_s"] <= plan["deadline_s"] * (1 + 1e-9), plan)
            check(f"pipeline {switching}: not below its bound", plan["energy_j"] >= plan["lower_bound_j"] * (1 - 1e-9), plan)
        for less, more in zip(found, found[1:]):
            check(f"pipeline {switching}: more slack is no dearer", more["energy_j"] <= less["energy_j"] * (1 + 1e-9), (less, more))


def check_one_stage():
    """One stage with one microbatch is one GPU's step."""
    for model, gpu in (("gpt3-small", "rtx-3080-ti"), ("gpt3-medium", "a100-sxm4-80gb"), ("gpt3-small", "h100-sxm5")):
        rubato("trace", "gen", model, "--batch", 4, "-o", FOLDER / "one.json")
        for per in ("pass", "kernel"):
            asked = ("--slack", "0,1,2,5,10,20")
            step = [plan for plan in explored(FOLDER / "one.json", "--gpu", gpu, "--per", per, *asked)["plans"] if plan["goal"] != "default"]
            rubato("pipeline", "describe", "--model", model, "--batch", 4, "--gpu", gpu, "--stages", 1, "--microbatches", 1, "--clock-per", per, "--switching", "free",
                   "-o", FOLDER / "stage.json")
            stage = json.loads(rubato("explore", FOLDER / "stage.json", "--odds", 0, "--per", per, *asked, "--json").stdout)["plans"][1:]
            check(f"one stage of {model}: as many plans", len(step) == len(stage) == 6, (len(step), len(stage)))
            for one, other in zip(step, stage):
                check(f"one stage of {model} on {gpu} per {per}, slack {one['slack_pct']}: as good as explore",
                      other["energy_j"] <= one["energy_j"] * (1 + 1e-9), (one["energy_j"], other["energy_j"]))


def check_order_of_events():
    document = json.loads(gzip.open(CAPTURE).read())
    said = {}
    for seed in (None, 1, 2):
        if seed is not None:
            random.Random(seed).shuffle(document["traceEvents"])
        folder = FOLDER / f"order-{seed}"
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps(document))
        done = finished(RUBATO, "explore", folder / "run.json", "--slack", "1,5", "--clocks", "coarse", "--json", "--quiet")
        rubato("trace", "import", folder / "run.json", "-o", folder / "step.json")
        said[seed] = done.stdout.replace(str(folder), ""), (folder / "step.json").read_text().replace(str(folder), "")
    for seed in (1, 2):
        check(f"events in another order ({seed}): the same plans and intervals", said[seed][0] == said[None][0])
        check(f"events in another order ({seed}): the same step", said[seed][1] == said[None][1])


def check_generated_gpus():
    """A run made with a spec is of that spec, even where several are of its GPU."""
    for gpu in ("rtx-3080-ti", "rtx-3080-ti-2", "a100-sxm4-80gb", "v100-sxm2"):
        rubato("trace", "gen", "gpt3-small", "--layers", 2, "--batch", 2, "--graph", "--gpu", gpu, "-o", FOLDER / "gpu.json")
        found = explored(FOLDER / "gpu.json", "--per", "run")["run"][0]
        check(f"generated with {gpu}: taken as it", found["gpu"] == gpu, found["gpu"])
        check(f"generated with {gpu}: reproduced", abs(found["default_time_s"] / found["captured_s"] - 1) < 1e-6, found)
        rubato("trace", "import", FOLDER / "gpu.json", "-o", FOLDER / "folded.json")
        said = run(RUBATO, "explore", FOLDER / "folded.json", "--per", "run").stderr
        check(f"generated with {gpu} and folded: taken as it", f"taken as {gpu}, which it was generated with" in said, said)


def check_unchanged_plans():
    """The clock in effect by default is uncertain in nothing; a lower one takes between no time and the clocks' ratio more."""
    for clocks in (1410, "auto"):
        plan = explored(CAPTURE, "--per", "run", "--clocks", f"mem=1593 core={clocks}")["plans"][1]
        for end in ("time_change_low_pct", "time_change_high_pct", "energy_change_low_pct", "energy_change_high_pct"):
            check(f"core {clocks}, the default: nothing changes", abs(plan[end]) < ROUNDING_PCT, (end, plan[end]))
    rubato("trace", "gen", "gpt3-small", "--layers", 4, "--batch", 8, "-o", FOLDER / "step.json")
    for what, words in (("a capture", [CAPTURE]), ("a trace", [FOLDER / "step.json", "--gpu", "a100-sxm4-80gb"])):
        for mhz in (1305, 1110, 705):
            plans = explored(*words, "--per", "run", "--slack", 300, "--clocks", f"mem=1593 core={mhz}")["plans"]
            plan = next(plan for plan in plans if plan["goal"] != "default")
            if str(mhz) not in plan["clocks"]:
                continue
            most_pct = 100.0 * (1410 / mhz - 1)
            least_pct = min(0.0, plan["time_change_pct"])  # an interval holds what the model says
            check(f"{what} at {mhz} MHz: no less time", plan["time_change_low_pct"] >= least_pct - ROUNDING_PCT, plan["time_change_low_pct"])
            check(f"{what} at {mhz} MHz: no more than the clocks' ratio", plan["time_change_high_pct"] <= most_pct + ROUNDING_PCT,
                  (plan["time_change_high_pct"], most_pct))


for part in (check_captured_runs, check_traces, check_pipelines, check_one_stage, check_order_of_events, check_generated_gpus, check_unchanged_plans):
    part()
sys.exit(exit_status())
