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
STAGES = ["pipeline", "plan", "--profile", EXAMPLES / "gpt3-175b-a100.csv", "--blocked-power", "83.64", "--microbatches"]
RANKS = sorted((EXAMPLES / "pipeline").glob("rank*.pt.trace.json.gz"))
CAPTURE = ["explore", EXAMPLES / "run.pt.trace.json.gz", "--captured-clock", "1593/1410", *CLOCKS]
# Run 1 as the page asks it, run 2 to compare with, run 3 asks for what cannot be.
KINDS = {
    "trace": (["explore", "gpt3-xl", "--slack", "5"], ["explore", "gpt3-xl", "--slack", "5", "--power-limit", "300"], ["explore", "gpt3-xl", "--slack", "-60"]),
    "capture": ([*CAPTURE, "--slack", "5"], [*CAPTURE, "--slack", "5", "--power-limit", "300"], [*CAPTURE, "--slack", "-60", "--granularity", "iteration"]),
    "ranks": tuple(["explore", "--ranks", *RANKS, *CLOCKS, "--granularity", "iteration,gpu,pass", "--slack", slack] for slack in ("5", "5", "-60")),
    "pipeline": ([*STAGES, "4", "--slack", "5"], [*STAGES, "6", "--slack", "5"], [*STAGES, "4", "--slack", "-60"]),
}
NOT_OF = {"traces": "trace", "pipelines": "pipeline", "captured runs": "capture"}


def ran(*command, statuses=(0,)):
    done = subprocess.run([RUBATO, *map(str, command)], capture_output=True, text=True)
    assert done.returncode in statuses, f"{command}: status {done.returncode}\n{done.stderr}"


def verified(folder, db):
    """A measured saving beside a promised one."""
    ran("export", "--plan", "latest", "--db", db, "--granularity", "iteration", "-o", folder / "plan.json")
    plan = re.search(r'"plan_id": (\d+)', (folder / "plan.json").read_text())[1]
    (folder / "ab.csv").write_text("pair,arm,steps,time_s,energy_j,plan_id\n" + "".join(
        f"{pair},{arm},10,1.0,{(100 if arm == 'default' else 90) + pair},{plan if arm == 'plan' else ''}\n" for pair in range(4) for arm in ("default", "plan")))
    ran("verify", "--plan", folder / "plan.json", "--measured", folder / "ab.csv", "--db", db, statuses=(0, 1))


def questions():
    """[(text, SQL, kinds that have rows)]"""
    page = (SOURCE / "docs" / "schema.md").read_text(encoding="utf-8")
    found = re.findall(r"\n([^\n]*\?)( \([^\n]*\))?\n\n```sql\n(.*?)```", page, re.DOTALL)
    for text, of, sql in found:
        kinds = {NOT_OF[word] for word in of.strip(" ()").split(", ")} if of else {"trace", "capture", "pipeline"}
        yield text, sql, kinds


def main():
    wrong, asked, slowest_s = [], 0, 0.0
    with tempfile.TemporaryDirectory() as name:
        for kind, (first, second, third) in KINDS.items():
            folder, db = Path(name), Path(name) / f"{kind}.db"
            ran(*first, "--db", db)
            if kind != "pipeline":
                verified(folder, db)
            ran(*second, "--db", db)
            ran(*third, "--db", db, statuses=(0, 1))
            with sqlite3.connect(db) as connection:
                for text, sql, kinds in questions():
                    if re.search(r"\bJOIN\b|\(\s*SELECT", sql, re.IGNORECASE) or sql.upper().count("SELECT") != 1:
                        wrong.append(f"{text} is no simple SELECT")
                    of = "capture" if kind == "ranks" else kind
                    if of not in kinds or (of == "pipeline" and "promised come" in text):
                        continue
                    asked += 1
                    begin = time.perf_counter()
                    rows = connection.execute(sql).fetchall()
                    slowest_s = max(slowest_s, time.perf_counter() - begin)
                    if not rows:
                        wrong.append(f"{kind}: {text} has no rows")
                # Views asked for one run use an index: no table is read whole for it.
                for view in ("v_plans", "v_kernels", "v_segments"):
                    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {view} WHERE kind = '{of}' AND run_id = 1")]
                    if not any("SEARCH p USING" in step for step in steps):
                        wrong.append(f"{kind}: {view} of one run: {steps}")
    print("\n".join(wrong) + f"\n{asked} questions asked, {len(wrong)} wrong; the slowest took {1e3 * slowest_s:.0f} ms")
    return 1 if wrong or asked < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
