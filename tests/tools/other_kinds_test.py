#!/usr/bin/env python3
"""Every kind of file given to every command that reads files: what it is not for is refused with what it is, and what to do with it.

Usage: other_kinds_test.py RUBATO SOURCE_DIR
"""
import concurrent.futures
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from checks import check, exit_status

RUBATO, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
EXAMPLES = SOURCE / "docs/examples"
MOST_LINES = 6  # of a message
# Kinds of files, and what a message calls them.
KINDS = {"run.pt.trace.json.gz": "a profile", "a100-sweep.csv": "a table of measurements", "plan.json": "a plan", "r.db": "a result database",
         "experiment.toml": "an experiment", "run.power.csv": "a power log", "ab.csv": "a measurement of a plan", "gpt3-175b-a100.csv": "a profile of pipeline stages",
         "step.json": "a trace of one step", "spec.json": "a GPU model", "pipe.json": "a description of a pipeline", "training-run.toml": "what a training run costs",
         "a100-sweep.toml": "a description of a table"}
# Commands with a place for a file, and the kinds that it is for.
PLACES = {
    "explore {}": {"a profile", "a profile of pipeline stages", "a trace of one step", "a description of a pipeline"},
    "explore gpt3-xl --gpu {}": {"a GPU model"},
    "explore --table {} --gpu a100-sxm4-80gb": {"a table of measurements", "a description of a table", "a profile of pipeline stages"},
    "explore run.pt.trace.json.gz --power {}": {"a power log"},
    "calibrate {} --gpu a100-sxm4-80gb --no-validation -o /dev/null": {"a table of measurements", "a profile of pipeline stages"},
    "validate {} --gpu a100-sxm4-80gb": {"a table of measurements", "a profile of pipeline stages"},
    "replay {}": {"a profile", "a trace of one step"},
    "trace show {}": {"a trace of one step"},
    "trace import {}": {"a profile", "a trace of one step"},
    "suggest {}": {"a profile", "a trace of one step"},
    "latency-scan {} --latencies-us 10": {"a trace of one step"},
    "experiment run {} --dry-run": {"an experiment"},
    "impact {} --db r.db": {"what a training run costs"},
    "verify --plan {} --measured ab.csv": {"a plan"},
    "verify --plan plan.json --measured {}": {"a measurement of a plan"},
    "show {}": {"a result database"},
    "top {}": {"a result database"},
    "report --db {}": {"a result database"},
    "query {} 'SELECT 1'": {"a result database"},
}


def prepare(folder):
    for name in KINDS:
        if (EXAMPLES / name).exists():
            shutil.copy(EXAMPLES / name, folder)
    for command, name in (("trace gen gpt3-small --layers 2 --batch 1 -o step.json", ""), ("gpus a100-sxm4-80gb", "spec.json"),
                          ("pipeline describe --model gpt3-small --stages 2 -o pipe.json", ""), ("explore gpt3-xl --per run --odds 0 --db r.db", "")):
        done = subprocess.run([RUBATO, *command.split()], cwd=folder, capture_output=True, text=True, check=True)
        if name:
            (folder / name).write_text(done.stdout)


def tried(folder, place, file):
    where = f"rubato {place.format(file)}"
    done = subprocess.run(["bash", "-c", f"'{RUBATO}' {place.format(file)}"], cwd=folder, capture_output=True, text=True)
    message = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    found = []
    if done.returncode not in (0, 1, 2, 3, 4):
        found.append(f"{where}: status {done.returncode}: {done.stderr}")
    if KINDS[file] in PLACES[place]:
        return found
    if done.returncode in (0, 1):
        return [*found, f"{where}: takes {KINDS[file]}"]
    if not message or not message[-1].startswith("  hint: ") or len(message) > MOST_LINES:
        found.append(f"{where}: does not say what to do, in a few lines: {done.stderr}")
    if done.returncode in (3, 4) and (KINDS[file] not in done.stderr or not re.search(rf"hint: .*rubato .*{re.escape(file)}", done.stderr)):
        found.append(f"{where}: does not say that it is {KINDS[file]}, and what that is for: {done.stderr}")
    return found


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        pairs = [(place, file) for place in PLACES for file in KINDS]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for found in pool.map(lambda pair: tried(folder, *pair), pairs):
                for problem in found:
                    check(problem, False)
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
