#!/usr/bin/env python3
"""`rubato pipeline` as a user runs it: tables, files, database, messages and exit statuses.

Usage: command_test.py RUBATO
"""
import json
import re
import sqlite3
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from pipeline_runs import PointSolution, check, exit_status, expect, plan_file, profile, rubato


def check_plan(folder):
    code, out, err = rubato(
        folder, "explore", "--profile", "p.csv", "--blocked-power", "80", "--microbatches", "5", "--slack", "0,10",
        "--timeline", "new/g.svg", "--db", "r.db", "--plan-file", "new/plan.json", "--json")
    for timeline, file in (("new/p.html", "new/zeus"), ("new/t.json", "new/zeus")):
        again = rubato(folder, "explore", "--profile", "p.csv", "--blocked-power", "80", "--microbatches", "5", "--slack", "0,10", "--timeline", timeline,
                       "--plan-file", file, "--json")
        check(f"the same with other files: {again[2]}", again[0] == 0 and json.loads(again[1])["plans"] == json.loads(out)["plans"])
    check(f"plan works: {err}", code == 0)
    base, tight, loose = json.loads(out)["plans"]
    check("plans save energy in time", tight["time_s"] <= base["time_s"] and tight["energy_j"] < base["energy_j"])
    check("more time, less energy", loose["energy_j"] < tight["energy_j"])
    check("measured profiles have no interval", tight["energy_change_low_pct"] is None and tight["energy_change_expected_pct"] is None)
    check("bounds hold", all(p["lower_bound_j"] <= p["energy_j"] for p in (tight, loose)))

    stages = PointSolution(folder / "new/zeus/freqs_pipeline_00000.py").schedules
    order = ["forward"] * 3 + ["backward", "forward", "backward", "forward"] + ["backward"] * 3
    check("Zeus lists the stages' passes in order", len(stages) == 3 and [kind for kind, _ in stages[0]] == order)
    check("Zeus lists measured clocks", all(mhz in range(850, 1401, 50) for row in stages for _, mhz in row))

    file = plan_file(folder / "new/plan.json")
    passes = [[(p["pass"], file["clocks"][p["clock"]]["core_mhz"]) for p in gpu["segments"]] for gpu in file["plans"][0]["gpus"]]
    check("our plan file and Zeus's say the same", passes == stages)
    check("the answer first, then more slack", [(plan["role"], round(plan["slack_pct"], 9)) for plan in file["plans"]] == [("answer", 0), ("slower", 10)])
    check("its promise is what was printed", file["plans"][0]["promise"]["energy_j"] == tight["energy_j"] and
          file["plans"][1]["promise"]["time_s"] == loose["time_s"])
    for plan in file["plans"]:
        check("a stage's passes and waits are a step", all(abs(sum(p["time_s"] for p in gpu["segments"]) / plan["promise"]["time_s"] - 1) < 1e-9 for gpu in plan["gpus"]))
        check("and all stages' its energy", abs(sum(p["energy_j"] for gpu in plan["gpus"] for p in gpu["segments"]) / plan["promise"]["energy_j"] - 1) < 1e-9)
    check("a profile names no GPU", file["gpu"] is None)

    svg = ElementTree.parse(folder / "new/g.svg").getroot()
    titles = [t.text for t in svg.iter("{http://www.w3.org/2000/svg}title")]
    check("the Gantt chart shows each pass of three runs", len(titles) == 3 * 30)
    page = (folder / "new/p.html").read_text()
    document = json.loads(re.search('id="data">(.*?)</script>', page, re.DOTALL)[1])
    check("the page holds the Gantt chart, the frontier and every plan", document["sections"][0]["svg"].count("<title>") == 3 * 30 and
          len(document["tables"]["front"]["rows"]) > 2 and len(document["tables"]["plans"]["rows"]) == 3)

    events = json.loads((folder / "new/t.json").read_text())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    check("the timeline has a row per stage and a process per run",
          {(e["pid"], e["tid"]) for e in slices} == {(p, s) for p in (1, 2, 3) for s in (1, 2, 3)})
    by_row = {}
    for e in sorted(slices, key=lambda e: e["ts"]):
        row = (e["pid"], e["tid"])
        check("slices of a row do not overlap", e["ts"] >= by_row.get(row, 0) - 1e-6)
        by_row[row] = e["ts"] + e["dur"]

    with sqlite3.connect(folder / "r.db") as db:
        stored = db.execute("SELECT kind, energy_j FROM v_plans ORDER BY 1, 2").fetchall()
        check("the database has the plans", [row[0] for row in stored] == ["pipeline"] * 2)
        check("stored is what was printed", abs(max(row[1] for row in stored) - tight["energy_j"]) < 1e-9)
        all_plans = db.execute("SELECT kind, time_s <= (1 + slack_pct / 100) * (1 + 1e-9) * time_s / (1 + time_change_pct / 100) FROM v_plans").fetchall()
        check("they are among all plans, each with its slack", all_plans == [("pipeline", 1)] * 2)
        total, = db.execute("SELECT sum(energy_j) FROM v_segments WHERE plan_id = 1").fetchone()
        kinds, = db.execute("SELECT sum(energy_j) FROM v_kernels WHERE plan_id = 1").fetchone()
        whole, = db.execute("SELECT energy_j FROM v_plans WHERE plan_id = 1").fetchone()
        check("passes add up to their kinds, and to the plan but for waiting", abs(total / kinds - 1) < 1e-12 and 0.5 * whole < total < whole)
        check("foreign keys hold", not db.execute("PRAGMA foreign_key_check").fetchall())


def check_order(folder):
    # A file that cannot be written does not cost what was stored.
    code, out, err = rubato(folder, "explore", "--profile", "p.csv", "--blocked-power", "80", "--db", "kept.db", "--timeline", "/proc/no/g.svg")
    check(f"a folder that cannot be made is an error: {err}", code == 4 and "/proc/no" in err)
    with sqlite3.connect(folder / "kept.db") as db:
        check("the run is stored", db.execute("SELECT count(*) FROM runs").fetchone() == (1,))


def check_switching(folder):
    common = ["--profile", "p.csv", "--blocked-power", "80", "--microbatches", "6", "--json"]
    code, out, err = rubato(folder, "latency-scan", *common, "--latencies-us", "0,1000,100000,500000", "--slack", "5")
    check(f"latency-scan works: {err}", code == 0)
    rows = json.loads(out)
    stalls = [row["stall_energy_change_pct"] for row in rows]
    check(f"latency costs savings: {stalls}", stalls[0] < 0 and stalls == sorted(stalls))
    check("asking ahead keeps more", all(row["ahead_energy_change_pct"] <= row["stall_energy_change_pct"] for row in rows))
    both = json.loads(rubato(folder, "latency-scan", *common, "--latencies-us", "0,1000", "--slack", "0,5")[1])
    check(f"slacks may be several: {both}", [(row["slack_pct"], row["latency_us"]) for row in both] == [(0, 0), (0, 1000), (5, 0), (5, 1000)]
          and both[2:] == rows[:2])
    expect(folder, ["explore", *common, "--switching", "spec"], 2, "--switching spec needs --gpu; a profile names no GPU")
    code, out, err = rubato(folder, "explore", *common[:-1], "--slack", "5", "--gpu", "a100-sxm4-80gb")
    check("a profile of a GPU that is named counts its changes", "a switch takes 22 ms" in " ".join(out.split()), out)
    expect(folder, ["explore", *common, "--switching", "stall=-1s"], 2, "stall is '-1s'; expected a number from 0 to 100 s")
    code, out, err = rubato(folder, "explore", *common, "--slack", "5", "--switching", "latency=100ms,stall=0,dwell=50ms")
    model = ["explore", "--model", "gpt3-xl", "--stages", "4", "--batch", "4", "--microbatches", "12", "--json"]
    waited, ahead = (json.loads(rubato(folder, *model, "--switching", f"{option}=500ms")[1])["plans"][1]["energy_j"]
                     for option in ("stall", "latency"))
    check(f"what is in time waiting for its changes is so where they are asked for ahead: {ahead}, {waited}", ahead <= waited)
    base, plan = json.loads(out)["plans"]
    check("a latency that is asked for ahead", plan["time_s"] <= plan["deadline_s"] and plan["energy_j"] < base["energy_j"])


def check_compare(folder):
    code, out, err = rubato(folder, "compare", "--profile", "p.csv", "--blocked-power", "80", "--microbatches", "6",
                            "--profile-scale", "0.1", "--json")
    check(f"compare works: {err}", code == 0)
    rows = {row["method"]: row for row in json.loads(out)}
    check("all methods are there", list(rows) == ["highest clocks", "one clock for all", "one clock per stage",
                                                  "around the last stage", "lowtime emulated"])
    for name, row in rows.items():
        check(f"ours is no dearer than {name} at its time: {row}", row["ours_energy_change_pct"] <= 1e-9)
        check(f"ours is no slower than {name} at its energy: {row}", row["ours_time_change_pct"] <= 1e-9)
    check("EnvPipe keeps the time", rows["around the last stage"]["time_change_pct"] <= 1e-9)
    check("EnvPipe saves", rows["around the last stage"]["energy_change_pct"] < 0)


def check_others(folder):
    common = ["--profile", "p.csv", "--blocked-power", "80", "--microbatches", "6"]
    for schedule in ("gpipe", "1f1b", "early-recompute", "zb-h1"):
        code, out, err = rubato(folder, "explore", *common, "--schedule", schedule, "--json")
        check(f"{schedule}: {err}", code == 0 and json.loads(out)["plans"][1]["energy_change_pct"] < 0)
    code, out, err = rubato(folder, "explore", *common, "--schedule", "interleaved", "--chunks", "2", "--json")
    check(f"interleaved: {err}", code == 0 and json.loads(out)["plans"][1]["energy_change_pct"] < 0)

    code, out, err = rubato(folder, "straggle", *common, "--data-parallel", "4", "--throttle", "1.2", "--lost-stage",
                            "--input-delay-ms", "50", "--factor", "1,1.3", "--db", "r.db", "--json")
    check(f"straggle works: {err}", code == 0)
    rows = json.loads(out)
    check("waiting replicas save more than the plan without a straggler",
          all(row["energy_change_pct"] <= row["intrinsic_change_pct"] + 1e-9 for row in rows))
    check("stragglers are slower", all(row["time_vs_baseline"] >= 1 for row in rows) and len(rows) == 5)
    code, out, err = rubato(folder, "scale", *common, "--global-batch", "24", "--replicas", "2,4", "--json")
    check(f"scale works: {err}", code == 0 and [row["microbatches"] for row in json.loads(out)] == [12, 6])

    # One stall per change of clock: the plan still ends in time, with fewer changes.
    code, out, err = rubato(folder, "explore", *common, "--slack", "3", "--switching", "stall=5ms", "--json")
    base, plan = json.loads(out)["plans"]
    check("plans keep their deadline with switching", plan["time_s"] <= plan["deadline_s"])
    check("and still save", plan["energy_j"] < base["energy_j"])


def check_model(folder):
    common = ["explore", "--model", "gpt3-xl", "--stages", "4", "--microbatches", "8", "--batch", "2", "--json"]
    per_pass = json.loads(rubato(folder, *common)[1])["plans"]
    code, out, err = rubato(folder, *common, "--clock-per", "kernel", "--switching", "free", "--list", "kernels,segments")
    check(f"a clock per kernel works: {err}", code == 0)
    tables = json.loads(out)
    per_kernel = tables["plans"]
    clocks = [row for row in tables["kernels"] if (row["stage"], row["pass"]) == (3, "forward")]
    check("every microbatch has a clock for every kernel of the last stage",
          sorted(m for row in clocks if row["kernel"] == "14_gemm_logits" for m in row["microbatches"].split())
          == [str(m) for m in range(8)])
    check("kernels of a pass differ in clock", len({row["clock"] for row in clocks}) > 1)
    check("passes are listed", len(tables["segments"]) == 4 * 8 * 2)
    check("a stage that waits draws no more than one that works",
          all(row["power_w"] > 0.5 * min(r["power_w"] for r in tables["segments"]) for row in tables["segments"]))
    code, out, err = rubato(folder, *common, "--clock-per", "kernel", "--switching", "free", "--plan-file", "k.json")
    file = plan_file(folder / "k.json")
    plan = file["plans"][0]
    check("clocks that differ within a pass cannot be set", plan["granularity"] == "kernel" and not plan["applicable"] and "differ within a pass" in plan["because"])
    listed = {}
    for kernel in file["kernels"]:
        listed.setdefault((kernel["gpu"], kernel["pass"], kernel["choice"]), set()).add(kernel["clock"])
    passes = {(g, p["pass"], p["choice"]): p["clock"] for g, gpu in enumerate(plan["gpus"]) for p in gpu["segments"]}
    check("the plan file has the clock of every kernel of every choice", set(passes) == set(listed))
    check("a pass has a clock of its own where its kernels share it",
          all((listed[key] == {clock}) if clock is not None else (len(listed[key]) > 1) for key, clock in passes.items()) and None in passes.values())
    expect(folder, [*common, "--clock-per", "kernel", "--plan-file", "z"], 2, "Zeus sets one clock per pass")
    expect(folder, [*common, "--plan-file", "z"], 2, "plan with one memory clock (--clocks 'mem=auto core=auto')")
    code, out, err = rubato(folder, *common, "--clocks", "mem=auto core=auto", "--plan-file", "z")
    check(f"which is what Zeus takes: {err}", code == 0)
    core = [*common[:-1], "--gpu", "a100-sxm4-80gb", "--clocks", "coarse", "--json"]
    code, out, err = rubato(folder, *core, "--plan-file", "z")
    check(f"Zeus takes modelled plans: {err}", code == 0)
    check("in whole MHz", all(type(mhz) is int for row in PointSolution(folder / "z/freqs_pipeline_00000.py").schedules for _, mhz in row))
    code, out, err = rubato(folder, "scale", *common[1:-1], "--global-batch", "16", "--replicas", "2", "--json")
    check(f"lowtime is emulated on modelled stages: {out}", json.loads(out)[0]["lowtime_change_pct"] < -1)
    check("the default clocks never switch", per_pass[0]["clock_switches"] == 0)
    check("the same baseline", abs(per_kernel[0]["energy_j"] / per_pass[0]["energy_j"] - 1) < 1e-12)
    check("clocks per kernel save more than clocks per pass",
          per_kernel[1]["energy_change_pct"] < per_pass[1]["energy_change_pct"] < 0)


def check_intervals(folder):
    """Changes of modelled stages lie in their intervals; of measured profiles there are none."""
    model = ["--model", "gpt3-xl", "--stages", "4", "--microbatches", "4", "--batch", "2", "--json"]
    measured = ["--profile", "p.csv", "--blocked-power", "80", "--microbatches", "6", "--json"]
    for arguments, ends in (
            (["straggle", "--factor", "1,1.2"], [("energy_change_pct", "energy_change_low_pct", "energy_change_high_pct")]),
            (["scale", "--global-batch", "12", "--replicas", "3", "--factor", "1"],
             [("energy_change_pct_straggler_1", "low_pct_straggler_1", "high_pct_straggler_1")]),
            (["compare"], [("energy_change_pct", "energy_change_low_pct", "energy_change_high_pct"),
                           ("ours_energy_change_pct", "ours_energy_change_low_pct", "ours_energy_change_high_pct")]),
            (["latency-scan", "--latencies-us", "10,100000"],
             [(f"{how}_energy_change_pct", f"{how}_energy_change_low_pct", f"{how}_energy_change_high_pct") for how in ("stall", "ahead")])):
        rows = json.loads(rubato(folder, *arguments, *model)[1])
        for value, low, high in ends:
            check(f"{arguments[0]}: {value} lies in its interval: {rows}", all(row[low] - 1e-9 <= row[value] <= row[high] + 1e-9 for row in rows))
            check(f"{arguments[0]}: {value} is uncertain", any(row[high] - row[low] > 0.1 for row in rows))
        if "--global-batch" not in arguments:
            rows = json.loads(rubato(folder, *arguments, *measured)[1])
            check(f"{arguments[0]}: no interval of a profile", all(row[low] is None for row in rows for _, low, _ in ends))


def check_answers(folder):
    """People read what was asked, and the decisive numbers, before the table; they are those that programs read."""
    measured = ["--profile", "p.csv", "--blocked-power", "80", "--microbatches", "6"]
    model = ["--model", "gpt3-xl", "--stages", "4", "--microbatches", "4", "--batch", "2"]

    def both(*arguments):
        text = rubato(folder, *arguments)[1]
        return " ".join(text.split("\n\n")[0].split()), json.loads(rubato(folder, *arguments, "--json")[1])

    def signed(value):
        return f"{value:+.2f} %"

    def energies(rows, key="energy_change_pct"):
        values = sorted((row[key] for row in rows), reverse=True)
        return signed(values[0]), signed(values[-1])

    said, rows = both("straggle", *measured, "--factor", "1.1,1.3")
    least, most = energies(rows)
    check(f"straggle: {said}", said.startswith("1f1b, 3 stages, 6 microbatches, p.csv A pipeline that waits") and
          f"energy {least} for 'x 1.1' to {most} for 'x 1.3'. With the plan that knows only its own: {energies(rows, 'intrinsic_change_pct')[0]} to" in said)
    said, rows = both("straggle", *model, "--factor", "1.2")
    low, high = (signed(rows[0][f"energy_change_{end}_pct"])[:-2] for end in ("low", "high"))
    check(f"an answer has the interval, and one number of one row: {said}",
          f"energy {signed(rows[0]['energy_change_pct'])} (90 %: {low} to {high}) for 'x 1.2'. With" in said and " to -" not in said.partition("With")[2])
    said, rows = both("scale", *measured, "--global-batch", "24", "--replicas", "2,4", "--factor", "1,1.2")
    least, most = energies(rows, "energy_change_pct_straggler_1.2")
    check(f"scale: {said}", said.startswith("1f1b, 3 stages, 24 microbatches over all replicas, p.csv In the same time: energy ") and
          f"1.2 times as long: energy {least} (" in said and f" to {most} (" in said and " GPUs)." in said)
    said, rows = both("compare", *measured)
    closest = max(rows[1:], key=lambda row: row["ours_energy_change_pct"])
    check(f"compare: {said}", f"in the time of the highest clocks: energy {signed(rows[0]['ours_energy_change_pct'])}" in said and
          f"Closest is {closest['method']} ({closest['source']}): energy {signed(closest['energy_change_pct'])}" in said and
          f"ours takes {abs(closest['ours_energy_change_pct']):.2f} % less." in said)
    said, rows = both("front", *measured)
    least = min(rows, key=lambda row: row["energy_j"])
    check(f"front: {said}", f"({signed(rows[0]['time_change_pct'])}): energy {signed(rows[0]['energy_change_pct'])} at most." in said and
          f"Least energy: {signed(least['energy_change_pct'])}, in {least['time_s']:.5g} s" in said)
    check("which is not the slowest: a pipeline that waits draws power", least["time_s"] < rows[-1]["time_s"])
    said, rows = both("latency-scan", *measured, "--latencies-us", "10,100000", "--slack", "5")
    check(f"latency-scan: {said}", f"waits for its clock: energy {signed(rows[0]['stall_energy_change_pct'])} if a switch takes 10 us, "
          f"{signed(rows[1]['stall_energy_change_pct'])} if it takes 100 ms. A stage that runs on meanwhile: energy {signed(rows[0]['ahead_energy_change_pct'])}" in said)
    said, rows = both("explore", *model)
    plan = rows["plans"][1]
    low, high = (f"{abs(plan[f'energy_change_{end}_pct']):.1f}" for end in ("high", "low"))
    check(f"plan: {said}", f"{-plan['energy_change_pct']:.1f} % energy (90 %: {low} to {high}), time" in said or plan["energy_change_pct"] == 0)


def check_profile(folder):
    examples = Path(__file__).resolve().parents[4] / "docs/examples/pipeline"
    ranks, power = str(examples / "rank*.json.gz"), str(examples / "rank*.power.csv")
    code, out, err = rubato(folder, "profile", "--ranks", ranks, "--power", power, "-o", "new/stages.csv")
    check(f"profile works: {err}", code == 0 and "4 ranks, 4 stages, 6 microbatches, 3 steps, 1f1b" in out)
    command = next(line for line in out.splitlines() if line.startswith("  rubato pipeline describe ")).partition(" -o ")[0].split()[3:]
    check("and explore takes what it describes", "\n  rubato explore new/stages.json\n" in out)
    check("waiting draws 93 W", abs(float(command[command.index("--blocked-power") + 1]) - 93) < 3)
    code, out, err = rubato(folder, "explore", *command, "--json")
    check(f"the command that it prints works: {err}", code == 0)
    base, plan = json.loads(out)["plans"]
    check(f"and saves: {plan}", plan["time_s"] <= base["time_s"] * (1 + 1e-9) and plan["energy_change_pct"] < -10)
    code, out, err = rubato(folder, "profile", "--ranks", ranks, "--per-clock", "--json")
    rows = json.loads(out)
    check("intervals hold the estimate", all(row["time_low_ms"] <= row["time_ms"] <= row["time_high_ms"] for row in rows))
    check("one clock is the captured one", sum(row["captured"] for row in rows) == 8)
    expect(folder, ["profile", "--ranks", "none*.json"], 2, "no file is named like 'none*.json'")
    expect(folder, ["profile", "--ranks", str(examples / "rank0.pt.trace.json.gz")], 3, "expected the ranks of a pipeline")
    expect(folder, ["profile", "--ranks", ranks, "--power", str(examples / "rank0.power.csv")], 3,
           "1 power logs for 4 ranks; expected one of each")
    check_profile_power(folder, examples, ranks, power)
    some = ["--ranks", *(str(examples / f"rank{rank}.pt.trace.json.gz") for rank in (0, 1, 3))]
    code, out, err = rubato(folder, "profile", *some, "-o", "some.csv")
    check(f"no plan is proposed of a part of the stages: {out}{err}", code == 0 and "next:" not in out)
    expect(folder, ["profile", "--ranks", ranks, "--power-gpu", "0"], 2, "--power-gpu needs --power")
    for watts, expected in (("-5", "expected a number >= 0"), ("nan", "expected a finite number")):
        expect(folder, ["profile", "--ranks", ranks, f"--blocked-power={watts}"], 2, expected)
    expect(folder, ["profile", "--ranks", str(examples.parent / "run.pt.trace.json.gz")], 3, "nothing is sent or received")


def check_profile_power(folder, examples, ranks, power):
    """Logs of several GPUs in one file, and logs at different clocks."""
    logs = [(examples / f"rank{rank}.power.csv").read_text().splitlines() for rank in range(4)]
    head = logs[0][0].split(", ")
    check(f"the examples are of nvidia-smi: {head}", "index" in head)
    rows = [row.split(", ") for log in logs for row in log[1:]]
    for rank, log in enumerate(logs):
        for row in rows[sum(len(l) - 1 for l in logs[:rank]):][:len(log) - 1]:
            row[head.index("index")] = str(rank)
    rows.sort(key=lambda row: row[head.index("timestamp")])
    (folder / "node.csv").write_text("\n".join(", ".join(row) for row in [head, *rows]) + "\n")
    apart = rubato(folder, "profile", "--ranks", ranks, "--power", power, "--json")
    node = ["profile", "--ranks", ranks, "--power", "node.csv", "--json"]
    check("one log of a node serves all ranks", apart[0] == 0 and rubato(folder, *node, "--power-gpu", "0,1,2,3")[1] == apart[1])
    expect(folder, node, 2, "interleaved samples of 4 GPUs: index 0")
    expect(folder, [*node, "--power-gpu", "0"], 3, "1 power logs for 4 ranks; expected one of each")
    core = next(i for i, name in enumerate(head) if name.startswith("clocks.") and "sm" in name or "gr" in name)
    slow = [head, *([*row[:core], "900 MHz", *row[core + 1:]] for row in (line.split(", ") for line in logs[2][1:]))]
    (folder / "slow.csv").write_text("\n".join(", ".join(row) for row in slow) + "\n")
    mixed = ["profile", "--ranks", ranks, "--power", *(str(examples / f"rank{rank}.power.csv") for rank in (0, 1)), "slow.csv",
             str(examples / "rank3.power.csv")]
    expect(folder, mixed, 3, "profile all ranks at the same clocks, or give --captured-clock")
    code, out, err = rubato(folder, *mixed, "--captured-clock", "auto/1410")
    check(f"which overrides: {err}", code == 0)


def check_messages(folder):
    common = ["--profile", "p.csv", "--blocked-power", "80"]
    expect(folder, ["explore", *common, "--bogus"], 2, "rubato explore: unknown option '--bogus'")
    expect(folder, ["plan"], 2, "rubato pipeline: unknown word 'plan'")
    expect(folder, ["explore"], 2, "needs either --profile or --model")
    expect(folder, ["explore", "--profile", "p.csv"], 2, "--profile needs --blocked-power")
    expect(folder, ["explore", *common, "--schedule", "1f1v"], 2, "did you mean '1f1b'?")
    expect(folder, ["explore", *common, "--stages", "5"], 3, "the profile has 3 stages; the pipeline has 5")
    expect(folder, ["explore", *common, "--slack", "-90"], 1, "no plan is faster than")
    expect(folder, ["explore", *common, "--ops", "x.csv"], 2, "needs both --ops and --edges")
    expect(folder, ["explore", "--model", "gpt3-xl", "--stages", "99"], 2, "99 stages for 24 layers; expected 1 to 24")
    expect(folder, ["explore", *common, "--schedule", "zb-h1", "--plan-file", "."], 2,
           "Zeus schedules hold forward and backward passes; found input_gradient of microbatch 0, stage 0")
    expect(folder, ["explore", *common, "--list", "kernels"], 2, "--list kernels: a profile holds times of passes, not of kernels")
    expect(folder, ["straggle", *common, "--time", "1"], 2, "the slowest pipeline takes 1 s; expected at least")
    expect(folder, ["straggle", *common, "--throttle", "0.5"], 2, "slowdown is 0.5; expected a number >= 1")
    expect(folder, ["scale", *common, "--global-batch", "10", "--replicas", "3"], 2, "cannot share 10 microbatches")
    expect(folder, ["explore", "--profile", "absent.csv", "--blocked-power", "80"], 4, "absent.csv")


with tempfile.TemporaryDirectory() as name:
    profile(Path(name))
    for part in (check_plan, check_order, check_switching, check_compare, check_others, check_model, check_intervals, check_answers, check_profile, check_messages):
        part(Path(name))
sys.exit(exit_status())
