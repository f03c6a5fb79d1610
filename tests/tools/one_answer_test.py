#!/usr/bin/env python3
"""One answer for a run: every command, the data of pages and the view name the same plan with the same clocks and changes.

Usage: one_answer_test.py RUBATO SOURCE_DIR
"""
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from checks import check, exit_status, finished

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
EXAMPLES = SOURCE / "docs" / "examples"
CAPTURE = ["--gpu", "a100-sxm4-80gb", "--captured-clock", "1593/1410", "--clocks", "coarse"]
EXPERIMENT = """schema = 1
name = "one answer"
[axes]
gpu = "rtx-3080-ti"
trace = "step.json"
granularity = ["run", "pass", "kernel", "segment"]
slack_pct = [0, 2]
"""


def rows(db, sql, *values):
    with sqlite3.connect(db) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(sql, values)]


def explored(folder, db, *words):
    """The headline of `explore --json`, with the plan's own row, and the stored headline."""
    said = json.loads(finished(RUBATO, "explore", *words, "--db", db, "--json").stdout)
    named = [row for row in said["answers"] if row["is_headline"]]
    check("explore names one headline", len(named) == 1, named)
    return said, named[0]


def close(a, b):
    return abs(a - b) < 1e-9


def page_answers(db, run, folder):
    page = folder / "page.html"
    finished(RUBATO, "report", "--db", db, "--run", run, "-o", page)
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    data = json.loads(found[1]) if found else None
    answers = data["tables"]["answers"]
    return [dict(zip(answers["columns"], row)) for row in answers["rows"]]


def exported(db, run, folder):
    done = subprocess.run([RUBATO, "export", "--plan", run, "--db", db, "-o", folder / "plan.json"], capture_output=True, text=True)
    return done.returncode, json.loads((folder / "plan.json").read_text()) if done.returncode == 0 else done.stderr


def one_run(folder, db, kind, words, targets):
    """Asks everything about the newest run, of a trace or captured."""
    said, named = explored(folder, db, *words)
    captured = kind == "capture"
    stored = rows(db, "SELECT * FROM v_answer WHERE kind = ? AND asked ORDER BY created_utc DESC, run_id DESC", kind)
    run_id = stored[0]["run_id"]
    stored = [row for row in stored if row["run_id"] == run_id]
    what = f"{kind} {run_id} ({' '.join(map(str, words[-2:]))})"
    check(f"{what}: the view has a row for each want", sorted(row["want"] for row in stored) == sorted(row["want"] for row in said["answers"]),
          (stored, said["answers"]))
    for row in said["answers"]:
        same = next(one for one in stored if one["want"] == row["want"])
        check(f"{what}: explore and v_answer, {row['want']}", row["granularity"] == same["granularity"] and
              row["is_headline"] == same["is_headline"] and close(row["energy_change_pct"], same["energy_change_pct"]) and
              close(row["time_change_pct"], same["time_change_pct"]), (row, same))
    answer = next(row for row in stored if row["is_headline"])
    plan, run = answer["plan_id"], str(run_id)

    page = next(row for row in page_answers(db, run, folder) if row["is_headline"])
    check(f"{what}: the page", page["plan_id"] == plan and page["set_to"] == answer["set_to"], (page, answer))
    shown = json.loads(finished(RUBATO, "show", run, "--db", db, "--json").stdout)["answer"][0]
    check(f"{what}: show", shown["plan_id"] == plan and shown["set_to"] == answer["set_to"], (shown, answer))
    for latest in (run, "latest"):
        status, file = exported(db, latest, folder)
        if plan is None:
            check(f"{what}: export says to keep the default clocks", status == 1 and "keep the default clocks" in file, file)
            continue
        check(f"{what}: export --plan {latest}", status == 0 and file["plans"][0]["plan_id"] == plan and
              close(file["plans"][0]["promise"]["energy_change_pct"], answer["energy_change_pct"]), file if status else file["plans"][0]["plan_id"])
    if plan is None:
        return
    first = file["plans"][0]
    names = {file["clocks"][segment["clock"]]["label"] for gpu in first["gpus"] for segment in gpu["segments"]}
    if answer["clocks"] == 1:
        check(f"{what}: the exported clock", names == {answer["set_to"]}, (names, answer["set_to"]))
    compared = json.loads(finished(RUBATO, "compare", run, run, "--db", db, "--json").stdout)
    compared = [row for row in compared if row["answer_of"] == "A B"]
    check(f"{what}: compare", len(compared) == sum(row["plan_id"] is not None for row in stored) and
          any(row["granularity"] == answer["granularity"] and close(row["energy_a_j"], answer["energy_j"]) for row in compared), compared)
    moved = finished(RUBATO, "transfer", "--db", db, *targets).stderr
    check(f"{what}: transfer", f"plan {plan} " in moved or f"plan {plan}," in moved, moved)
    tokens = folder / "run.toml"
    text = (EXAMPLES / "training-run.toml").read_text()
    if captured:
        text = 'tokens_per_iteration = {value = 1024, source = "test"}\ngpus_per_replica = {value = 1, source = "test"}\n' + text
    tokens.write_text(text)
    impact = finished(RUBATO, "impact", tokens, "--db", db).stdout
    check(f"{what}: impact", f"plan {plan} per {answer['granularity']}" in " ".join(impact.split()), impact[:400])
    windows = folder / "ab.csv"
    windows.write_text("pair,arm,steps,time_s,energy_j,plan_id\n" + "".join(
        f"{pair},{arm},10,{1 + 0.001 * pair},{(100 if arm == 'default' else 90) + pair},{plan if arm == 'plan' else ''}\n"
        for pair in range(4) for arm in ("default", "plan")))
    finished_any(RUBATO, "verify", "--plan", folder / "plan.json", "--measured", windows, "--db", db)
    verified = rows(db, f"SELECT * FROM v_verified ORDER BY measurement_id DESC LIMIT 1")[0]
    check(f"{what}: verify", verified["plan_id"] == plan, verified)


def finished_any(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done


def pipeline(db, folder):
    words = ["explore", EXAMPLES / "gpt3-175b-a100.csv", "--blocked-power", "83.64", "--microbatches", "4", "--slack", "0,5,10"]
    said = json.loads(finished(RUBATO, *words, "--db", db, "--json").stdout)
    said = said["plans"] if isinstance(said, dict) else said
    stored = rows(db, "SELECT * FROM v_answer WHERE kind = 'pipeline' ORDER BY slack_pct")
    plans = [row for row in said if row["is_answer"]]
    check("pipeline: the command and the view", [round(row["energy_change_pct"], 9) for row in plans] ==
          [round(row["energy_change_pct"], 9) for row in stored if row["plan_id"]], (plans, stored))
    first = next(row for row in stored if row["is_headline"])
    shown = finished(RUBATO, *words).stdout
    check("pipeline: what is said first", f"Saves     {-first['energy_change_pct']:.1f} % energy" in shown, (shown[:400], first))
    # Whoever asks about the newest run, which this is, is told of it as of any other.
    run = str(first["run_id"])
    page = next(row for row in page_answers(db, run, folder) if row["is_headline"])
    check("pipeline: the page", page["plan_id"] == first["plan_id"] and page["set_to"] == first["set_to"], (page, first))
    # Where the default clocks stay, top names no plan that saves energy at a higher cost.
    kept = folder / "kept.db"
    finished(RUBATO, *words[:-2], "--goal", "cost", "--prices", "kwh=0.1,gpu-hour=1", "--db", kept)
    check("pipeline: the default clocks stay", rows(kept, "SELECT plan_id FROM v_answer") == [{"plan_id": None}])
    check("pipeline: top names none", "keep the default clocks" in finished(RUBATO, "top", "--db", kept).stdout)
    shown = json.loads(finished(RUBATO, "show", "--db", db, "--json").stdout)
    check("pipeline: show", shown["answer"][0]["plan_id"] == first["plan_id"] and len(shown["plans"]) == 9, shown["answer"])
    compared = json.loads(finished(RUBATO, "compare", run, run, "--db", db, "--json").stdout)
    check("pipeline: compare", any(row["answer_of"] == "A B" and close(row["energy_a_j"], first["energy_j"]) for row in compared), compared)
    (folder / "run.toml").write_text('tokens_per_iteration = {value = 1024, source = "test"}\ngpus_per_replica = {value = 4, source = "test"}\n' +
                                     (EXAMPLES / "training-run.toml").read_text())
    impact = json.loads(finished(RUBATO, "impact", folder / "run.toml", "--db", db, "--json").stdout)["impact"]
    boards = next(row for row in impact if row["quantity"] == "energy of the boards")
    check("pipeline: impact", close(boards["change_pct"], first["energy_change_pct"]), (boards, first))
    for part in ("plans", "clocks", "kernels", "cells", "passes", "front", "runs", "classes"):
        lines = finished(RUBATO, "export", part, "--db", db, "--csv").stdout.splitlines()
        check(f"pipeline: export {part}", len(lines) > 1, lines)
    check("pipeline: each stage is named", all(f"stage {stage}" in first["set_to"] for stage in range(4)), first["set_to"])


def main():
    with tempfile.TemporaryDirectory() as name:
        folder, db = Path(name), Path(name) / "r.db"
        step = folder / "step.json"
        finished(RUBATO, "trace", "gen", "gpt3-xl", "--batch", "8", "-o", step)
        (folder / "e.toml").write_text(EXPERIMENT)
        finished(RUBATO, "experiment", "run", folder / "e.toml", "--db", db)  # its units are never the latest run
        run = EXAMPLES / "run.pt.trace.json.gz"
        ranks = sorted((EXAMPLES / "pipeline").glob("rank*.pt.trace.json.gz"))
        for slack in ("0", "5", "0,2,5"):
            one_run(folder, db, "trace", [step, "--slack", slack], [step])
        one_run(folder, db, "trace", [step, "--goal", "edp,cost", "--prices", "kwh=0.12,gpu-hour=0.05", "--per", "run,pass"], [step])
        one_run(folder, db, "trace", [step, "--power-limit", "150", "--slack", "0"], [step])
        one_run(folder, db, "capture", [run, *CAPTURE, "--slack", "1,5"], [run, "--captured-clock", "1593/1410"])
        one_run(folder, db, "capture", [*ranks, "--gpu", "a100-sxm4-80gb", "--clocks", "coarse", "--per", "run,gpu,pass", "--slack", "5"],
                ["--ranks", *ranks])
        pipeline(db, folder)
        # The best unit of an experiment is an answer of its settings; a run of it is no 'latest'.
        top = json.loads(finished(RUBATO, "top", "--db", db, "--experiment", "latest", "--json").stdout)
        check("top lists units", len(top) > 0)
        best = rows(db, "SELECT * FROM v_experiment_plans WHERE is_answer ORDER BY energy_change_pct LIMIT 1")[0]
        said = finished(RUBATO, "top", "--db", db, "--experiment", "latest").stdout
        check("top names an answer", f"run {best['run_id']}, per {best['granularity']}: energy {best['energy_change_pct']:+.2f} %" in said, (said[:300], best))
        answered = rows(db, "SELECT * FROM v_answer WHERE kind = 'trace' AND run_id = ?", best["run_id"])
        check("the unit is the run's answer", any(row["plan_id"] == best["plan_id"] for row in answered), (best, answered))
        least = min(answered, key=lambda row: row["slack_pct"])
        page = page_answers(db, str(best["run_id"]), folder)
        check("the page of an experiment's run begins with the least slack", page[0]["want"] == least["want"] and page[0]["plan_id"] == least["plan_id"], page)
        status, file = exported(db, str(best["run_id"]), folder)
        check("and so does export", (status == 0 and file["plans"][0]["plan_id"] == least["plan_id"]) if least["plan_id"] else status == 1, (status, least))
        check("no headline of an experiment", all(not row["asked"] and not row["is_headline"] for row in answered))
        newest = rows(db, "SELECT max(run_id) AS run_id FROM runs WHERE asked")[0]["run_id"]
        finished(RUBATO, "experiment", "run", folder / "e.toml", "--db", folder / "only.db")
        status, said = exported(folder / "only.db", "latest", folder)
        check("a database of an experiment has no latest run", status == 2 and "experiments" in said, said)
        check("there is a run that was asked for", newest is not None)
        # Merging two halves chooses among all plans again.
        for part, grain in (("a", "run"), ("b", "pass")):
            (folder / f"{part}.toml").write_text(EXPERIMENT.replace('["run", "pass", "kernel", "segment"]', f'["{grain}"]'))
            finished(RUBATO, "experiment", "run", folder / f"{part}.toml", "--db", folder / f"{part}.db")
        finished(RUBATO, "merge", folder / "a.db", folder / "b.db", "-o", folder / "ab.db")
        both = rows(folder / "ab.db", "SELECT want, count(*) AS n FROM plans WHERE is_answer GROUP BY run_id, want")
        check("one answer for each want after a merge", both and all(row["n"] == 1 for row in both), both)
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
