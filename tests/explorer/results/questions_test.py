#!/usr/bin/env python3
"""The questions of docs/schema.md are one simple SELECT each, and return rows on a database of each kind of run.

Usage: questions_test.py RUBATO SOURCE_DIR
"""
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
EXAMPLES = SOURCE / "docs" / "examples"
CLOCKS = ["--gpu", "a100-sxm4-80gb", "--clocks", "coarse"]
STAGES = ["explore", EXAMPLES / "gpt3-175b-a100.csv", "--blocked-power", "83.64", "--microbatches"]
RANKS = sorted((EXAMPLES / "pipeline").glob("rank*.pt.trace.json.gz"))
CAPTURE = ["explore", EXAMPLES / "run.pt.trace.json.gz", "--captured-clock", "1593/1410", *CLOCKS]
# Run 1 as the page asks it, run 2 to compare with, run 3 asks for what cannot be.
KINDS = {
    "trace": (["explore", "gpt3-xl", "--slack", "5"], ["explore", "gpt3-xl", "--slack", "5", "--power-limit", "300"], ["explore", "gpt3-xl", "--slack", "-60"]),
    "capture": ([*CAPTURE, "--slack", "5"], [*CAPTURE, "--slack", "5", "--power-limit", "300"], [*CAPTURE, "--slack", "-60", "--per", "run"]),
    "ranks": tuple(["explore", *RANKS, *CLOCKS, "--per", "run,gpu,pass", "--slack", slack] for slack in ("5", "5", "-60")),
    "pipeline": ([*STAGES, "4", "--slack", "5"], [*STAGES, "6", "--slack", "5"], [*STAGES, "4", "--slack", "-60"]),
}
ONLY_OF = {"traces with a replay or validation beside them": {"trace"}}


# Filled where collectives run beside compute (tests/explorer/graph/comm_sms_test.cpp), and where odds are worked out.
ELSEWHERE = ("plans.comm_sms", "plans.odds_in_time_pct")
LARGE = set("pkugcxsfwi")  # as views call the tables of plans, units, GPUs, clocks, cells, ...
PRICES = ("--prices", "kwh=0.12,gpu-hour=0.05")
LIMITED = Path(tempfile.mkdtemp()) / "limited.json"
# What fills the columns that the questions do not need.
MORE = {
    "trace": (["explore", "gpt3-xl", "--goal", "time", "--budget", "20000J", "--per", "kernel"],
              ["explore", "gpt3-xl", "--goal", "time", "--budget", "300W", "--per", "kernel"],
              ["explore", "gpt3-xl", "--per", "pass", "--switching", "latency=1ms,stall=10us,mem.latency=2ms,mem.stall=20us,mem.energy=0.1"],
              ["explore", "gpt3-xl", "--goal", "cost", *PRICES, "--per", "run"]),
    "pipeline": (["explore", LIMITED, "--slack", "5"],),
    "ranks": (["explore", *RANKS, *CLOCKS, "--per", "run", "--slack", "5", "--disturb", "1:kernels*1.2"],),
}


def ran(*command, statuses=(0,)):
    done = subprocess.run([RUBATO, *map(str, command)], capture_output=True, text=True)
    assert done.returncode in statuses, f"{command}: status {done.returncode}\n{done.stderr}"


def limited():
    """A pipeline with power limits as choices."""
    ran("pipeline", "describe", "--model", "gpt3-small", "--stages", "2", *CLOCKS, "--microbatches", "2", "--power-limits", "300", "-o", LIMITED)


def verified(folder, db):
    """A measured saving beside a promised one."""
    ran("export", "--plan", "latest", "--db", db, "--per", "run", "-o", folder / "plan.json")
    plan = re.search(r'"plan_id": (\d+)', (folder / "plan.json").read_text())[1]
    (folder / "ab.csv").write_text("pair,arm,steps,time_s,energy_j,plan_id\n" + "".join(
        f"{pair},{arm},10,1.0,{(100 if arm == 'default' else 90) + pair},{plan if arm == 'plan' else ''}\n" for pair in range(4) for arm in ("default", "plan")))
    ran("verify", "--plan", folder / "plan.json", "--measured", folder / "ab.csv", "--db", db, statuses=(0, 1))


def questions():
    """[(text, SQL, kinds that have rows)]"""
    page = (SOURCE / "docs" / "schema.md").read_text(encoding="utf-8")
    found = re.findall(r"\n([^\n]*\?)( \([^\n]*\))?\n\n```sql\n(.*?)```", page, re.DOTALL)
    for text, of, sql in found:
        kinds = ONLY_OF[of.strip(" ()")] if of else {"trace", "capture", "pipeline"}
        yield text, sql, kinds


def measured(db):
    """Predictions beside measurements: a replay with its power log, and points held out."""
    ran("replay", EXAMPLES / "run.pt.trace.json.gz", "--captured-clock", "1593/1410", "--gpu", "a100-sxm4-80gb", "--power", EXAMPLES / "run.power.csv", "--db", db)
    ran("validate", EXAMPLES / "a100-sweep.csv", "--gpu", "a100-sxm4-80gb", "--db", db, statuses=(0, 1))


def never_filled(connections):
    """Columns that are NULL in each row of each database, and tables without rows."""
    names = [name for (name,) in connections[0].execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    columns = [(table, row[1]) for table in names for row in connections[0].execute(f"PRAGMA table_info({table})")]
    return [f"{table}.{column}" for table, column in columns if f"{table}.{column}" not in ELSEWHERE
            and not any(connection.execute(f"SELECT 1 FROM {table} WHERE {column} NOT NULL LIMIT 1").fetchone() for connection in connections)]


def unindexed(connection):
    """Views that read a whole table though one run or plan is asked for."""
    found = []
    for (view,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall():
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({view})")}
        for key in {"run_id", "plan_id", "experiment_id", "measurement_id"} & columns:
            if view == "v_verified" and key != "measurement_id":  # the plan is found by its totals
                continue
            if (view, key) == ("v_answer", "plan_id"):  # one of all plans of its want
                continue
            steps = [row[3].split() for row in connection.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {view} WHERE {key} = 1")]
            if whole := [step for step in steps if step[0] == "SCAN" and step[1] in LARGE]:
                found.append(f"{view} by {key}: {whole}")
    return found


def main():
    wrong, asked, slowest_s, connections = [], 0, 0.0, []
    limited()
    with tempfile.TemporaryDirectory() as name:
        for kind, (first, second, third) in KINDS.items():
            folder, db = Path(name), Path(name) / f"{kind}.db"
            ran(*first, "--db", db)
            if kind != "pipeline":
                verified(folder, db)
            ran(*second, "--db", db)
            ran(*third, "--db", db, statuses=(0, 1))
            for more in MORE.get(kind, ()):
                ran(*more, "--db", db)
            if kind == "trace":
                measured(db)
            connections.append(sqlite3.connect(db))
            with connections[-1] as connection:
                for text, sql, kinds in questions():
                    if re.search(r"\bJOIN\b|\(\s*SELECT", sql, re.IGNORECASE) or sql.upper().count("SELECT") != 1:
                        wrong.append(f"{text} is no simple SELECT")
                    of = "capture" if kind == "ranks" else kind
                    if of not in kinds or (of == "pipeline" and "promised come" in text):  # no plan file of pipelines is verified here
                        continue
                    asked += 1
                    begin = time.perf_counter()
                    rows = connection.execute(sql).fetchall()
                    slowest_s = max(slowest_s, time.perf_counter() - begin)
                    if not rows:
                        wrong.append(f"{kind}: {text} has no rows")
                wrong += [f"{kind}: {found}" for found in unindexed(connection)]
        experiments = Path(name) / "experiment.db"
        (Path(name) / "e.toml").write_text('schema = 1\nname = "e"\n[axes]\ngpu = "a100-sxm4-80gb"\nmodel = "gpt3-small"\nbatch = 8\nsequence = 128\n'
                                           'clocks = "coarse"\npipeline_parallel = [1, 2]\nmicrobatches = 4\ngranularity = "pass"\nslack_pct = 5\n')
        ran("experiment", "run", Path(name) / "e.toml", "--db", experiments)
        ran("merge", experiments, "-o", Path(name) / "merged.db")
        connections += [sqlite3.connect(experiments), sqlite3.connect(Path(name) / "merged.db")]
        wrong += [f"{column} is never filled" for column in never_filled(connections)]
        for connection in connections:
            connection.close()
    print("\n".join(wrong) + f"\n{asked} questions asked, {len(wrong)} wrong; the slowest took {1e3 * slowest_s:.0f} ms")
    return 1 if wrong or asked < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
