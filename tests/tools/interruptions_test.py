#!/usr/bin/env python3
"""Ctrl-C in every command: status 130, an answer soon, older files as they were or a part that says that it is one.

Usage: interruptions_test.py RUBATO SOURCE_DIR [COMMAND...]

A command of `rubato --help` without an entry here is an error.
"""
import concurrent.futures
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from checks import cpu_s, listed_commands, wait_until_begun

RUBATO, SOURCE, ASKED = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:]
EXAMPLES, MEASURED = SOURCE / "docs/examples", SOURCE / "models/data/measured"
MOMENTS_S = (0.05, 0.4, 1.5)  # after the program has begun
LIMIT_S = 5  # of CPU time, to answer: beside others it takes longer, not more
HANGS_S = 120
AT_END_S = 0.2  # of CPU time: so little is left of a command whose status says that the signal came too late
QUICK = "always over in less than a second"
PYTHON = "of the Python package, whose own tests end it"
OLDER = "older\n"  # of every file x.* that a command is to replace
STAGES = f"{EXAMPLES}/gpt3-175b-a100.csv --blocked-power 83.64"
PIPELINE = f"--profile {STAGES}"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"

ASKED_PLANS = 13  # of each explore, at least

# in.* is a named pipe that nobody writes to, and locked.db a database that somebody else writes to: input that takes long.
COMMANDS = {
    "reproduce": ["reproduce perseus2024 --report x.html"],
    "explore": [
        "explore gpt3-xl --clocks full --per segment --slack 0,1,2,3,4,5,6,7,8,9,10,11,12 -o x.json --db new.db --timeline x.timeline.json",
        "explore gpt3-xl --clocks full --switching latency=1ms --per segment --slack 0,1,2,3,4,5,6,7,8 --csv",
        f"explore {EXAMPLES}/run.pt.trace.json.gz --clocks full --slack 0,0.5,1,1.5,2,3,4,5,6,7,8,9,10 -o x.csv --db new.db",
        "explore in.json -o x.csv --db new.db",
        "explore gpt3-xl --clocks full --per segment --slack 0,1,2,3,4,5,6,7,8,9,10,11,12 -o x.csv --plan-file x.plan.json",
        f"explore {STAGES} --microbatches 48 --switching stall=1ms --slack 0,1,2,3,4,5,10 -o x.json --timeline x.svg --db new.db --plan-file x.plan.json",
    ],
    "budget": QUICK,
    "experiment new": QUICK,
    "experiment run": [f"experiment run {EXAMPLES}/experiment.toml --db new.db"],
    "experiment slurm": ["experiment slurm in.toml --db new.db --shards 4"],
    "merge": ["merge " + "r.db " * 500 + "-o new.db", "merge r.db -o locked.db"],
    "latency-scan": ["latency-scan -o x.csv --page x.html", "latency-scan --json"],
    "transfer": ["transfer --db r.db --batches 1,2,3,5,8,10,13,20,30,40 --tp 1,2,4,8 -o x.json --page x.html"],
    "remeasure": ["remeasure --campaigns 100000 -o x.csv"],
    "pipeline describe": QUICK,
    "pipeline front": [f"pipeline front {PIPELINE} --microbatches 1024 --exact -o x.csv"],
    "pipeline straggle": [f"pipeline straggle {PIPELINE} --microbatches 1024 --data-parallel 16 --throttle 1.05,1.1,1.2,1.3 --lost-stage -o x.csv"],
    "pipeline scale": [f"pipeline scale {PIPELINE} --profile-scale 10 --tensor-parallel 8 -o x.csv"],
    "pipeline compare": [f"pipeline compare {PIPELINE} --microbatches 128 -o x.csv"],
    "pipeline latency-scan": [f"pipeline latency-scan {PIPELINE} --microbatches 24 --slack 0,1,2,3,4,5 -o x.json"],
    "pipeline profile": ["pipeline profile --ranks in.json -o x.csv"],
    "report": ["report --db locked.db -o x.html"],
    "query": [f"query --db r.db '{ENDLESS}' -o x.csv", "query --db r.db -"],
    "top": ["top --db locked.db -o x.csv"],
    "show": ["show --db locked.db --json"],
    "compare": ["compare --db locked.db 1 2 -o x.csv"],
    "verify": ["verify --plan in.json --measured in.csv -o x.json"],
    "impact": ["impact in.toml --db r.db -o x.json"],
    "export": ["export cells --db locked.db --run 1 --csv -o x.csv", "export --plan latest --db locked.db -o x.json"],
    "trace gen": ["trace gen in.json --batch 1 -o x.json"],
    "trace show": ["trace show in.json"],
    "trace convert": ["trace convert in.json x.csv"],
    "trace import": ["trace import in.json -o x.json"],
    "trace scale": ["trace scale gpt3-2.7b --tp 1..4 --pp 1..4 --dp 1..64 --optimizer --page x.html -o x.csv"],
    "gpus": ["gpus in.json"],
    **dict.fromkeys(("apply", "measure", "energy", "watch", "serve", "doctor", "latency", "match", "capture", "restore"), PYTHON),
    "network list": QUICK,
    "network time": ["network time in.json --ranks 64 --bytes 25e6 -o x.csv"],
    "network errors": ["network errors in.csv -o x.csv"],
    "network fit": ["network fit in.csv -o x.json"],
    "network capture": ["network capture in.json --cluster dgx-a100 -o x.json"],
    "calibrate": [f"calibrate {MEASURED}/rtx4050laptop_kernels/kernels.csv --gpu rtx-4050-laptop -o x.json"],
    "suggest": ["suggest in.json --gpu a100-sxm4-80gb --points 5 -o x.csv"],
    "validate": [
        f"validate {EXAMPLES}/a100-sweep.csv --gpu a100-sxm4-80gb --leave-kernels-out -o x.csv --page x.html",
        f"validate {MEASURED}/rtx4050laptop_kernels/kernels.csv --gpu rtx-4050-laptop --intervals -o x.csv",
    ],
    "replay": ["replay in.json --gpu a100-sxm4-80gb --page x.html"],
}


def leaves(*words):
    """Every command of the help that has none below it."""
    text = subprocess.run([RUBATO, *words, "--help"], capture_output=True, text=True, check=True).stdout
    names = listed_commands(text)
    return [leaf for name in names for leaf in leaves(*words, name)] or [" ".join(words)]


def outputs(command):
    """Files that the command replaces."""
    return [word for word in shlex.split(command) if re.fullmatch(r"x(\.\w+)+", word)]


def says_it_is_part(text, name):
    """@param name  of a file, whose ending says the form; .json where it is standard output"""
    if name.endswith(".csv"):
        return text.rstrip().splitlines()[-1].startswith("# interrupted")
    return not name.endswith(".json") or '"interrupted": true' in text


def wrong_stores(db):
    """What a database holds of the interrupted command that does not say so."""
    with sqlite3.connect(db) as connection:
        if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            return ["is damaged"]
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        # Sweeps store what they finished: their units. A run may have been over just before Ctrl-C: then no plan is missing.
        whole = {
            "runs": f"NOT interrupted AND asked AND kind <> 'pipeline' AND (SELECT count(*) FROM plans p WHERE p.run_id = runs.run_id) < {ASKED_PLANS}",
        }
        counts = {name: connection.execute(f"SELECT count(*) FROM {name} WHERE {where}").fetchone()[0] for name, where in whole.items() if name in tables}
        return [f"has a part in {name} as if it were whole" for name, count in counts.items() if count]


def ended(run):
    """CPU time that a process takes to its end from now, which comes after HANGS_S at the latest."""
    begin_s, late = cpu_s(run), time.monotonic() + HANGS_S
    used_s = 0
    while run.poll() is None:
        used_s = cpu_s(run) - begin_s
        if time.monotonic() > late:
            run.kill()
        time.sleep(0.005)
    return used_s


def problems(folder, command, moment_s, stop=signal.SIGINT):
    """What is wrong after one signal; nothing; or None if the command was over before it."""
    for name in outputs(command):
        (folder / name).write_text(OLDER)
    with open(folder / "stdout", "w+", encoding="utf-8") as stdout, open(folder / "stderr", "w+", encoding="utf-8") as stderr:
        run = subprocess.Popen([RUBATO, *shlex.split(command)], cwd=folder, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr)
        wait_until_begun(run)
        time.sleep(moment_s)
        if run.poll() is not None:
            run.stdin.close()
            return None if run.returncode in (0, 1) else [f"status {run.returncode} without Ctrl-C: {(folder / 'stderr').read_text()}"]
        run.send_signal(stop)
        used_s = ended(run)
        run.stdin.close()
    printed, told = (folder / "stdout").read_text(), (folder / "stderr").read_text()
    found = []
    if run.returncode in (0, 1) and used_s < AT_END_S and "interrupted" not in told:
        return None
    if run.returncode != 130:
        found.append(f"status {run.returncode}: {told[-300:]}")
    if used_s > LIMIT_S:
        found.append(f"took {used_s:.1f} s of CPU time to answer; expected {LIMIT_S} at most")
    if "interrupted" not in told:
        found.append(f"does not say that it was interrupted: {told[-300:]}")
    words = shlex.split(command)
    kind = ".csv" if "--csv" in words else ".json" if "--json" in words else ""
    if printed and not outputs(command) and not says_it_is_part(printed, kind):
        found.append(f"prints a part as if it were whole: ...{printed[-200:]}")
    for name in outputs(command):
        if (folder / name).read_text() != OLDER:
            found.append(f"{name} was replaced")
    known = {*outputs(command), "stdout", "stderr", *INPUTS, *(f"{name}{end}" for name in INPUTS for end in ("-wal", "-shm", "-journal"))}
    for file in folder.iterdir():
        if file.name == "new.db":
            found += [f"new.db {what}" for what in wrong_stores(file)]
            if command.startswith("merge"):
                found.append("new.db is there, with a part of what was asked")
        elif ".partial." in file.name:
            if not says_it_is_part(file.read_text(), file.name if "timeline" not in file.name and "plan" not in file.name else ""):
                found.append(f"{file.name} does not say that it is a part")
        elif file.name not in known and not file.name.startswith("new.db-"):
            found.append(f"{file.name} was left behind")
    return found


INPUTS = ("in.csv", "in.json", "in.toml", "r.db", "locked.db")


def prepare(folder, database):
    for name in INPUTS[:3]:
        os.mkfifo(folder / name)
    (folder / "r.db").write_bytes(database)
    (folder / "locked.db").write_bytes(database)
    lock = sqlite3.connect(folder / "locked.db", isolation_level=None, check_same_thread=False)
    lock.execute("PRAGMA journal_mode = DELETE")
    lock.execute("BEGIN EXCLUSIVE")
    return lock


def check(command, database):
    found, met = [], False
    for moment_s, stop in [*((moment, signal.SIGINT) for moment in MOMENTS_S), (0.4, signal.SIGTERM)]:
        with tempfile.TemporaryDirectory() as name:
            lock = prepare(Path(name), database)
            wrong = problems(Path(name), command, moment_s, stop)
            lock.close()
        met = met or wrong is not None
        found += [f"rubato {command[:160]}: {stop.name} after {moment_s} s: {what}" for what in wrong or []]
    return found if met else [f"rubato {command[:160]}: is over {MOMENTS_S[0]} s after it has begun: no example of a long one"]


def second_ends_at_once(database):
    """Units of a sweep are finished after the first Ctrl-C, and dropped after the second."""
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), database).close()
        run = subprocess.Popen([RUBATO, *shlex.split(COMMANDS["experiment run"][0])], cwd=name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until_begun(run)
        time.sleep(0.4)
        run.send_signal(signal.SIGINT)
        run.send_signal(signal.SIGINT)
        used_s = ended(run)
    return [] if run.returncode in (130, 0) and used_s < LIMIT_S else [f"two Ctrl-C: status {run.returncode} after {used_s:.1f} s of CPU time"]


def main():
    known = leaves()
    found = [f"'{name}' has no entry in {Path(__file__).name}" for name in known if name not in COMMANDS]
    found += [f"'{name}' is no command" for name in COMMANDS if name not in known]
    with tempfile.TemporaryDirectory() as name:
        subprocess.run([RUBATO, "explore", "gpt3-xl", "--odds", "0", "--db", "r.db"], cwd=name, check=True, capture_output=True)
        database = (Path(name) / "r.db").read_bytes()
    listed = [command for name, some in COMMANDS.items() if some not in (QUICK, PYTHON) and (not ASKED or name in ASKED) for command in some]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for wrong in pool.map(lambda command: check(command, database), listed):
            found += wrong
    found += second_ends_at_once(database)
    print("\n".join([*found, f"{len(listed)} commands, {len(found)} problems"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
