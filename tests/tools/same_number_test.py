#!/usr/bin/env python3
"""One question has one number: through explore, an experiment of one unit, Python and SQL, for each kind of run.

Usage: same_number_test.py RUBATO SOURCE_DIR
"""
import json
import os
import sqlite3
import sys
import tempfile
from pathlib import Path

from checks import check, exit_status, finished

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
EXAMPLES = SOURCE / "docs" / "examples"
os.environ["RUBATO"] = str(RUBATO)
sys.path.insert(0, str(SOURCE / "tools" / "python"))
import rubato  # noqa: E402

RANKS = str(EXAMPLES / "pipeline" / "rank*.pt.trace.json.gz")
CAPTURE = {"gpu": "a100-sxm4-80gb", "captured_clock": "1593/1410", "clocks": "coarse"}
# Kind, what is explored, options as an experiment has them, keys of the work there.
QUESTIONS = [("trace", ["gpt3-xl"], {"gpu": "rtx-3080-ti", "granularity": granularity, "slack_pct": slack}, {"trace": "step.json"})
             for granularity, slack in (("run", 0), ("kernel", 5), ("segment", 5), ("segment", 0))]
QUESTIONS += [("trace", ["gpt3-xl"], {"gpu": "a100-sxm4-80gb", "granularity": "segment", "slack_pct": 5}, {"trace": "step.json"}),
              ("capture", [EXAMPLES / "run.pt.trace.json.gz"], {**CAPTURE, "granularity": "segment", "slack_pct": 1}, {"capture": str(EXAMPLES / "run.pt.trace.json.gz")}),
              ("capture", [EXAMPLES / "run.pt.trace.json.gz"], {**CAPTURE, "granularity": "pass", "slack_pct": 5}, {"capture": str(EXAMPLES / "run.pt.trace.json.gz")}),
              ("capture", [RANKS], {**CAPTURE, "granularity": "segment", "slack_pct": 5}, {"capture": RANKS})]


def numbers(db, kind):
    """Energy and time as applied, of the only plan that was asked for."""
    with sqlite3.connect(db) as connection:
        return connection.execute("SELECT energy_change_pct, time_change_pct FROM v_plans WHERE kind = ?", (kind,)).fetchall()


def near(a, b):
    return len(a) == len(b) == 1 and all(abs(x - y) < 1e-9 for x, y in zip(a[0], b[0]))


def experiment(folder, work, options):
    lines = [f"{key} = {json.dumps(value)}" for key, value in {**work, **options}.items()]
    (folder / "e.toml").write_text('schema = 1\nname = "one"\n[axes]\n' + "\n".join(lines) + "\n")
    finished(RUBATO, "experiment", "run", folder / "e.toml", "--db", folder / "e.db")
    with sqlite3.connect(folder / "e.db") as connection:
        unit = connection.execute("SELECT energy_change_pct, time_change_pct FROM v_plans").fetchall()
    return unit


def one(kind, what, options, work):
    words = ["--gpu", options["gpu"], "--per", options["granularity"], "--slack", str(options["slack_pct"])]
    words += [word for key in ("captured_clock", "clocks") if key in options for word in (f"--{key.replace('_', '-')}", options[key])]
    name = f"{kind}, {options['gpu']}, {options['granularity']}, slack {options['slack_pct']}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if "trace" in work:
            finished(RUBATO, "trace", "gen", what[0], "-o", folder / "step.json")
            what, work = [folder / "step.json"], {"trace": str(folder / "step.json")}
        said = json.loads(finished(RUBATO, "explore", *what, *words, "--db", folder / "r.db", "--json").stdout)
        stored = numbers(folder / "r.db", kind)
        check(f"{name}: the view has one plan", len(stored) == 1, stored)
        answer = [(row["energy_change_pct"], row["time_change_pct"]) for row in said["answers"] if row["plan"] is not None]
        if answer:
            check(f"{name}: explore and SQL", near(answer, stored), (answer, stored))
        unit = experiment(folder, work, options)
        check(f"{name}: explore and an experiment", near(unit, stored), (unit, stored))
        if RANKS not in map(str, what):
            python = {"gpu": options["gpu"], "per": options["granularity"], "slack": options["slack_pct"]}
            python.update({key: options[key] for key in ("captured_clock", "clocks") if key in options})
            tables = rubato.explore(str(what[0]), **python)
            rows = tables["answers"] if isinstance(tables["answers"], list) else tables["answers"].to_dict("records")
            named = [(row["energy_change_pct"], row["time_change_pct"]) for row in rows if row["plan"] == row["plan"] and row["plan"] is not None]
            check(f"{name}: Python", near(named, stored) if answer else not named, (named, stored))


def pipeline():
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        words = ["--model", "gpt3-xl", "--gpu", "a100-sxm4-80gb", "--stages", "4", "--microbatches", "8", "--batch", "2"]
        finished(RUBATO, "pipeline", "describe", *words, "-o", folder / "pipe.json")
        said = json.loads(finished(RUBATO, "explore", folder / "pipe.json", "--slack", "5", "--per", "pass", "--db", folder / "r.db", "--json").stdout)
        said = said["plans"] if isinstance(said, dict) else said
        stored = numbers(folder / "r.db", "pipeline")
        check("pipeline: the command and SQL", near([(row["energy_change_pct"], row["time_change_pct"]) for row in said[1:]], stored), (said, stored))
        unit = experiment(folder, {"model": "gpt3-xl", "batch": 16, "sequence": 1024, "pipeline_parallel": 4, "microbatches": 8},
                          {"gpu": "a100-sxm4-80gb", "granularity": "pass", "slack_pct": 5})
        check("pipeline: the command and an experiment", near(unit, stored), (unit, stored))


def main():
    for question in QUESTIONS:
        one(*question)
    pipeline()
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
