#!/usr/bin/env python3
"""`rubato pipeline` with step ends, power limits, and energies that nobody measured.

Usage: choices_test.py RUBATO
"""
import json
import sqlite3
import sys
import tempfile
from pathlib import Path

from pipeline_runs import PointSolution, check, exit_status, expect, plan_file, profile, rubato


def check_step_end(folder):
    """Reductions and optimizers of a profile are part of the iteration, and slowed down where others wait."""
    rows = (folder / "p.csv").read_text()
    for stage in range(3):
        for kind, share in (("all_reduce", 0.1), ("optimizer", 0.9)):
            for mhz in range(1400, 800, -50):
                time = 0.5 * (1 - share + share * 1400 / mhz)
                rows += f"{stage},{kind},{mhz},{time!r},{time * (90 + 200 * (mhz / 1400) ** 3)!r}\n"
    (folder / "step.csv").write_text(rows)
    common = ["--blocked-power", "80", "--microbatches", "5", "--json"]
    without, _ = json.loads(rubato(folder, "explore", "--profile", "p.csv", *common)[1])["plans"]
    code, out, err = rubato(folder, "explore", "--profile", "step.csv", *common, "--list", "segments", "--plan-file", "step")
    check(f"a profile with step ends works: {err}", code == 0)
    tables = json.loads(out)
    base, plan = tables["plans"]
    check("a step takes a reduction and an optimizer longer", abs(base["time_s"] - without["time_s"] - 1) < 1e-9)
    check("and is planned", plan["energy_change_pct"] < 0 and plan["time_s"] <= base["time_s"] * (1 + 1e-9))
    ends = [row for row in tables["segments"] if row["pass"] in ("all_reduce", "optimizer")]
    check("each stage has one of each", len(ends) == 6)
    starts = {row["start_s"] for row in ends if row["pass"] == "optimizer"}
    check(f"optimizers wait for all gradients: {ends}", min(starts) >= max(r["start_s"] + r["time_s"] for r in ends if r["pass"] == "all_reduce") - 1e-9)
    stages = PointSolution(folder / "step/freqs_pipeline_00000.py").schedules
    check("Zeus gets the passes it knows", all(len(row) == 10 for row in stages))
    code, out, err = rubato(folder, "straggle", "--profile", "step.csv", *common, "--lost-stage")
    check(f"a lost stage has step ends, too: {err}", code == 0)
    (folder / "half.csv").write_text("".join(line for line in rows.splitlines(True) if not line.startswith("2,optimizer")))
    expect(folder, ["explore", "--profile", "half.csv", *common], 3, "no profile of the optimizer pass of stage 2")


def with_limits(folder):
    """Writes both.csv (limits besides the clocks of p.csv), limits.csv (in their place) copy.csv (a row twice) and twice.csv (a choice with two energies)."""
    _, *rows = (folder / "p.csv").read_text().splitlines()
    kept, tops = [], {}
    for row in rows:
        stage, kind, mhz, time, energy = row.split(",")
        kept.append(f"{stage},{kind},{mhz},400,{time},{energy}")
        tops.setdefault((stage, kind), (mhz, float(time), float(energy)))
    # Under a limit the clock that a pass needs is found for it: as fast as a clock, a tenth cheaper.
    limits = [f"{stage},{kind},{mhz},{watts},{time * slower!r},{energy * cheaper!r}"
              for (stage, kind), (mhz, time, energy) in tops.items()
              for watts, slower, cheaper in ((300, 1.05, 0.75), (200, 1.3, 0.6))]
    columns = "stage,instruction,frequency,power_limit,time,energy"
    for name, chosen in (("both.csv", [*kept, *limits]), ("limits.csv", [*(row for row in kept if ",1400,400," in row), *limits]),
                         ("copy.csv", [*kept, kept[0]]), ("twice.csv", [*kept, kept[0] + "1"])):
        (folder / name).write_text("\n".join([columns, *chosen]) + "\n")


def check_power_limits(folder):
    """Limits are choices besides clocks, or in their place."""
    with_limits(folder)
    common = ["explore", "--blocked-power", "80", "--microbatches", "5", "--slack", "6", "--json"]
    clocks = json.loads(rubato(folder, *common, "--profile", "p.csv")[1])["plans"]
    code, out, err = rubato(folder, *common, "--profile", "both.csv", "--list", "segments", "--plan-file", "limits.json")
    check(f"limits besides clocks work: {err}", code == 0)
    tables = json.loads(out)
    check("the baseline is the highest clock under the highest limit", abs(tables["plans"][0]["energy_j"] - clocks[0]["energy_j"]) < 1e-9)
    check("limits that save more are chosen", tables["plans"][1]["energy_j"] < clocks[1]["energy_j"])
    limits = [{row["power_limit_w"] for row in tables["segments"] if row["stage"] == s} for s in range(3)]
    check(f"and said, one a stage: {limits}", all(len(of) == 1 for of in limits) and limits != [{400}] * 3 and
          tables["plans"][1]["time_s"] <= tables["plans"][1]["deadline_s"])
    file = plan_file(folder / "limits.json")
    listed = [[file["clocks"][p["clock"]]["power_limit_w"] for p in gpu["segments"]] for gpu in file["plans"][0]["gpus"]]
    order = [[row["power_limit_w"] for row in tables["segments"] if row["stage"] == s] for s in range(3)]
    check("the plan file says the same", listed == order)
    code, out, err = rubato(folder, *common, "--profile", "limits.csv")
    check(f"limits in place of clocks work: {err}", code == 0 and json.loads(out)["plans"][1]["energy_change_pct"] < -10)
    check("a limit does not change within a stage", json.loads(out)["plans"][1]["clock_switches"] == 0)
    check("Zeus is told the one limit of all stages", rubato(folder, *common, "--profile", "limits.csv", "--plan-file", "l")[0] == 0 and
          "# Power limit, to be set once: 300 W" in (folder / "l/freqs_pipeline_00000.py").read_text())
    check("the database holds limits", rubato(folder, *common, "--profile", "limits.csv", "--db", "l.db")[0] == 0)
    with sqlite3.connect(folder / "l.db") as db:
        offered = {limit for limit, in db.execute("SELECT power_limit_w FROM clocks")}
        chosen = {limit for limit, in db.execute("SELECT power_limit_w FROM v_segments WHERE plan_id = 1")}
    check(f"those offered: {offered}", offered == {200, 300, 400})
    check("as the plan has them", chosen == {row["power_limit_w"] for row in json.loads(
        rubato(folder, *common, "--profile", "limits.csv", "--list", "segments")[1])["segments"]})
    check("a copied row counts once", json.loads(rubato(folder, *common, "--profile", "copy.csv")[1])["plans"] == clocks)
    expect(folder, [*common, "--profile", "twice.csv"], 3, "stage 0, forward at 1400 MHz and 400 W is given twice")
    expect(folder, [*common, "--profile", "p.csv", "--power-limits", "200"], 2, "--optimizer and --power-limits need --model")


def check_modelled_limits(folder):
    """Limits of a model's stages: what is drawn is at most the limit chosen, and no interval is claimed."""
    model = ["explore", "--model", "gpt3-xl", "--stages", "2", "--microbatches", "4", "--json", "--gpu", "a100-sxm4-80gb", "--clocks", "coarse"]
    free = json.loads(rubato(folder, *model, "--slack", "5")[1])["plans"]
    code, out, err = rubato(folder, *model, "--slack", "5", "--power-limits", "200,300,300,400", "--list", "segments", "--plan-file", "modelled.json")
    check(f"modelled limits work: {err}", code == 0)
    tables = json.loads(out)
    plan, passes = tables["plans"][1], tables["segments"]
    check("more choices save no less", plan["energy_j"] <= free[1]["energy_j"] * (1 + 1e-9) and plan["time_s"] <= plan["deadline_s"])
    check("no pass draws more than its limit", all(row["power_w"] <= row["power_limit_w"] * (1 + 1e-9) for row in passes))
    file = plan_file(folder / "modelled.json")
    check("others have the GPU's own to set back", {clock["power_limit_w"] for clock in file["clocks"]} <= {200, 300, 400})
    check("what is asked for is in the file, not what the limit leaves of it", all(clock["core_mhz"] is None or clock["core_mhz"] % 15 == 0 for clock in file["clocks"]))
    twice = rubato(folder, *model, "--power-limits", "300,300,200")[1]
    check("a limit given twice is one", json.loads(twice)["plans"] == json.loads(rubato(folder, *model, "--power-limits", "200,300")[1])["plans"])
    own = rubato(folder, *model, "--slack", "5", "--power-limits", "400")[1]
    check("the GPU's own limit is no other choice", json.loads(own)["plans"] == free)
    limited = [*model[1:], "--power-limits", "300"]
    limited.remove("--json")
    for subcommand in (["explore"], ["scale", "--global-batch", "8", "--replicas", "2"], ["straggle", "--factor", "1.1"], ["compare"],
                       ["latency-scan", "--latencies-us", "10"]):
        expect(folder, [*subcommand, *limited], 0, " 90 % " if subcommand == ["explore"] else "90 %: interval of the change")
    expect(folder, [*model, "--power-limits", "5"], 2, "power limit")
    expect(folder, [*model, "--power-limits", "200", "--clock-per", "kernel"], 2, "power limits are set for whole passes")


def check_no_energy(folder):
    """Passes of 0 J draw blocked power; without that, they are no energy to store."""
    rows = [row.rsplit(",", 1)[0] + ",0" if row.startswith("1,backward") else row for row in (folder / "p.csv").read_text().splitlines()]
    (folder / "zero.csv").write_text("\n".join(rows) + "\n")
    plan = ["explore", "--profile", "zero.csv", "--microbatches", "5", "--json"]
    code, out, err = rubato(folder, *plan, "--blocked-power", "80", "--slack", "10", "--list", "segments", "--db", "zero.db")
    check(f"it is told: {err}", code == 0 and "note: backward of stage 1 has an energy of 0 J at every clock" in err)
    drawn = {round(row["power_w"], 6) for row in json.loads(out)["segments"] if (row["stage"], row["pass"]) == (1, "backward")}
    check(f"and draws blocked power: {drawn}", drawn == {80})
    for subcommand in (plan, ["straggle", *plan[1:], "--factor", "1.1"]):
        expect(folder, [*subcommand, "--blocked-power", "0", "--db", "none.db"], 2, "backward of stage 1 has one of 0 J")
    expect(folder, [*plan, "--blocked-power", "80", "--schedule", "early-recompute"], 3, "an energy is 0 J")
    nothing = [",".join([*row.split(",")[:-1], "0"]) for row in rows[1:]]
    (folder / "nothing.csv").write_text("\n".join([rows[0], *nothing]) + "\n")
    expect(folder, ["explore", "--profile", "nothing.csv", "--microbatches", "5", "--blocked-power", "0"], 0, "0.0 % energy, time +0.0 %")


def check_modelled_step_end(folder):
    """A modelled optimizer takes as long as its bytes; gradients are reduced where there are replicas."""
    model = ["explore", "--model", "gpt3-xl", "--stages", "4", "--microbatches", "4", "--list", "segments", "--json"]
    without = json.loads(rubato(folder, *model)[1])["plans"]
    code, out, err = rubato(folder, *model, "--optimizer")
    check(f"a modelled optimizer works: {err}", code == 0)
    tables = json.loads(out)
    ends = {row["stage"]: row for row in tables["segments"] if row["pass"] == "optimizer"}
    check("every stage has one, none reduces gradients", len(ends) == 4 and len(tables["segments"]) == 4 * 4 * 2 + 4)
    # 30 bytes of each of a stage's parameters through some 912 GB/s: 6 layers of 12 x 2048^2, and 50304 x 2048 at both ends.
    for stage, row in ends.items():
        expected = (6 * 12 * 2048 ** 2 + (50304 * 2048 if stage in (0, 3) else 0)) * 30 / 912e9
        took = row["time_s"]
        check(f"the optimizer of stage {stage} takes as long as its bytes: {took}, {expected}", 1 < took / expected < 1.12)
    longest = max(row["time_s"] for row in ends.values())
    took = tables["plans"][0]["time_s"] - without[0]["time_s"]
    check(f"the step is longer by the longest: {took}, {longest}", 0.97 < took / longest < 1.001)
    code, out, err = rubato(folder, *model, "--optimizer", "--data-parallel", "8")
    reductions = [row for row in json.loads(out)["segments"] if row["pass"] == "all_reduce"]
    check(f"replicas reduce gradients: {err}", len(reductions) == 4 and all(row["time_s"] > 0 for row in reductions))
    code, out, err = rubato(folder, *model, "--optimizer", "--clock-per", "kernel", "--list", "kernels", "--plan-file", "end.json")
    kernels = {row["kernel"] for row in json.loads(out)["kernels"] if row["pass"] == "optimizer"}
    check(f"its kernels are listed: {kernels}", kernels == {"x4_grad_norm", "x6_adamw"})
    check("in the plan file, too", "x6_adamw" in (folder / "end.json").read_text())
    code, out, err = rubato(folder, *model[:4], "2", *model[5:], "--schedule", "interleaved", "--chunks", "2", "--optimizer",
                            "--data-parallel", "4", "--list", "kernels", "--slack", "10", "--plan-file", "chunks.json")
    check(f"chunks of a stage end the step together, at any memory clock: {err}", code == 0)
    rest = [row["stage"] for row in json.loads(out)["kernels"] if row["kernel"] == "d1_all_reduce_rest"]
    check(f"the kernels of every chunk are listed: {rest}", rest == [0, 1])
    check("in the plan file, too", (folder / "chunks.json").read_text().count("d1_all_reduce_rest") == 2)


def check_tied_embeddings(folder):
    """First and last stage reduce the gradients of their embeddings when both are ready, by an option or rows of the profile."""
    common = ["--blocked-power", "80", "--microbatches", "5"]
    given = ["--profile", "p.csv", *common, "--embedding-reduction-ms", "500"]
    without, _ = json.loads(rubato(folder, "explore", "--profile", "p.csv", *common, "--json")[1])["plans"]
    code, out, err = rubato(folder, "explore", *given, "--json", "--list", "segments", "--plan-file", "tied", "--timeline", "tied.svg", "--db", "tied.db")
    check(f"tied embeddings are planned: {err}", code == 0)
    tables = json.loads(out)
    base, plan = tables["plans"]
    check("the first stage is ready last, and both take half a second more", abs(base["time_s"] - without["time_s"] - 0.5) < 1e-9)
    check("in time, above the bound", plan["time_s"] <= base["time_s"] * (1 + 1e-9) and plan["lower_bound_j"] <= plan["energy_j"])
    ends = [row for row in tables["segments"] if row["pass"] == "embedding_all_reduce"]
    check("first and last stage take part", [row["stage"] for row in ends] == [0, 2])
    check("together, as long as given", all(abs(row["start_s"] - ends[0]["start_s"]) < 1e-9 and abs(row["time_s"] - 0.5) < 1e-9 for row in ends))
    check("at what waiting draws", all(abs(row["power_w"] - 80) < 1e-9 for row in ends))
    order = PointSolution(folder / "tied/freqs_pipeline_00000.py").schedules
    check("Zeus gets passes alone", all(len(row) == 10 for row in order))
    check("the picture names it", "E embedding all reduce" in (folder / "tied.svg").read_text())
    rows = (folder / "p.csv").read_text() + "0,embedding_all_reduce,1400,0.5,40\n2,embedding_all_reduce,1400,0.5,40\n"
    (folder / "tied.csv").write_text(rows)
    measured = json.loads(rubato(folder, "explore", "--profile", "tied.csv", *common, "--json")[1])["plans"][1]
    check("rows of the profile say the same", abs(measured["energy_j"] - plan["energy_j"]) < 1e-6 * plan["energy_j"])
    for command in (["front"], ["compare"], ["straggle", "--lost-stage"], ["scale", "--replicas", "2", "--global-batch", "10"], ["latency-scan"]):
        code, out, err = rubato(folder, *command, *given)
        check(f"{command[0]} knows them: {out}{err}", code == 0)
    model = ["explore", "--model", "gpt3-xl", "--microbatches", "4", "--gpu", "a100-sxm4-80gb", "--clocks", "coarse", "--embedding-reduction-ms", "5"]
    for more in ([], ["--clock-per", "kernel", "--list", "kernels", "--switching", "free"], ["--schedule", "interleaved", "--chunks", "2", "--optimizer"]):
        code, out, err = rubato(folder, *model, "--stages", "2", "--slack", "10", *more, "--plan-file", "tied.json")
        check(f"modelled stages have them: {err}", code == 0 and [p["pass"] for gpu in plan_file(folder / "tied.json")["plans"][0]["gpus"] for p in gpu["segments"]].count("embedding_all_reduce") == 2)
    expect(folder, [*model, "--stages", "1"], 2, "needs a first and a last stage")
    expect(folder, ["explore", "--profile", "p.csv", *common, "--embedding-reduction-ms", "0"], 2, "is 0; expected a number > 0")
    expect(folder, ["explore", *given, "--ops", "o.csv", "--edges", "e.csv"], 2, "does nothing with --ops")


with tempfile.TemporaryDirectory() as name:
    profile(Path(name))
    for part in (check_step_end, check_tied_embeddings, check_power_limits, check_modelled_limits, check_no_energy, check_modelled_step_end):
        part(Path(name))
sys.exit(exit_status())
